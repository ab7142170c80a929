//! Exchanges that have ended and are not in the ledger yet.
//!
//! Each holds a file open, so a disk that is slower than the agents must slow them down before files run out: a new
//! request waits until there is room. Answers under way never wait.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use outlast_journal::Pending;
use tokio::sync::Notify;

use crate::admission::Admission;

/// Most exchanges that may wait for the ledger: a quarter of the files a process may open where nobody
/// raised that, and as many rows as make one commit of the ledger worth its fsync.
const UNWRITTEN_MAX: usize = 256;

/// Counts them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backlog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    unwritten: AtomicUsize,
    /// Told when there is room again.
    room: Notify,
}

impl Backlog {
    /// Waits until there is room; takes none.
    pub(crate) async fn room(&self) {
        loop {
            let mut told = pin!(self.0.room.notified());
            // From here on nothing that is told is missed.
            told.as_mut().enable();
            if self.0.unwritten.load(Ordering::Acquire) < UNWRITTEN_MAX {
                return;
            }
            told.await;
        }
    }

    /// Takes room for an exchange that has ended, even where there is none; `admission` hears when its row is there.
    pub(crate) fn add(&self, exchange_id: String, row: Pending<()>, admission: &Arc<dyn Admission>) -> Unwritten {
        self.0.unwritten.fetch_add(1, Ordering::AcqRel);
        Unwritten { exchange_id, row: Some(row), admission: Arc::downgrade(admission), backlog: self.clone() }
    }
}

/// A settled exchange whose row is not durable yet. The row is written whether or not this is waited for.
#[must_use = "its room is given back as soon as this is dropped"]
pub(crate) struct Unwritten {
    exchange_id: String,
    row: Option<Pending<()>>,
    /// One that is gone need not hear of it, and must not end on the ledger's thread.
    admission: Weak<dyn Admission>,
    backlog: Backlog,
}

impl Unwritten {
    /// Gives the room back when the row is there, on the thread that has written it: a task of the gateway's for each row would
    /// have to be woken across threads.
    pub(crate) fn until_written(mut self) {
        let Some(row) = self.row.take() else { return };
        row.then(move |written| {
            if let Err(error) = written {
                tracing::error!(exchange = %self.exchange_id, %error, "an exchange is not in the ledger yet");
            }
        });
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.upgrade() {
            admission.kept(&self.exchange_id);
        }
        let shared = &self.backlog.0;
        if shared.unwritten.fetch_sub(1, Ordering::AcqRel) == UNWRITTEN_MAX {
            shared.room.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests;
