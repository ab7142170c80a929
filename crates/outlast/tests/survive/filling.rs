//! Disks without a byte of room.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Writes until not a byte more goes in.
pub(crate) fn fill(path: &Path) -> File {
    let mut file = File::create(path).unwrap();
    for chunk in [1 << 20, 4096, 1] {
        while file.write(&vec![0; chunk]).is_ok_and(|written| written > 0) {}
    }
    file
}

/// Takes each byte that comes free on a disk, such as those of a file that an agent removes as it ends, until it is let go.
pub(crate) struct KeptFull {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl KeptFull {
    pub(crate) fn at(path: PathBuf) -> Self {
        let mut file = fill(&path);
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                while file.write(b"?").is_ok_and(|written| written > 0) {}
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { path, stop, thread }
    }

    pub(crate) fn let_go(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        fs::remove_file(self.path).unwrap();
    }
}
