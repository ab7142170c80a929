//! Answers that were paid for and reached nobody: an agent that asks again for one of them gets it out of the ledger.
//!
//! A client may leave in the middle of an answer (it is killed, its patience is over, its connection breaks), and the
//! answer is read to its end all the same. So may this process, after the last byte and before anybody was handed it.
//! Whoever then sends the same request, byte for byte, and is still at that point of its conversation, gets that answer
//! and pays nothing; where it is still under way, they wait for it. An answer that arrived is never given again: whoever
//! asks the same once more wants another one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_core::{RunId, TaskId};
use outlast_gateway::{Ask, Grant, Recorded, TurnKind, recorded_request};
use outlast_journal::{ExchangeRow, JournalReader, Outcome, Selection, Usage};
use tokio::sync::Notify;

use crate::error::Error;
use crate::state_loop::now;
use crate::turns::Turn;

/// How the name of an exchange ends whose answer came out of the ledger.
pub(crate) const REPLAY: &str = "-replay";

/// How many exchanges of a task are remembered beside its newest turn: those of agents that its agent has started.
const REMEMBERED_MAX: usize = 32;

type Key = (RunId, TaskId);

/// What is known of the answers of each task.
pub(crate) struct Answers {
    journal: PathBuf,
    known: Mutex<Known>,
    /// Told whenever an exchange has gone on.
    changed: Notify,
    names: AtomicU64,
}

#[derive(Default)]
struct Known {
    /// The exchanges of each task that was asked about, in order.
    tasks: BTreeMap<Key, Vec<Exchange>>,
    /// Whose those are that the ledger does not have yet.
    open: BTreeMap<String, Key>,
}

/// One exchange of a task, as far as its answer may be given again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exchange {
    id: String,
    /// The name of the request; empty where it is not known.
    request: String,
    /// Which turn of the task it was; 0 for what is none.
    turn: u32,
    stage: Stage,
}

/// How far an exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is asked, or being answered.
    UnderWay {
        /// Its client has left.
        left: bool,
    },
    /// Its answer is whole.
    Whole {
        /// Its client has it.
        arrived: bool,
        /// The ledger has it.
        kept: bool,
    },
}

/// What is next for a request.
enum Next {
    GoesOut,
    Waits,
    /// The answer of this exchange is to be read.
    Reads(String),
    /// The answer that was read is given under this name.
    Gets(String),
}

/// What there is for a request.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Nothing: it goes out.
    Nothing,
    /// An answer that is on its way, to nobody.
    Soon,
    /// The answer of this exchange.
    Answer(String),
}

impl Answers {
    pub(crate) fn new(journal: PathBuf) -> Self {
        Self { journal, known: Mutex::default(), changed: Notify::new(), names: AtomicU64::new(0) }
    }

