//! Staying with a run: progress line by line, an orderly end on a signal, and the exit code that says how it went.

use std::sync::Arc;

use outlast_api::{Act, Diagnostic, ExitCode, Status};
use outlast_core::{Record, RunId};
use outlast_engine::{Engine, LoopHandle, Trouble, perform, until_settled};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::commands::status::{now, view};
use crate::commands::{print, print_json, say};
use crate::failure::Failure;
use crate::places::Places;
use crate::selection::Journalled;
use crate::text::screen;
use crate::live;

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

/// Stays until nothing is left to do, and tells how it went.
pub(crate) async fn to_the_end(engine: Engine, places: &Places, run: &RunId, stay: Stay) -> Result<ExitCode, Failure> {
    let ended = follow(&engine, run, stay).await?;
    let interrupted = match ended {
        Ended::Settled | Ended::Waits => None,
        Ended::Signal(code) => {
            say("its agents are being parked; a second signal leaves them to the next engine");
            park(engine.handle(), run).await?;
            Some(code)
        }
        Ended::Died => return engine.close().await.map(|()| ExitCode::Host).map_err(Failure::from),
    };
    let home = engine.home().clone();
    engine.close().await?;
    let journalled = Journalled::load(home)?;
    let journalled = journalled.ok_or_else(|| outlast_engine::Error::Internal("the journal is gone".to_owned()))?;
    let status = view(places, &journalled, run, now())?;
    if stay.json { print_json(&status)? } else { print(&format!("\n{}", screen::status(&status, now())))? }
    Ok(interrupted.unwrap_or_else(|| exit_code(&status)))
}

async fn follow(engine: &Engine, run: &RunId, stay: Stay) -> Result<Ended, Failure> {
    let mut records = engine.handle().subscribe();
    let mut troubles = engine.troubles();
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::from(Diagnostic::error("host/cannot", ExitCode::Host, format!("no signals: {error}"))))
    };
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let settled = until_settled(engine.handle(), run);
    tokio::pin!(settled);
    loop {
        tokio::select! {
            biased;
            record = records.recv() => match record {
                Ok(records) => {
                    tell(&records, run);
                    if stay.no_wait && only_waits(engine.handle(), run).await? {
                        return Ok(Ended::Waits);
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(Ended::Died),
            },
            trouble = next(&mut troubles) => say(&told(&trouble)),
            _ = interrupt.recv() => return Ok(Ended::Signal(ExitCode::Interrupted)),
            _ = terminate.recv() => return Ok(Ended::Signal(ExitCode::Terminated)),
            ended = &mut settled => return match ended {
                Ok(()) => Ok(Ended::Settled),
                Err(outlast_engine::Error::Stopped) => Ok(Ended::Died),
                Err(error) => Err(error.into()),
            },
        }
    }
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
    let advice = if trouble.no_space { "; free some space" } else { "" };
    format!("{}: {}; it is tried again{advice}", trouble.task, trouble.what)
}

fn tell(records: &Arc<[Record]>, run: &RunId) {
    for record in records.iter().filter(|record| record.stream.is_of(run)) {
        if let Some(line) = live::progress(record) {
            say(&line);
        }
    }
}

async fn only_waits(engine: &LoopHandle, run: &RunId) -> Result<bool, Failure> {
    let id = run.clone();
    Ok(engine.look(move |core| core.run(&id).is_some_and(|run| outlast_engine::state(run) == "parked")).await?)
}

/// Parks what is alive. A second signal leaves at once: the agents go on under their shims.
async fn park(engine: &LoopHandle, run: &RunId) -> Result<(), Failure> {
    perform(engine, Act::Stop { run: run.to_string() }).await?;
    let again = async {
        match signal(SignalKind::interrupt()) {
            Ok(mut interrupt) => drop(interrupt.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        settled = until_settled(engine, run) => Ok(settled?),
        () = again => Ok(()),
    }
}

/// How a run went, as the contract says it.
pub(crate) fn exit_code(status: &Status) -> ExitCode {
    let codes = status.tasks.iter().map(|task| match (task.state.as_str(), task.cause.as_deref()) {
        ("failed", Some("auth" | "billing")) => ExitCode::Provider,
        ("failed", Some("conflict")) => ExitCode::Conflict,
        ("failed" | "blocked" | "stale", _) => ExitCode::TasksFailed,
        ("done", Some("conflict" | "verify" | "target_checked_out" | "unclear")) => ExitCode::Conflict,
        ("held" | "parked" | "asking" | "ready" | "pending", _) if status.state != "stopped" => ExitCode::Waiting,
        _ => ExitCode::Ok,
    });
    ExitCode::worst(codes)
}
