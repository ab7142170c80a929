//! Pack files: bodies one after the other, each a zstd frame of its own, so that `zstd -d` reads a whole pack.
//!
//! A file per body would cost two creations and four fsyncs per exchange; a pack costs one fsync per transaction,
//! however many bodies it brings. The database says where each body lies and how long each pack is; what lies beyond
//! that belongs to a transaction that never was, and is overwritten.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use super::BODIES;
use crate::{Error, fault, schema};

/// A pack that has reached this length is followed by the next.
const PACK_LEN: u64 = 64 * 1024 * 1024;

/// Where a body lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) pack: u32,
    pub(super) offset: u64,
}

/// The end of the last pack, and what the open transaction adds to it.
#[derive(Debug)]
pub(crate) struct PackWriter {
    folder: PathBuf,
    journal: PathBuf,
    number: u32,
    file: Option<File>,
    /// Length as far as committed.
    len: u64,
    added: Vec<u8>,
}

/// The path of a pack of the journal at `journal`.
pub(super) fn path_of(journal: &Path, pack: u32) -> PathBuf {
    schema::folder_of(journal).join(BODIES).join(format!("{pack:08}.zst"))
}

impl PackWriter {
    /// Finds the end of the last pack. A pack that is gone or shorter than it should be is left as it is, and a new
    /// one begun: readers of what it held are told, writers go on.
    pub(crate) fn open(connection: &Connection, journal: &Path) -> Result<Self, Error> {
        let last: Option<(u32, u64)> = connection
            .query_row("SELECT pack, bytes FROM pack ORDER BY pack DESC LIMIT 1", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(|error| fault::sqlite(journal, "find the last pack", error))?;
        let (number, len) = match last {
            None => (1, 0),
            Some((number, len)) => {
                let path = path_of(journal, number);
                match fs::metadata(&path) {
                    Ok(metadata) if metadata.len() >= len => (number, len),
                    damaged => {
                        let found = damaged.map(|metadata| metadata.len()).ok();
                        tracing::warn!(path = %path.display(), expected = len, found, "a pack of bodies is damaged");
                        (number + 1, 0)
                    }
                }
            }
        };
        let folder = schema::folder_of(journal).join(BODIES);
        Ok(Self { folder, journal: journal.to_owned(), number, file: None, len, added: Vec::new() })
    }

    /// Adds a compressed body; it is in the file after [`PackWriter::flush`].
    pub(super) fn add(&mut self, packed: &[u8]) -> Place {
        if self.added.is_empty() && self.len >= PACK_LEN {
            (self.number, self.len, self.file) = (self.number + 1, 0, None);
        }
        let place = Place { pack: self.number, offset: self.len + self.added.len() as u64 };
        self.added.extend_from_slice(packed);
        place
    }

    /// How much the transaction has added so far.
    pub(crate) fn mark(&self) -> usize {
        self.added.len()
    }

    /// Takes back what was added since `mark`.
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.added.truncate(mark);
    }

    /// Makes what was added durable, and notes the pack's new length in the transaction that is open.
    pub(crate) fn flush(&mut self, connection: &Connection) -> Result<(), Error> {
        if self.added.is_empty() {
            return Ok(());
        }
        let path = path_of(&self.journal, self.number);
        let file = match self.file.take() {
            Some(file) => file,
            None => self.open_file(&path)?,
        };
        let file = self.file.insert(file);
        file.write_all_at(&self.added, self.len).map_err(|error| fault::io(&path, "write", error))?;
        file.sync_data().map_err(|error| fault::unconfirmed_sync(&path, &error))?;
        let len = fault::integer("length", self.len + self.added.len() as u64)?;
        connection
            .prepare_cached(
                "INSERT INTO pack (pack, bytes) VALUES (?1, ?2) ON CONFLICT (pack) DO UPDATE SET bytes = excluded.bytes",
            )
            .and_then(|mut insert| insert.execute(params![self.number, len]))
            .map_err(|error| fault::sqlite(&self.journal, "note the length of a pack", error))?;
        Ok(())
    }

    /// The transaction is durable.
    pub(crate) fn committed(&mut self) {
        self.len += self.added.len() as u64;
        self.added.clear();
        // One huge body must not be remembered in memory for ever.
        self.added.shrink_to(1024 * 1024);
    }

    /// The transaction came to nothing.
    pub(crate) fn discard(&mut self) {
        self.added.clear();
    }

    fn open_file(&self, path: &Path) -> Result<File, Error> {
        fs::create_dir_all(&self.folder).map_err(|error| fault::io(&self.folder, "create", error))?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| fault::io(path, "open", error))?;
        file.set_len(self.len).map_err(|error| fault::io(path, "shorten", error))?;
        // The file's name, and the folder's own if it is new, must outlive a power cut as its content does.
        schema::sync_folder_of(path)?;
        schema::sync_folder_of(&self.folder)?;
        Ok(file)
    }
}
