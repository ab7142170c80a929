//! The reading side: replay, snapshots and the ledger's questions, from any process.
//!
//! It never writes: not a record, not a row, not a repair.

use std::path::{Path, PathBuf};

use outlast_core::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use crate::entry::{self, COLUMNS};
use crate::{Entry, Error, Snapshot, connection, fault, snapshot};

/// A journal open for reading, while a writer lives in any process or when none does.
#[derive(Debug)]
pub struct JournalReader {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
}

impl JournalReader {
    /// Opens the journal at `path`.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is none; otherwise as [`crate::Journal::open`], but never [`Error::Locked`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Ok(Self { connection: connection::open_reader(path)?, path: path.to_owned() })
    }

    /// Hands every entry after `after_seq` to `each`, in order, as they were at one moment, and returns the sequence
    /// number of the last one (`after_seq` when there was none). The first error of `each` ends it.
    ///
    /// # Errors
    /// [`Error::Damaged`] when an entry is missing or not what was written; whatever `each` fails with.
    pub fn replay<E: From<Error>>(
        &self,
        after_seq: u64,
        mut each: impl FnMut(u64, Entry) -> Result<(), E>,
    ) -> Result<u64, E> {
        let failed = |error| E::from(fault::sqlite(&self.path, "replay", error));
        let after = fault::integer("sequence number", after_seq)?;
        let mut select = self
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM record WHERE seq > ?1 ORDER BY seq"))
            .map_err(failed)?;
        let mut rows = select.query([after]).map_err(failed)?;
        let (mut last, mut scratch) = (after_seq, Vec::new());
        while let Some(row) = rows.next().map_err(failed)? {
            let (seq, entry, sum) = entry::read(row).map_err(failed)?;
            if seq != last + 1 {
                return Err(self.damaged(format!("entry {} is missing", last + 1)).into());
            }
            if entry.sum(&mut scratch) != sum {
                return Err(self.damaged(format!("entry {seq} is not what was written")).into());
            }
            last = seq;
            each(seq, entry)?;
        }
        Ok(last)
    }

    /// The latest snapshot that is whole: a damaged one is passed over for the one before it, and without any the
    /// caller replays from the start.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn snapshot_load(&self) -> Result<Option<Snapshot>, Error> {
        snapshot::load(&self.connection, &self.path)
    }

    /// The sequence number of the last durable entry; 0 in an empty journal.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn last_seq(&self) -> Result<u64, Error> {
        self.connection
            .prepare_cached("SELECT coalesce(max(seq), 0) FROM record")
            .and_then(|mut select| select.query_row([], |row| row.get(0)))
            .map_err(|error| fault::sqlite(&self.path, "find the last entry", error))
    }

    /// When the last durable entry was written; nothing in an empty journal.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn last_at(&self) -> Result<Option<Timestamp>, Error> {
        self.connection
            .prepare_cached("SELECT at FROM record ORDER BY seq DESC LIMIT 1")
            .and_then(|mut select| select.query_row([], |row| row.get(0)).optional())
            .map(|at: Option<i64>| at.map(Timestamp::from_millis))
            .map_err(|error| fault::sqlite(&self.path, "find the last entry", error))
    }

    /// A number that changes whenever someone else has committed since this reader last asked; its value means nothing.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn data_version(&self) -> Result<u32, Error> {
        self.connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut select| select.query_row([], |row| row.get(0)))
            .map_err(|error| fault::sqlite(&self.path, "look for changes", error))
    }

    pub(crate) fn damaged(&self, why: String) -> Error {
        Error::Damaged { path: self.path.clone(), why }
    }
}
