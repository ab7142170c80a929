//! Waiting for a run, or for some of its tasks, to come to rest.

use outlast_api::{Diagnostic, ExitCode};
use outlast_core::class::Remedy;
use outlast_core::desired::Step;
use outlast_core::driver::Parks;
use outlast_core::explain::Why;
use outlast_core::run::{Mode, Run};
use outlast_core::task::{Failure, Phase, Stage, Task};
use outlast_core::{Core, RunId, TaskId, Timestamp};
use tokio::sync::broadcast::error::RecvError;

use crate::at_work::AtWork;
use crate::diagnose::{is_obstacle, not_all_kept};
use crate::error::Error;
use crate::held_up::HeldUp;
use crate::state_loop::{LoopHandle, now};
use crate::views::state;

/// How a run that is to rest does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Nothing of it is in flight.
    Settled,
    /// It was stopped or paused, and what is left of it is tried again and again: why, as people are told. Its work is in
    /// its workspaces.
    HeldUp(Box<Diagnostic>),
}

/// Waits until nothing of the run is in flight and nothing will be by itself: it is finished, stopped or
/// paused, its budget is reached, or its accounts wait for a person. A stopped run's checks are not waited for: they are made
/// anew when it goes on. Nor is what comes to nothing each time (on a full disk, without its repository), by whoever has a run
/// stopped or paused.
///
/// # Errors
/// Where the engine stops first.
pub async fn until_settled(engine: &LoopHandle, run: &RunId) -> Result<Rest, Error> {
    until_rests(engine, run, |run| matches!(run.mode, Mode::Stopped | Mode::Paused)).await
}

async fn until_rests(engine: &LoopHandle, run: &RunId, may_leave: fn(&Run) -> bool) -> Result<Rest, Error> {
    let (at_work, held_up, id) = (engine.at_work().clone(), engine.held_up().clone(), run.clone());
    until(engine, move |core| {
        let Some(run) = core.run(&id) else { return Some(Rest::Settled) };
        if rests(core, run, &at_work) {
            return Some(Rest::Settled);
        }
        let told = may_leave(run).then(|| all_held_up(core, run, &at_work, &held_up)).flatten();
        told.map(|told| Rest::HeldUp(Box::new(told)))
    })
    .await
}

/// As [`until_settled`], for a run that was just stopped or paused, or is over: a journal that takes no more records for want
/// of room is not waited for either.
///
/// # Errors
/// As [`until_settled`].
pub async fn until_parked(engine: &LoopHandle, run: &RunId) -> Result<Rest, Error> {
    let full = || Rest::HeldUp(Box::new(not_all_kept(engine.folder())));
    unless_full(engine, until_rests(engine, run, |_| true)).await.map(|rest| rest.unwrap_or_else(full))
}

/// Waits until everything of the run that does not wait for something else is held up, and says by what. A full disk and the
/// like, which may be over in a moment, are for those who look at them.
///
/// # Errors
/// Where the engine stops first.
pub async fn until_held_up(engine: &LoopHandle, run: &RunId) -> Result<Diagnostic, Error> {
    let (at_work, held_up, id) = (engine.at_work().clone(), engine.held_up().clone(), run.clone());
    until(engine, move |core| {
        let told = core.run(&id).and_then(|run| all_held_up(core, run, &at_work, &held_up));
        told.filter(|told| !is_obstacle(told))
    })
    .await
}

