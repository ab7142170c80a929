//! A hermetic place to run whole plans in: a repository, a scripted provider, a home, and the real binary.
//!
//! Nothing in here waits by sleeping: a run is followed by the lines that it prints, and every wait has a limit.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use outlast_process::files;
use outlast_testkit::fixture::{Repo, TestEnv};
use outlast_testkit::provider::{Background, LogEntry, Provider, Script};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use crate::running::{LIMIT, Ran, Running};

/// The script of a project whose every part must hold its own name: what "the target builds" means here.
pub(crate) const CHECK: &str = "for part in parts/*.txt; do\n  [ -e \"$part\" ] || continue\n  \
     grep -qx \"part $(basename \"$part\" .txt)\" \"$part\" || exit 1\ndone\n";

/// How long a process may take to notice that what it was there for is over.
const PATIENCE: Duration = Duration::from_secs(5);

/// A repository, its provider, and everything that runs in between.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) repo: Repo,
    pub(crate) provider: Background,
}

impl World {
    /// A provider that plays each goal's own script.
    pub(crate) fn new() -> Self {
        Self::with_script(Script::default())
    }

    /// A provider with faults or windows.
    pub(crate) fn with_script(script: Script) -> Self {
        Self::in_folder("repo", script)
    }

    /// The same in a folder of another name.
    pub(crate) fn in_folder(name: &str, script: Script) -> Self {
        let env = TestEnv::new().unwrap();
        let provider = Provider::start_in_background(script).unwrap();
        fs::write(env.root().join("key"), "sk-real\n").unwrap();
        env.write_config(&format!(
            "[account.main]\nprovider = \"anthropic\"\nbase_url = {:?}\nkey_file = {:?}\n",
            provider.url(),
            env.root().join("key").display().to_string()
        ))
        .unwrap();
        let repo = env.repo(name).unwrap();
        for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
            repo.git(&["config", key, value]).unwrap();
        }
        repo.write("check.sh", CHECK).unwrap();
        repo.write("README.md", "# Parts\n").unwrap();
        repo.write(".gitignore", "outlast.toml\n").unwrap();
        repo.commit("First").unwrap();
        Self { env, repo, provider }
    }

    /// Writes the plan of this repository.
    pub(crate) fn plan(&self, plan: &Plan) {
        self.repo.write("outlast.toml", plan.text()).unwrap();
    }

    /// The binary, in the repository, not yet started.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = self.env.command(env!("CARGO_BIN_EXE_outlast"));
        command.args(arguments).current_dir(self.repo.dir());
        command
    }

    /// Starts the binary and goes on.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        Running::of(self.command(arguments))
    }

    /// Runs the binary to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        self.start(arguments).end()
    }

    /// Waits until the provider's log meets a condition.
    ///
    /// A wait for what never comes ends the whole test program: nothing else wakes it.
    pub(crate) fn provider_saw(&self, what: &str, met: impl Fn(&[LogEntry]) -> bool) {
        let (done, waiting) = channel::<()>();
        let env = &self.env;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if waiting.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                    eprintln!("the provider never saw: {what}");
                    for pid in env.processes() {
                        kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap_or_default();
                    }
                    std::process::abort();
                }
            });
            self.provider.wait_until(met);
            drop(done);
        });
    }

    /// `outlast status --json`.
    pub(crate) fn status(&self) -> Value {
        self.run(&["status", "--json"]).ends(0).json()
    }

    /// The tasks of the newest run with their states.
    pub(crate) fn states(&self) -> Vec<(String, String)> {
        let status = self.status();
        let tasks = status["tasks"].as_array().unwrap().iter();
        tasks.map(|task| (text(&task["id"]), text(&task["state"]))).collect()
    }

    /// A task of the newest run.
    pub(crate) fn task(&self, id: &str) -> Value {
        let status = self.status();
        let found = status["tasks"].as_array().unwrap().iter().find(|task| task["id"] == id);
        found.unwrap_or_else(|| panic!("no task {id}: {status:#}")).clone()
    }

    /// Checks that every task of the newest run is in this state.
    #[track_caller]
    pub(crate) fn all_are(&self, state: &str) {
        let others: Vec<_> = self.states().into_iter().filter(|(_, found)| found != state).collect();
        assert!(others.is_empty(), "not {state}: {others:?}\n{:#}", self.status());
    }

    /// The branch that the newest run lands on.
    pub(crate) fn target(&self) -> String {
        text(&self.status()["target"])
    }

    /// The names of the tasks in the trailers of a branch's own commits, oldest first.
    pub(crate) fn landed_on(&self, target: &str, base: &str) -> Vec<String> {
        let range = format!("{base}..{target}");
        let format = "--format=%(trailers:key=Outlast-Task,valueonly)";
        let log = self.repo.text(&["log", "--reverse", "--first-parent", format, &range]).unwrap();
        log.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Checks that every one of a branch's commits since `base` passes the project's own check.
    #[track_caller]
    pub(crate) fn every_commit_passes(&self, target: &str, base: &str) {
        let tree = self.env.root().join("history");
        let tree_name = tree.display().to_string();
        self.repo.git(&["clone", "--quiet", "--no-checkout", ".", &tree_name]).unwrap();
        let clone = Repo::at(&tree);
        let range = format!("{base}..{target}");
        let commits = self.repo.text(&["rev-list", "--reverse", &range]).unwrap();
        for commit in commits.lines() {
            clone.git(&["fetch", "--quiet", "origin", commit]).ok();
            clone.git(&["checkout", "--quiet", "--detach", commit]).unwrap();
            let passed = self.env.command("sh").arg("check.sh").current_dir(&tree).status().unwrap();
            assert!(passed.success(), "{commit} does not pass");
        }
        fs::remove_dir_all(&tree).unwrap();
    }

    /// Checks that the process table, the state folder and `status` agree that nothing works any more.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self) {
        let alive: Vec<(String, String)> = self
            .states()
            .into_iter()
            .filter(|(_, state)| matches!(state.as_str(), "running" | "held" | "verifying" | "landing"))
            .collect();
        assert!(alive.is_empty(), "status says that these are at work: {alive:?}");
        let shims: Vec<PathBuf> = self.living_shims().into_iter().map(|(folder, _)| folder).collect();
        assert!(shims.is_empty(), "the state folder names living shims: {shims:?}");
        self.no_process_is_left();
    }

    /// Checks that no process of this world lives.
    #[track_caller]
    pub(crate) fn no_process_is_left(&self) {
        // What forks shims for a command ends when it notices that the command has ended.
        let stays = |pid: &i32| !ends_within(*pid, PATIENCE);
        let processes: Vec<String> = self.env.processes().into_iter().filter(stays).map(describe).collect();
        assert!(processes.is_empty(), "processes are left: {processes:#?}");
    }

    /// The folders of launches whose shim lives, with the shim's pid.
    pub(crate) fn living_shims(&self) -> Vec<(PathBuf, i32)> {
        let mut found = Vec::new();
        for home in self.homes() {
            shims_below(&home.join("attempts"), &mut found);
        }
        found
    }

    /// The folders of the repositories in the home.
    pub(crate) fn homes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.env.outlast_home()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.join("journal.db").is_file()).collect()
    }
}

