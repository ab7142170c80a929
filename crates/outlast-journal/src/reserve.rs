//! Space set aside for the day the disk is full, so that what happens on that day can still be written down.
//!
//! It is spent on records alone, never on bodies, and a slice at a time, because whatever filled the disk takes every
//! byte that is given up and not used at once.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, fault};

/// How large the file is that is set aside: room for dozens of transactions.
pub const LEN: u64 = 1024 * 1024;

/// What is given up at a time: more than a transaction of records needs.
const SLICE: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Reserve {
    /// Opens the reserve of the journal at `path` and fills it as far as there is room.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let path = fault::beside(path, ".reserve");
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| fault::io(&path, "open", error))?;
        let len = file.metadata().map_err(|error| fault::io(&path, "look at", error))?.len();
        let mut reserve = Self { path, file, len };
        match reserve.fill() {
            Ok(()) | Err(Error::NoSpace { .. }) => Ok(reserve),
            Err(error) => Err(error),
        }
    }

    /// Whether some of it is spent.
    pub(crate) fn is_short(&self) -> bool {
        self.len < LEN
    }

    /// Fills it up.
    ///
    /// # Errors
    /// [`Error::NoSpace`] when there is not enough room; what there was is kept.
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        let failed = |path: &Path, error| fault::io(path, "fill", error);
        self.file.seek(SeekFrom::Start(self.len)).map_err(|error| failed(&self.path, error))?;
        // Written, not merely made longer: a hole sets nothing aside.
        while self.len < LEN {
            if let Err(error) = self.file.write_all(&[0x5a; SLICE]) {
                self.cut_to(self.len)?;
                return Err(failed(&self.path, error));
            }
            self.len += SLICE as u64;
        }
        Ok(())
    }

    /// Gives up a slice; false when nothing is left.
    pub(crate) fn spend(&mut self) -> bool {
        if self.len == 0 || self.cut_to(self.len.saturating_sub(SLICE as u64)).is_err() {
            return false;
        }
        tracing::warn!(path = %self.path.display(), left = self.len, "the disk is full: the journal lives on its reserve");
        true
    }

    fn cut_to(&mut self, len: u64) -> Result<(), Error> {
        self.file.set_len(len).map_err(|error| fault::io(&self.path, "shorten", error))?;
        self.len = len;
        Ok(())
    }
}
