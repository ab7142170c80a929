//! Whether the disk that holds the state has room: an agent whose every write fails is not at fault, and must not be
//! started.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::error::Error;

/// Kept free on a large disk: what a few agents write before anyone has looked again.
const FLOOR_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Kept free on a small one: this part of it.
const FLOOR_PART: u64 = 50;

/// Checks that there is room to work in the folder.
///
/// # Errors
/// [`Error::NoRoom`] where less is free than is kept free.
pub(crate) fn check(folder: &Path) -> Result<(), Error> {
    // A disk that cannot be asked will say so itself when it is written to.
    let Ok(disk) = statvfs(folder) else { return Ok(()) };
    let size = disk.blocks().saturating_mul(disk.fragment_size());
    let free_bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
    if free_bytes >= floor_bytes(size) {
        return Ok(());
    }
    Err(Error::NoRoom { folder: folder.to_owned(), free_bytes })
}

const fn floor_bytes(size_bytes: u64) -> u64 {
    let part = size_bytes / FLOOR_PART;
    if part < FLOOR_BYTES_MAX { part } else { FLOOR_BYTES_MAX }
}
