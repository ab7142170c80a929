//! Spool files, used again and again: creating one costs a hundred times what writing a small answer does.
//!
//! A file in the free list is empty; one that is not empty belongs to an exchange that is not in the ledger yet.

use std::fs::{self, File, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Error, fault};

/// Most empty files kept for later.
const FREE_MAX: usize = 384;

/// All spool files of one folder.
#[derive(Debug)]
pub(crate) struct Slots {
    folder: PathBuf,
    next: AtomicU64,
    free: Mutex<Vec<Slot>>,
}

/// One spool file.
#[derive(Debug)]
pub(super) struct Slot {
    path: PathBuf,
    file: File,
}

impl Slots {
    pub(super) fn new(folder: &Path, next: u64) -> Self {
        Self { folder: folder.to_owned(), next: AtomicU64::new(next), free: Mutex::new(Vec::new()) }
    }

    /// An empty file.
    pub(super) fn take(&self) -> Result<Slot, Error> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(
            || {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                Slot::open(self.folder.join(format!("{number}.{EXTENSION}")))
            },
            Ok,
        )
    }

    /// Takes back a file whose exchange is in the ledger or never began.
    pub(super) fn put_back(&self, slot: Slot) {
        if slot.file.set_len(0).is_ok() {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            if free.len() < FREE_MAX {
                free.push(slot);
                return;
            }
        }
        slot.remove();
    }

    /// Keeps no more than `most` empty files open, and removes the others.
    pub(super) fn keep_free(&self, most: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = most.min(free.len());
        for slot in free.drain(kept..) {
            slot.remove();
        }
    }
}

/// The extension of spool files.
pub(super) const EXTENSION: &str = "spool";

impl Slot {
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = file.map_err(|error| fault::io(&path, "open", error))?;
        Ok(Self { path, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file of an exchange that is in the ledger or never began.
    fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            // Its exchange is found to be in the ledger already at the next start.
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a spool file");
        }
    }

    /// Appends all `parts` in one system call where the system allows.
    pub(super) fn append(&self, parts: &mut [IoSlice<'_>]) -> Result<u64, Error> {
        let mut rest = parts;
        let mut written = 0;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match (&self.file).write_vectored(rest) {
                Ok(0) => {
                    return Err(fault::io(&self.path, "write", std::io::ErrorKind::WriteZero.into()));
                }
                Ok(n) => {
                    written += n as u64;
                    IoSlice::advance_slices(&mut rest, n);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fault::io(&self.path, "write", error)),
            }
        }
        Ok(written)
    }

    /// Cuts the file back to `len` bytes.
    pub(super) fn cut_to(&self, len: u64) -> Result<(), Error> {
        self.file.set_len(len).map_err(|error| fault::io(&self.path, "shorten", error))
    }

    /// Reads the whole file into `buffer`, in place of what is there, through the open file: closing a file that was emptied
    /// before makes ext4 write it out at once (`auto_da_alloc`), which costs more than all the rest of an exchange.
    pub(super) fn read(&self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let failed = |error| fault::io(&self.path, "read", error);
        let len = self.file.metadata().map_err(failed)?.len();
        buffer.resize(usize::try_from(len).map_err(|_| Error::TooLarge { what: "length", value: len })?, 0);
        self.file.read_exact_at(buffer, 0).map_err(failed)
    }

    /// Moves the file out of the way of later starts, keeping its bytes.
    pub(super) fn set_aside(self) -> Result<PathBuf, Error> {
        let aside = self.path.with_extension("unreadable");
        fs::rename(&self.path, &aside).map_err(|error| fault::io(&self.path, "set aside", error))?;
        Ok(aside)
    }
}
