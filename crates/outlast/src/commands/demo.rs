//! `outlast demo`: the main job on a made-up repository, with a scripted provider that closes its window in the middle.
//!
//! Everything but the model is real: the plan, the gateway, the agents' processes, the sandbox, verify, the landing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use outlast_api::{Diagnostic, ExitCode};
use outlast_engine::Home;
use outlast_testkit::provider::{Fault, Provider, RefusalKind, Rule, Script, When};

use crate::args::{Demo, Run};
use crate::commands::{Given, print, run, say};
use crate::failure::Failure;
use crate::text::{BOLD, styled};

/// How many tasks the demo has.
const TASKS: usize = 12;
/// Which request is refused, and for how long: in the middle of the first wave.
const REFUSED_REQUEST: u64 = 9;
const REFUSED_FOR_SECONDS: u64 = 3;

const PORTS: [&str; TASKS] =
    ["aden", "bergen", "callao", "dakar", "esbjerg", "fremantle", "genoa", "haifa", "izmir", "jeddah", "kobe", "lagos"];

pub(crate) fn perform(mut given: Given, demo: &Demo) -> Result<ExitCode, Failure> {
    let folder = tempfile::Builder::new().prefix("outlast-demo-").tempdir().map_err(|error| cannot(&error))?;
    let root = folder.path().to_owned();
    let repository = root.join("harbour");
    make_repository(&repository, demo.agent.as_deref())?;
    say(&format!("a made-up repository with {TASKS} tasks: {}", repository.display()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| cannot(&error))?;
    let provider = runtime.block_on(Provider::start_local(script())).map_err(|error| defect(&error.to_string()))?;
    let address = provider.addr;
    fs::write(root.join("key"), "sk-demo\n").map_err(|error| cannot(&error))?;
    fs::set_permissions(root.join("key"), fs::Permissions::from_mode(0o600)).map_err(|error| cannot(&error))?;
    fs::write(root.join("config.toml"), config(&format!("http://{address}"), &root.join("key")))
        .map_err(|error| cannot(&error))?;
    say(&format!(
        "a scripted provider at {address}: it refuses request {REFUSED_REQUEST} and asks for {REFUSED_FOR_SECONDS} s of patience"
    ));
    given.places.home = Home::new(root.join("state"));
    given.places.config = root.join("config.toml");
    given.places.cwd.clone_from(&repository);
    let json = given.json;
    let code = run::perform(given, &Run { yes: true, ..Run::default() })?;
    let log = git(&repository, &["log", "--oneline", "--graph", "--all"])?;
    say(&format!("\n{}", styled(BOLD, "git log --oneline --all")));
    // With `--json` the run is what is printed.
    if json {
        say(log.trim_end());
    } else {
        print(&log)?;
    }
    drop(runtime);
    if demo.keep {
        let kept = folder.keep();
        say(&format!("kept: {}", kept.display()));
        say(&format!("outlast --home {0}/state --config {0}/config.toml status", kept.display()));
    }
    Ok(code)
}

/// The provider: any key, each task's script inline in its goal, one refusal with a stated end.
fn script() -> Script {
    let refuse = Fault::Refuse { reason: RefusalKind::MinuteLimit, seconds: Some(REFUSED_FOR_SECONDS) };
    let when = When { nth: Some(REFUSED_REQUEST), ..When::default() };
    Script::default().with_fault(Rule { when, fault: refuse, times: Some(1) })
}

fn config(base_url: &str, key: &Path) -> String {
    let accounts = ["anthropic", "openai", "gemini"].map(|provider| {
        let path = if provider == "openai" { "/v1" } else { "" };
        format!(
            "[account.{provider}]\nprovider = \"{provider}\"\nbase_url = \"{base_url}{path}\"\nkey_file = {:?}\n",
            key.display().to_string()
        )
    });
    accounts.join("\n")
}

fn make_repository(repository: &Path, agent: Option<&str>) -> Result<(), Failure> {
    fs::create_dir_all(repository.join("notes")).map_err(|error| cannot(&error))?;
    fs::write(repository.join("README.md"), include_str!("../demo/README.md")).map_err(|error| cannot(&error))?;
    fs::write(repository.join("outlast.toml"), plan(agent)?).map_err(|error| cannot(&error))?;
    for (key, value) in [("user.name", "Demo"), ("user.email", "demo@localhost")] {
        if !repository.join(".git").exists() {
            git(repository, &["init", "--quiet", "--initial-branch=main"])?;
        }
        git(repository, &["config", key, value])?;
    }
    git(repository, &["add", "--all"])?;
    git(repository, &["commit", "--quiet", "--message", "A harbour without notes"])?;
    Ok(())
}

/// The plan: one note a port, one list of them all, and one task whose first try does not pass.
fn plan(agent: Option<&str>) -> Result<String, Failure> {
    let mut plan = String::from("[run]\nconcurrency = 4\nland = \"auto\"\n\n");
    match agent {
        // They choose no model by themselves; the scripted provider answers under any name.
        Some(kind @ ("opencode" | "kimi")) => {
            plan.push_str(&format!("[agent.demo]\nkind = {kind:?}\nmodel = \"scripted\"\n\n"));
        }
        Some(kind) => plan.push_str(&format!("[agent.demo]\nkind = {kind:?}\n\n")),
        None => {
            let program = std::env::current_exe().map_err(|error| cannot(&error))?;
            plan.push_str(&format!(
                "[agent.demo]\nkind = \"command\"\ncommand = [{:?}, \"__agent\", \"{{goal_file}}\"]\n\n",
                program.display().to_string()
            ));
        }
    }
    plan.push_str("[defaults]\nagent = \"demo\"\ntimeout = \"5m\"\nidle_timeout = \"2m\"\n\n");
    let last = PORTS.len() - 1;
    for (index, port) in PORTS.iter().enumerate() {
        let file = format!("notes/{port}.md");
        let (needs, script) = if index == last {
            // It starts from what the first two have written.
            let steps = format!("read notes/{}.md\nread notes/{}.md\nrun \"ls notes > {file}\"", PORTS[0], PORTS[1]);
            (format!("needs = [{:?}, {:?}]\n", PORTS[0], PORTS[1]), steps)
        } else {
            (String::new(), format!("read README.md\nwrite {file} {:?}", format!("The port of {port}.\n")))
        };
        let verify = match index {
            last_one if last_one == last => format!("test -s {file}"),
            // A reviewer who is never content with a first try.
            2 => format!("case $OUTLAST_ATTEMPT in *.1/*) false ;; esac && grep -q 'The port of {port}' {file}"),
            _ => format!("grep -q 'The port of {port}' {file}"),
        };
        plan.push_str(&format!(
            "[[task]]\nid = {port:?}\ngoal = '''\nWrite {file}, one line about the port.\n```outlast-script\n{script}\n```\n'''\n\
             writes = [{file:?}]\n{needs}verify = [{verify:?}]\n\n"
        ));
    }
    Ok(plan)
}

fn git(repository: &Path, args: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(["-c", "commit.gpgSign=false", "-c", "core.hooksPath=/dev/null"])
        .args(args)
        .output()
        .map_err(|error| cannot(&error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Diagnostic::error("host/cannot", ExitCode::Host, format!("git {} failed", args.join(" ")))
        .because(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        .into())
}

fn cannot(error: &std::io::Error) -> Failure {
    Diagnostic::error("host/cannot", ExitCode::Host, error.to_string()).into()
}

fn defect(why: &str) -> Failure {
    Diagnostic::error("outlast/defect", ExitCode::Defect, why).into()
}
