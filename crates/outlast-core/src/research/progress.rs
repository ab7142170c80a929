//! A task's progress as a file for other programs: the fields that such files have elsewhere, and ours.

use serde::{Deserialize, Serialize};

use super::state::ResearchState;
use crate::ids::{Oid, RunId, TaskId};
use crate::plan::Step;

/// The name and version of the format; fields are only ever added to it.
pub const SCHEMA: &str = "outlast/progress/v1";

/// How far a task is, what has been done and what is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The task.
    pub task_id: TaskId,
    /// Its state, by the names of the command line's contract.
    pub status: String,
    /// Names of the steps that are shown or noted to be done, in the plan's order.
    pub completed_steps: Vec<String>,
    /// Names of the steps that are left, in the plan's order.
    pub remaining_steps: Vec<String>,
    /// Paths that differ from the task's base, sorted.
    pub changed_files: Vec<String>,
    /// The run.
    pub run: RunId,
    /// The agent at work, by its name in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Which attempt, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Main turns of the task so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The commit in the store that holds the tree of this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Oid>,
    /// When this was written, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// What the agent itself noted besides its steps, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the agent knows.
    #[serde(default)]
    pub research: ResearchState,
}

impl Progress {
    /// The progress of a task with these steps, of which `done` are done; the optional fields are filled in by the caller.
    pub fn new(
        run: RunId,
        task_id: TaskId,
        status: impl Into<String>,
        steps: &[Step],
        done: &[String],
        mut changed_files: Vec<String>,
        research: ResearchState,
    ) -> Self {
        changed_files.sort();
        changed_files.dedup();
        let (completed, remaining): (Vec<_>, Vec<_>) = steps.iter().partition(|step| done.contains(&step.name));
        let names = |steps: Vec<&Step>| steps.into_iter().map(|step| step.name.clone()).collect();
        Self {
            schema: SCHEMA.to_owned(),
            task_id,
            status: status.into(),
            completed_steps: names(completed),
            remaining_steps: names(remaining),
            changed_files,
            run,
            agent: None,
            attempt: None,
            turns: None,
            checkpoint: None,
            updated_at: None,
            notes: Vec::new(),
            research,
        }
    }

    /// The text of `progress.json`: the same bytes for the same progress, with a line break at the end.
    #[expect(clippy::expect_used, reason = "plain data with text keys always has a JSON form")]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain data has a JSON form");
        text.push('\n');
        text
    }

    /// Reads a `progress.json` of this version; `None` for anything else.
    pub fn from_json(text: &str) -> Option<Self> {
        let progress: Self = serde_json::from_str(text).ok()?;
        (progress.schema == SCHEMA).then_some(progress)
    }
}
