//! The agents as such: how each one is started and resumed by hand, straight at the provider.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use outlast_testkit::fixture::Repo;
use serde_json::Value;

use super::kills::MARKER;
use super::work;
use super::world::{KEY, World, binary};

/// An agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cli {
    /// The scripted one: it dies of the first refusal.
    Scripted,
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
}

/// What Claude Code is told beside its prompt, as in the adapter.
const CLAUDE_MODEL: &str = "claude-opus-4-8[1m]";
const CODEX_MODEL: &str = "gpt-5.5";

impl Cli {
    /// Its name in plans and reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// Its section in a plan for outlast.
    pub(crate) fn in_plan(self) -> String {
        let real =
            |kind: &str, model: &str| format!("[agent.{}]\nkind = \"{kind}\"\nmodel = \"{model}\"\n\n", self.name());
        match self {
            Self::Scripted => format!(
                "[agent.scripted]\nkind = \"command\"\naccounts = [\"anthropic\"]\n\
                 command = [{:?}, \"__agent\", \"--resume\", \"{{resume}}\", \"{{goal_file}}\"]\n\n",
                binary()
            ),
            Self::Claude => real("claude-code", CLAUDE_MODEL),
            Self::Codex => real("codex", CODEX_MODEL),
        }
    }
}

/// One task as a person keeps it: where it is worked on, and with which session.
pub(crate) struct Place<'a> {
    pub(crate) world: &'a World,
    pub(crate) cli: Cli,
    pub(crate) number: u32,
    /// Which fresh start this is, from 1: each has a clone and a home of its own.
    pub(crate) fresh: u32,
}

impl Place<'_> {
    fn folder(&self) -> PathBuf {
        self.world.env.root().join("by-hand").join(format!("{}.{}", self.id(), self.fresh))
    }

    /// The name of the task.
    pub(crate) fn id(&self) -> String {
        work::id(self.number)
    }

    /// The clone that the agent works in.
    pub(crate) fn clone_dir(&self) -> PathBuf {
        self.folder().join("clone")
    }

    fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    /// Makes a clone and a home.
    pub(crate) fn make(&self) {
        fs::create_dir_all(self.home().join("cx")).unwrap();
        fs::create_dir_all(self.home().join("tmp")).unwrap();
        let clone = self.clone_dir();
        Repo::at(&self.world.repo).git(&["clone", "--quiet", "--shared", ".", clone.to_str().unwrap()]).unwrap();
    }

    /// The session's id: fixed beforehand, but for codex, which makes it up.
    fn session(&self) -> Option<String> {
        match self.cli {
            Cli::Scripted | Cli::Claude => {
                Some(format!("00000000-0000-4000-8000-{:06}{:06}", self.fresh, self.number + 1))
            }
            Cli::Codex => {
                let said = fs::read_to_string(self.output()).ok()?;
                let mut events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                events.find_map(|event| Some(event.get("thread_id")?.as_str()?.to_owned()))
            }
        }
    }

    /// The session to resume, if one has been kept.
    pub(crate) fn kept_session(&self) -> Option<String> {
        let session = self.session()?;
        let store = match self.cli {
            Cli::Scripted => self.home().join(".scripted-agent"),
            Cli::Claude => self.home().join("cc/projects"),
            Cli::Codex => self.home().join("cx/sessions"),
        };
        names_below(&store).iter().any(|name| name.to_string_lossy().contains(&session)).then_some(session)
    }

    /// What the agent prints.
    fn output(&self) -> PathBuf {
        self.folder().join("output")
    }

    /// The command that begins, or goes on with a session.
    pub(crate) fn command(&self, resume: Option<&str>) -> Command {
        let mut command = match self.cli {
            Cli::Scripted => self.scripted(resume),
            Cli::Claude => self.claude(resume),
            Cli::Codex => self.codex(resume),
        };
        let output = File::options().create(true).append(true).open(self.output()).unwrap();
        command.env(MARKER, format!("by-hand/{}.{}", self.id(), self.fresh));
        command.env("HOME", self.home()).env("TMPDIR", self.home().join("tmp"));
        command.current_dir(self.clone_dir()).stdin(Stdio::null());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        command
    }

    fn scripted(&self, resume: Option<&str>) -> Command {
        let mut command = self.world.env.command(binary());
        command.arg("__agent").env("OUTLAST_GATEWAY_URL", self.world.provider.url()).env("OUTLAST_KEY", KEY);
        match resume {
            Some(session) => command.args(["--resume", session]),
            None => command.args(["--prompt", &work::goal(&self.id()), "--session-id", &self.session().unwrap()]),
        };
        command
    }

    fn claude(&self, resume: Option<&str>) -> Command {
        let mut command = self.world.env.command("claude");
        match resume {
            Some(session) => command.args(["-p", "Continue.", "--resume", session]),
            None => command.args(["-p", &work::goal(&self.id()), "--session-id", &self.session().unwrap()]),
        };
        command
            .args(["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"])
            .args(["--model", CLAUDE_MODEL])
            .env("IS_SANDBOX", "1")
            .env("CLAUDE_CONFIG_DIR", self.home().join("cc"))
            .env("ANTHROPIC_BASE_URL", self.world.provider.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .envs(["DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"].map(|name| (name, "1")))
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command
    }

    fn codex(&self, resume: Option<&str>) -> Command {
        let mut command = self.world.env.command("codex");
        command.args(["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-m", CODEX_MODEL]);
        let base_url = format!("{}/v1", self.world.provider.url());
        let settings = [("name", "gw"), ("base_url", &base_url), ("wire_api", "responses"), ("env_key", "GWKEY")];
        command.args(["-c", "model_provider=gw"]);
        for (key, value) in settings {
            command.args(["-c", &format!("model_providers.gw.{key}={value}")]);
        }
        match resume {
            Some(session) => command.args(["resume", session, "Continue."]),
            None => command.arg(work::goal(&self.id())),
        };
        command.env("CODEX_HOME", self.home().join("cx")).env("GWKEY", KEY);
        command
    }

    /// Whether the task's result is there: the project's own check.
    pub(crate) fn passes(&self) -> bool {
        let mut check = self.world.env.command("sh");
        check.args(["check.sh", &self.id()]).current_dir(self.clone_dir());
        check.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }
}

/// The names of all files below a folder.
fn names_below(folder: &Path) -> Vec<OsString> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            names.extend(names_below(&entry.path()));
        } else {
            names.push(entry.file_name());
        }
    }
    names
}
