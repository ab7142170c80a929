//! Why a command of the outside world became no record.

use crate::ids::{RunId, TaskId};

/// Why a command became no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There is no such run.
    #[error("no run `{0}`")]
    NoRun(RunId),
    /// There is no such task.
    #[error("no task `{1}` in run `{0}`")]
    NoTask(RunId, TaskId),
    /// A run of this id exists.
    #[error("run `{0}` exists already")]
    RunExists(RunId),
    /// It comes from an attempt that was given up.
    #[error("attempt {1} of task `{0}` was given up")]
    Stale(TaskId, u32),
    /// The task is in a state in which this cannot be done.
    #[error("task `{task}` is {state}: cannot {wish}")]
    Illegal {
        /// Which task.
        task: TaskId,
        /// The state it is in.
        state: &'static str,
        /// What was wanted.
        wish: &'static str,
    },
    /// It can be tried again only once what it needs has a result.
    #[error("task `{task}` needs `{need}`, which came to no result: that one has to be tried again first")]
    NeedWithoutResult {
        /// Which task.
        task: TaskId,
        /// What it needs.
        need: TaskId,
    },
    /// It can land only after what it needs.
    #[error("task `{task}` starts from `{need}`, which has not landed")]
    NeedNotLanded {
        /// Which task.
        task: TaskId,
        /// What it needs.
        need: TaskId,
    },
}
