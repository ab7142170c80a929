//! One hermetic place: a repository, a scripted provider that accepts one key alone, and the built binary.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use outlast_journal::JournalReader;
use outlast_testkit::fixture::{Repo, TestEnv};
use outlast_testkit::provider::{Background, LogEntry, Provider, Script};
use outlast_testkit::wire::{Call, Item};
use serde_json::{Value, json};

use crate::gate::Gate;
use crate::processes::kill_tree;

/// How long one command may take: the slowest run here needs a minute on two busy cores.
const RUN_MAX: Duration = Duration::from_secs(280);

/// A real CLI, and what of it the tests must know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cli {
    /// The program.
    pub(crate) program: &'static str,
    /// The kind of agent in a plan.
    pub(crate) kind: &'static str,
    /// A model for which the CLI offers its own tools, and asks nothing beside the conversation.
    pub(crate) model: &'static str,
    /// How the tool that changes files is named in its requests.
    pub(crate) edit_tool: &'static str,
    /// Whether the model has a price.
    pub(crate) is_priced: bool,
}

pub(crate) const CLAUDE: Cli =
    Cli { program: "claude", kind: "claude-code", model: "claude-opus-4-8[1m]", edit_tool: "Edit", is_priced: true };
pub(crate) const CODEX: Cli =
    Cli { program: "codex", kind: "codex", model: "gpt-5.5", edit_tool: "apply_patch", is_priced: true };
pub(crate) const OPENCODE: Cli =
    Cli { program: "opencode", kind: "opencode", model: "scripted-model", edit_tool: "edit", is_priced: false };
pub(crate) const GEMINI: Cli =
    Cli { program: "gemini", kind: "gemini", model: "gemini-2.5-pro", edit_tool: "replace", is_priced: true };
pub(crate) const QWEN: Cli =
    Cli { program: "qwen", kind: "qwen", model: "scripted-model", edit_tool: "edit", is_priced: false };
pub(crate) const KIMI: Cli =
    Cli { program: "kimi", kind: "kimi", model: "scripted-model", edit_tool: "StrReplaceFile", is_priced: false };

/// What the account is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account {
    /// A key of each provider, all the same one.
    Key,
    /// A subscription's login, of this name in a configuration.
    Login(&'static str),
}

/// The account id in codex's login.
pub(crate) const ACCOUNT_ID: &str = "account-of-the-login";

pub(crate) struct Bench {
    pub(crate) env: TestEnv,
    pub(crate) repo: Repo,
    pub(crate) provider: Background,
    /// The account's key, which no agent and no file but the key file may hold.
    pub(crate) canary: String,
}

/// How long something that agents wait for lasts: long enough here for every timer that would be a defect, and as long as
/// `OUTLAST_WAIT_SECONDS` says where patience itself is tested.
pub(crate) fn wait() -> Duration {
    let text = std::env::var("OUTLAST_WAIT_SECONDS");
    Duration::from_secs(text.map_or(20, |text| text.parse().expect("OUTLAST_WAIT_SECONDS is a number of seconds")))
}

impl Bench {
    /// With a key as account; `None`, said aloud, when there are no real agents to test with.
    pub(crate) fn new(clis: &[Cli], script: Script) -> Option<Self> {
        Self::with_account(clis, script, Account::Key)
    }

