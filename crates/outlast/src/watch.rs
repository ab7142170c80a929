//! Staying with a run: progress line by line, an orderly end on a signal, and the exit code that says how it went.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_api::{Act, Diagnostic, ExitCode, Status};
use outlast_core::{Core, Record, RunId, TaskId};
use outlast_engine::{Engine, LoopHandle, Trouble, leave_at_rest, others_at_work, perform, until_settled};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::commands::status::{now, view};
use crate::commands::{print, print_json, say};
use crate::failure::Failure;
use crate::live;
use crate::places::Places;
use crate::selection::Journalled;
use crate::text::{budget, screen};

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
    Signal(ExitCode),
    Died,
}

/// How parking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parked {
    /// Nothing of the run is alive.
    AtRest,
    /// A signal came first.
    Left,
}

/// What there is to follow of an engine, from the moment it is made: before anything is asked of the engine, so that
/// nothing of it is missed.
pub(crate) struct Watch {
    records: broadcast::Receiver<Arc<[Record]>>,
    troubles: Option<broadcast::Receiver<Trouble>>,
    /// What was last told of each task's trouble.
    told: BTreeMap<Option<TaskId>, String>,
    interrupt: Signal,
    terminate: Signal,
}

impl Watch {
    pub(crate) fn new(engine: &Engine) -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| cannot(&format!("no signals: {error}")));
        Ok(Self {
            records: engine.handle().subscribe(),
            troubles: engine.troubles(),
            told: BTreeMap::new(),
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
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
        let interrupted = loop {
            match self.follow(&engine, run, stay).await? {
                Ended::Settled if self.park_others(engine.handle(), run).await? == Parked::Left => break None,
                Ended::Settled if !leave_at_rest(engine.handle(), run).await? => {}
                Ended::Settled => break None,
                Ended::Waits => {
                    self.park_others(engine.handle(), run).await?;
                    say(&left_waiting(engine.handle(), run).await?);
                    break None;
                }
                Ended::Signal(code) => {
                    say("its agents are being parked; a second signal leaves them to the next engine");
                    if let Err(failure) = self.park_all(engine.handle(), run).await {
                        // What ended the engine says more than that it has ended.
                        engine.close().await?;
                        return Err(failure);
                    }
                    break Some(code);
                }
                Ended::Died => return engine.close().await.map(|()| ExitCode::Host).map_err(Failure::from),
            }
        };
        let home = engine.home().clone();
        engine.close().await?;
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
        Ok(interrupted.unwrap_or_else(|| exit_code(&status)))
    }

    async fn follow(&mut self, engine: &Engine, run: &RunId, stay: Stay) -> Result<Ended, Failure> {
        let settled = until_settled(engine.handle(), run);
        tokio::pin!(settled);
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
                trouble = next(&mut self.troubles) => self.tell_trouble(&trouble),
                _ = self.interrupt.recv() => return Ok(Ended::Signal(ExitCode::Interrupted)),
                _ = self.terminate.recv() => return Ok(Ended::Signal(ExitCode::Terminated)),
                ended = &mut settled => return match ended {
                    Ok(()) => Ok(Ended::Settled),
                    Err(outlast_engine::Error::Stopped) => Ok(Ended::Died),
                    Err(error) => Err(error.into()),
                },
            }
        }
    }

    /// Tells what holds a task up, once for as long as it is the same.
    fn tell_trouble(&mut self, trouble: &Trouble) {
        let told = told(trouble);
        if self.told.get(&trouble.task) != Some(&told) {
            say(&told);
            self.told.insert(trouble.task.clone(), told);
        }
    }

    /// Parks what is alive. A second signal leaves at once: the agents go on under their shims.
    async fn park(&mut self, engine: &LoopHandle, run: &RunId) -> Result<Parked, Failure> {
        perform(engine, Act::Stop { run: run.to_string() }).await?;
        tokio::select! {
            settled = until_settled(engine, run) => Ok(settled.map(|()| Parked::AtRest)?),
            _ = self.interrupt.recv() => Ok(Parked::Left),
            _ = self.terminate.recv() => Ok(Parked::Left),
        }
    }

    async fn park_all(&mut self, engine: &LoopHandle, run: &RunId) -> Result<(), Failure> {
        if self.park(engine, run).await? == Parked::AtRest {
            self.park_others(engine, run).await?;
        }
        Ok(())
    }

    /// Parks the other runs that this engine works on: it ends with its own, and nothing may go on without one.
    async fn park_others(&mut self, engine: &LoopHandle, run: &RunId) -> Result<Parked, Failure> {
        for other in others_at_work(engine, run).await? {
            say(&format!("run {other} was at work here too and is being parked; go on with: outlast resume {other}"));
            if self.park(engine, &other).await? == Parked::Left {
                return Ok(Parked::Left);
            }
        }
        Ok(Parked::AtRest)
    }
}

fn cannot(why: &str) -> Failure {
    Diagnostic::error("host/cannot", ExitCode::Host, why).into()
}

async fn next(troubles: &mut Option<broadcast::Receiver<Trouble>>) -> Trouble {
    if let Some(receiver) = troubles {
        loop {
            match receiver.recv().await {
                Ok(trouble) => return trouble,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
    }
    std::future::pending().await
}

fn told(trouble: &Trouble) -> String {
    let again = if trouble.again { "; it is tried again" } else { "" };
    let advice = if trouble.no_space { "; free some space" } else { "" };
    let task = trouble.task.as_ref().map_or_else(String::new, |task| format!("{task}: "));
    format!("{task}{}{again}{advice}", trouble.what)
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
    let first = move |core: &Core| {
        let run = core.run(&id)?;
        outlast_engine::run_line(core, run, None, now()).reset_at
    };
    let at = engine.look(first).await?.map(|at| format!(", the first until {at}")).unwrap_or_default();
    let goes_on = format!("go on then with: outlast resume {run}");
    Ok(format!("everything that is left waits{at}, and nothing goes on without an engine; {goes_on}"))
}

async fn only_waits(engine: &LoopHandle, run: &RunId) -> Result<bool, Failure> {
    let id = run.clone();
    let waits = move |core: &Core| core.run(&id).is_some_and(|run| outlast_engine::state(core, run, now()) == "parked");
    Ok(engine.look(waits).await?)
}

/// How a run went, as the contract says it.
pub(crate) fn exit_code(status: &Status) -> ExitCode {
    let codes = status.tasks.iter().map(|task| match (task.state.as_str(), task.cause.as_deref()) {
        ("failed" | "ready" | "parked", Some("auth" | "billing")) => ExitCode::Provider,
        ("failed", Some("conflict"))
        | ("done", Some("conflict" | "verify" | "target_checked_out" | "unclear" | "filter")) => ExitCode::Conflict,
        ("failed" | "blocked" | "stale", _) => ExitCode::TasksFailed,
        ("held" | "parked" | "asking" | "ready" | "pending", _) if status.state != "stopped" => ExitCode::Waiting,
        _ => ExitCode::Ok,
    });
    let budget = (status.budget.reached.is_some() && status.state == "parked").then_some(ExitCode::Budget);
    ExitCode::worst(codes.chain(budget))
}
