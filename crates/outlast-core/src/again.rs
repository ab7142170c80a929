//! A task that was given up is tried again because a person says so, and what it blocked waits for it again.

use crate::admit::{Rejection, illegal, on_task};
use crate::core::Core;
use crate::ids::{RunId, TaskId};
use crate::mutant::{Bug, planted};
use crate::record::{Fact, Record, Stream};
use crate::run::{Index, Mode, Run};
use crate::task::{Phase, Task};
use crate::time::Timestamp;

impl Core {
    /// A run that is over goes on with it. What has not come to an end needs no second wish.
    pub(crate) fn admit_retry(&self, now: Timestamp, run: RunId, task: TaskId) -> Result<Vec<Record>, Rejection> {
        let found = self.find(&run, &task)?;
        let of = self.runs.get(&run).ok_or_else(|| Rejection::NoRun(run.clone()))?;
        match &found.phase {
            Phase::Failed | Phase::Waiting { .. } | Phase::Blocked { .. } => {}
            Phase::Pending | Phase::Ready | Phase::Parked | Phase::Live(_) | Phase::Verifying { .. } => {
                return Ok(Vec::new());
            }
            _ => return Err(illegal(found, "be tried again")),
        }
        if let Some(need) = without_result(of, found) {
            return Err(Rejection::NeedWithoutResult { task, need });
        }
        let is_over = matches!(of.mode, Mode::Finished(_));
        let reopened = is_over.then(|| Record { at: now, stream: Stream::Run(run.clone()), fact: Fact::RunResumed });
        let wished = on_task(now, run, task, Fact::RetryRequested);
        Ok(reopened.into_iter().chain([wished]).collect())
    }
}

/// What has to be tried again before this task can be: the first need without a result, and of those that only wait for
/// another one, that other.
fn without_result(run: &Run, task: &Task) -> Option<TaskId> {
    let open = |task: &Task| {
        let need = task.spec.needs.iter().find(|need| run.task(need).is_none_or(|need| need.result().is_none()));
        need.cloned()
    };
    let mut found = open(task)?;
    // A plan is no circle, so that this ends with the last of its tasks at the latest.
    for _ in &run.tasks {
        match run.task(&found).filter(|task| matches!(task.phase, Phase::Blocked { .. })).and_then(open) {
            Some(behind) => found = behind,
            None => break,
        }
    }
    Some(found)
}

/// Lets a task start again, and what waited for it in vain wait again.
pub(crate) fn retried(run: &mut Run, index: Index) {
    let task = &mut run.tasks[index as usize];
    if !matches!(task.phase, Phase::Failed | Phase::Waiting { .. } | Phase::Blocked { .. }) {
        return;
    }
    if !planted(Bug::RetryKeepsTries) {
        (task.tries_used, task.free_retries, task.losses, task.startups) = (0, 0, 0, 0);
        (task.waits, task.broken, task.empties) = (0, 0, 0);
    }
    wait_again(run, index);
    let mut waiting = if planted(Bug::RetryFreesNobody) { Vec::new() } else { vec![index] };
    while let Some(index) = waiting.pop() {
        for dependant in run.dependants(index) {
            if !matches!(run.tasks[dependant as usize].phase, Phase::Blocked { .. }) {
                continue;
            }
            match given_up(run, dependant) {
                Some(by) => run.set_phase(dependant, Phase::Blocked { by }),
                None => {
                    wait_again(run, dependant);
                    waiting.push(dependant);
                }
            }
        }
    }
}

/// Puts a task where a new one would be.
fn wait_again(run: &mut Run, index: Index) {
    let open = run.needs_open(&run.tasks[index as usize].spec.needs);
    run.tasks[index as usize].needs_open = open;
    run.set_phase(index, if open == 0 { Phase::Ready } else { Phase::Pending });
}

/// A need of the task that will come to no result.
fn given_up(run: &Run, index: Index) -> Option<TaskId> {
    let is_over = |task: &Task| {
        let phase = &task.phase;
        matches!(phase, Phase::Failed | Phase::Blocked { .. } | Phase::Stale | Phase::Discarding | Phase::Discarded)
    };
    let needs = &run.tasks[index as usize].spec.needs;
    needs.iter().find(|need| run.task(need).is_some_and(is_over)).cloned()
}

#[cfg(test)]
mod tests;
