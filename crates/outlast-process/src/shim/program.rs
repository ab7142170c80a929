//! From a forked child to the program: everything between fork and exec, in the one order that works.
//!
//! Namespaces come first, then mounts, capabilities, and Landlock last: inside Landlock no mount is possible. What fails is
//! reported over the status channel with its step; the program is never started half-sandboxed.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, readlinkat};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, setsid};
use serde::{Deserialize, Serialize};

use crate::containment::{Host, Identity, namespace_flags, settle_namespace};
use crate::error::{Error, Result};
use crate::mark;
use crate::sandbox;
use crate::shut::Shut;
use crate::spec::{LaunchSpec, MARKER_VARIABLE, PORT_PLACEHOLDER};
use crate::sys::{capabilities, fork, lifeline, signals};

/// The exit code of a child that could not become the program.
const NOT_STARTED: i32 = 127;

/// Said by the children of the shim about the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// The program's process id, as the shim sees it.
    Started(i32),
    /// It could not be started.
    Failed(String),
    /// It ended with this code.
    Exited(i32),
    /// It ended by this signal.
    Signaled(i32),
}

impl Status {
    /// What a wait said, if it is an end.
    pub(crate) fn of(status: WaitStatus) -> Option<Self> {
        match status {
            WaitStatus::Exited(_, code) => Some(Self::Exited(code)),
            WaitStatus::Signaled(_, signal, _) => Some(Self::Signaled(signal as i32)),
            _ => None,
        }
    }
}

/// A program ready to be started: everything is allocated and checked before the fork.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    spec: &'a LaunchSpec,
    argv: Vec<CString>,
    environment: Vec<CString>,
    /// Files to try, in the order of the program's own `PATH`.
    candidates: Vec<CString>,
    connect_ports: Option<Vec<u16>>,
    landlock: bool,
    shut: Option<&'a Shut>,
    mark: u64,
}

