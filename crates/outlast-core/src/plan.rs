//! The plan as data: what is to be done, and nothing of what has been done.
//!
//! A plan is read from files by the configuration crate, frozen when a run starts and recorded whole in the journal,
//! so that a replay needs no file. It holds text only: paths are relative to the repository's root, with `/`, and
//! nothing here looks at a file system. Whoever builds one has validated it: ids are unique, needs exist, no cycle.

pub mod canonical;
mod millis;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{AccountId, AgentName, RunId, TaskId};

/// Wall-clock time an attempt may run when its plan names none.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(20 * 60);
/// Time an attempt may be silent when its plan names none.
pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5 * 60);
/// After how many turns without progress an attempt is ended, unless the plan says otherwise; a program of the user's own
/// is never.
pub const NO_PROGRESS_DEFAULT: u32 = 30;
/// Further tries a task has when its plan names no number.
pub const RETRIES_DEFAULT: u32 = 2;
/// The exit code by which an agent of the kind `command` asks to be tried later: `EX_TEMPFAIL` of `sysexits.h`.
pub const EXIT_TRY_LATER: i32 = 75;
/// How many tasks are worked on at once where the plan leaves it open.
pub const CONCURRENCY_AUTO: u32 = 5;
/// The branch a run lands on when its plan names none; `{run}` is replaced by the run's id.
pub const TARGET_DEFAULT: &str = "outlast/{run}";

/// Everything one run is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What holds for the run as a whole.
    pub run: RunSettings,
    /// The agents that tasks may name.
    pub agents: BTreeMap<AgentName, AgentSpec>,
    /// The tasks, in the order their author wrote them.
    pub tasks: Vec<Task>,
}

impl Plan {
    /// The task of this id.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    /// The agent a task names.
    pub fn agent(&self, task: &Task) -> Option<&AgentSpec> {
        self.agents.get(&task.agent)
    }

    /// The model a task is tried with: its own, else its agent's; `None` leaves the choice to the agent's program.
    pub fn model<'a>(&'a self, task: &'a Task) -> Option<&'a str> {
        task.model.as_deref().or_else(|| self.agent(task)?.model.as_deref())
    }
}

/// The `[run]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    /// The plan's name, such as `migrate` for `plans/migrate.toml`; run ids start with it.
    pub name: String,
    /// The branch that results land on, possibly with `{run}`; see [`RunSettings::target_of`].
    pub target: Option<String>,
    /// How many attempts may be live at once.
    pub concurrency: Concurrency,
    /// Who decides about landing.
    pub land: Land,
    /// How many tasks run before the rest is asked about.
    pub pilot: Option<u32>,
    /// Globs of files that only one task at a time may change.
    pub hot_files: Vec<String>,
    /// What the whole run may spend.
    pub budget: Budget,
    /// Shell commands that make a fresh tree ready, run once per base tree.
    pub setup: Vec<String>,
    /// How long a request is held for a provider before its attempt is parked, in milliseconds; absent for the usual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_ms: Option<u64>,
}

impl RunSettings {
    /// Settings of a plan that names nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            target: None,
            concurrency: Concurrency::Auto,
            land: Land::Review,
            pilot: None,
            hot_files: Vec::new(),
            budget: Budget::default(),
            setup: Vec::new(),
            hold_ms: None,
        }
    }

    /// The branch that results of `run` land on.
    pub fn target_of(&self, run: &RunId) -> String {
        self.target.as_deref().unwrap_or(TARGET_DEFAULT).replace("{run}", run.as_str())
    }
}

/// How many attempts may be live at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// Found from headroom and pressure.
    Auto,
    /// This many, at least 1.
    Fixed(u32),
}

/// Who decides about landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Land {
    /// A person, by `outlast land`.
    Review,
    /// Each task lands as soon as it is done.
    Auto,
}

/// What the user allows to be spent; an absent part is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Millionths of a US dollar.
    pub usd_micros: Option<u64>,
    /// Billed tokens of every kind.
    pub tokens: Option<u64>,
    /// Share of each account's window, in percent from 1 to 100.
    pub window_percent: Option<u8>,
}

/// An `[agent.NAME]` table: a program that tasks are given to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// Which adapter drives it, such as `claude-code` or `command`.
    pub kind: String,
    /// The model asked for where a task names none.
    pub model: Option<String>,
    /// Accounts it may use, the preferred one first; empty means every account that fits.
    pub accounts: Vec<AccountId>,
    /// What of the user's and the repository's own agent settings stays on: `memory`, `skills`, `hooks`, `mcp:NAME`.
    pub inherit: Vec<String>,
    /// Program and arguments with placeholders, for the kind `command` only.
    pub command: Vec<String>,
    /// Environment variables added, for the kind `command` only.
    pub env: BTreeMap<String, String>,
}

