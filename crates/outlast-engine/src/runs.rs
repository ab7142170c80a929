//! Waiting for a run, or for some of its tasks, to come to rest.

use outlast_core::run::{Mode, Run};
use outlast_core::task::{Phase, Task};
use outlast_core::{Core, RunId, TaskId};
use tokio::sync::broadcast::error::RecvError;

use crate::at_work::AtWork;
use crate::error::Error;
use crate::state_loop::LoopHandle;

/// Waits until nothing of the run is in flight and nothing will be by itself: it is finished, stopped or
/// paused, its budget is reached, or its accounts wait for a person. A stopped run's checks are not waited for: they are made anew when it goes on.
///
/// # Errors
/// Where the engine stops first.
pub async fn until_settled(engine: &LoopHandle, run: &RunId) -> Result<(), Error> {
    let at_work = engine.at_work().clone();
    until(engine, run, move |core, run| rests(core, run, &at_work)).await
}

/// Lets the engine go if nothing of the run is in flight, even if someone asks for something in this very moment;
/// whether it goes.
///
/// # Errors
/// Where the engine has stopped by itself.
pub async fn leave_at_rest(engine: &LoopHandle, run: &RunId) -> Result<bool, Error> {
    let (id, at_work) = (run.clone(), engine.at_work().clone());
    engine.leave(move |core| core.run(&id).is_none_or(|run| rests(core, run, &at_work))).await
}

fn rests(core: &Core, run: &Run, at_work: &AtWork) -> bool {
    let is_stopped = run.mode == Mode::Stopped;
    let resting = is_stopped
        || matches!(run.mode, Mode::Finished(_) | Mode::Paused)
        || run.waits_for_budget()
        || core.only_a_person_helps(run);
    // What lands at once still does. What is checked first, for as long as its command takes, does when the run goes on.
    let lands = run.lands_next() && !(is_stopped && at_work.is_running(&run.id));
    let waits = |task: &Task| is_stopped && matches!(task.phase, Phase::Verifying { .. });
    resting && run.active().all(waits) && !lands
}

/// The other runs of this engine that are at work, or would be: an engine works on every run that its journal holds, one
/// that a crash interrupted too.
///
/// # Errors
/// Where the engine has stopped by itself.
pub async fn others_at_work(engine: &LoopHandle, run: &RunId) -> Result<Vec<RunId>, Error> {
    let (id, at_work) = (run.clone(), engine.at_work().clone());
    let others = move |core: &Core| {
        let others = core.runs.values().filter(|other| other.id != id && !rests(core, other, &at_work));
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
    until(engine, run, move |_, run| ids.iter().filter_map(|id| run.task(id)).all(is_at_rest)).await
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
    rests: impl Fn(&Core, &Run) -> bool + Send + Sync + Clone + 'static,
) -> Result<(), Error> {
    // Subscribed before the first look, so that no record falls between the two.
    let mut records = engine.subscribe();
    let mut commands = engine.at_work().changes();
    loop {
        let (id, rests) = (run.clone(), rests.clone());
        if engine.look(move |core| core.run(&id).is_none_or(|run| rests(core, run))).await? {
            return Ok(());
        }
        tokio::select! {
            record = records.recv() => match record {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Err(Error::Stopped),
            },
            // Cannot fail: the handle holds the other end.
            _ = commands.changed() => {}
        }
    }
}
