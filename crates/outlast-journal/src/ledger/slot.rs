//! Spool files, used again and again: creating one costs a hundred times what writing a small answer does.
//!
//! A file in the free list says so in its first bytes, and is not emptied: giving its pages back and getting them again takes
//! a quarter of the time that writing an answer of 100 KB does. One that is neither empty nor says so belongs to an exchange
//! that is not in the ledger yet. When all is over they are emptied, so that nothing of an exchange is left there.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::frames::{FREE, Use};

use crate::{Error, fault};

/// Most free files kept for later.
const FREE_MAX: usize = 384;
/// Most bytes of a free file: one of a longer exchange is emptied.
const FREE_BYTES_MAX: u64 = 256 << 10;

/// All spool files of one folder.
#[derive(Debug)]
pub(crate) struct Slots {
    folder: PathBuf,
    next: AtomicU64,
    /// The next use of any file; they begin anywhere, so that what an earlier process has left is of none of them.
    uses: AtomicU32,
    free: Mutex<Vec<Slot>>,
}

/// One spool file.
#[derive(Debug)]
pub(super) struct Slot {
    path: PathBuf,
    file: File,
    this: Use,
    /// Bytes of this use.
    used: u64,
    /// Bytes of the file.
    len: u64,
    /// An earlier process has left it.
    is_left: bool,
}

impl Slots {
    pub(super) fn new(folder: &Path, next: u64) -> Self {
        // The standard library's own randomness: a hasher is seeded with it.
        let uses = AtomicU32::new((RandomState::new().build_hasher().finish() >> 32) as u32);
        Self { folder: folder.to_owned(), next: AtomicU64::new(next), uses, free: Mutex::new(Vec::new()) }
    }

    /// A file to write from its beginning.
    pub(super) fn take(&self) -> Result<Slot, Error> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let slot = free.map_or_else(
            || {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                Slot::open(self.folder.join(format!("{number}.{EXTENSION}")))
            },
            Ok,
        );
        Ok(slot?.begin(Use(self.uses.fetch_add(1, Ordering::Relaxed))))
    }

    /// Takes back a file whose exchange is in the ledger or never began.
    pub(super) fn put_back(&self, mut slot: Slot) {
        if slot.set_free().is_ok() {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            if free.len() < FREE_MAX {
                free.push(slot);
                return;
            }
        }
        slot.remove();
    }

    /// Keeps no more than `most` free files open, and removes the others.
    pub(super) fn keep_free(&self, most: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = most.min(free.len());
        for slot in free.drain(kept..) {
            slot.remove();
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for mut slot in self.free.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if slot.empty().is_err() {
                slot.remove();
            }
        }
    }
}

/// The extension of spool files.
pub(super) const EXTENSION: &str = "spool";

impl Slot {
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| fault::io(&path, "open", error))?;
        let len = file.metadata().map_err(|error| fault::io(&path, "open", error))?.len();
        Ok(Self { path, file, this: Use(0), used: len, len, is_left: true })
    }

    /// Makes it ready to be written from its beginning, where it is already: see [`Slot::set_free`].
    fn begin(mut self, this: Use) -> Self {
        (self.this, self.used, self.is_left) = (this, 0, false);
        self
    }

    /// Says in the file that nobody needs what it holds, or empties it; goes to its beginning, off the path of a request.
    fn set_free(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        if self.is_left || self.len > FREE_BYTES_MAX {
            self.empty()?;
        } else if self.len > 0 {
            self.file.write_all_at(FREE, 0)?;
        }
        Ok(())
    }

    fn empty(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.len = 0;
        Ok(())
    }

    /// Which use of the file this is.
    pub(super) const fn this(&self) -> Use {
        self.this
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

    /// Writes all `parts` behind what this use has written, in one system call where the system allows.
    pub(super) fn append(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), Error> {
        let mut rest = parts;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.file.write_vectored(rest) {
                Ok(0) => {
                    return Err(fault::io(&self.path, "write", std::io::ErrorKind::WriteZero.into()));
                }
                Ok(n) => {
                    self.used += n as u64;
                    self.len = self.len.max(self.used);
                    IoSlice::advance_slices(&mut rest, n);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fault::io(&self.path, "write", error)),
            }
        }
        Ok(())
    }

    /// Reads what this use has written into `buffer`, in place of what is there; of a file that was left here, all of it.
    pub(super) fn read(&self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let len = self.used;
        buffer.resize(usize::try_from(len).map_err(|_| Error::TooLarge { what: "length", value: len })?, 0);
        self.file.read_exact_at(buffer, 0).map_err(|error| fault::io(&self.path, "read", error))
    }

    /// Moves the file out of the way of later starts, keeping its bytes.
    pub(super) fn set_aside(self) -> Result<PathBuf, Error> {
        let aside = self.path.with_extension("unreadable");
        fs::rename(&self.path, &aside).map_err(|error| fault::io(&self.path, "set aside", error))?;
        Ok(aside)
    }
}
