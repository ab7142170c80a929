//! Why a task is where it is, as data: the faces turn it into sentences.

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::core::Core;
use crate::ids::{AccountId, RunId, TaskId};
use crate::record::LandingCause;
use crate::run::Mode;
use crate::scope::Claims;
use crate::task::{Failure, Held, Phase};
use crate::time::Timestamp;

/// Why a task is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Why {
    /// It waits for the result of another.
    Needs {
        /// Which tasks have none yet.
        tasks: Vec<TaskId>,
    },
    /// Every slot is taken.
    NoRoom {
        /// How many there are.
        concurrency: u32,
    },
    /// Another task may change the same files.
    Scope {
        /// Which.
        task: TaskId,
    },
    /// No account takes requests.
    Quota {
        /// The first that opens.
        account: AccountId,
        /// When.
        until: Timestamp,
        /// What it is closed for.
        class: Class,
    },
    /// All its accounts wait for a person.
    Person {
        /// The first of them.
        account: AccountId,
        /// What is the matter with it.
        class: Class,
    },
    /// The run's budget is reached.
    Budget,
    /// It is tried again later.
    Retry {
        /// When.
        until: Timestamp,
        /// Why the last try failed.
        failure: Option<Failure>,
    },
    /// A person paused or stopped the run.
    Paused,
    /// It is about to start.
    Starting,
    /// An agent works on it.
    Working,
    /// Its request waits at the gateway.
    Held(Held),
    /// Its work is being checked.
    Verifying,
    /// Its work waits for a person to land it.
    Review,
    /// Its work waits its turn to land.
    LandingQueue,
    /// Its work could not land.
    LandingRefused {
        /// Why.
        cause: LandingCause,
        /// Names and commands.
        detail: String,
    },
    /// Its tries are used up, or none would help.
    Failed {
        /// Why the last try failed.
        failure: Option<Failure>,
    },
    /// A task that it needs failed or was discarded.
    Blocked {
        /// Which.
        by: TaskId,
    },
    /// It is over.
    Over,
}

impl Core {
    /// Why this task is where it is; nothing where there is no such task.
    pub fn explain(&self, run: &RunId, task: &TaskId, now: Timestamp) -> Option<Why> {
        let run = self.runs.get(run)?;
        let task = run.task(task)?;
        Some(match &task.phase {
            Phase::Pending => {
                let open = |need: &&TaskId| run.task(need).is_none_or(|need| need.result().is_none());
                Why::Needs { tasks: task.spec.needs.iter().filter(open).cloned().collect() }
            }
            Phase::Waiting { until } if *until > now => {
                Why::Retry { until: *until, failure: task.last_failure.clone() }
            }
            Phase::Ready | Phase::Waiting { .. } => {
                if run.mode != Mode::Running {
                    Why::Paused
                } else if run.purse.reached.is_some() {
                    Why::Budget
                } else if let Some((until, account, class)) = self.quota_until(task, now) {
                    Why::Quota { account, until, class }
                } else if let Some((account, class)) = self.waits_for_a_person(task) {
                    Why::Person { account, class }
                } else if let Err(task) = Claims::of(run).add(task) {
                    Why::Scope { task }
                } else if run.busy >= run.spec.concurrency {
                    Why::NoRoom { concurrency: run.spec.concurrency }
                } else {
                    Why::Starting
                }
            }
            Phase::Parked if run.mode == Mode::Running => Why::Budget,
            Phase::Parked => Why::Paused,
            Phase::Live(attempt) => attempt.held.clone().map_or(Why::Working, Why::Held),
            Phase::Verifying { .. } if run.mode == Mode::Stopped => Why::Paused,
            Phase::Verifying { .. } => Why::Verifying,
            Phase::Done(finished) => match &finished.refused {
                _ if finished.wanted => Why::LandingQueue,
                Some(refused) => Why::LandingRefused { cause: refused.cause, detail: refused.detail.clone() },
                None => Why::Review,
            },
            Phase::Landing { .. } => Why::LandingQueue,
            Phase::Failed => Why::Failed { failure: task.last_failure.clone() },
            Phase::Blocked { by } => Why::Blocked { by: by.clone() },
            Phase::Landed { .. } | Phase::Discarding | Phase::Discarded | Phase::Stale => Why::Over,
        })
    }
}

#[cfg(test)]
mod tests;
