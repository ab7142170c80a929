//! What this kernel lets us hold a process tree with, and how a pid namespace is entered.
//!
//! Found out by trying once, never guessed from a version: containers and hardened systems refuse what the kernel could.

use std::fs;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Gid, Uid};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::shut::Shut;
use crate::spec::FileRules;
use crate::sys::{fork, landlock_abi};

/// The level of containment and sandbox reached on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containment {
    /// A pid namespace with its own `/proc`: nothing of the tree survives its shim. Otherwise the sub-reaper, which takes
    /// detached descendants too, but only while the shim lives.
    pub pid_ns: bool,
    /// The kernel's Landlock ABI; `None`: there is no file sandbox.
    pub landlock_abi: Option<u32>,
}

impl Containment {
    /// Tries once what the kernel allows, by entering a namespace with a process that ends at once.
    ///
    /// Must be called from a process with one thread, such as a freshly started program.
    ///
    /// # Errors
    /// [`Error::Threaded`] when it is not.
    pub fn probe() -> Result<Self> {
        crate::spawner::require_single_thread()?;
        Ok(Self::probe_unchecked())
    }

    pub(crate) fn probe_unchecked() -> Self {
        Self { pid_ns: can_enter_pid_namespace(), landlock_abi: landlock_abi::query() }
    }
}

/// What launches on this host have in common, found out and made once by whoever forks them.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) containment: Containment,
    /// The layer of every program's sandbox that keeps shut what is shut; absent where the file system does that.
    pub(crate) shut: Option<Shut>,
}

impl Host {
    pub(crate) fn probe() -> Self {
        Self { containment: Containment::probe_unchecked(), shut: None }
    }

    /// To be called before each launch: makes anew what has changed since the last one. Where that fails, each launch tries
    /// by itself and says why not.
    pub(crate) fn expect_launch(&mut self) {
        let is_needed = self.containment.landlock_abi.is_some() && Uid::effective().is_root();
        if is_needed && !self.shut.as_ref().is_some_and(Shut::is_current) {
            self.shut = Shut::make(&FileRules::system().public).ok();
        }
        if let Some(shut) = &mut self.shut {
            shut.expect_one();
        }
    }
}

/// The flags that put a child into a pid namespace of its own.
///
/// Only an ordinary user needs the user namespace that grants the right to it; root keeps the host's, where files of other
/// owners keep their meaning.
pub(crate) fn namespace_flags() -> CloneFlags {
    let flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    if Uid::effective().is_root() { flags } else { flags | CloneFlags::CLONE_NEWUSER }
}

/// Ids as they are outside: read before the clone, for inside a fresh user namespace they are unmapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    uid: Uid,
    gid: Gid,
}

impl Identity {
    pub(crate) fn current() -> Self {
        Self { uid: Uid::effective(), gid: Gid::effective() }
    }
}

/// Run by the first process of a new pid namespace: makes `/proc` show the namespace instead of the host.
///
/// # Errors
/// [`Error::File`] or [`Error::System`], where a container masks `/proc` or forbids mounts.
pub(crate) fn settle_namespace(identity: Identity) -> Result<()> {
    if !identity.uid.is_root() {
        // The files of a process with hidden memory belong to root; the caller hides it again before a program runs.
        prctl::set_dumpable(true).map_err(Error::system("open the own files"))?;
        let (uid, gid) = (identity.uid, identity.gid);
        write_map("/proc/self/setgroups", "deny")?;
        write_map("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
        write_map("/proc/self/gid_map", &format!("{gid} {gid} 1"))?;
    }
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(Error::system("make mounts private"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).map_err(Error::system("mount /proc"))
}

fn write_map(path: &str, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file("write", Path::new(path)))
}

fn can_enter_pid_namespace() -> bool {
    let identity = Identity::current();
    let child = fork::fork_into(namespace_flags(), || i32::from(settle_namespace(identity).is_err()));
    child.is_ok_and(|pid| matches!(waitpid(pid, None), Ok(WaitStatus::Exited(_, 0))))
}
