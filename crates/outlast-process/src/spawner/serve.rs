//! The spawner process: takes a launch's path and a pipe, forks a shim for it, and takes the next.
//!
//! It holds nothing of the engine's but its end of one socket, and reads nothing but paths.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use crate::containment::Host;
use crate::error::{Error, Result};
use crate::shim;
use crate::sys::{environment, fork, signals};

use super::Answer;

/// Longer than any path the system accepts (`PATH_MAX`).
const REQUEST_MAX: usize = 8192;

/// Serves until the engine is gone; the result is the process's exit code.
pub(super) fn serve(socket: &OwnedFd) -> i32 {
    match detach(socket).and_then(|children| serve_requests(socket, &children)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// Leaves the engine's environment, terminal and descriptors: its keys must not be found in a shim, and its output pipe must
/// close when it ends.
fn detach(socket: &OwnedFd) -> Result<SignalFd> {
    environment::wipe();
    fork::close_others(&[socket.as_fd()]).map_err(Error::system("close descriptors"))?;
    setsid().map_err(Error::system("start a session"))?;
    prctl::set_name(c"outlast-spawner").map_err(Error::system("name the process"))?;
    prctl::set_dumpable(false).map_err(Error::system("hide the memory"))?;
    signals::ignore_terminal().map_err(Error::system("ignore signals"))?;
    let null =
        open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).map_err(Error::system("open /dev/null"))?;
    dup2_stdin(&null).map_err(Error::system("set standard input"))?;
    dup2_stdout(&null).map_err(Error::system("set standard output"))?;
    dup2_stderr(&null).map_err(Error::system("set standard error"))?;
    let watched = signals::block(&[Signal::SIGCHLD]).map_err(Error::system("block signals"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&watched, flags).map_err(Error::system("watch signals"))
}

fn serve_requests(socket: &OwnedFd, children: &SignalFd) -> Result<()> {
    let mut host = None;
    loop {
        let mut watched =
            [PollFd::new(socket.as_fd(), PollFlags::POLLIN), PollFd::new(children.as_fd(), PollFlags::POLLIN)];
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(Error::system("wait for requests")(errno)),
        }
        while let Ok(Some(_)) = children.read_signal() {}
        reap();
        match receive(socket) {
            Ok(Some((launch, answer))) => {
                let host = host.get_or_insert_with(Host::probe);
                host.expect_launch();
                start(&launch, host, answer);
            }
            Ok(None) => return Ok(()),
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(Error::system("read a request")(errno)),
        }
    }
}

fn start(launch: &std::path::Path, host: &Host, answer: Answer) {
    let mut given = Some(answer);
    let forked = fork::fork_child(|| given.take().map_or(1, |answer| shim::run(launch, host, answer)));
    if let (Err(errno), Some(answer)) = (forked, given) {
        answer.failed(&Error::system("fork a shim")(errno));
    }
}

fn reap() {
    while let Ok(status) = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
        if status.pid().is_none() {
            break;
        }
    }
}

/// One request; `None` when the engine is gone.
fn receive(socket: &OwnedFd) -> nix::Result<Option<(PathBuf, Answer)>> {
    let mut buffer = [0; REQUEST_MAX];
    let mut space = cmsg_space!([std::os::fd::RawFd; 1]);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let length = message.bytes;
    let mut answer = None;
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = part {
            answer = received.first().map(|raw| own(*raw));
        }
    }
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(&buffer[..length]));
    Ok(answer.map(|pipe| (path, Answer::new(pipe))))
}

#[expect(unsafe_code, reason = "a descriptor received over a socket arrives as a number")]
fn own(raw: std::os::fd::RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for us alone, and it is wrapped exactly once.
    unsafe { OwnedFd::from_raw_fd(raw) }
}
