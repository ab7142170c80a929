//! What is held up: operations that come to nothing, and the journal itself where its disk is full.
//!
//! Nobody is at fault then, and nothing is given up: all of it is tried again. Whoever wants to leave meanwhile need not
//! wait for that, once it lasts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::{fs, io};

use outlast_api::Diagnostic;
use outlast_core::desired::OperationKey;
use outlast_core::{RunId, TaskId};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::diagnose::is_obstacle;
use crate::effects::AGAIN_AFTER;

/// How often in a row an operation comes to nothing before nobody waits for it any more who wants to leave. A lock that
/// somebody's git holds for a moment is gone by then.
const LASTS_AFTER: u32 = 3;

/// Knows what is held up.
#[derive(Debug, Clone)]
pub(crate) struct HeldUp {
    waiting: watch::Sender<Waiting>,
    /// Whether the engine leaves, so that the journal is not waited for any more.
    leaves: Arc<(Mutex<bool>, Condvar)>,
}

#[derive(Debug, Default)]
struct Waiting {
    operations: BTreeMap<OperationKey, Holdup>,
    journal: bool,
}

/// An operation that came to nothing, and to nothing else since.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holdup {
    why: Why,
    times: u32,
}

/// Why an operation came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    /// What is said to whoever leaves.
    pub(crate) told: Diagnostic,
    /// Whether it was looked for and found, and so is there for whoever tries: once is enough to know.
    pub(crate) is_certain: bool,
}

impl Holdup {
    const fn lasts(&self) -> bool {
        self.why.is_certain || self.times >= LASTS_AFTER
    }
}

/// What an engine tries again and again, for those who look without asking it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) run: RunId,
    pub(crate) task: TaskId,
    pub(crate) told: Diagnostic,
}

/// What the engine that works here, or that left last, tries or tried again; nothing where that cannot be read.
pub(crate) fn load(path: &Path) -> Vec<Tried> {
    let read = || serde_json::from_slice(&fs::read(path).ok()?).ok();
    read().unwrap_or_default()
}

/// Leaves word of what is tried again and again. It is no record: where it cannot be written, `status` has less to say.
///
/// # Errors
/// Where the file cannot be written or removed.
pub(crate) fn save(path: &Path, tried: &[Tried]) -> io::Result<()> {
    if tried.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    // Whoever reads it meanwhile reads the one or the other.
    let temp = path.with_extension("tmp");
    fs::write(&temp, serde_json::to_vec(tried)?)?;
    fs::rename(&temp, path)
}

impl Default for HeldUp {
    fn default() -> Self {
        Self { waiting: watch::Sender::new(Waiting::default()), leaves: Arc::default() }
    }
}

impl HeldUp {
    /// Takes note that an operation came to nothing; whether that changes what lasts.
    pub(crate) fn note(&self, key: &OperationKey, why: Why) -> bool {
        let mut changed = false;
        self.waiting.send_if_modified(|waiting| {
            let before = waiting.operations.get(key);
            let times = before.map_or(0, |before| before.times).saturating_add(1);
            let now = Holdup { why, times };
            let lasted = before.filter(|before| before.lasts()).map(|before| &before.why);
            changed = now.lasts() && lasted != Some(&now.why);
            waiting.operations.insert(key.clone(), now);
            changed
        });
        changed
    }

    /// Takes note that an operation waits no more; whether it had for long.
    pub(crate) fn lets_go(&self, key: &OperationKey) -> bool {
        let mut lasted = false;
        self.waiting.send_if_modified(|waiting| {
            let before = waiting.operations.remove(key);
            lasted = before.as_ref().is_some_and(Holdup::lasts);
            before.is_some()
        });
        lasted
    }

    /// Why an operation comes to nothing, where that lasts.
    pub(crate) fn why(&self, key: &OperationKey) -> Option<Diagnostic> {
        let waiting = self.waiting.borrow();
        waiting.operations.get(key).filter(|holdup| holdup.lasts()).map(|holdup| holdup.why.told.clone())
    }

    /// Why what is done with a task comes to nothing, where that lasts.
    pub(crate) fn why_of(&self, run: &RunId, task: &TaskId) -> Option<Diagnostic> {
        let waiting = self.waiting.borrow();
        let of = |key: &OperationKey| key.run == *run && key.task == *task;
        let found = waiting.operations.iter().find(|(key, holdup)| of(key) && holdup.lasts());
        found.map(|(_, holdup)| holdup.why.told.clone())
    }

