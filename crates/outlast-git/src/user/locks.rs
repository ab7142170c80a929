//! The locks that somebody's git holds for a moment on a checkout that a landing is to move.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gix::bstr::ByteSlice as _;

use crate::{Result, UserRepo};

impl UserRepo {
    /// The first lock that keeps git from moving a branch in a checkout that holds it; nothing where no checkout holds it, or
    /// none is locked. It is somebody's, and never ours to remove.
    ///
    /// # Errors
    /// Git fails.
    pub fn checkout_lock(&self, target: &str) -> Result<Option<PathBuf>> {
        let of_the_branch = format!("refs/heads/{target}.lock");
        for checkout in self.holders(target)?.iter().filter(|checkout| checkout.busy.is_none()) {
            for name in ["index.lock", "HEAD.lock", &of_the_branch] {
                let place = self.git_path(&checkout.path, name)?;
                if place.symlink_metadata().is_ok() {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    /// Where git keeps a file of its own for a checkout.
    pub(crate) fn git_path(&self, checkout: &Path, name: &str) -> Result<PathBuf> {
        let said =
            self.git().in_checkout(checkout).args(["rev-parse", "--path-format=absolute", "--git-path", name]).ok()?;
        Ok(said.strip_suffix(b"\n").unwrap_or(&said).to_path_lossy().into_owned())
    }
}

/// Waits until a lock is let go, and no longer than this; whether it is.
pub fn until_let_go(lock: &Path, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    let changes = watch::Changes::of(lock.parent().unwrap_or(lock));
    while lock.symlink_metadata().is_ok() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        changes.wait(left);
    }
    true
}

#[cfg(target_os = "linux")]
mod watch {
    //! The system tells of a file that is removed or renamed.

    use std::os::fd::AsFd as _;
    use std::path::Path;
    use std::time::Duration;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    /// What leaves a folder; nothing where it cannot be watched.
    pub(super) struct Changes(Option<Inotify>);

    impl Changes {
        pub(super) fn of(folder: &Path) -> Self {
            let watched = || {
                let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
                inotify.add_watch(folder, AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM)?;
                Ok::<_, nix::Error>(inotify)
            };
            Self(watched().ok())
        }

        /// Until something leaves it, and no longer than this.
        pub(super) fn wait(&self, most: Duration) {
            let Some(inotify) = &self.0 else {
                return std::thread::sleep(most.min(super::LOOK_AGAIN));
            };
            let most = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
            if poll(&mut [PollFd::new(inotify.as_fd(), PollFlags::POLLIN)], most).is_ok_and(|ready| ready > 0) {
                drop(inotify.read_events());
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod watch {
    //! Nobody tells: it is looked at again.

    use std::path::Path;
    use std::time::Duration;

    pub(super) struct Changes;

    impl Changes {
        pub(super) fn of(_: &Path) -> Self {
            Self
        }

        pub(super) fn wait(&self, most: Duration) {
            std::thread::sleep(most.min(super::LOOK_AGAIN));
        }
    }
}

/// How soon a lock is looked at again where the system does not tell.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
