//! Process handles (Linux 5.3): a reference that pid reuse cannot redirect.

#![expect(unsafe_code, reason = "pidfd system calls have no safe wrapper in nix")]

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::signal::Signal;

/// Opens a handle on `pid`; it becomes readable when the process ends. Close-on-exec.
pub(crate) fn open(pid: i32) -> nix::Result<OwnedFd> {
    // SAFETY: plain system call with integers; the result is checked before it is owned.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let raw = Errno::result(raw)?;
    let raw = RawFd::try_from(raw).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Sends `signal` to exactly the process the handle was opened on.
pub(crate) fn send_signal(handle: &impl AsFd, signal: Signal) -> nix::Result<()> {
    let raw = handle.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call; a null siginfo asks for the default one.
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, raw, signal as i32, std::ptr::null::<libc::siginfo_t>(), 0)
    };
    Errno::result(result).map(drop)
}
