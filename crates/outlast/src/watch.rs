//! Staying with a run: progress line by line, an orderly end on a signal, and the exit code that says how it went.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_api::{Act, Diagnostic, ExitCode, Status, rfc3339};
use outlast_core::driver::Parks;
use outlast_core::run::{Mode, Run};
use outlast_core::{Core, Record, RunId};
use outlast_engine::{
    DISK_FULL, Engine, LoopHandle, NoSpace, Obstacle, PLAN_DAMAGED, REPOSITORY_GONE, RepoHome, Rest, STORE_GONE,
    TRIED_AGAIN, Trouble, leave_at_rest, leave_waiting, not_all_kept, others_at_work, park_waiting, perform,
    unless_full, until_held_up, until_parked, until_settled,
};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::commands::status::{now, view};
use crate::commands::{print, print_json, say};
use crate::failure::Failure;
use crate::live;
use crate::places::Places;
use crate::selection::Journalled;
use crate::signals::Signals;
use crate::text::{self, budget, screen};
use crate::troubles::Troubles;
use crate::unanswered;

/// How a command stays with a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stay {
    /// Leave when everything that is left waits.
    pub(crate) no_wait: bool,
    /// Print the run as JSON at the end.
    pub(crate) json: bool,
}

/// Why the run is left.
enum Ended {
    Settled,
    Waits,
    /// Everything that is left comes to nothing each time, and whoever is here need not wait for that: why.
    HeldUp(Box<Diagnostic>),
    Signal(ExitCode),
    Died,
}

/// How parking ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Parked {
    /// Nothing of the run is alive.
    AtRest,
    /// What is left of it comes to nothing each time: why.
    HeldUp(Box<Diagnostic>),
    /// A signal came first.
    Left,
}

/// What there is to follow of an engine, from the moment it is made: before anything is asked of the engine, so that
/// nothing of it is missed.
pub(crate) struct Watch {
    records: broadcast::Receiver<Arc<[Record]>>,
    troubles: Troubles,
    signals: Wishes,
}

/// How soon a signal comes again that is still the same wish: `timeout` sends its own twice, one right after the other, and
/// a key that is held down sends many.
const SAME_WISH: Duration = Duration::from_secs(1);

/// The signals by which a person asks for the end, each wish once.
struct Wishes {
    signals: Signals,
    /// When the last one came that was no repetition.
    last: Option<Instant>,
}

impl Wishes {
    /// Waits for a signal that is no repetition of the last one; gives the exit code of whoever ends by it.
    async fn next(&mut self) -> ExitCode {
        loop {
            let code = self.signals.next().await;
            if self.last.is_none_or(|last| last.elapsed() >= SAME_WISH) {
                self.last = Some(Instant::now());
                return code;
            }
        }
    }
}

impl Watch {
    pub(crate) fn new(engine: &Engine) -> Result<Self, Failure> {
        let signals = Signals::listen().map_err(|error| cannot(&format!("no signals: {error}")))?;
        Ok(Self {
            records: engine.handle().subscribe(),
            troubles: Troubles::of(engine),
            signals: Wishes { signals, last: None },
        })
    }

