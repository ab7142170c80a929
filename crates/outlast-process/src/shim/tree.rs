//! The program's process tree, seen from the shim: asking it to end, ending it, and knowing that it is empty.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

use crate::sys::procfs;

use super::program::Status;

/// What holds the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder {
    /// The first process of a pid namespace: with it the kernel kills all others, and it is waited for last.
    Namespace(Pid),
    /// This shim as sub-reaper: whoever is orphaned becomes its child. Holds the program's pid.
    Subreaper(Pid),
}

/// A started tree.
#[derive(Debug)]
pub(crate) struct Tree {
    holder: Holder,
    /// A child of the shim that is not part of the tree. Plain waits do not see it.
    listener: Option<Pid>,
    empty: bool,
}

impl Tree {
    pub(crate) fn new(holder: Holder, listener: Option<Pid>) -> Self {
        Self { holder, listener, empty: false }
    }

    /// Whether no process of the tree is left: proven by the kernel, which has no more children of ours to wait for.
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Asks every process to end.
    pub(crate) fn terminate(&self) {
        match self.holder {
            Holder::Namespace(first) => send(first, Signal::SIGTERM),
            Holder::Subreaper(_) => self.send_all(&[Signal::SIGTERM, Signal::SIGCONT]),
        }
    }

    /// Ends every process that is there now. Under the sub-reaper one that was forked meanwhile becomes a child of the shim
    /// when its parent dies, so this is called again after each death until the tree is empty.
    pub(crate) fn kill(&self) {
        match self.holder {
            Holder::Namespace(first) => send(first, Signal::SIGKILL),
            Holder::Subreaper(_) => self.send_all(&[Signal::SIGKILL]),
        }
    }

    /// Takes the status of every child that has ended; returns the program's, where it was the shim's own child.
    pub(crate) fn reap(&mut self) -> Option<Status> {
        let mut program_end = None;
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(ended) => {
                    let (Some(pid), Some(status)) = (ended.pid(), Status::of(ended)) else { break };
                    if matches!(self.holder, Holder::Subreaper(program) if pid == program) {
                        program_end = Some(status);
                    }
                }
                Err(Errno::ECHILD) => {
                    self.empty = true;
                    break;
                }
                Err(_) => break,
            }
        }
        program_end
    }

    fn send_all(&self, signals: &[Signal]) {
        let listener = self.listener.map(Pid::as_raw);
        for pid in procfs::descendants(getpid().as_raw(), listener).unwrap_or_default() {
            for signal in signals {
                send(Pid::from_raw(pid), *signal);
            }
        }
    }
}

/// A process that is gone already is no failure: the next reaping finds out.
fn send(pid: Pid, signal: Signal) {
    let _ = kill(pid, signal);
}
