//! One lock for threads and processes alike: `flock` on a file of ours.
//!
//! Every lock is an open file description of its own, so two threads of one process exclude each other as two
//! processes do, and a killed process leaves nothing behind.

use std::fs::File;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::{Error, Result};

/// A held lock; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Lock {
    held: Flock<File>,
}

impl Lock {
    /// Waits until nobody else holds the lock at `path`, making the file where it is missing.
    pub(crate) fn acquire(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        }
        let mut file =
            File::options().create(true).truncate(false).write(true).open(path).map_err(Error::io("open", path))?;
        loop {
            match Flock::lock(file, FlockArg::LockExclusive) {
                Ok(held) => return Ok(Self { held }),
                Err((again, Errno::EINTR)) => file = again,
                Err((_, errno)) => return Err(Error::io("lock", path)(errno.into())),
            }
        }
    }

    /// Another handle of the same lock, for a child: should this process be killed, the lock lasts as long as the child.
    pub(crate) fn share(&self) -> Result<File> {
        self.held.try_clone().map_err(Error::io("share", "lock"))
    }
}
