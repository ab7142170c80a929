//! Waiting for a run, or for some of its tasks, to come to rest.

use outlast_core::run::{Mode, Run};
use outlast_core::task::{Phase, Task};
use outlast_core::{Core, RunId, TaskId};
use tokio::sync::broadcast::error::RecvError;

use crate::error::Error;
use crate::state_loop::LoopHandle;

/// Waits until nothing of the run is in flight and nothing will be by itself: it is finished, stopped or
/// paused, or its budget is reached.
///
/// # Errors
/// Where the engine stops first.
pub async fn until_settled(engine: &LoopHandle, run: &RunId) -> Result<(), Error> {
    until(engine, run, rests).await
}

/// Lets the engine go if nothing of the run is in flight, even if someone asks for something in this very moment;
/// whether it goes.
///
/// # Errors
/// Where the engine has stopped by itself.
pub async fn leave_at_rest(engine: &LoopHandle, run: &RunId) -> Result<bool, Error> {
    let id = run.clone();
    engine.leave(move |core| core.run(&id).is_none_or(rests)).await
}

fn rests(run: &Run) -> bool {
    let resting = matches!(run.mode, Mode::Finished(_) | Mode::Stopped | Mode::Paused) || run.waits_for_budget();
    let lands = run.lands_next();
    resting && run.active().next().is_none() && !lands
}

/// The other runs of this engine that are at work, or would be: an engine works on every run that its journal holds, one
/// that a crash interrupted too.
///
/// # Errors
/// Where the engine has stopped by itself.
pub async fn others_at_work(engine: &LoopHandle, run: &RunId) -> Result<Vec<RunId>, Error> {
    let id = run.clone();
    let others = move |core: &Core| {
        let others = core.runs.values().filter(|other| other.id != id && !rests(other));
        others.map(|other| other.id.clone()).collect()
    };
    engine.look(others).await
}

/// Waits until nothing is being done with these tasks.
///
/// # Errors
/// As [`until_settled`].
pub async fn until_tasks_settled(engine: &LoopHandle, run: &RunId, tasks: &[String]) -> Result<(), Error> {
    let ids: Vec<TaskId> = tasks.iter().map(TaskId::new).collect();
    until(engine, run, move |run| ids.iter().filter_map(|id| run.task(id)).all(is_at_rest)).await
}

const fn is_at_rest(task: &Task) -> bool {
    match &task.phase {
        Phase::Done(finished) => !finished.wanted,
        Phase::Landing { .. } | Phase::Discarding => false,
        _ => true,
    }
}

async fn until(
    engine: &LoopHandle,
    run: &RunId,
    rests: impl Fn(&Run) -> bool + Send + Sync + Clone + 'static,
) -> Result<(), Error> {
    // Subscribed before the first look, so that no record falls between the two.
    let mut records = engine.subscribe();
    loop {
        let (id, rests) = (run.clone(), rests.clone());
        if engine.look(move |core| core.run(&id).is_none_or(rests)).await? {
            return Ok(());
        }
        match records.recv().await {
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return Err(Error::Stopped),
        }
    }
}