impl AgentSpec {
    /// An agent of this kind with nothing else set.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            model: None,
            accounts: Vec::new(),
            inherit: Vec::new(),
            command: Vec::new(),
            env: BTreeMap::new(),
        }
    }
}

/// One piece of work for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The id its author gave it, unique in the plan.
    pub id: TaskId,
    /// What is to be done, in the author's words.
    pub goal: String,
    /// Globs of the files it may change; empty means any file, and no other task is kept from running beside it.
    pub writes: Vec<String>,
    /// Globs of the files it depends on without changing them.
    pub reads: Vec<String>,
    /// Tasks whose results it starts from.
    pub needs: Vec<TaskId>,
    /// A file of the repository to follow as a pattern.
    pub example: Option<String>,
    /// Shape of the answer that is wanted besides the change.
    pub output: Option<Output>,
    /// Shell commands that must all succeed on the result.
    pub verify: Vec<String>,
    /// Its named parts, in order.
    pub steps: Vec<Step>,
    /// Which agent does it.
    pub agent: AgentName,
    /// The model asked for, over the agent's own.
    pub model: Option<String>,
    /// Wall-clock time one attempt may run, holds and parks not counted.
    #[serde(rename = "timeout_ms", with = "millis")]
    pub timeout: Duration,
    /// Time an attempt may be silent.
    #[serde(rename = "idle_timeout_ms", with = "millis")]
    pub idle_timeout: Duration,
    /// After how many turns that repeat earlier ones and change nothing an attempt is ended: 0 for never, absent for what is
    /// usual for its kind of agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_progress: Option<u32>,
    /// Further tries after the first.
    pub retries: u32,
    /// What this task may spend.
    pub budget: Budget,
    /// Where it was written; no part of the plan's content.
    pub source: Option<Span>,
}

impl Task {
    /// A task with every default and no scope, needs, steps or verify.
    pub fn new(id: impl Into<String>, goal: impl Into<String>, agent: impl Into<String>) -> Self {
        Self {
            id: TaskId::new(id),
            goal: goal.into(),
            writes: Vec::new(),
            reads: Vec::new(),
            needs: Vec::new(),
            example: None,
            output: None,
            verify: Vec::new(),
            steps: Vec::new(),
            agent: AgentName::new(agent),
            model: None,
            timeout: TIMEOUT_DEFAULT,
            idle_timeout: IDLE_TIMEOUT_DEFAULT,
            no_progress: None,
            retries: RETRIES_DEFAULT,
            budget: Budget::default(),
            source: None,
        }
    }
}

/// A named part of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, unique in the task.
    pub name: String,
    /// A shell command that succeeds when the step is done.
    pub command: Option<String>,
}

/// Shape of the answer a task wants besides its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// File it is written to, relative to the repository's root.
    pub path: Option<String>,
    /// Longest answer wanted, in words.
    pub max_words: Option<u32>,
}

/// A place in a file of the plan, for messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The file as it was named to the reader.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_the_journal_unchanged() {
        let mut task = Task::new("文档.B", "Goal\nwith two lines", "claude");
        task.timeout = Duration::from_millis(1_234_567);
        task.steps = vec![Step { name: "one".into(), command: Some("! grep -q x y".into()) }];
        task.source = Some(Span { file: "plans/a.toml".into(), line: 3, column: 1 });
        let plan = Plan {
            run: RunSettings { concurrency: Concurrency::Fixed(4), land: Land::Auto, ..RunSettings::new("a") },
            agents: BTreeMap::from([(AgentName::from("claude"), AgentSpec::new("claude-code"))]),
            tasks: vec![task],
        };
        let json = serde_json::to_string(&plan).unwrap();
        assert!(json.contains(r#""timeout_ms":1234567"#), "{json}");
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    #[test]
    fn the_target_names_the_run_unless_the_plan_names_a_branch() {
        let run = RunId::from("migrate-7f3a");
        let mut settings = RunSettings::new("migrate");
        assert_eq!(settings.target_of(&run), "outlast/migrate-7f3a");
        settings.target = Some("main".into());
        assert_eq!(settings.target_of(&run), "main");
    }
}
