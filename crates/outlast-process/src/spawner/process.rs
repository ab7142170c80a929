//! One spawner process, as the engine holds it: its socket and its process id, and the two ways in which it comes to be.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socketpair, sockopt};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::error::{Error, Result};
use crate::sys::fork;

use super::serve;

/// The one argument of a program that is executed to be a spawner.
const EXECUTED: &str = "__spawner";
/// This program, even where its file has been replaced since.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A spawner process. It ends when this is dropped, or is found to have ended by its socket.
#[derive(Debug)]
pub(super) struct Process {
    socket: OwnedFd,
    pid: Pid,
}

impl Process {
    /// Forks this process, which must have one thread.
    pub(super) fn fork() -> Result<Self> {
        let (socket, theirs) = sockets()?;
        let pid = fork::fork_child(|| serve::serve(&theirs)).map_err(Error::system("fork the spawner"))?;
        Ok(Self { socket, pid })
    }

    /// Executes this program anew, with nothing of its environment: the new process is small and has one thread, whatever
    /// this one has become.
    pub(super) fn execute() -> Result<Self> {
        let (socket, theirs) = sockets()?;
        let child = Command::new(THIS_PROGRAM)
            .arg0("outlast")
            .arg(EXECUTED)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|source| Error::NoSpawner { source })?;
        let pid = i32::try_from(child.id()).map_err(|_| Error::NoSpawner { source: io::ErrorKind::Other.into() })?;
        Ok(Self { socket, pid: Pid::from_raw(pid) })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Ends it for certain and takes its status. What it has forked goes on by itself.
    pub(super) fn end(&self) {
        // It is gone already, as a rule; until it is waited for, its id is nobody else's.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only the status of one that has ended meanwhile: one that lives ends with its socket, and this process is leaving.
        let _ = waitpid(self.pid, Some(WaitPidFlag::WNOHANG));
    }
}

/// The engine's end, then the spawner's.
fn sockets() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .map_err(Error::system("make the spawner's socket"))
}

/// Serves and ends this process, where it was executed to be a spawner.
pub(super) fn serve_if_executed() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(EXECUTED)) || arguments.next().is_some() {
        return;
    }
    // Somebody who types the argument has no such socket there, and is told by the program that it knows no such command.
    if let Some(socket) = socket_at_stdin() {
        std::process::exit(serve::serve(&socket));
    }
}

fn socket_at_stdin() -> Option<OwnedFd> {
    let stdin = io::stdin();
    let kind = getsockopt(&stdin.as_fd(), sockopt::SockType).ok()?;
    // A descriptor of its own: serving puts something else in the place of standard input.
    (kind == SockType::SeqPacket).then(|| stdin.as_fd().try_clone_to_owned().ok()).flatten()
}
