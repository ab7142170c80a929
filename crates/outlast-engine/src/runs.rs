//! Waiting for a run, or for some of its tasks, to come to rest.

use outlast_core::desired::{OperationKey, Step};
use outlast_core::run::{Mode, Run};
use outlast_core::task::{Phase, Task};
use outlast_core::{Core, RunId, TaskId, Timestamp};
use tokio::sync::broadcast::error::RecvError;

use crate::at_work::AtWork;
use crate::disk::Disk;
use crate::error::Error;
use crate::state_loop::{LoopHandle, now};
use crate::views::state;

/// How a run that is to rest does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Nothing of it is in flight.
    Settled,
    /// It was stopped or paused, and what is left of it waits for room on the disk. Its work is in its workspaces.
    DiskFull,
}

/// Waits until nothing of the run is in flight and nothing will be by itself: it is finished, stopped or
/// paused, its budget is reached, or its accounts wait for a person. A stopped run's checks are not waited for: they are made
/// anew when it goes on. Nor is a full disk, by whoever has a run stopped or paused.
///
/// # Errors
/// Where the engine stops first.
pub async fn until_settled(engine: &LoopHandle, run: &RunId) -> Result<Rest, Error> {
    let (at_work, disk, id) = (engine.at_work().clone(), engine.disk().clone(), run.clone());
    until(engine, move |core| {
        let Some(run) = core.run(&id) else { return Some(Rest::Settled) };
        if rests(core, run, &at_work) {
            return Some(Rest::Settled);
        }
        waits_for_room(core, run, &at_work, &disk).then_some(Rest::DiskFull)
    })
    .await
}

/// As [`until_settled`], for a run that was just stopped or paused: a journal that takes no more records for want of room is
/// not waited for either.
///
/// # Errors
/// As [`until_settled`].
pub async fn until_parked(engine: &LoopHandle, run: &RunId) -> Result<Rest, Error> {
    unless_full(engine, until_settled(engine, run)).await.map(|rest| rest.unwrap_or(Rest::DiskFull))
}

/// Does what needs the loop; nothing where that waits for a journal that has no room.
///
/// # Errors
/// Those of what is done.
pub async fn unless_full<T, E>(engine: &LoopHandle, work: impl Future<Output = Result<T, E>>) -> Result<Option<T>, E> {
    tokio::select! {
        biased;
        done = work => done.map(Some),
        () = engine.disk().until_journal_waits() => Ok(None),
    }
}

/// Lets the engine go if nothing of the run is in flight, even if someone asks for something in this very moment;
/// whether it goes.
///
/// # Errors
/// Where the engine has stopped by itself.
pub async fn leave_at_rest(engine: &LoopHandle, run: &RunId) -> Result<bool, Error> {
    let (id, at_work) = (run.clone(), engine.at_work().clone());
    let rests = move |core: &Core| core.run(&id).is_none_or(|run| rests(core, run, &at_work)) && !parks(core, &at_work);
    engine.leave(rests).await
}

/// As [`leave_at_rest`], for a run of which everything that is left waits: agents that are held go on under their shims. What
/// is being parked is parked first, also where somebody asks for that in this very moment.
///
/// # Errors
/// As [`leave_at_rest`].
pub async fn leave_waiting(engine: &LoopHandle, run: &RunId) -> Result<bool, Error> {
    let (id, at_work) = (run.clone(), engine.at_work().clone());
    let waits = move |core: &Core| {
        core.run(&id).is_none_or(|run| only_waits(core, run, now()) || rests(core, run, &at_work))
            && !parks(core, &at_work)
    };
    engine.leave(waits).await
}

/// Whether a run goes on by itself when something that all that is left of it waits for is over. One that was paused or
/// stopped does not: it is at rest, or on its way there.
pub fn only_waits(core: &Core, run: &Run, now: Timestamp) -> bool {
    run.mode == Mode::Running && state(core, run, now) == "parked"
}

/// Whether anything is being parked here.
fn parks(core: &Core, at_work: &AtWork) -> bool {
    let parks = |run: &Run| matches!(run.mode, Mode::Stopped | Mode::Paused) && !rests(core, run, at_work);
    core.runs.values().any(parks)
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

/// Whether a run that a person has stopped or paused waits for room on the disk, with all that is left of it.
fn waits_for_room(core: &Core, run: &Run, at_work: &AtWork, disk: &Disk) -> bool {
    if !matches!(run.mode, Mode::Stopped | Mode::Paused) {
        return false;
    }
    // What is checked before it lands is not waited for: see `rests`.
    let is_checked = run.mode == Mode::Stopped && at_work.is_running(&run.id);
    let waits = |key: &OperationKey| disk.is_holding_up(key) || is_checked && key.step == Step::Candidate;
    let left = core.desired().into_keys().filter(|key| key.run == run.id);
    left.map(|key| waits(&key)).reduce(|all, waits| all && waits).unwrap_or(false)
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
    let run = run.clone();
    let rest = move |run: &Run| ids.iter().filter_map(|id| run.task(id)).all(is_at_rest);
    until(engine, move |core| core.run(&run).is_none_or(&rest).then_some(())).await
}

const fn is_at_rest(task: &Task) -> bool {
    match &task.phase {
        Phase::Done(finished) => !finished.wanted,
        Phase::Landing { .. } | Phase::Discarding => false,
        _ => true,
    }
}

/// Waits until there is an answer; it is asked for anew whenever something may have changed.
async fn until<T: Send + 'static>(
    engine: &LoopHandle,
    answer: impl Fn(&Core) -> Option<T> + Send + Sync + Clone + 'static,
) -> Result<T, Error> {
    // Subscribed before the first look, so that no record falls between the two.
    let mut records = engine.subscribe();
    let mut commands = engine.at_work().changes();
    let mut waiting = engine.disk().changes();
    loop {
        if let Some(answer) = engine.look(answer.clone()).await? {
            return Ok(answer);
        }
        tokio::select! {
            record = records.recv() => match record {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Err(Error::Stopped),
            },
            // Cannot fail: the handle holds the other end.
            _ = commands.changed() => {}
            () = waiting.next() => {}
        }
    }
}
