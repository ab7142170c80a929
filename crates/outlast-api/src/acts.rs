//! What commands that act say they did, and what they ask a running engine for.

use serde::{Deserialize, Serialize};

use crate::status::{LeftOut, PutAway};

/// A request to a running engine's local API: `POST /v1/act`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "act")]
pub enum Act {
    /// Park what lives and start nothing.
    Pause {
        /// Which run.
        run: String,
    },
    /// Go on.
    Resume {
        /// Which run.
        run: String,
    },
    /// Try at once whatever waits for a limit.
    TryNow {
        /// Which run.
        run: String,
    },
    /// Park what lives and end the engine.
    Stop {
        /// Which run.
        run: String,
    },
    /// Change what a run may spend; parts that are absent stay as they are.
    Budget {
        /// Which run.
        run: String,
        /// Billionths of a US dollar.
        usd_nanos: Option<u64>,
        /// Tokens; those read from a cache count a tenth.
        tokens: Option<u64>,
    },
    /// Land verified results.
    Land {
        /// Which run.
        run: String,
        /// Which tasks.
        tasks: Vec<String>,
    },
    /// Try tasks again that were given up, with their work as it is.
    Retry {
        /// Which run.
        run: String,
        /// Which tasks.
        tasks: Vec<String>,
    },
    /// Give tasks that nobody works on to another agent of their plan.
    Assign {
        /// Which run.
        run: String,
        /// Which tasks.
        tasks: Vec<String>,
        /// The agent's name.
        agent: String,
        /// The accounts it may use, in order of preference.
        accounts: Vec<String>,
        /// Whether it is pointless to start it while all of them are closed.
        needs_quota: bool,
    },
    /// Archive work and give it up.
    Discard {
        /// Which run.
        run: String,
        /// Which tasks.
        tasks: Vec<String>,
    },
}

/// What became of an act, task by task: `outlast/act/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// `outlast/act/v1`.
    pub schema: String,
    /// Which run.
    pub run: String,
    /// Each task that was named, and what became of it.
    pub tasks: Vec<ActedTask>,
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActedTask {
    /// Its id.
    pub id: String,
    /// Its state afterwards.
    pub state: String,
    /// The commit on the target, where it landed.
    pub landed: Option<String>,
    /// Whether that commit is none of ours: the target held the change already, by somebody's hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// The other task whose commit that is, where the target held the change already by one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed_with: Option<String>,
    /// Why it did not happen, where it did not.
    pub refused: Option<String>,
    /// The cause's name in the contract, where it did not happen.
    pub cause: Option<String>,
    /// Why the workspace of a discarded task is still there, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// The ref in our store that keeps the work of a discarded task, where there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The command that brings that back, as a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get_back: Option<String>,
    /// What of a discarded task could not be kept, since our store has lost it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// What else is kept of a discarded task: what its agent had put away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_away: Vec<PutAway>,
    /// Tasks that come to no result any more because this one was discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<Dependant>,
}

/// A task that was built on another one, or waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependant {
    /// Its id.
    pub id: String,
    /// What it is now: `blocked`, or `stale` where it had begun.
    pub state: String,
    /// The command that does it anew, where that is another than to do the other one again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What an agent has noted of its task: `outlast/noted/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// `outlast/noted/v1`.
    pub schema: String,
    /// The task.
    pub task_id: String,
    /// Steps that the agent says are done, in the plan's order.
    pub completed_steps: Vec<String>,
    /// The others.
    pub remaining_steps: Vec<String>,
    /// What else it noted, oldest first.
    pub notes: Vec<String>,
}

/// One line of `outlast log --json`: `outlast/log/v1`, JSON lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `outlast/log/v1`.
    pub schema: String,
    /// When, RFC 3339.
    pub at: String,
    /// The run.
    pub run: String,
    /// The task, where it is about one.
    pub task: Option<String>,
    /// What happened: the record's name.
    pub event: String,
    /// What is known of it.
    pub data: serde_json::Value,
    /// Of an attempt that starts: the folder with what its agent says (`stdout`, `stderr`) and with that of each command
    /// of `verify`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<String>,
}

/// What a task changed: `outlast/diff/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// `outlast/diff/v1`.
    pub schema: String,
    /// The run.
    pub run: String,
    /// The task.
    pub task: String,
    /// The task's state: while it is at work, what it has changed since `kept_at` is in its workspace alone.
    #[serde(default)]
    pub state: String,
    /// What the change is measured against.
    pub base: String,
    /// The tree or commit that holds it; the base where nothing was kept yet.
    pub commit: String,
    /// When that was kept; absent where nothing was.
    #[serde(default)]
    pub kept_at: Option<String>,
    /// The working tree, where there is one.
    #[serde(default)]
    pub workspace: Option<String>,
    /// Every changed path.
    pub files: Vec<FileChange>,
    /// Files that the workspace alone holds, and that are no part of this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What its agent has put away, and is no part of this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_away: Vec<PutAway>,
    /// The patch, as git prints it; bytes that are no text are replaced.
    pub patch: String,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path; bytes that are no text are replaced.
    pub path: String,
    /// `added`, `modified`, `deleted` or `type_changed`.
    pub kind: String,
    /// Whether it is inside the task's scope.
    pub in_scope: bool,
    /// Whether it is in a worktree that the agent has made in its workspace, and does not land for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_worktree: bool,
    /// Lines added, where it is text.
    pub added: Option<u64>,
    /// Lines removed, where it is text.
    pub removed: Option<u64>,
}

/// What `outlast clean` would remove, or has removed: `outlast/clean/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clean {
    /// `outlast/clean/v1`.
    pub schema: String,
    /// Whether it was removed.
    pub removed: bool,
    /// Each folder.
    pub items: Vec<CleanItem>,
}

/// One folder that can go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanItem {
    /// What it is: `workspace`, `home`, `temp`.
    pub kind: String,
    /// Whose.
    pub run: String,
    /// Whose.
    pub task: String,
    /// Where.
    pub path: String,
    /// How large, in bytes.
    pub bytes: u64,
    /// Why it stays, where it stays.
    pub kept: Option<String>,
}

/// What `outlast doctor` found: `outlast/doctor/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    /// `outlast/doctor/v1`.
    pub schema: String,
    /// Each thing that was looked at.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What: `git`, `agent claude-code`, `round trip anthropic`.
    pub name: String,
    /// `ok`, `warning`, `error` or `skipped`.
    pub state: String,
    /// What was found.
    pub detail: String,
    /// What to do.
    pub fix: Option<String>,
}