/// A plan of scripted tasks.
#[derive(Clone)]
pub(crate) struct Plan {
    /// Keys of `[run]`.
    pub(crate) run: String,
    /// Keys of `[defaults]`.
    pub(crate) defaults: String,
    /// Arguments of the agent beside its goal.
    agent: String,
    tasks: String,
}

impl Plan {
    /// A plan without a task; `run` holds the keys of `[run]`.
    pub(crate) fn new(run: &str) -> Self {
        let defaults = "timeout = \"60s\"\nidle_timeout = \"30s\"\nretries = 1\nverify = [\"sh check.sh\"]\n";
        Self { run: run.to_owned(), defaults: defaults.to_owned(), agent: String::new(), tasks: String::new() }
    }

    /// More arguments for the scripted agent.
    pub(crate) fn agent_arguments(mut self, arguments: &[&str]) -> Self {
        self.agent = arguments.iter().map(|argument| format!(", {argument:?}")).collect();
        self
    }

    /// Adds a task; `keys` are further keys of it, one a line.
    pub(crate) fn task(mut self, id: &str, script: &str, keys: &str) -> Self {
        self.tasks.push_str(&format!(
            "[[task]]\nid = {id:?}\ngoal = '''\nDo {id}.\n```outlast-script\n{script}\n```\n'''\n{keys}\n"
        ));
        self
    }

    /// Adds a task that writes the part of its own name, and nothing else.
    pub(crate) fn part(self, id: &str) -> Self {
        let keys = format!("writes = [\"parts/{id}.txt\"]");
        self.task(id, &format!("write parts/{id}.txt \"part {id}\\n\""), &keys)
    }

    fn text(&self) -> String {
        let Self { run, defaults, agent, tasks } = self;
        let program = env!("CARGO_BIN_EXE_outlast");
        format!(
            "[run]\n{run}\n\n[agent.scripted]\nkind = \"command\"\naccounts = [\"main\"]\n\
             command = [{program:?}, \"__agent\"{agent}, \"{{goal_file}}\"]\n\n\
             [defaults]\nagent = \"scripted\"\n{defaults}\n{tasks}"
        )
    }
}

fn shims_below(folder: &Path, found: &mut Vec<(PathBuf, i32)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    // A damaged file names nobody; the process table tells of whoever it should have named.
    let named = match files::load_shim(folder) {
        Err(outlast_process::Error::Format { .. }) => None,
        other => other.unwrap(),
    };
    if let Some(file) = named
        && file.shim.is_alive()
    {
        found.push((folder.to_owned(), file.shim.pid));
    }
    for entry in entries.map(|entry| entry.unwrap()).filter(|entry| entry.file_type().unwrap().is_dir()) {
        shims_below(&entry.path(), found);
    }
}

/// Waits for the end of a process that is none of our children; whether it came in time.
pub(crate) fn ends_within(pid: i32, patience: Duration) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return true };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let limit = Timespec { tv_sec: i64::try_from(patience.as_secs()).unwrap(), tv_nsec: 0 };
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap() > 0
}

/// A process as a person would want to see it.
pub(crate) fn describe(pid: i32) -> String {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid}: {}", String::from_utf8_lossy(&command).replace('\0', " "))
}

/// A JSON string.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no string: {value}")).to_owned()
}
