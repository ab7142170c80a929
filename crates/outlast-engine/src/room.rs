//! Whether the disk that holds the state has room: an agent whose every write fails is not at fault, and must not be
//! started.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use outlast_api::Diagnostic;
use outlast_process::file_size;

use crate::effects::AGAIN_AFTER;
use crate::error::Error;

/// Kept free on a large disk: what a few agents write before anyone has looked again.
const FLOOR_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Kept free on a small one: this part of it.
const FLOOR_PART: u64 = 50;

/// How many more files a large disk must be able to hold.
const FLOOR_FILES_MAX: u64 = 10_000;

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

/// Why nothing more can be written, as far as that is known: a limit of this process looks like a full disk to whatever meets
/// it.
pub fn lacking() -> String {
    match file_size::limit() {
        None => "the disk is full".to_owned(),
        Some(limit) => format!("the disk is full, or a file is as large as it may be ({})", named(limit)),
    }
}

/// Adds what gives room, and what to do then.
pub(crate) fn make_some(told: Diagnostic, then: &str) -> Diagnostic {
    let told = match file_size::limit() {
        None => told,
        Some(limit) => told
            .because(format!("no file may become larger here than {}", named(limit)))
            .fix(format!("ulimit -f unlimited && {then}    # in a new shell, where this one refuses to raise it")),
    };
    told.fix(format!("free some space, then: {then}"))
}

fn named(limit: u64) -> String {
    format!("{}, `ulimit -f`", Space::Bytes(limit))
}

const fn floor(size: u64, most: u64) -> u64 {
    let part = size / FLOOR_PART;
    if part < most { part } else { most }
}
