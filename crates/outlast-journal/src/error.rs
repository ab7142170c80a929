//! What can go wrong, one variant per remedy.
//!
//! Errors are cheap to clone: one failed transaction is reported to every caller that shared it.

use std::path::PathBuf;
use std::sync::Arc;

/// Why the journal or its ledger could not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The file is not a journal of ours, or its content is broken. Nothing is repaired in place: restore a copy.
    #[error("journal {path} is damaged: {why}", path = .path.display())]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A later release wrote this journal; this one cannot read it.
    #[error("journal {path} has schema {found}, this release knows up to {known}", path = .path.display())]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The latest schema version this release knows.
        known: u32,
    },
    /// There is no journal at this path; only readers say this, a writer creates it.
    #[error("no journal at {path}", path = .path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Another process writes this journal.
    #[error("journal {path} is held by {holder}", path = .path.display(), holder = holder(.pid))]
    Locked {
        /// The journal.
        path: PathBuf,
        /// The process that holds it, where it said so.
        pid: Option<u32>,
    },
    /// The stream has an entry with this revision already; nothing of the refused batch was written.
    #[error("stream {stream} has revision {revision} already")]
    Revision {
        /// The stream.
        stream: String,
        /// The revision that exists.
        revision: u64,
    },
    /// The ledger has a row for this exchange already.
    #[error("exchange {exchange} is in the ledger already")]
    DuplicateExchange {
        /// The exchange.
        exchange: String,
    },
    /// The disk (or the quota on it) is full. The journal is intact; the same call works once there is room.
    #[error("no space left for {path}", path = .path.display())]
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A snapshot claims records that the journal does not have.
    #[error("snapshot at {seq} is ahead of the journal, which ends at {last}")]
    Ahead {
        /// The sequence number the snapshot was made at.
        seq: u64,
        /// The last sequence number in the journal.
        last: u64,
    },
    /// A number is beyond what the database can hold (2^63 - 1).
    #[error("{what} {value} is too large to store")]
    TooLarge {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// Writing has ended: the disk failed to confirm a write, or the journal was closed. What was appended last may or
    /// may not be there; open the journal again and read it.
    #[error("journal {path} takes no more writes: {why}", path = .path.display())]
    Stopped {
        /// The journal.
        path: PathBuf,
        /// What ended it.
        why: String,
    },
    /// SQLite failed in a way none of the other variants covers.
    #[error("cannot {action} in {path}", path = .path.display())]
    Sqlite {
        /// What was being done.
        action: &'static str,
        /// The journal.
        path: PathBuf,
        /// SQLite's own account.
        source: Arc<rusqlite::Error>,
    },
    /// A file operation failed.
    #[error("cannot {action} {path}", path = .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's own account.
        source: Arc<std::io::Error>,
    },
}

impl Error {
    /// Whether SQLite could not open or lock a file, which it does not tell apart by the system's own reasons: it is the host
    /// that refuses, and no defect.
    pub fn is_of_the_host(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, FileLockingProtocolFailed, PermissionDenied, ReadOnly, SystemIoFailure};
        let Self::Sqlite { source, .. } = self else { return false };
        let codes = [CannotOpen, FileLockingProtocolFailed, PermissionDenied, ReadOnly, SystemIoFailure];
        source.sqlite_error_code().is_some_and(|code| codes.contains(&code))
    }
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
