//! The shim's first steps, up to the running program: everything that can fail before the spawner's caller is answered.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, OFlag, open};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout, pipe2, setsid};

use crate::containment::{Containment, Host};
use crate::error::{Error, Result};
use crate::files;
use crate::launch_file::LaunchFile;
use crate::listener::ListenerProcess;
use crate::shim_id::{ShimFile, ShimId};
use crate::spawner::Answer;
use crate::spec::{ContainmentChoice, LaunchSpec};
use crate::sys::{fork, signals};

use super::capture::Capture;
use super::control::Control;
use super::deadlines::Deadlines;
use super::program::{Pipes, Program, status_channel};
use super::supervise::Supervisor;
use super::tree::{Holder, Tree};

/// Runs one launch from its spec to its end, in a process forked for it; the result is the process's exit code.
///
/// `answer` is told once whether the program was started; what becomes of it then is in the attempt folder.
pub(crate) fn run(launch: &Path, host: &Host, mut answer: Answer) -> i32 {
    answer.begin();
    let attempt_dir = launch.parent().unwrap_or(launch).to_owned();
    std::panic::set_hook(Box::new(move |panic| files::log(&attempt_dir, panic)));
    let started = detach(&answer, host).and_then(|signals| {
        let folder = launch.parent().unwrap_or(launch);
        let lock = files::lock_launches(folder)?;
        if !answer.is_awaited() {
            return Err(Error::Prepare { message: "whoever asked for it is gone".to_owned() });
        }
        let (file, spec) = LaunchFile::open(launch)?;
        start(&spec, file, host, signals, lock)
    });
    match started {
        Ok(supervisor) => {
            answer.started(supervisor.shim());
            supervisor.run()
        }
        Err(error) => {
            answer.failed(&error);
            1
        }
    }
}

/// Leaves everything of the engine behind: descriptors, terminal, session, folder, readable memory, signals.
fn detach(answer: &Answer, host: &Host) -> Result<SignalFd> {
    let keep: Vec<_> = host.shut.iter().map(AsFd::as_fd).chain([answer.pipe()]).collect();
    fork::close_others(&keep).map_err(Error::system("close descriptors"))?;
    setsid().map_err(Error::system("start a session"))?;
    prctl::set_name(c"outlast-shim").map_err(Error::system("name the process"))?;
    prctl::set_dumpable(false).map_err(Error::system("hide the memory"))?;
    prctl::set_child_subreaper(true).map_err(Error::system("become a sub-reaper"))?;
    signals::ignore_terminal().map_err(Error::system("ignore signals"))?;
    let watched = signals::block(&[Signal::SIGCHLD, Signal::SIGTERM]).map_err(Error::system("block signals"))?;
    chdir("/").map_err(Error::system("leave the working directory"))?;
    let null =
        open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).map_err(Error::system("open /dev/null"))?;
    dup2_stdin(&null).map_err(Error::system("set standard input"))?;
    dup2_stdout(&null).map_err(Error::system("set standard output"))?;
    dup2_stderr(&null).map_err(Error::system("set standard error"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&watched, flags).map_err(Error::system("watch signals"))
}

/// Keeps `lock` until it is on file who runs here.
fn start(
    spec: &LaunchSpec,
    mut file: LaunchFile,
    host: &Host,
    signals: SignalFd,
    lock: Flock<File>,
) -> Result<Supervisor> {
    let choice = spec.containment;
    let containment =
        Containment { pid_ns: host.containment.pid_ns && choice == ContainmentChoice::Auto, ..host.containment };
    let listener =
        spec.listener.as_ref().map(|listener| bind_loopback().map(|socket| (listener, socket))).transpose()?;
    let port = listener.as_ref().map(|(_, (_, port))| *port);
    let program = Program::new(spec, port, host)?;
    for template in &spec.files {
        files::write_template(template, port)?;
    }
    let listener = listener
        .map(|(listener, (socket, _))| ListenerProcess::start(listener, socket, &spec.attempt_dir))
        .transpose()?;
    let control = Control::bind(&spec.attempt_dir)?;
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = pipe()?;
    let keep =
        |pipe, name| Capture::new(pipe, spec.attempt_dir.join(name), spec.output_limit_bytes, spec.line_limit_bytes);
    let outputs = [keep(stdout, files::STDOUT)?, keep(stderr, files::STDERR)?];
    let started_at = now_millis();
    let shim = ShimFile { shim: ShimId::current()?, containment, port, started_at };
    file.runs(&shim)?;
    drop(lock);

    let pipes = Pipes { stdout: stdout_end, stderr: stderr_end };
    let (status, children_end) = status_channel()?;
    let holder = if containment.pid_ns {
        Holder::Namespace(program.start_in_namespace(&pipes, &children_end)?)
    } else {
        Holder::Subreaper(program.start_directly(&pipes, &children_end)?)
    };
    let tree = Tree::new(holder, listener.as_ref().map(ListenerProcess::pid));
    Ok(Supervisor {
        shim,
        file,
        attempt_dir: PathBuf::from(&spec.attempt_dir),
        kill_grace: spec.kill_grace,
        deadlines: Deadlines::new(spec.timeouts, Instant::now()),
        signals,
        status: Some(status),
        tree,
        outputs,
        control,
        listener,
        requests: std::collections::BTreeMap::new(),
        agent_pid: None,
        program_end: None,
        ending: None,
    })
}

fn bind_loopback() -> Result<(TcpListener, u16)> {
    let failed = |error: std::io::Error| Error::Prepare { message: format!("listen on 127.0.0.1: {error}") };
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let port = socket.local_addr().map_err(failed)?.port();
    Ok((socket, port))
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe2(OFlag::O_CLOEXEC).map_err(Error::system("make a pipe"))
}

/// Milliseconds since the Unix epoch, by the wall clock.
pub(super) fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