    /// Stays until nothing is left to do, and tells how it went.
    pub(crate) async fn stay_to_the_end(
        mut self,
        mut engine: Engine,
        places: &Places,
        run: &RunId,
        stay: Stay,
    ) -> Result<ExitCode, Failure> {
        engine.ends_with(run)?;
        tell_others(engine.handle(), run).await?;
        let interrupted = loop {
            match self.follow(&engine, run, stay).await? {
                Ended::Settled => match self.park_others(engine.handle(), run).await? {
                    Parked::Left => break None,
                    Parked::HeldUp(told) => return leave_held_up(engine, run, stay, places, &told).await,
                    Parked::AtRest if leave_at_rest(engine.handle(), run).await? => break None,
                    Parked::AtRest => {}
                },
                Ended::Waits => {
                    if let Parked::HeldUp(told) = self.park_others(engine.handle(), run).await? {
                        return leave_held_up(engine, run, stay, places, &told).await;
                    }
                    match self.park_waiting(engine.handle(), run, false).await? {
                        Parked::HeldUp(told) => return leave_held_up(engine, run, stay, places, &told).await,
                        Parked::Left => break None,
                        Parked::AtRest => {}
                    }
                    // Where the journal waits for room the loop does: the disk tells of that.
                    if unless_full(engine.handle(), leave_waiting(engine.handle(), run)).await? == Some(true) {
                        say(&left_waiting(engine.handle(), run).await?);
                        break None;
                    }
                    // Something has come up meanwhile that goes on.
                    engine.handle().park(Parks::Nothing).await?;
                }
                Ended::HeldUp(told) => {
                    self.park_others(engine.handle(), run).await?;
                    if stay.no_wait || NoSpace::of(engine.handle().folder()) != NoSpace::Room {
                        self.park_waiting(engine.handle(), run, true).await?;
                    }
                    return leave_held_up(engine, run, stay, places, &told).await;
                }
                Ended::Signal(code) => {
                    say("its agents are being parked; a second signal leaves them to the next engine");
                    match self.park_all(engine.handle(), run).await {
                        Ok(Parked::HeldUp(told)) => return leave_held_up(engine, run, stay, places, &told).await,
                        Ok(Parked::AtRest | Parked::Left) => break Some(code),
                        Err(failure) => {
                            // What ended the engine says more than that it has ended.
                            engine.close().await?;
                            return Err(failure);
                        }
                    }
                }
                Ended::Died => return engine.close().await.map(|()| ExitCode::Host).map_err(Failure::from),
            }
        };
        let home = engine.home().clone();
        engine.close().await?;
        let shown = show(home, run, stay, places);
        // The terminal that is gone takes no words, and all that was asked for is done.
        if interrupted == Some(ExitCode::HungUp) {
            return Ok(ExitCode::HungUp);
        }
        let status = shown?;
        let code = interrupted.unwrap_or_else(|| exit_code(&status));
        if code == ExitCode::Provider {
            unanswered::told(&status).iter().for_each(|told| say(text::diagnostic(told).trim_end()));
        }
        Ok(code)
    }

