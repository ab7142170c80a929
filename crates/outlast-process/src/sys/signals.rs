//! Signal dispositions around forks: what a shim ignores must not be inherited by the program it starts.

#![expect(unsafe_code, reason = "changing a disposition has no safe form")]

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};

/// Signals 1 to 64, the C library's own two among them: it would refuse to touch those, and they too are inherited.
const SIGNALS: std::ops::RangeInclusive<libc::c_int> = 1..=64;

/// Gives every signal its default action and unblocks all: the state a program expects at its start.
///
/// The Rust runtime ignores SIGPIPE, and an ignored signal stays ignored across exec.
pub(crate) fn reset() -> nix::Result<()> {
    // The kernel's `struct sigaction`, all zero: default action, no flags, empty mask.
    let default = [0_u64; 4];
    for each in SIGNALS.filter(|each| !matches!(*each, libc::SIGKILL | libc::SIGSTOP)) {
        // SAFETY: the structure is as long as the kernel reads, and the default action runs no code of ours.
        let result = unsafe {
            libc::syscall(libc::SYS_rt_sigaction, each, default.as_ptr(), std::ptr::null::<u64>(), size_of::<u64>())
        };
        Errno::result(result)?;
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Ignores what a terminal or a closed pipe may send to a process that must outlive both.
pub(crate) fn ignore_terminal() -> nix::Result<()> {
    for each in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGPIPE] {
        // SAFETY: ignoring runs no code of ours.
        let _previous = unsafe { signal(each, SigHandler::SigIgn) }?;
    }
    Ok(())
}

/// Ignores what a write beyond the largest file size sends, so that the write fails with EFBIG instead.
pub(crate) fn ignore_file_size() -> nix::Result<()> {
    // SAFETY: ignoring runs no code of ours.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.map(drop)
}

/// Blocks `signals`, to be taken from a descriptor or waited for; a child inherits this until [`reset`].
pub(crate) fn block(signals: &[Signal]) -> nix::Result<SigSet> {
    let mut set = SigSet::empty();
    for each in signals {
        set.add(*each);
    }
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
    Ok(set)
}
