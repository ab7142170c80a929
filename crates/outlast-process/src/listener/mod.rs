//! The program's end of the line: a loopback HTTP server that keeps each request until its answer has begun.
//!
//! It runs in a process of its own beside the shim, so that no byte a program sends can disturb the kill ladder, and a shim
//! without a listener carries no runtime. It passes bytes and knows no dialect.

mod absence;
mod body;
mod exchange;
mod report;
mod serve;
mod upstream;

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, socketpair};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::error::{Error, Result};
use crate::files;
use crate::spec::Listener;
use crate::sys::fork;

pub(crate) use report::Report;

/// The shim's handle on its listener process.
#[derive(Debug)]
pub(crate) struct ListenerProcess {
    pid: Pid,
    reports: OwnedFd,
}

impl ListenerProcess {
    /// Forks the process; `socket` listens already, so the program may connect at once.
    pub(crate) fn start(listener: &Listener, socket: TcpListener, attempt_dir: &Path) -> Result<Self> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(Error::system("make the listener's report channel"))?;
        let mut given = Some((socket, theirs));
        let body = || {
            given.take().map_or(1, |(socket, reports)| {
                let error = serve::run(listener, socket, reports);
                files::log(attempt_dir, &error);
                1
            })
        };
        let pid = fork::fork_aside(body).map_err(Error::system("fork the listener"))?;
        Ok(Self { pid, reports: ours })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Becomes readable when there is a report.
    pub(crate) fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Takes one report, if there is one.
    pub(crate) fn take_report(&mut self) -> Option<Report> {
        let mut buffer = [0; 256];
        match recv(self.reports.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => Some(Report::Gone),
            Ok(length) => Some(serde_json::from_slice(&buffer[..length]).unwrap_or(Report::Gone)),
            Err(Errno::EAGAIN | Errno::EINTR) => None,
            Err(_) => Some(Report::Gone),
        }
    }

    /// Ends the process; whoever used it is gone.
    pub(crate) fn end(self) {
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, Some(WaitPidFlag::__WCLONE));
    }
}
