//! Facts become what should be in flight: level-triggered, so that a restart asks for the same.

use std::collections::BTreeMap;

use crate::core::Core;
use crate::ids::{Epoch, Oid, RunId, TaskId};
use crate::record::{EndReason, Rung, ShimRef};
use crate::run::{Mode, Run};
use crate::task::{Phase, Stage, Task};

/// What should be in flight, by what tells one from another.
pub type Operations = BTreeMap<OperationKey, Operation>;

/// What tells one operation from another. Two operations of one key are the same effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationKey {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// What is done with it, and for which attempt.
    pub step: Step,
}

/// What is done with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Prepare, launch or re-adopt, and watch this attempt.
    Attempt(u32),
    /// End this attempt's processes and prove that none is left.
    End(u32),
    /// Check this attempt's work.
    Verify(u32),
    /// Make and verify a commit that can land.
    Candidate,
    /// Move the target.
    Move,
    /// Archive the work and remove the workspace.
    Discard,
}

/// An effect on the world. Each may be started again after a crash: it first looks at what is already so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Prepare the workspace, launch or re-adopt the agent, and report what it does.
    Attempt {
        /// Which try.
        number: u32,
        /// The fence for everything that it reports.
        epoch: Epoch,
        /// How the agent takes up the work.
        rung: Rung,
        /// Verified results that its base is made of.
        needs: Vec<Oid>,
        /// The shim that is on record, if one was launched.
        shim: Option<ShimRef>,
    },
    /// Kill everything that the attempt started.
    End {
        /// Which try.
        number: u32,
        /// The fence.
        epoch: Epoch,
        /// Why it ends.
        reason: EndReason,
        /// The shim that is on record, if one was launched.
        shim: Option<ShimRef>,
    },
    /// Check what the attempt left.
    Verify {
        /// Whose work.
        number: u32,
        /// What its change is measured against.
        base: Option<Oid>,
    },
    /// Make a commit on the target's tip out of the result, and verify it.
    Candidate {
        /// The verified result.
        result: Oid,
        /// What its change is measured against.
        base: Option<Oid>,
        /// How many landings of it were refused before this one.
        refusals: u32,
    },
    /// Move the target, or find that it has moved.
    Move {
        /// Its tip before.
        old: Option<Oid>,
        /// The commit that lands.
        new: Oid,
        /// How many landings of it were refused before this one.
        refusals: u32,
    },
    /// Archive the work and remove the workspace.
    Discard,
}

impl Core {
    /// What should be in flight.
    pub fn desired(&self) -> Operations {
        let mut operations = Operations::new();
        for run in self.runs.values() {
            for &index in &run.active {
                let task = &run.tasks[index as usize];
                if let Some((step, operation)) = in_flight(run, task) {
                    operations.insert(key(run, task, step), operation);
                }
            }
            // A run that is paused or stopped starts nothing, and still lands what is to land: that needs no agent.
            if !run.is_landing()
                && let Some(index) = run.next_to_land()
                && let task = &run.tasks[index as usize]
                && let Phase::Done(finished) = &task.phase
            {
                let (result, base, refusals) = (finished.result.clone(), task.base.clone(), finished.refusals);
                let operation = Operation::Candidate { result, base, refusals };
                operations.insert(key(run, task, Step::Candidate), operation);
            }
        }
        operations
    }
}

fn key(run: &Run, task: &Task, step: Step) -> OperationKey {
    OperationKey { run: run.id.clone(), task: task.id.clone(), step }
}

fn in_flight(run: &Run, task: &Task) -> Option<(Step, Operation)> {
    match &task.phase {
        Phase::Live(attempt) => {
            let (number, epoch, shim) = (attempt.number, attempt.epoch, attempt.shim.clone());
            match &attempt.stage {
                Stage::Working => {
                    let needs = task.spec.needs.iter().filter_map(|need| run.task(need)?.result().cloned()).collect();
                    let rung = attempt.rung.clone();
                    Some((Step::Attempt(number), Operation::Attempt { number, epoch, rung, needs, shim }))
                }
                Stage::Exited(_) => None,
                Stage::Ending(reason) => {
                    Some((Step::End(number), Operation::End { number, epoch, reason: reason.clone(), shim }))
                }
            }
        }
        // A command of the plan is no agent's work: it is ended with the run, and runs again when that goes on.
        Phase::Verifying { .. } if run.mode == Mode::Stopped => None,
        Phase::Verifying { number } => {
            Some((Step::Verify(*number), Operation::Verify { number: *number, base: task.base.clone() }))
        }
        Phase::Landing { finished, old, new } => {
            let (old, new, refusals) = (old.clone(), new.clone(), finished.refusals);
            Some((Step::Move, Operation::Move { old, new, refusals }))
        }
        Phase::Discarding => Some((Step::Discard, Operation::Discard)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