    /// Whether anything lasts.
    pub(crate) fn is_any(&self) -> bool {
        self.waiting.borrow().operations.values().any(Holdup::lasts)
    }

    /// Everything that lasts, but for what is in the way of everything: whoever looks finds that without being told.
    pub(crate) fn tried(&self) -> Vec<Tried> {
        let waiting = self.waiting.borrow();
        let is_told = |holdup: &Holdup| holdup.lasts() && !is_obstacle(&holdup.why.told);
        let lasting = waiting.operations.iter().filter(|(_, holdup)| is_told(holdup));
        lasting
            .map(|(key, holdup)| Tried { run: key.run.clone(), task: key.task.clone(), told: holdup.why.told.clone() })
            .collect()
    }

    /// Tells of everything that begins or ends to wait from now on.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.waiting.subscribe())
    }

    /// Waits until the journal takes no more records for want of room, not even out of what it has set aside.
    pub(crate) async fn until_journal_waits(&self) {
        // The sender is here: it cannot be gone.
        drop(self.waiting.subscribe().wait_for(|waiting| waiting.journal).await);
    }

    /// Waits, on a thread that may, until the journal is worth trying again; false where the engine leaves.
    pub(crate) fn journal_waits(&self) -> bool {
        self.set_journal(true);
        let (leaves, told) = &*self.leaves;
        let leaves = leaves.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = told.wait_timeout_while(leaves, AGAIN_AFTER, |leaves| !*leaves);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes note that the journal takes records.
    pub(crate) fn journal_goes_on(&self) {
        self.set_journal(false);
    }

    fn set_journal(&self, waits: bool) {
        self.waiting.send_if_modified(|waiting| std::mem::replace(&mut waiting.journal, waits) != waits);
    }

    /// Has nobody wait for the journal from now on.
    pub(crate) fn leave(&self) {
        let (leaves, told) = &*self.leaves;
        *leaves.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
    }
}

/// Changes of what waits.
pub(crate) struct Changes(watch::Receiver<Waiting>);

impl Changes {
    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        // Cannot fail: the handle holds the other end.
        self.0.changed().await.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use outlast_api::ExitCode;
    use outlast_core::desired::Step;

    use super::*;

    #[test]
    fn an_engine_that_leaves_does_not_wait_for_the_journal() {
        let held_up = HeldUp::default();
        let (waiter, (tell, told)) = (held_up.clone(), std::sync::mpsc::channel());
        let waiter = std::thread::spawn(move || {
            // Not once does it say that it is worth trying again before this long is over, unless it is to leave.
            let mut tries = 0;
            while waiter.journal_waits() {
                tries += 1;
                tell.send(tries).unwrap();
            }
            tries
        });
        assert_eq!(told.recv().unwrap(), 1, "it is tried again");
        held_up.leave();
        assert!(waiter.join().unwrap() <= 2);
    }

    fn why(is_certain: bool) -> Why {
        Why { told: Diagnostic::error("host/cannot", ExitCode::Host, "it is held"), is_certain }
    }

    fn key(number: u32) -> OperationKey {
        OperationKey { run: RunId::new("r"), task: TaskId::new("t"), step: Step::End(number) }
    }

    #[tokio::test]
    async fn what_waits_is_known_until_it_waits_no_more() {
        let held_up = HeldUp::default();
        let mut changes = held_up.changes();
        assert!(held_up.note(&key(1), why(true)));
        changes.next().await;
        assert_eq!(held_up.why(&key(1)), Some(why(true).told));
        assert_eq!(held_up.why(&key(2)), None);
        assert!(!held_up.note(&key(1), why(true)), "it is the same as before");
        assert!(held_up.lets_go(&key(1)));
        changes.next().await;
        assert_eq!(held_up.why(&key(1)), None);
    }

    #[test]
    fn what_may_be_over_in_a_moment_does_not_last_until_it_was_met_a_few_times_in_a_row() {
        let held_up = HeldUp::default();
        let tries = |times: u32| (0..times).map(|_| held_up.note(&key(1), why(false))).collect::<Vec<_>>();
        assert_eq!(tries(2), [false, false]);
        assert!(!held_up.lets_go(&key(1)));
        assert_eq!(tries(4), [false, false, true, false]);
        let told = held_up.why_of(&RunId::new("r"), &TaskId::new("t"));
        assert_eq!((told, held_up.tried().len()), (Some(why(false).told), 1));
        assert!(held_up.lets_go(&key(1)));
        assert_eq!(held_up.tried(), []);
    }
}
