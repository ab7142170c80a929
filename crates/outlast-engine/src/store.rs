//! Records to and from the journal.
//!
//! Streams, revisions and times are columns; the fact is the body. A snapshot only saves time: it is the state that
//! the records up to its place lead to, and where it is missing, old or damaged, all records are replayed.

use outlast_core::driver::Store;
use outlast_core::record::VERSION;
use outlast_core::{Core, Fact, Record, Stream};
use outlast_journal::{Entry, Journal, JournalReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::broadcast;

use crate::error::Error;
use crate::held_up::HeldUp;

/// How many records lie between two snapshots: replay of that many takes a small part of a second.
const SNAPSHOT_EVERY: u64 = 10_000;
/// Rises whenever the shape of [`Core`] changes: a snapshot of another shape is not read.
const SNAPSHOT_VERSION: u16 = 2;

/// The engine's store: the journal, and everyone who listens to what it takes.
pub(crate) struct JournalStore {
    journal: Journal,
    records: broadcast::Sender<Arc<[Record]>>,
    snapshot_at: u64,
    file: JournalFile,
    /// Tells who waits for room; none where waiting would keep everybody else from going on.
    held_up: Option<HeldUp>,
}

/// The file of the journal, to be told from another in its place and from none.
struct JournalFile {
    path: PathBuf,
    /// Its device and number there; nothing where it cannot be looked at.
    was: Option<(u64, u64)>,
}

impl JournalFile {
    fn new(path: PathBuf) -> Self {
        let was = Self::identity(&path);
        Self { path, was }
    }

    fn identity(path: &Path) -> Option<(u64, u64)> {
        path.metadata().ok().map(|found| (found.dev(), found.ino()))
    }

    /// Checks that the name still leads to the file. One that was removed takes records as before, and nobody ever reads
    /// them.
    fn check(&self) -> Result<(), Error> {
        let is_there = self.was.is_none() || Self::identity(&self.path) == self.was;
        if is_there { Ok(()) } else { Err(Error::HomeGone { path: self.path.clone() }) }
    }
}

impl JournalStore {
    pub(crate) fn new(journal: Journal, path: PathBuf, records: broadcast::Sender<Arc<[Record]>>) -> Self {
        let snapshot_at = journal.last_seq();
        Self { journal, records, snapshot_at, file: JournalFile::new(path), held_up: None }
    }

    /// The same store, but what the journal has no room for is held until it has.
    pub(crate) fn holding(self, held_up: HeldUp) -> Self {
        Self { held_up: Some(held_up), ..self }
    }

    /// Makes entries durable, and waits for room where there is none.
    fn append_held(&self, entries: Vec<Entry>) -> Result<(), Error> {
        let Some(held_up) = &self.held_up else { return Ok(self.journal.append(entries).map(drop)?) };
        let mut is_told = false;
        loop {
            match self.journal.append(entries.clone()) {
                Err(full @ outlast_journal::Error::NoSpace { .. }) => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::warn!(error = %full, "the disk is full: everything waits until a record goes in");
                    }
                    if !held_up.journal_waits() {
                        return Err(full.into());
                    }
                    // Where somebody has removed it meanwhile, there is nothing to wait for.
                    self.file.check()?;
                }
                written => {
                    held_up.journal_goes_on();
                    return Ok(written.map(drop)?);
                }
            }
        }
    }
}

impl Store for JournalStore {
    type Error = Error;

    fn append(&mut self, records: &[(u64, Record)]) -> Result<(), Error> {
        crate::fault::point("before_append");
        let entries = records.iter().map(|(revision, record)| entry(*revision, record)).collect::<Result<_, _>>()?;
        self.append_held(entries)?;
        self.file.check()?;
        crate::fault::point("after_append");
        // Nobody need listen.
        drop(self.records.send(records.iter().map(|(_, record)| record.clone()).collect()));
        Ok(())
    }

    /// The journal lives on what it has set aside for a full disk: that is for the end of what is under way.
    fn has_room(&mut self) -> bool {
        if !self.journal.is_short_of_space() {
            return true;
        }
        match self.journal.restore_reserve() {
            Ok(()) => {
                tracing::info!("the disk has room again");
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the disk is full: nothing is started");
                false
            }
        }
    }

    fn turn_ended(&mut self, core: &Core) -> Result<(), Error> {
        let seq = self.journal.last_seq();
        // It only saves time: on a full disk it is made when there is room.
        if seq < self.snapshot_at + SNAPSHOT_EVERY || self.journal.is_short_of_space() {
            return Ok(());
        }
        let bytes =
            serde_json::to_vec(core).map_err(|e| Error::Internal(format!("a snapshot does not serialise: {e}")))?;
        match self.journal.snapshot_save(seq, SNAPSHOT_VERSION, &bytes) {
            Err(outlast_journal::Error::NoSpace { .. }) => return Ok(()),
            saved => saved?,
        }
        self.snapshot_at = seq;
        Ok(())
    }
}

fn entry(revision: u64, record: &Record) -> Result<Entry, Error> {
    let body = serde_json::to_string(&record.fact)
        .map_err(|e| Error::Internal(format!("a record does not serialise: {e}")))?;
    Ok(Entry { stream: record.stream.to_string(), revision, at: record.at, version: VERSION, body })
}

/// Reads a record of any version that was ever written.
///
/// # Errors
/// [`Error::Internal`] where an entry is none of ours: the journal is damaged, or of a later version.
pub fn record(entry: &Entry) -> Result<Record, Error> {
    let broken = |why: String| Error::Unreadable { stream: entry.stream.clone(), revision: entry.revision, why };
    if entry.version > VERSION {
        return Err(broken(format!("it has version {}, this outlast knows versions up to {VERSION}", entry.version)));
    }
    let stream = Stream::parse(&entry.stream).ok_or_else(|| broken("its stream is unknown".to_owned()))?;
    let fact: Fact = serde_json::from_str(&entry.body).map_err(|e| broken(e.to_string()))?;
    Ok(Record { at: entry.at, stream, fact })
}

/// The state that a journal leads to.
///
/// # Errors
/// Where the journal cannot be read or holds what is no record.
pub fn replay(reader: &JournalReader) -> Result<Core, Error> {
    let (mut core, after) = match reader.snapshot_load()? {
        Some(snapshot) if snapshot.version == SNAPSHOT_VERSION => match serde_json::from_slice(&snapshot.bytes) {
            Ok(core) => (core, snapshot.seq),
            Err(_) => (Core::default(), 0),
        },
        _ => (Core::default(), 0),
    };
    reader.replay(after, |_, entry| {
        core.apply(&record(&entry)?);
        Ok::<_, Error>(())
    })?;
    Ok(core)
}

#[cfg(test)]
mod tests;