    /// The answer that may be given again to a request of an attempt; waits for one that is under way to nobody.
    pub(crate) async fn find(&self, turn: &Turn, ask: &Ask) -> Option<Recorded> {
        let key = (turn.id.run.clone(), turn.id.task.clone());
        self.learn(&key).await;
        let mut read: Option<(ExchangeRow, Vec<u8>)> = None;
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on nothing that is told is missed.
            changed.as_mut().enable();
            match self.next(&key, &ask.request, read.as_ref().map(|(row, _)| row.exchange.as_str())) {
                Next::GoesOut => return None,
                Next::Waits => changed.await,
                Next::Reads(of) => {
                    read = self.read(of.clone()).await;
                    if read.is_none() {
                        self.change(&of, |_| None);
                        return None;
                    }
                }
                Next::Gets(exchange_id) => {
                    let (row, body) = read?;
                    let grant =
                        Grant { exchange_id, attempt: Some(turn.id.clone()), account: row.account, turn: row.turn };
                    let status = row.status.unwrap_or(200);
                    return Some(Recorded { of: row.exchange, grant, status, headers: row.headers, body: body.into() });
                }
            }
        }
    }

    /// What is next for a request, of which the answer to `read` was read; what is given is under way again from then on.
    fn next(&self, key: &Key, request: &str, read: Option<&str>) -> Next {
        let mut known = self.lock();
        let Some(exchanges) = known.tasks.get_mut(key) else { return Next::GoesOut };
        let of = match find(exchanges, request) {
            Found::Nothing => return Next::GoesOut,
            Found::Soon => return Next::Waits,
            Found::Answer(of) if read != Some(&of) => return Next::Reads(of),
            Found::Answer(of) => of,
        };
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:011x}-{number:x}{REPLAY}", now().as_millis());
        for exchange in exchanges.iter_mut().filter(|exchange| exchange.id == of) {
            exchange.id.clone_from(&name);
            exchange.stage = Stage::UnderWay { left: false };
        }
        known.open.insert(name.clone(), key.clone());
        Next::Gets(name)
    }

    /// Takes note that a request goes out.
    pub(crate) fn began(&self, grant: &Grant, ask: &Ask) {
        let Some(attempt) = grant.attempt.as_ref().filter(|_| generates(ask.turn_kind)) else { return };
        let exchange = Exchange {
            id: grant.exchange_id.clone(),
            request: ask.request.clone(),
            turn: grant.turn,
            stage: Stage::UnderWay { left: false },
        };
        let key = (attempt.run.clone(), attempt.task.clone());
        let mut known = self.lock();
        known.open.insert(exchange.id.clone(), key.clone());
        note(known.tasks.entry(key).or_default(), exchange);
    }

    /// Takes note that the client of an exchange has left.
    pub(crate) fn left(&self, id: &str) {
        self.change(id, |stage| match stage {
            Stage::UnderWay { .. } => Some(Stage::UnderWay { left: true }),
            whole @ Stage::Whole { .. } => Some(whole),
        });
    }

    /// Takes note of how an exchange has ended.
    pub(crate) fn ended(&self, id: &str, outcome: Outcome, recorded: bool) {
        let is_whole = recorded && matches!(outcome, Outcome::Complete | Outcome::ClientGone);
        let arrived = outcome == Outcome::Complete;
        self.change(id, |_| is_whole.then_some(Stage::Whole { arrived, kept: false }));
    }

    /// Takes note that the ledger has an exchange.
    pub(crate) fn kept(&self, id: &str) {
        self.change(id, |stage| match stage {
            Stage::Whole { arrived, .. } => Some(Stage::Whole { arrived, kept: true }),
            under_way @ Stage::UnderWay { .. } => Some(under_way),
        });
    }

    /// Changes the stage of an exchange; nothing is known of it any more where there is none.
    fn change(&self, id: &str, to: impl Fn(Stage) -> Option<Stage>) {
        let mut known = self.lock();
        let Known { tasks, open } = &mut *known;
        let Some(exchanges) = open.get(id).and_then(|key| tasks.get_mut(key)) else { return };
        let place = exchanges.iter().position(|exchange| exchange.id == id);
        let stage = place.and_then(|at| to(exchanges[at].stage));
        match (place, stage) {
            (Some(at), Some(stage)) => exchanges[at].stage = stage,
            (Some(at), None) => drop(exchanges.remove(at)),
            (None, _) => {}
        }
        if stage.is_none_or(|stage| matches!(stage, Stage::Whole { kept: true, .. })) {
            open.remove(id);
        }
        drop(known);
        self.changed.notify_waiters();
    }

    /// Reads what engines before this one have left of a task, once.
    async fn learn(&self, key: &Key) {
        if self.lock().tasks.contains_key(key) {
            return;
        }
        let (journal, (run, task)) = (self.journal.clone(), key.clone());
        let rows =
            move || -> Result<_, Error> { Ok(JournalReader::open(journal)?.exchanges(&Selection::task(run, task))?) };
        let rows = match tokio::task::spawn_blocking(rows).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the answers to a task cannot be looked up");
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        let mut known = Vec::new();
        rows.iter().filter_map(in_ledger).for_each(|exchange| note(&mut known, exchange));
        // Another request of the task may have been quicker, and what goes on now is newer than what it has read.
        self.lock().tasks.entry(key.clone()).or_insert(known);
    }

    /// A whole answer out of the ledger.
    async fn read(&self, id: String) -> Option<(ExchangeRow, Vec<u8>)> {
        let journal = self.journal.clone();
        let read = move || -> Result<_, Error> {
            let reader = JournalReader::open(journal)?;
            let Some(row) = reader.exchange(&id)? else { return Ok(None) };
            let Some(hash) = row.response_hash else { return Ok(None) };
            Ok(reader.body(&hash)?.map(|body| (row, body)))
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                tracing::warn!(%error, "an answer that was paid for cannot be read, so it is asked for again");
                None
            }
            Err(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an answer to it may be given again.
pub(crate) const fn generates(kind: TurnKind) -> bool {
    matches!(kind, TurnKind::Main | TurnKind::SubAgent | TurnKind::Background)
}

/// What there is for a request. Of the agent's own turns only the newest counts: where another one has been asked for
/// since, the conversation has gone on, and the same words mean something else.
fn find(exchanges: &[Exchange], request: &str) -> Found {
    let Some(exchange) = exchanges.iter().rfind(|e| e.request == request).filter(|_| !request.is_empty()) else {
        return Found::Nothing;
    };
    let newest = exchanges.iter().rfind(|e| e.turn > 0);
    if exchange.turn > 0 && newest.is_some_and(|newest| newest.id != exchange.id) {
        return Found::Nothing;
    }
    match exchange.stage {
        // It may be another agent that says the same.
        Stage::UnderWay { left: false } | Stage::Whole { arrived: true, .. } => Found::Nothing,
        Stage::UnderWay { left: true } | Stage::Whole { kept: false, .. } => Found::Soon,
        Stage::Whole { kept: true, .. } => Found::Answer(exchange.id.clone()),
    }
}

/// Adds the newest exchange, and lets go of what it makes useless.
fn note(exchanges: &mut Vec<Exchange>, exchange: Exchange) {
    let is_over = |known: &Exchange| matches!(known.stage, Stage::Whole { .. });
    if exchange.turn > 0 {
        exchanges.retain(|known| known.turn == 0 || !is_over(known));
    }
    if exchanges.len() >= REMEMBERED_MAX
        && let Some(oldest) = exchanges.iter().position(is_over)
    {
        exchanges.remove(oldest);
    }
    exchanges.push(exchange);
}

/// A row of the ledger as far as its answer may be given again; nothing where it has none that is whole.
fn in_ledger(row: &ExchangeRow) -> Option<Exchange> {
    let has_all = row.response_hash.is_some() && row.status.is_some_and(|status| (200..300).contains(&status));
    let arrived = match row.outcome {
        Outcome::Complete => true,
        Outcome::ClientGone => false,
        // Its process ended after it had said its end, and nobody knows who has heard it: who asks again has not.
        Outcome::Cut if row.ended_at.is_none() && !row.estimated && row.usage != Usage::UNKNOWN => false,
        Outcome::Cut | Outcome::Refused | Outcome::Error => return None,
    };
    has_all.then(|| Exchange {
        id: row.exchange.clone(),
        request: recorded_request(&row.headers).unwrap_or_default(),
        turn: row.turn,
        stage: Stage::Whole { arrived, kept: true },
    })
}

#[cfg(test)]
mod tests;
