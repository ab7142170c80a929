//! One writer per file: an advisory lock on `<path>.lock`, with the holder's process id in it.
//!
//! The lock file is never removed: a lock on a removed file would exclude nobody.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::{Error, fault};

/// A held lock; dropping it, or the end of the process however it comes, releases it.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

impl FileLock {
    /// Takes the lock of `path` without waiting.
    ///
    /// # Errors
    /// [`Error::Locked`] when someone holds it; [`Error::Io`] or [`Error::NoSpace`] when the lock file cannot be used.
    pub(crate) fn take(path: &Path) -> Result<Self, Error> {
        let lock = fault::beside(path, ".lock");
        let failed = |action| {
            let lock = lock.clone();
            move |error| fault::io(&lock, action, error)
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock)
            .map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: path.to_owned(), pid: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(fault::io(&lock, "lock", error)),
        }
        file.set_len(0).map_err(failed("empty"))?;
        file.rewind().map_err(failed("rewind"))?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(failed("write"))?;
        Ok(Self { file })
    }
}

impl Drop for FileLock {
    /// Lets go by name: a child that is being started has a copy of the descriptor until it becomes its program, and
    /// closing ours alone would leave the lock with it for that long.
    fn drop(&mut self) {
        // A lock that cannot be released goes with its last descriptor.
        self.file.unlock().unwrap_or_default();
    }
}

/// The process id the holder wrote; none when it has not got that far.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
