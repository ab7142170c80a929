//! What waits for room on the disk that holds the state: operations that come to nothing, and the journal itself.
//!
//! Nobody is at fault then, and nothing is given up: all of it is tried again until there is room. Whoever wants to leave
//! meanwhile need not wait for that.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use outlast_core::desired::OperationKey;
use tokio::sync::watch;

use crate::effects::AGAIN_AFTER;

/// Knows what waits.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    waiting: watch::Sender<Waiting>,
    /// Whether the engine leaves, so that the journal is not waited for any more.
    leaves: Arc<(Mutex<bool>, Condvar)>,
}

#[derive(Debug, Default)]
struct Waiting {
    operations: BTreeSet<OperationKey>,
    journal: bool,
}

impl Default for Disk {
    fn default() -> Self {
        Self { waiting: watch::Sender::new(Waiting::default()), leaves: Arc::default() }
    }
}

impl Disk {
    /// Takes note that an operation came to nothing for want of room.
    pub(crate) fn holds_up(&self, key: &OperationKey) {
        self.waiting.send_if_modified(|waiting| waiting.operations.insert(key.clone()));
    }

    /// Takes note that an operation waits no more.
    pub(crate) fn lets_go(&self, key: &OperationKey) {
        self.waiting.send_if_modified(|waiting| waiting.operations.remove(key));
    }

    /// Whether an operation has come to nothing for want of room, and to nothing else since.
    pub(crate) fn is_holding_up(&self, key: &OperationKey) -> bool {
        self.waiting.borrow().operations.contains(key)
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
    use outlast_core::desired::Step;
    use outlast_core::{RunId, TaskId};

    use super::*;

    #[test]
    fn an_engine_that_leaves_does_not_wait_for_the_journal() {
        let disk = Disk::default();
        let (waiter, (tell, told)) = (disk.clone(), std::sync::mpsc::channel());
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
        disk.leave();
        assert!(waiter.join().unwrap() <= 2);
    }

    #[tokio::test]
    async fn what_waits_is_known_until_it_waits_no_more() {
        let disk = Disk::default();
        let key = OperationKey { run: RunId::new("r"), task: TaskId::new("t"), step: Step::End(1) };
        let mut changes = disk.changes();
        disk.holds_up(&key);
        changes.next().await;
        assert!(disk.is_holding_up(&key));
        assert!(!disk.is_holding_up(&OperationKey { step: Step::End(2), ..key.clone() }));
        disk.lets_go(&key);
        changes.next().await;
        assert!(!disk.is_holding_up(&key));
    }
}
