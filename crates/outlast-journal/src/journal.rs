//! The writing side of the journal, as the engine holds it.
//!
//! Every append is durable before it is answered. Cloning gives another handle to the same writer; the journal is
//! closed and its lock released when the last handle goes.

use std::path::Path;
use std::sync::Arc;

use crate::pending::{self, Pending};
use crate::snapshot::Sealed;
use crate::writer::{Work, Writer};
use crate::{Entry, Error, JournalReader, Snapshot};

/// A journal open for writing; at most one process has it.
#[derive(Debug, Clone)]
pub struct Journal {
    writer: Arc<Writer>,
}

impl Journal {
    /// Opens the journal at `path`, creating it when there is none. Its folder must exist.
    ///
    /// # Errors
    /// [`Error::Locked`] while another process has it, [`Error::Damaged`] for a file that is not a journal (it is left
    /// as it is), [`Error::Newer`] for one of a later release, [`Error::NoSpace`] on a full disk.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self { writer: Arc::new(Writer::start(path.as_ref())?) })
    }

    /// Appends `entries`, all or none, and waits until they are durable. Returns the sequence number of the last.
    ///
    /// # Errors
    /// [`Error::Revision`] when a stream has one of the revisions already; [`Error::NoSpace`] on a full disk;
    /// [`Error::Stopped`] when it is unknown whether they are there.
    pub fn append(&self, entries: Vec<Entry>) -> Result<u64, Error> {
        self.append_later(entries).wait()
    }

    /// Appends as [`Journal::append`] does without waiting: the answer comes when the entries are durable. Entries are
    /// written in the order of the calls, whether or not anyone waits for the answers.
    pub fn append_later(&self, entries: Vec<Entry>) -> Pending<u64> {
        self.send(Work::Append(entries))
    }

    /// Keeps `bytes`, in the caller's format `version`, as the state after the record `seq`. The last two are kept.
    ///
    /// # Errors
    /// [`Error::Ahead`] when the journal does not reach `seq`; otherwise as [`Journal::append`].
    pub fn snapshot_save(&self, seq: u64, version: u16, bytes: &[u8]) -> Result<(), Error> {
        let sealed = Sealed::new(seq, version, bytes, self.path())?;
        self.send(Work::Snapshot(sealed)).wait().map(drop)
    }

    /// The latest snapshot that is whole; see [`JournalReader::snapshot_load`].
    ///
    /// # Errors
    /// As [`JournalReader::snapshot_load`].
    pub fn snapshot_load(&self) -> Result<Option<Snapshot>, Error> {
        self.reader()?.snapshot_load()
    }

    /// Hands every entry after `after_seq` to `each`, in order; see [`JournalReader::replay`].
    ///
    /// # Errors
    /// As [`JournalReader::replay`].
    pub fn replay<E: From<Error>>(
        &self,
        after_seq: u64,
        each: impl FnMut(u64, Entry) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.reader()?.replay(after_seq, each)
    }

    /// Opens a connection of its own for reading.
    ///
    /// # Errors
    /// As [`JournalReader::open`].
    pub fn reader(&self) -> Result<JournalReader, Error> {
        JournalReader::open(self.path())
    }

    /// The sequence number of the last durable entry; 0 in an empty journal.
    pub fn last_seq(&self) -> u64 {
        self.writer.last_seq()
    }

    /// Transactions committed since the journal was opened; each one is one fsync of SQLite's log.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Whether the disk has been full and the journal lives on the space it had set aside. Appends still succeed for a
    /// few dozen transactions: start nothing, and call [`Journal::restore_reserve`] when there may be room.
    pub fn is_short_of_space(&self) -> bool {
        self.writer.is_short_of_space()
    }

    /// Sets space aside again, after which [`Journal::is_short_of_space`] is false.
    ///
    /// # Errors
    /// [`Error::NoSpace`] while the disk is full.
    pub fn restore_reserve(&self) -> Result<(), Error> {
        self.send(Work::Reserve).wait().map(drop)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.writer.path()
    }

    pub(crate) fn writer(&self) -> &Arc<Writer> {
        &self.writer
    }

    fn send(&self, work: Work) -> Pending<u64> {
        let (promise, pending) = pending::pair(self.path());
        self.writer.send(work, Box::new(|result| promise.keep(result)));
        pending
    }
}