/// The program's ends of its output pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl<'a> Program<'a> {
    /// Resolves placeholders and the search path.
    pub(crate) fn new(spec: &'a LaunchSpec, port: Option<u16>, host: &'a Host) -> Result<Self> {
        let filled = |text: &crate::text::OsText| match port {
            Some(port) => text.replaced(PORT_PLACEHOLDER, &port.to_string()),
            None => text.clone(),
        };
        let argv = spec.argv.iter().map(|text| c_string(&filled(text))).collect::<Result<Vec<_>>>()?;
        let mut environment = vec![c_string(OsStr::new(&format!("{MARKER_VARIABLE}={}", spec.marker)))?];
        let mut path = None;
        for (name, value) in spec.env.iter().filter(|(name, _)| *name != MARKER_VARIABLE) {
            let value = filled(value);
            let mut entry = std::ffi::OsString::from(format!("{name}="));
            entry.push(&*value);
            environment.push(c_string(&entry)?);
            if name == "PATH" {
                path = Some(value);
            }
        }
        let candidates = find_candidates(OsStr::from_bytes(argv[0].as_bytes()), path.as_deref())?;
        let mut connect_ports = spec.connect_ports.clone();
        if let (Some(ports), Some(port)) = (&mut connect_ports, port) {
            ports.push(port);
        }
        let landlock = host.containment.landlock_abi.is_some();
        let (shut, mark) = (host.shut.as_ref(), mark::of(&spec.marker));
        Ok(Self { spec, argv, environment, candidates, connect_ports, landlock, shut, mark })
    }

    /// Starts the program as the second process of a new pid namespace; returns the first, with which all of it dies.
    pub(crate) fn start_in_namespace(&self, pipes: &Pipes, status: &OwnedFd) -> Result<Pid> {
        let identity = Identity::current();
        fork::fork_into(namespace_flags(), || self.run_first_process(identity, pipes, status))
            .map_err(Error::system("enter a pid namespace"))
    }

    /// Starts the program as a child of the shim itself.
    pub(crate) fn start_directly(&self, pipes: &Pipes, status: &OwnedFd) -> Result<Pid> {
        let proc = open_proc()?;
        fork::fork_child(|| self.become_program(pipes, status, &proc)).map_err(Error::system("fork the program"))
    }

    /// Process 1 of the namespace: starts the program, reaps whatever is orphaned, and ends when the program does, which
    /// makes the kernel kill the rest.
    fn run_first_process(&self, identity: Identity, pipes: &Pipes, status: &OwnedFd) -> i32 {
        let started = self.start_as_first_process(identity, pipes, status).and_then(|(program, watched)| {
            // The shim must see the end of a pipe when the program closes it.
            fork::close_others(&[status.as_fd()]).map_err(Error::system("close descriptors"))?;
            Ok(reap_until_end(program, &watched, status))
        });
        started.unwrap_or_else(|error| report_failure(status, &error))
    }

    fn start_as_first_process(&self, identity: Identity, pipes: &Pipes, status: &OwnedFd) -> Result<(Pid, SigSet)> {
        let keep =
            [pipes.stdout.as_fd(), pipes.stderr.as_fd(), status.as_fd()].into_iter().chain(self.shut_descriptor());
        fork::close_others(&keep.collect::<Vec<_>>()).map_err(Error::system("close descriptors"))?;
        lifeline::follow_parent(status).map_err(Error::system("follow the shim"))?;
        prctl::set_name(c"outlast-init").map_err(Error::system("name the process"))?;
        let watched = signals::block(&[Signal::SIGCHLD, Signal::SIGTERM]).map_err(Error::system("block signals"))?;
        let proc = open_proc()?;
        settle_namespace(identity)?;
        guard_first_process()?;
        let program = fork::fork_child(|| self.become_program(pipes, status, &proc));
        Ok((program.map_err(Error::system("fork the program"))?, watched))
    }

    /// The last steps of the child; returns only on failure.
    fn become_program(&self, pipes: &Pipes, status: &OwnedFd, proc: &OwnedFd) -> i32 {
        let error = match self.prepare(pipes, status, proc) {
            Ok(()) => self.execute(),
            Err(error) => error,
        };
        report_failure(status, &error)
    }

    fn prepare(&self, pipes: &Pipes, status: &OwnedFd, proc: &OwnedFd) -> Result<()> {
        let keep = [pipes.stdout.as_fd(), pipes.stderr.as_fd(), status.as_fd(), proc.as_fd()];
        let keep = keep.into_iter().chain(self.shut_descriptor());
        fork::close_others(&keep.collect::<Vec<_>>()).map_err(Error::system("close descriptors"))?;
        lifeline::follow_parent(status).map_err(Error::system("follow the shim"))?;
        // A session of its own: no controlling terminal that could stop it (SIGTTIN) or signal it.
        setsid().map_err(Error::system("start a session"))?;
        signals::reset().map_err(Error::system("reset signals"))?;
        let null = open("/dev/null", OFlag::O_RDONLY, Mode::empty()).map_err(Error::system("open /dev/null"))?;
        dup2_stdin(&null).map_err(Error::system("set standard input"))?;
        dup2_stdout(&pipes.stdout).map_err(Error::system("set standard output"))?;
        dup2_stderr(&pipes.stderr).map_err(Error::system("set standard error"))?;
        let pid = read_own_pid(proc).map_err(Error::system("read the own process id"))?;
        send_status(status, &Status::Started(pid))?;
        chdir(&self.spec.cwd).map_err(|errno| Error::file("enter", &self.spec.cwd)(errno.into()))?;
        fork::close_on_exec().map_err(Error::system("mark descriptors close-on-exec"))?;
        mark::bear(self.mark)?;
        prctl::set_no_new_privs().map_err(Error::system("set no_new_privs"))?;
        capabilities::drop_all().map_err(Error::system("drop capabilities"))?;
        if self.landlock {
            sandbox::restrict(&self.spec.sandbox, self.connect_ports.as_deref(), self.shut)?;
        }
        Ok(())
    }

    fn shut_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.shut.map(AsFd::as_fd)
    }

    /// Executes the first candidate that can be; returns why none could.
    fn execute(&self) -> Error {
        let mut reason = Errno::ENOENT;
        let mut is_there = false;
        for candidate in &self.candidates {
            let Err(errno) = execve(candidate, &self.argv, &self.environment);
            // A later "not found" must not hide that one was found and refused.
            if matches!(errno, Errno::ENOENT | Errno::ENOTDIR) {
                is_there |= Path::new(OsStr::from_bytes(candidate.as_bytes())).is_file();
            } else {
                reason = errno;
            }
        }
        let path = PathBuf::from(OsStr::from_bytes(self.argv[0].as_bytes()));
        match hint(reason, is_there) {
            Some(hint) => Error::Execute { path, hint, errno: reason },
            None => Error::file("execute", &path)(reason.into()),
        }
    }
}

