//! A child that must not outlive its parent.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::Signal;

/// Makes the kernel kill this process when its parent dies.
///
/// `channel` leads to the parent and its other end is open nowhere else: a parent that died before the request was made
/// shows by it, as [`Errno::ESRCH`].
pub(crate) fn follow_parent(channel: &OwnedFd) -> nix::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    let mut watched = [PollFd::new(channel.as_fd(), PollFlags::empty())];
    if poll(&mut watched, PollTimeout::ZERO)? > 0 { Err(Errno::ESRCH) } else { Ok(()) }
}