    async fn follow(&mut self, engine: &Engine, run: &RunId, stay: Stay) -> Result<Ended, Failure> {
        let settled = until_settled(engine.handle(), run);
        tokio::pin!(settled);
        let in_the_way = still_in_the_way(engine.home(), run, stay.no_wait);
        tokio::pin!(in_the_way);
        let held_up = until_held_up(engine.handle(), run);
        tokio::pin!(held_up);
        // What waited before this engine was there need not tell of itself.
        if stay.no_wait && only_waits(engine.handle(), run).await? {
            return Ok(Ended::Waits);
        }
        loop {
            tokio::select! {
                biased;
                record = self.records.recv() => match record {
                    Ok(records) => {
                        tell(&records, run);
                        if stay.no_wait && only_waits(engine.handle(), run).await? {
                            return Ok(Ended::Waits);
                        }
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Ok(Ended::Died),
                },
                trouble = self.troubles.next() => {
                    let lack = NoSpace::of(engine.handle().folder());
                    if is_in_vain(&trouble, lack) {
                        return Ok(Ended::HeldUp(Box::new(not_all_kept(engine.handle().folder()))));
                    }
                    self.troubles.tell(&trouble, lack);
                }
                () = journal_is_at_its_limit(engine.handle()) => {
                    return Ok(Ended::HeldUp(Box::new(not_all_kept(engine.handle().folder()))));
                }
                code = self.signals.next() => return Ok(Ended::Signal(code)),
                told = &mut in_the_way => return Ok(Ended::HeldUp(Box::new(told))),
                told = &mut held_up, if stay.no_wait => return match told {
                    Ok(told) => Ok(Ended::HeldUp(Box::new(told))),
                    Err(outlast_engine::Error::Stopped) => Ok(Ended::Died),
                    Err(error) => Err(error.into()),
                },
                ended = &mut settled => return match ended {
                    Ok(Rest::Settled) => Ok(Ended::Settled),
                    Ok(Rest::HeldUp(told)) => Ok(Ended::HeldUp(told)),
                    Err(outlast_engine::Error::Stopped) => Ok(Ended::Died),
                    Err(error) => Err(error.into()),
                },
            }
        }
    }

    /// Parks what is alive. A second signal leaves at once: the agents go on under their shims.
    async fn park(&mut self, engine: &LoopHandle, run: &RunId) -> Result<Parked, Failure> {
        let parked = async {
            if unless_full(engine, perform(engine, Act::Stop { run: run.to_string() })).await?.is_none() {
                return Ok(Parked::HeldUp(Box::new(not_all_kept(engine.folder()))));
            }
            Ok::<_, Failure>(match until_parked(engine, run).await? {
                Rest::Settled => Parked::AtRest,
                Rest::HeldUp(told) => Parked::HeldUp(told),
            })
        };
        tokio::select! {
            parked = parked => parked,
            _ = self.signals.next() => Ok(Parked::Left),
        }
    }

    /// Parks what waits, or all that is at work: no agent is left to a gateway that nobody promises to bring back.
    async fn park_waiting(&mut self, engine: &LoopHandle, run: &RunId, all: bool) -> Result<Parked, Failure> {
        tokio::select! {
            parked = unless_full(engine, park_waiting(engine, run, all)) => Ok(match parked? {
                Some(Rest::Settled) => Parked::AtRest,
                Some(Rest::HeldUp(told)) => Parked::HeldUp(told),
                None => Parked::HeldUp(Box::new(not_all_kept(engine.folder()))),
            }),
            _ = self.signals.next() => Ok(Parked::Left),
        }
    }

    async fn park_all(&mut self, engine: &LoopHandle, run: &RunId) -> Result<Parked, Failure> {
        let own = self.park(engine, run).await?;
        if own == Parked::Left {
            return Ok(own);
        }
        let others = self.park_others(engine, run).await?;
        Ok(if others == Parked::AtRest { own } else { others })
    }

    /// Parks the other runs that this engine works on: it ends with its own, and nothing may go on without one.
    async fn park_others(&mut self, engine: &LoopHandle, run: &RunId) -> Result<Parked, Failure> {
        let Some(others) = unless_full(engine, others_at_work(engine, run)).await? else {
            return Ok(Parked::HeldUp(Box::new(not_all_kept(engine.folder()))));
        };
        let mut all = Parked::AtRest;
        for other in others {
            say(&format!("run {other} was at work here too and is being parked; go on with: outlast resume {other}"));
            match self.park(engine, &other).await? {
                Parked::Left => return Ok(Parked::Left),
                held_up @ Parked::HeldUp(_) => all = held_up,
                Parked::AtRest => {}
            }
        }
        Ok(all)
    }
}

/// Says which other runs this engine goes on with, which is not what was asked for.
async fn tell_others(engine: &LoopHandle, run: &RunId) -> Result<(), Failure> {
    let own = run.clone();
    let others = move |core: &Core| {
        let goes_on = |run: &&Run| run.mode == Mode::Running && run.id != own;
        core.runs.values().filter(goes_on).map(|run| run.id.clone()).collect::<Vec<_>>()
    };
    for other in unless_full(engine, engine.look(others)).await?.unwrap_or_default() {
        say(&format!("run {other} of this repository goes on here too; to leave it as it is: outlast pause {other}"));
    }
    Ok(())
}

/// Shows how a run is, from its journal.
fn show(home: RepoHome, run: &RunId, stay: Stay, places: &Places) -> Result<Status, Failure> {
    let journalled = Journalled::load(home)?;
    let journalled = journalled.ok_or_else(|| outlast_engine::Error::Internal("the journal is gone".to_owned()))?;
    let status = view(places, &journalled, run, now())?;
    if stay.json {
        print_json(&status)?;
        if let Some(reached) = budget::reached(&status) {
            say(&reached);
        }
    } else {
        print(&format!("\n{}", screen::status(&status, now())))?;
    }
    Ok(status)
}

/// Leaves a run of which not everything can be done, kept, or put on record, until what is in the way is gone.
async fn leave_held_up(
    engine: Engine,
    run: &RunId,
    stay: Stay,
    places: &Places,
    told: &Diagnostic,
) -> Result<ExitCode, Failure> {
    let home = engine.home().clone();
    if let Err(error) = engine.close().await {
        // What its journal had no room for is what is said below.
        tracing::warn!(%error, "the engine was left with what it could not do");
    }
    let (lack, kept) = (NoSpace::of(home.root()), not_all_kept(home.root()));
    show(home, run, stay, places)?;
    if told.code == kept.code {
        let help = match lack {
            NoSpace::Room => format!("Free some space, then: outlast resume {run}"),
            NoSpace::FileSize(_) => format!("In a shell with `ulimit -f unlimited`: outlast resume {run}"),
        };
        say(&format!(
            "{}: not everything could be kept or put on record. Nothing is lost: what agents did last is in \
             their workspaces, no task has failed and no try is used. {help}",
            lack.words()
        ));
    } else {
        say(text::diagnostic(told).trim_end());
    }
    Ok(told.exit)
}

/// How often it is looked whether anything is in the way, by whoever does not want to wait for that.
const LOOKED_AT: Duration = Duration::from_secs(2);
/// How often in a row something must be: what a test or a build needs of a disk for a moment is no reason to leave.
const IN_A_ROW: u32 = 3;

/// Waits until something has been in the way of everything for a while, and says what; for ever where nobody leaves for that.
async fn still_in_the_way(home: &RepoHome, run: &RunId, no_wait: bool) -> Diagnostic {
    if !no_wait {
        return std::future::pending().await;
    }
    let mut times = 0;
    loop {
        tokio::time::sleep(LOOKED_AT).await;
        match Obstacle::of(home) {
            Some(_) if times + 1 < IN_A_ROW => times += 1,
            Some(obstacle) => return obstacle.told(Some(run), None),
            None => times = 0,
        }
    }
}

fn cannot(why: &str) -> Failure {
    Diagnostic::error("host/cannot", ExitCode::Host, why).into()
}

/// Whether something is tried again and again that comes to nothing for as long as this process lives.
fn is_in_vain(trouble: &Trouble, lack: NoSpace) -> bool {
    trouble.again && trouble.no_space && lack != NoSpace::Room
}

/// Waits until the journal takes no more since its file may not become larger.
async fn journal_is_at_its_limit(engine: &LoopHandle) {
    let waits = unless_full(engine, std::future::pending::<Result<(), Failure>>()).await.is_ok();
    if !waits || NoSpace::of(engine.folder()) == NoSpace::Room {
        std::future::pending::<()>().await;
    }
}

fn tell(records: &Arc<[Record]>, run: &RunId) {
    for record in records.iter().filter(|record| record.stream.is_of(run)) {
        if let Some(line) = live::progress(record) {
            say(&line);
        }
    }
}

/// What a run that is left waits for, when it could go on, and how.
async fn left_waiting(engine: &LoopHandle, run: &RunId) -> Result<String, Failure> {
    let id = run.clone();
    let first = move |core: &Core| core.run(&id).and_then(|run| outlast_engine::first_reset(core, run, now()));
    let at = engine.look(first).await?.map(|at| format!(", the first until {}", rfc3339(at))).unwrap_or_default();
    let goes_on = format!("outlast resume {run}");
    Ok(format!(
        "everything that is left waits{at}; agents are parked with their work, and nothing goes on without an engine: {goes_on}"
    ))
}

async fn only_waits(engine: &LoopHandle, run: &RunId) -> Result<bool, Failure> {
    let id = run.clone();
    let waits = move |core: &Core| core.run(&id).is_some_and(|run| outlast_engine::only_waits(core, run, now()));
    // Where the journal waits for room the loop does: who is told of that is told by the disk.
    Ok(unless_full(engine, engine.look(waits)).await?.unwrap_or(false))
}

/// How a run went, as the contract says it.
pub(crate) fn exit_code(status: &Status) -> ExitCode {
    let codes = status.tasks.iter().map(|task| match (task.state.as_str(), task.cause.as_deref()) {
        (_, Some(REPOSITORY_GONE)) => ExitCode::Repository,
        (_, Some(DISK_FULL | PLAN_DAMAGED | STORE_GONE | TRIED_AGAIN)) => ExitCode::Host,
        ("failed" | "ready" | "parked", Some("auth" | "billing")) | ("held" | "ready" | "parked", Some("network")) => {
            ExitCode::Provider
        }
        ("failed", Some("conflict"))
        | ("done", Some("conflict" | "verify" | "target_checked_out" | "unclear" | "filter")) => ExitCode::Conflict,
        ("failed" | "blocked" | "stale", _) => ExitCode::TasksFailed,
        ("held" | "parked" | "asking" | "ready" | "pending", _) if status.state != "stopped" => ExitCode::Waiting,
        _ => ExitCode::Ok,
    });
    let budget = (status.budget.reached.is_some() && status.state == "parked").then_some(ExitCode::Budget);
    ExitCode::worst(codes.chain(budget))
}
