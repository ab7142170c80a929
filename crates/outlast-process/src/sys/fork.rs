//! Forking without exec: the child runs a function and ends; it never returns into the parent's code.

#![expect(unsafe_code, reason = "fork, clone and close_range have no safe form")]

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::{ForkResult, Pid, fork};

/// The exit code of a child whose function panicked.
const PANICKED: i32 = 101;

/// Forks; the child runs `body` and ends with its result.
///
/// The caller has one thread (the spawner checks this once; everything forked from it is single-threaded until its last
/// fork), so no lock can be held by a thread that the child lacks.
pub(crate) fn fork_child(body: impl FnOnce() -> i32) -> nix::Result<Pid> {
    // SAFETY: single-threaded by the contract above, so the child may allocate and lock.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => run(body),
    }
}

/// As [`fork_child`], with the child in new namespaces: it is the first process of its own pid namespace.
pub(crate) fn fork_into(namespaces: CloneFlags, body: impl FnOnce() -> i32) -> nix::Result<Pid> {
    clone(i64::from(namespaces.bits()) | i64::from(libc::SIGCHLD), body)
}

/// As [`fork_child`], with a child that sends no signal when it ends and that plain waits do not see (`__WCLONE`).
pub(crate) fn fork_aside(body: impl FnOnce() -> i32) -> nix::Result<Pid> {
    clone(0, body)
}

fn clone(flags: i64, body: impl FnOnce() -> i32) -> nix::Result<Pid> {
    // SAFETY: without CLONE_VM and with a null stack the raw call behaves as fork; single-threaded as above. All other
    // arguments are null, so their order, which differs between machines, does not matter.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match Errno::result(result)? {
        0 => run(body),
        pid => Ok(Pid::from_raw(i32::try_from(pid).map_err(|_| Errno::EOVERFLOW)?)),
    }
}

fn run(body: impl FnOnce() -> i32) -> ! {
    let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
    // SAFETY: ends the process at once; exit handlers and buffers belong to the parent.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor above standard error but those in `keep`.
pub(crate) fn close_others(keep: &[BorrowedFd<'_>]) -> nix::Result<()> {
    let mut kept: Vec<RawFd> = keep.iter().map(AsRawFd::as_raw_fd).filter(|raw| *raw > 2).collect();
    kept.sort_unstable();
    kept.dedup();
    let mut first = 3;
    for raw in kept {
        if first < raw {
            close_range(first, raw - 1, 0)?;
        }
        first = raw + 1;
    }
    close_range(first, RawFd::MAX, 0)
}

/// Marks every descriptor above standard error close-on-exec, whoever opened it.
pub(crate) fn close_on_exec() -> nix::Result<()> {
    close_range(3, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: RawFd, last: RawFd, flags: u32) -> nix::Result<()> {
    // SAFETY: callers close only descriptors that nothing alive in this process owns: `close_others` is called right
    // after a fork by a child that keeps what it names and never drops the rest.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    Errno::result(result).map(drop)
}