/// What a refusal to execute most likely means, where the system's word for it does not say.
fn hint(errno: Errno, is_there: bool) -> Option<&'static str> {
    match errno {
        Errno::ENOEXEC => {
            Some("a script needs a first line such as `#!/bin/sh`, a program has to be built for this machine")
        }
        Errno::E2BIG => Some("its arguments and environment are too long; hand it files in their place"),
        Errno::ENOENT if is_there => Some("it is there, but the interpreter that its `#!` line names is not"),
        _ => None,
    }
}

/// A channel for [`Status`]: the shim's end, then the children's.
pub(crate) fn status_channel() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .map_err(Error::system("make the status channel"))
}

/// What the status channel holds.
#[derive(Debug)]
pub(crate) enum Next {
    /// A status.
    Status(Status),
    /// Nothing yet.
    Nothing,
    /// Nobody is left who could say more: the program was executed, or everybody is gone.
    Closed,
}

/// Takes one status, if one is there.
pub(crate) fn take_status(channel: &OwnedFd) -> Next {
    let mut buffer = [0; 4096];
    match recv(channel.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
        Ok(0) => Next::Closed,
        Ok(length) => serde_json::from_slice(&buffer[..length]).map_or(Next::Closed, Next::Status),
        Err(Errno::EAGAIN | Errno::EINTR) => Next::Nothing,
        Err(_) => Next::Closed,
    }
}

fn send_status(channel: &OwnedFd, status: &Status) -> Result<()> {
    let text = serde_json::to_vec(status).map_err(|error| Error::Control { why: error.to_string() })?;
    send(channel.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL).map(drop).map_err(Error::system("report the status"))
}

fn report_failure(channel: &OwnedFd, error: &Error) -> i32 {
    // When the shim is gone too, nobody is left to be told.
    drop(send_status(channel, &Status::Failed(error.to_string())));
    NOT_STARTED
}

/// The host's `/proc`, opened before the namespace's own covers it: through it a process reads its id as the shim sees it.
fn open_proc() -> Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open("/proc", flags, Mode::empty()).map_err(Error::system("open /proc"))
}

fn read_own_pid(proc: &OwnedFd) -> nix::Result<i32> {
    readlinkat(proc, "self")?.to_str().and_then(|text| text.parse().ok()).ok_or(Errno::EINVAL)
}

/// Takes from process 1, before there is a program, what that could want of it: its powers, and its memory, which is a copy
/// of the engine's.
fn guard_first_process() -> Result<()> {
    prctl::set_dumpable(false).map_err(Error::system("hide the memory"))?;
    prctl::set_no_new_privs().map_err(Error::system("set no_new_privs"))?;
    capabilities::drop_all().map_err(Error::system("drop capabilities"))
}

fn reap_until_end(program: Pid, watched: &SigSet, status: &OwnedFd) -> i32 {
    loop {
        match watched.wait() {
            Ok(Signal::SIGTERM) => {
                // Everything in the namespace but this process; a stopped one must wake to hear it.
                for signal in [Signal::SIGTERM, Signal::SIGCONT] {
                    let _ = kill(Pid::from_raw(-1), signal);
                }
            }
            Ok(_) => {
                while let Ok(ended) = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                    match (ended.pid(), Status::of(ended)) {
                        (None, _) => break,
                        (Some(pid), Some(end)) if pid == program => {
                            drop(send_status(status, &end));
                            return 0;
                        }
                        _ => {}
                    }
                }
            }
            Err(_) => return NOT_STARTED,
        }
    }
}

fn find_candidates(program: &OsStr, path: Option<&OsStr>) -> Result<Vec<CString>> {
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(program)?]);
    }
    let folders = path.unwrap_or_else(|| OsStr::new("/usr/bin:/bin"));
    std::env::split_paths(folders).map(|folder| c_string(folder.join(program).as_os_str())).collect()
}

fn c_string(text: &OsStr) -> Result<CString> {
    CString::new(text.as_bytes()).map_err(|error| Error::Prepare { message: format!("{error} in {}", text.display()) })
}
