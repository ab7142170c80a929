//! Exchanges that have ended and are not in the ledger yet.
//!
//! Each holds a file open, so a disk that is slower than the agents must slow them down before files run out: a new
//! request waits until there is room. Answers under way never wait.

use std::sync::Arc;

use outlast_journal::Pending;
use tokio::sync::Semaphore;

/// Most exchanges that may wait for the ledger: a quarter of the files a process may open where nobody
/// raised that, and as many rows as make one commit of the ledger worth its fsync.
const UNWRITTEN_MAX: usize = 256;

/// Counts them.
#[derive(Debug, Clone)]
pub(crate) struct Backlog(Arc<Semaphore>);

impl Default for Backlog {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNWRITTEN_MAX)))
    }
}

impl Backlog {
    /// Waits until there is room; takes none.
    pub(crate) async fn room(&self) {
        // Never closed, so there is nothing else to hear.
        drop(self.0.acquire().await);
    }

    /// Takes room for an exchange that has ended, even where there is none.
    pub(crate) fn add(&self, exchange_id: String, row: Pending<()>) -> Unwritten {
        let taken = self.0.forget_permits(1);
        Unwritten { exchange_id, row: Some(row), backlog: self.clone(), taken }
    }
}

/// A settled exchange whose row is not durable yet. The row is written whether or not this is waited for.
#[derive(Debug)]
#[must_use = "its room is given back as soon as this is dropped"]
pub(crate) struct Unwritten {
    exchange_id: String,
    row: Option<Pending<()>>,
    backlog: Backlog,
    taken: usize,
}

impl Unwritten {
    /// Waits for the row, then gives the room back.
    pub(crate) async fn written(mut self) {
        let Some(row) = self.row.take() else { return };
        if let Err(error) = row.await {
            tracing::error!(exchange = %self.exchange_id, %error, "an exchange is not in the ledger yet");
        }
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.backlog.0.add_permits(self.taken);
    }
}

#[cfg(test)]
mod tests;
