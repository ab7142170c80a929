//! When the passing of time alone makes a difference next, and why.

use std::ops::Bound;
use std::time::Duration;

use crate::core::Core;
use crate::ids::{AccountId, TaskId};
use crate::mutant::{Bug, planted};
use crate::run::{Index, Mode, Run};
use crate::time::Timestamp;
use crate::window::Window;

/// Why the driver is to look again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// An account opens.
    AccountOpens(AccountId),
    /// A task is tried again.
    TaskRetries(TaskId),
    /// A request of the task is held no longer.
    HoldEnds(TaskId),
    /// The task was started to try an account out, and others wait for it no longer.
    TrialEnds(TaskId),
}

impl Core {
    /// The next instant after `now` at which [`Core::decide`] may have something new to say, if nothing else happens.
    ///
    /// A task that is due and was not started waits for room or for an account: their events wake it.
    pub fn wake_at(&self, now: Timestamp) -> Option<(Timestamp, Reason)> {
        let accounts = self.accounts.iter().filter_map(|(account, window)| match window {
            Window::Closed { until, .. } => Some((*until, Reason::AccountOpens(account.clone()))),
            Window::Open | Window::Shut { .. } | Window::Probing { .. } => None,
        });
        let retries =
            self.runs.values().filter(|run| run.mode == Mode::Running && !planted(Bug::RetryForgotten)).filter_map(
                |run| {
                    let &(until, index) =
                        run.waiting.range((Bound::Excluded((now, Index::MAX)), Bound::Unbounded)).next()?;
                    Some((until, Reason::TaskRetries(run.tasks[index as usize].id.clone())))
                },
            );
        let holds = self.runs.values().filter(|run| run.mode == Mode::Running).flat_map(|run| {
            run.active().filter_map(|task| {
                let held = task.attempt()?.held.as_ref()?;
                // A millisecond more: it may take as long as it may take.
                let end = held.since.plus(run.spec.hold_max()).plus(Duration::from_millis(1));
                (end > now).then(|| (end, Reason::HoldEnds(task.id.clone())))
            })
        });
        let untried = self.accounts.iter().filter_map(|(account, window)| Some((account, window.untried_since()?)));
        let trials = untried.flat_map(|(account, since)| {
            self.runs.values().flat_map(Run::active).filter_map(move |task| {
                let end = task.attempt()?.trial_ends(since)?;
                let tries = end > now && task.spec.accounts.contains(account);
                tries.then(|| (end, Reason::TrialEnds(task.id.clone())))
            })
        });
        accounts.chain(retries).chain(holds).chain(trials).min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests;