    /// `None`, said aloud, when there are no real agents to test with.
    pub(crate) fn with_account(clis: &[Cli], script: Script, account: Account) -> Option<Self> {
        let names: Vec<&str> = clis.iter().map(|cli| cli.program).collect();
        let Some(agents) = std::env::var_os("OUTLAST_REAL_AGENTS").map(PathBuf::from) else {
            // Straight to the stream: what a test that passes prints is kept back.
            let told = format!("SKIPPED: NOT TESTED WITH {}: OUTLAST_REAL_AGENTS IS NOT SET\n", names.join(", "));
            io::stderr().write_all(told.as_bytes()).unwrap();
            return None;
        };
        for name in names {
            assert!(agents.join(name).exists(), "{} has no {name}", agents.display());
        }
        let mut env = TestEnv::new().unwrap();
        // The folder of the gates is on the path, because what is on the path can be read by agents.
        env.prepend_path(&gates(&env.root())).unwrap();
        env.prepend_path(&agents).unwrap();
        let repo = env.repo("repo").unwrap();
        for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
            repo.git(&["config", key, value]).unwrap();
        }
        let canary = canary();
        let script = Script { keep_bodies: true, ..script }.with_keys([canary.clone()]);
        let provider = Provider::start_in_background(script).unwrap();
        let bench = Self { env, repo, provider, canary };
        let key = match account {
            Account::Login("codex") => {
                json!({ "tokens": { "access_token": bench.canary, "account_id": ACCOUNT_ID } }).to_string()
            }
            _ => format!("{}\n", bench.canary),
        };
        fs::write(bench.key_file(), key).unwrap();
        bench.env.write_config(&bench.config(account)).unwrap();
        Some(bench)
    }

    fn config(&self, account: Account) -> String {
        let (url, file) = (self.provider.url(), self.key_file());
        let section = |name: &str, what: &str, path: &str| {
            format!("[account.{name}]\n{what} = \"{name}\"\nbase_url = \"{url}{path}\"\nkey_file = {file:?}\n\n")
        };
        let path = |name| if matches!(name, "openai" | "codex") { "/v1" } else { "" };
        match account {
            Account::Key => {
                ["anthropic", "openai", "gemini"].map(|name| section(name, "provider", path(name))).concat()
            }
            Account::Login(name) => section(name, "login", path(name)),
        }
    }

    /// Where the account's key is.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.env.root().join("key")
    }

    /// A gate for the commands of an agent.
    pub(crate) fn gate(&self, name: &str) -> Gate {
        Gate::new(&gates(&self.env.root()), name)
    }

    /// Commits the plan: its agents, each under its program's name, and these tasks, two at once. A try that is used up
    /// fails a task.
    pub(crate) fn plan(&self, clis: &[Cli], tasks: &str) {
        self.plan_for(2, clis, tasks);
    }

    /// As [`Bench::plan`], so many at once.
    pub(crate) fn plan_for(&self, concurrency: usize, clis: &[Cli], tasks: &str) {
        let mut plan = format!("[run]\nconcurrency = {concurrency}\nland = \"auto\"\nhold = \"2h\"\n\n");
        for Cli { program, kind, model, .. } in clis {
            plan.push_str(&format!("[agent.{program}]\nkind = \"{kind}\"\nmodel = \"{model}\"\n\n"));
        }
        plan.push_str("[defaults]\nretries = 0\ntimeout = \"4m\"\nidle_timeout = \"3m\"\n\n");
        plan.push_str(tasks);
        self.repo.commit_file("outlast.toml", plan, "A plan").unwrap();
    }

    /// Starts the binary in the repository.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let output = self.env.root().join(format!("{}.output", arguments[0]));
        let file = File::create(&output).unwrap();
        let mut command = self.command(arguments);
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Running { child: command.spawn().unwrap(), output }
    }

    /// The JSON objects that a command prints, one a line.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.command(env!("CARGO_BIN_EXE_outlast"));
        command.args(arguments).current_dir(self.repo.dir()).stdin(Stdio::null());
        command
    }

    /// The run as `status --json` shows it.
    pub(crate) fn status(&self) -> Value {
        self.json(&["status", "--json"]).remove(0)
    }

    /// A record of a task by its event's name, the newest one: what it holds.
    pub(crate) fn last_event(&self, task: &str, event: &str) -> Value {
        let mut lines = self.json(&["log", "--json", task]);
        lines.retain(|line| line["event"] == event);
        lines.pop().unwrap_or_else(|| panic!("no {event} of {task}"))["data"].take()
    }

    /// The state folder of the repository.
    pub(crate) fn state(&self) -> PathBuf {
        let found = outlast_engine::Home::new(self.env.outlast_home()).repositories().unwrap();
        let [state] = found.as_slice() else { panic!("one repository has state: {found:?}") };
        state.clone()
    }

    pub(crate) fn journal(&self) -> JournalReader {
        JournalReader::open(self.state().join("journal.db")).unwrap()
    }

    /// A file as it is on the run's target.
    pub(crate) fn on_target(&self, status: &Value, path: &str) -> String {
        self.repo.text(&["show", &format!("{}:{path}", status["target"].as_str().unwrap())]).unwrap()
    }

    /// The tasks that landed, oldest first, by the trailers of the target's commits.
    pub(crate) fn landed(&self, status: &Value) -> Vec<String> {
        let target = status["target"].as_str().unwrap();
        let format = "--format=%(trailers:key=Outlast-Task,valueonly,separator=%x2C)";
        let log = self.repo.text(&["log", "--reverse", format, target]).unwrap();
        log.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The turns of a scenario that were asked for, in order of arrival.
    pub(crate) fn turns(&self, scenario: &str) -> Vec<usize> {
        let asked = self.provider.model_requests();
        let asked = asked.iter().filter(|entry| entry.scenario.as_deref() == Some(scenario) && !entry.background);
        asked.filter_map(|entry| entry.step).collect()
    }

    /// The bodies of some requests, as text.
    pub(crate) fn bodies<'a>(&self, entries: impl IntoIterator<Item = &'a LogEntry>) -> Vec<String> {
        let body = |entry: &LogEntry| self.provider.body(entry.number).unwrap();
        entries.into_iter().map(|entry| String::from_utf8_lossy(&body(entry)).into_owned()).collect()
    }

    /// What was said in a request.
    pub(crate) fn said(&self, entry: &LogEntry) -> Said {
        let body = serde_json::from_slice(&self.provider.body(entry.number).unwrap()).unwrap();
        Said(entry.dialect.unwrap().read_request(&body).unwrap().items)
    }

    /// The workspace of the only task.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.status()["tasks"][0]["workspace"].as_str().unwrap().into()
    }

    /// The shim of a task's newest attempt.
    pub(crate) fn shim(&self, task: &str) -> i32 {
        let pid = self.last_event(task, "spawned")["shim"]["pid"].as_i64().unwrap();
        i32::try_from(pid).unwrap()
    }

    /// Kills the agent of a task, its shim and all that either has started.
    pub(crate) fn kill_agent(&self, task: &str) {
        kill_tree(self.shim(task));
    }

    /// What an agent's CLI printed in one attempt, both streams.
    pub(crate) fn printed(&self, run: &str, attempt: &str) -> String {
        let folder = self.state().join("attempts").join(run).join(attempt);
        ["stdout", "stderr"].map(|stream| fs::read_to_string(folder.join(stream)).unwrap_or_default()).concat()
    }
}

