//! Whether the disk that holds the state has room: an agent whose every write fails is not at fault, and must not be
//! started.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use outlast_process::file_size;

use crate::diagnose::{DISK_FULL, FILE_SIZE};
use crate::effects::AGAIN_AFTER;
use crate::error::Error;

/// Kept free on a large disk: what a few agents write before anyone has looked again.
const FLOOR_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Kept free on a small one: this part of it.
const FLOOR_PART: u64 = 50;

/// How many more files a large disk must be able to hold.
const FLOOR_FILES_MAX: u64 = 10_000;

/// How large files must be able to become: the journal sets as much aside for a full disk, and starts nothing without.
const FILE_SIZE_MIN: u64 = outlast_journal::RESERVE_LEN;

/// A disk without room to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Full {
    /// The folder on it.
    pub folder: PathBuf,
    /// What is free there.
    pub free: Space,
    /// What must be free before anything goes on.
    pub floor: Space,
}

/// An amount of what a disk can run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Bytes.
    Bytes(u64),
    /// Files, each of which takes an inode, however small it is.
    Files(u64),
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) if *bytes < 1 << 20 => write!(f, "{} KiB", bytes >> 10),
            #[expect(clippy::cast_precision_loss, reason = "one decimal of it is shown")]
            Self::Bytes(bytes) => write!(f, "{:.1} MiB", *bytes as f64 / f64::from(1 << 20)),
            Self::Files(files) => write!(f, "{files} files (inodes)"),
        }
    }
}

/// Whether the disk with the folder has no room to work.
pub fn full(folder: &Path) -> Option<Full> {
    // A disk that cannot be asked will say so itself when it is written to.
    let disk = statvfs(folder).ok()?;
    let size = disk.blocks().saturating_mul(disk.fragment_size());
    let free_bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
    let floor_bytes = floor(size, FLOOR_BYTES_MAX);
    // Where there is no number of files (btrfs), zero is free of zero, and there is no floor.
    let (free_files, floor_files) = (disk.files_available(), floor(disk.files(), FLOOR_FILES_MAX));
    let (free, floor) = match (free_bytes < floor_bytes, free_files < floor_files) {
        (true, _) => (Space::Bytes(free_bytes), Space::Bytes(floor_bytes)),
        (false, true) => (Space::Files(free_files), Space::Files(floor_files)),
        (false, false) => return None,
    };
    Some(Full { folder: folder.to_owned(), free, floor })
}

/// Checks that there is room to work in the folder.
///
/// # Errors
/// [`Error::NoRoom`] where less is free than is kept free.
pub(crate) fn check(folder: &Path) -> Result<(), Error> {
    match full(folder) {
        None => Ok(()),
        Some(Full { folder, free, .. }) => Err(Error::NoRoom { folder, free }),
    }
}

/// How long room that was found counts as there: no disk writes as much as is kept free in that time, and a gateway that passes
/// on ten thousand requests a second need not ask twice for each of them.
const FRESH: Duration = Duration::from_millis(20);

/// The room on the disk of a folder that was seen a moment ago.
#[derive(Debug)]
pub(crate) struct Seen {
    folder: PathBuf,
    begun: Instant,
    /// When room was found, in milliseconds from then; zero for never.
    found_after: AtomicU64,
}

impl Seen {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, begun: Instant::now(), found_after: AtomicU64::new(0) }
    }

    /// Waits for as long as the disk has no room to work. Nobody tells when it has some again.
    pub(crate) async fn until_some(&self) {
        let after = self.now();
        let found_after = self.found_after.load(Ordering::Relaxed);
        if found_after > 0 && u128::from(after.saturating_sub(found_after)) < FRESH.as_millis() {
            return;
        }
        while full(&self.folder).is_some() {
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        self.found_after.store(self.now().max(1), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// What keeps anything more from being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSpace {
    /// The disk has no room.
    Room,
    /// The disk has room, and no file of this process may become larger than this, in bytes (`ulimit -f`): no waiting helps.
    FileSize(u64),
}

impl NoSpace {
    /// What there is for whoever cannot write in this folder.
    pub fn of(folder: &Path) -> Self {
        match file_size::limit() {
            Some(limit) if full(folder).is_none() => Self::FileSize(limit),
            _ => Self::Room,
        }
    }

    /// The code of what is said of it.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Room => DISK_FULL,
            Self::FileSize(_) => FILE_SIZE,
        }
    }

    /// What it is, for people.
    pub fn words(self) -> String {
        match self {
            Self::Room => "the disk is full".to_owned(),
            Self::FileSize(limit) => {
                format!("no file may become larger here than {} (`ulimit -f`)", Space::Bytes(limit))
            }
        }
    }

    /// The command that helps, before the one that is given.
    pub fn help(self, then: &str) -> String {
        match self {
            Self::Room => format!("free some space, then: {then}"),
            Self::FileSize(_) => {
                format!("ulimit -f unlimited    # in a new shell, where this one refuses to raise it; then: {then}")
            }
        }
    }
}

/// Checks that files may become as large as those are that every run needs.
///
/// # Errors
/// [`Error::FileSize`] where they may not.
pub(crate) fn check_file_size() -> Result<(), Error> {
    match file_size::limit() {
        Some(limit) if limit < FILE_SIZE_MIN => Err(Error::FileSize { limit: Space::Bytes(limit) }),
        _ => Ok(()),
    }
}

const fn floor(size: u64, most: u64) -> u64 {
    let part = size / FLOOR_PART;
    if part < most { part } else { most }
}
