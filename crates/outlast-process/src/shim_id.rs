//! Who a shim is, across restarts of the engine and reuse of process ids.
//!
//! A bare pid is never trusted: pid, start time and boot together name one process for all time.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::containment::Containment;
use crate::error::{Error, Result};
use crate::sys::{pidfd, procfs, readiness};

/// One shim process of one boot of one host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShimId {
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks after boot (`/proc/PID/stat`, field 22).
    pub start_time: u64,
    /// The boot it belongs to (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// What is on file of a shim: enough to find a shim again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimFile {
    /// The shim.
    pub shim: ShimId,
    /// What holds its tree together, and which sandbox the kernel offers.
    pub containment: Containment,
    /// The listener's port on 127.0.0.1.
    pub port: Option<u16>,
    /// Milliseconds since the Unix epoch.
    pub started_at: i64,
}

impl ShimId {
    /// The calling process.
    pub(crate) fn current() -> Result<Self> {
        let pid = nix::unistd::getpid().as_raw();
        let stat = procfs::stat(pid).map_err(Error::file("read", "/proc/self/stat".as_ref()))?;
        Ok(Self { pid, start_time: stat.start_time, boot_id: procfs::boot_id()? })
    }

    /// Whether this very process still runs; a zombie does not.
    pub fn is_alive(&self) -> bool {
        let same_boot = procfs::boot_id().is_ok_and(|boot| boot == self.boot_id);
        same_boot && procfs::stat(self.pid).is_ok_and(|stat| stat.start_time == self.start_time && !stat.is_dead())
    }

    /// A handle that stays with this process even when its pid is reused; `None` when it is gone.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel has no pidfds or the process may not be watched.
    pub fn open(&self) -> Result<Option<OwnedFd>> {
        match pidfd::open(self.pid) {
            // The pid may have been reused before the handle was taken, so the start time is compared after.
            Ok(handle) => Ok(self.is_alive().then_some(handle)),
            Err(Errno::ESRCH) => Ok(None),
            Err(errno) => Err(Error::system("watch a shim")(errno)),
        }
    }

    /// Completes once the process is gone, however it ended.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn wait_gone(&self) -> Result<()> {
        let Some(handle) = self.open()? else { return Ok(()) };
        let failed = |error: io::Error| Error::Control { why: format!("watching pid {}: {error}", self.pid) };
        let watched = readiness::watch(handle).map_err(failed)?;
        watched.readable().await.map_err(failed)?.retain_ready();
        Ok(())
    }

    /// Kills the shim itself (SIGKILL): the last resort when it does not answer.
    ///
    /// In a pid namespace the whole tree goes with it; under the sub-reaper alone, detached descendants stay.
    ///
    /// # Errors
    /// [`Error::System`]; a shim that is gone already is no error.
    pub fn kill(&self) -> Result<()> {
        let Some(handle) = self.open()? else { return Ok(()) };
        match pidfd::send_signal(&handle, Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(Error::system("kill a shim")(errno)),
        }
    }
}