fn gates(root: &Path) -> PathBuf {
    root.join("gates")
}

/// A text that is nowhere else: unlike any other of this machine.
fn canary() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    format!("sk-canary-{now:x}-{:x}", std::process::id())
}

/// A conversation as a request tells it, the oldest first.
#[derive(Debug)]
pub(crate) struct Said(pub(crate) Vec<Item>);

impl Said {
    /// All that stands in the user's name.
    pub(crate) fn by_people(&self) -> String {
        let texts = self.0.iter().filter_map(|item| match item {
            Item::User { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The model's calls with their results, where there are any.
    pub(crate) fn calls(&self) -> Vec<(&Call, Option<&str>)> {
        let result = |call: &Call| {
            self.0.iter().find_map(|item| match item {
                Item::Result { id, text, .. } if *id == call.id => Some(text.as_str()),
                _ => None,
            })
        };
        let calls = self.0.iter().filter_map(|item| match item {
            Item::Call(call) => Some((call, result(call))),
            _ => None,
        });
        calls.collect()
    }

    /// Whether a call of the model, of those that have a result, has this text among its arguments.
    pub(crate) fn has_called(&self, text: &str) -> bool {
        self.calls().iter().any(|(call, result)| result.is_some() && call.argument_texts().contains(text))
    }
}

/// A command that is running.
pub(crate) struct Running {
    child: Child,
    output: PathBuf,
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Kills it, and nothing else.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end and checks its exit code. One that hangs fails the test, and the end of the test's environment
    /// kills it.
    #[track_caller]
    pub(crate) fn ends(mut self, code: i32) {
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(self.child.wait().unwrap()));
        let status = ended.recv_timeout(RUN_MAX + wait());
        let said = fs::read_to_string(&self.output).unwrap_or_default();
        assert_eq!(status.ok().and_then(|status| status.code()), Some(code), "{said}");
    }
}
