//! Whether the disk that holds the state has room: an agent whose every write fails is not at fault, and must not be
//! started.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use crate::error::Error;

/// Kept free on a large disk: what a few agents write before anyone has looked again.
const FLOOR_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Kept free on a small one: this part of it.
const FLOOR_PART: u64 = 50;

/// A disk without room to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Full {
    /// The folder on it.
    pub folder: PathBuf,
    /// Bytes that are free there.
    pub free_bytes: u64,
    /// Bytes that must be free before anything goes on.
    pub floor_bytes: u64,
}

/// Whether the disk with the folder has no room to work.
pub fn full(folder: &Path) -> Option<Full> {
    // A disk that cannot be asked will say so itself when it is written to.
    let disk = statvfs(folder).ok()?;
    let size = disk.blocks().saturating_mul(disk.fragment_size());
    let free_bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
    let floor_bytes = floor_bytes(size);
    (free_bytes < floor_bytes).then(|| Full { folder: folder.to_owned(), free_bytes, floor_bytes })
}

/// Checks that there is room to work in the folder.
///
/// # Errors
/// [`Error::NoRoom`] where less is free than is kept free.
pub(crate) fn check(folder: &Path) -> Result<(), Error> {
    match full(folder) {
        None => Ok(()),
        Some(Full { folder, free_bytes, .. }) => Err(Error::NoRoom { folder, free_bytes }),
    }
}

const fn floor_bytes(size_bytes: u64) -> u64 {
    let part = size_bytes / FLOOR_PART;
    if part < FLOOR_BYTES_MAX { part } else { FLOOR_BYTES_MAX }
}
