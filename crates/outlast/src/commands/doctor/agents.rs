//! The agents on the PATH and their versions, and the agents of the plan that are not there.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use outlast_agent::discover::{self, Found as Agent};
use outlast_agent::{Kind, adapter};
use outlast_api::ExitCode;
use outlast_core::AgentName;
use outlast_core::plan::Plan;
use outlast_engine::Toolchain;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::found::Found;

/// The slowest real one says its version in 5 s on a busy machine.
const VERSION_MAX: Duration = Duration::from_secs(30);

/// Every agent that is there, and every agent of the plan that is not.
pub(crate) async fn look(plan: Option<&Plan>, state: &Path) -> Vec<Found> {
    let toolchain = Toolchain::of_this_process(state);
    let agents = discover::discover(&toolchain.path);
    let mut asked = JoinSet::new();
    for (place, agent) in agents.iter().cloned().enumerate() {
        let path = toolchain.path.clone();
        asked.spawn(async move { (place, version(&agent, &path).await) });
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    let mut found: Vec<Found> = answers.into_iter().map(|(_, found)| found).collect();
    found.extend(agents.iter().filter(|agent| needs_node(agent.kind)).filter_map(|agent| node(agent, &toolchain)));
    if agents.is_empty() {
        let programs: Vec<&str> = Kind::ALL.into_iter().filter_map(Kind::program).collect();
        let what = format!("none of {} is on the PATH", programs.join(", "));
        found.push(Found::warning("agents", what).fix("install the one you want to use, or an agent of kind command"));
    }
    found.extend(plan.into_iter().flat_map(|plan| missing(plan, &toolchain)));
    found
}

/// Asks the real program for its version, in an empty home and with nothing of this environment but the PATH.
async fn version(agent: &Agent, path: &str) -> Found {
    let title = format!("agent {}", agent.kind);
    let shown = agent.program.display();
    let unanswered = |why: String| {
        Found::warning(title.clone(), format!("{shown} does not say its version: {why}"))
            .fix(format!("{} --version", agent.entry.display()))
    };
    let home = match tempfile::tempdir() {
        Ok(home) => home,
        Err(error) => return Found::skipped(title, format!("no temp folder to ask {shown} in: {error}")),
    };
    match printed(&agent.version_argv, home.path(), path, VERSION_MAX).await {
        Ok(text) => match discover::parse_version(&text) {
            Some(version) if let Some((why, fix)) = discover::unusable(agent, &text, path) => {
                Found::warning(title, format!("{version} ({shown}) cannot be used: {why}")).fix(fix)
            }
            Some(version) => Found::ok(title, format!("{version} ({shown}); {}", speaks(agent.kind))),
            None => unanswered(format!("it printed {text:?}")),
        },
        Err(why) => unanswered(why),
    }
}

fn speaks(kind: Kind) -> String {
    let dialects: Vec<&str> = adapter(kind).capabilities().dialects.iter().map(|dialect| dialect.name()).collect();
    format!("speaks {}", dialects.join(", "))
}

/// What a program prints; it and whatever it started are ended when it takes too long.
async fn printed(argv: &[String], home: &Path, path: &str, limit: Duration) -> Result<String, String> {
    let (program, arguments) = argv.split_first().ok_or("there is no program")?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("TMPDIR", home)
        .env("TERM", "dumb")
        .env("LANG", "C.UTF-8")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
    let answer = child.wait_with_output();
    tokio::pin!(answer);
    let ended = tokio::time::timeout(limit, &mut answer).await;
    if ended.is_err()
        && let Some(group) = group
    {
        // While its leader is not yet waited for, the group's number is nobody else's.
        let _ = killpg(group, Signal::SIGKILL);
    }
    let output = ended.map_err(|_| format!("no answer in {} s", limit.as_secs()))?.map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(output.status.to_string());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Kinds that are started through Node, with a module in front of their own code.
const fn needs_node(kind: Kind) -> bool {
    matches!(kind, Kind::Gemini | Kind::Qwen)
}

fn node(agent: &Agent, toolchain: &Toolchain) -> Option<Found> {
    if toolchain.find("node").is_some() {
        return None;
    }
    let what = format!("`node` is not on the PATH, and {} is started through it", agent.kind);
    Some(Found::warning(format!("agent {}: node", agent.kind), what).fix("put node on the PATH"))
}

/// What an agent of the plan lacks: an error where a task needs it, else something to know.
pub(super) fn of_agent(plan: &Plan, agent: &AgentName, title: String, exit: ExitCode, what: String) -> Found {
    let needed = plan.tasks.iter().any(|task| task.agent == *agent);
    if needed { Found::error(title, exit, what) } else { Found::warning(title, what) }
}

/// Agents of the plan whose program is not on this host.
fn missing(plan: &Plan, toolchain: &Toolchain) -> Vec<Found> {
    let mut found = Vec::new();
    for (name, agent) in &plan.agents {
        let kind = Kind::from_name(&agent.kind);
        let program = kind.and_then(Kind::program).or_else(|| agent.command.first().map(String::as_str));
        let Some(program) = program else { continue };
        let there = match Path::new(program) {
            path if path.is_absolute() => path.exists(),
            // A relative path is the workspace's own.
            _ if program.contains('/') => true,
            _ => toolchain.find(program).is_some(),
        };
        if !there {
            let what = format!("it needs `{program}`, which is not on the PATH");
            let title = format!("agent {name}: program");
            found.push(
                of_agent(plan, name, title, ExitCode::Host, what)
                    .fix(format!("install {program}, or name another agent")),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Vec<String> {
        ["/bin/sh", "-c", line].map(str::to_owned).to_vec()
    }

    #[tokio::test]
    async fn a_program_is_asked_in_an_environment_made_for_it() {
        let home = tempfile::tempdir().unwrap();
        let argv = shell("echo \"$HOME\"; env | cut -d= -f1 | sort | tr '\\n' ' '");
        let path = std::env::var("PATH").unwrap();
        let text = printed(&argv, home.path(), &path, VERSION_MAX).await.unwrap();
        let (shown_home, names) = text.split_once('\n').unwrap();
        assert_eq!(shown_home, home.path().to_str().unwrap());
        assert_eq!(names.trim(), "HOME LANG PATH PWD TERM TMPDIR");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_what_it_started() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("alive");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // The child holds the pipe open for writing; its reader sees the end when the child is gone.
        let argv = shell("sh -c 'exec 3> alive; sleep 600' & wait");
        let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
        let path = std::env::var("PATH").unwrap();
        let hung = printed(&argv, home.path(), &path, Duration::from_secs(2)).await;
        assert_eq!(hung.unwrap_err(), "no answer in 2 s");
        assert_eq!(reader.join().unwrap(), b"");
    }
}