/// Does what needs the loop; nothing where that waits for a journal that has no room.
///
/// # Errors
/// Those of what is done.
pub async fn unless_full<T, E>(engine: &LoopHandle, work: impl Future<Output = Result<T, E>>) -> Result<Option<T>, E> {
    tokio::select! {
        biased;
        done = work => done.map(Some),
        () = engine.held_up().until_journal_waits() => Ok(None),
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

/// Parks what waits at the gateway, since nobody is going to be there to answer it: an agent that is left to its shim costs
/// memory, and its clocks stand still, for as long as no engine comes. With `all`, whatever else is at work is parked too, since
/// something is in the way of everything. What cannot be kept now is what the next engine begins with.
///
/// # Errors
/// As [`until_settled`].
pub async fn park_waiting(engine: &LoopHandle, run: &RunId, all: bool) -> Result<Rest, Error> {
    engine.park(if all { Parks::All } else { Parks::Held }).await?;
    let (id, at_work, held_up) = (run.clone(), engine.at_work().clone(), engine.held_up().clone());
    let is_parking = |task: &Task| match &task.phase {
        Phase::Live(attempt) => attempt.held.is_some() || matches!(attempt.stage, Stage::Ending(_)),
        _ => false,
    };
    until(engine, move |core| match core.run(&id) {
        Some(run) if run.active().any(is_parking) => {
            all_held_up(core, run, &at_work, &held_up).map(|told| Rest::HeldUp(Box::new(told)))
        }
        _ => Some(Rest::Settled),
    })
    .await
}

/// As [`leave_at_rest`], for a run of which everything that is left waits, parked (see [`park_waiting`]). What is being parked
/// is parked first, also where somebody asks for that in this very moment.
///
/// # Errors
/// As [`leave_at_rest`].
pub async fn leave_waiting(engine: &LoopHandle, run: &RunId) -> Result<bool, Error> {
    let (id, at_work) = (run.clone(), engine.at_work().clone());
    let waits = move |core: &Core| {
        let is_parked = |run: &Run| only_waits(core, run, now()) && run.active().next().is_none();
        core.run(&id).is_none_or(|run| is_parked(run) || rests(core, run, &at_work)) && !parks(core, &at_work)
    };
    engine.leave(waits).await
}

/// Whether a run goes on by itself when something that all that is left of it waits for is over. One that was paused or
/// stopped does not: it is at rest, or on its way there. The breath that a task takes between two of its own tries is no wait:
/// they are what whoever need not wait has asked for.
pub fn only_waits(core: &Core, run: &Run, now: Timestamp) -> bool {
    let breathes = |task: &Task| {
        let is_its_own = |failure: &Failure| failure.class.remedy() == Remedy::Retry;
        let why = core.explain(&run.id, &task.id, now);
        matches!(why, Some(Why::Retry { failure: Some(failure), .. }) if is_its_own(&failure))
    };
    run.mode == Mode::Running && state(core, run, now) == "parked" && !run.tasks.iter().any(breathes)
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

/// Why nothing of a run goes on, where all that is left of it comes to nothing each time.
fn all_held_up(core: &Core, run: &Run, at_work: &AtWork, held_up: &HeldUp) -> Option<Diagnostic> {
    if !held_up.is_any() {
        return None;
    }
    // What is checked before it lands is not waited for: see `rests`.
    let is_checked = run.mode == Mode::Stopped && at_work.is_running(&run.id);
    let mut told: Option<Diagnostic> = None;
    for key in core.desired().into_keys().filter(|key| key.run == run.id) {
        match held_up.why(&key) {
            Some(why) => {
                let is_worse = |told: &Diagnostic| ExitCode::worst([told.exit, why.exit]) != told.exit;
                if told.as_ref().is_none_or(is_worse) {
                    told = Some(why);
                }
            }
            None if is_checked && key.step == Step::Candidate => {}
            // Its request waits at the gateway.
            None if run.task(&key.task).is_some_and(|task| task.state() == "held") => {}
            None => return None,
        }
    }
    told
}

/// The other runs of this engine that are at work, or would be: an engine works on every run that its journal holds, one
/// that a crash interrupted too.
///
/// # Errors
/// Where the engine has stopped by itself.
pub async fn others_at_work(engine: &LoopHandle, run: &RunId) -> Result<Vec<RunId>, Error> {
    let (id, at_work) = (run.clone(), engine.at_work().clone());
    let others = move |core: &Core| {
        // One that only waits has nothing to park, and goes on waiting for the next engine.
        let waits = |other: &Run| only_waits(core, other, now()) && other.active().next().is_none();
        let is_at_work = |other: &&Run| other.id != id && !rests(core, other, &at_work) && !waits(other);
        let others = core.runs.values().filter(is_at_work);
        others.map(|other| other.id.clone()).collect()
    };
    engine.look(others).await
}

/// Waits until nothing is being done with these tasks, or what is comes to nothing each time, or they would land after one with
/// which that is so.
///
/// # Errors
/// As [`until_settled`].
pub async fn until_tasks_settled(engine: &LoopHandle, run: &RunId, tasks: &[String]) -> Result<(), Error> {
    let ids: Vec<TaskId> = tasks.iter().map(TaskId::new).collect();
    let (held_up, run) = (engine.held_up().clone(), run.clone());
    until(engine, move |core| {
        let Some(run) = core.run(&run) else { return Some(()) };
        let under_way: Vec<_> = core.desired().into_keys().filter(|key| key.run == run.id).collect();
        let is_held_up = |task: &Task| held_up.why_of(&run.id, &task.id).is_some();
        let waits_in_line = |task: &Task| {
            let is_its_turn = under_way.iter().any(|key| key.task == task.id);
            !is_its_turn && under_way.iter().any(|key| held_up.why(key).is_some())
        };
        let rests = |task: &Task| is_at_rest(task) || is_held_up(task) || waits_in_line(task);
        ids.iter().filter_map(|id| run.task(id)).all(rests).then_some(())
    })
    .await
}

pub(crate) const fn is_at_rest(task: &Task) -> bool {
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
    let mut waiting = engine.held_up().changes();
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
