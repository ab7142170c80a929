//! Starting shims: a small single-threaded process, forked before the engine grows, forks one shim per launch.
//!
//! Forking the engine itself would copy its page tables and its threads' locks; executing a fat binary a thousand times
//! costs seconds. The spawner ends with the engine; shims outlive both. One that was killed is noticed by the socket that
//! ends with it, and replaced by executing this program anew.

mod answer;
mod process;
mod serve;

use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::unistd::pipe2;
use tokio::io::AsyncBufReadExt;
use tokio::net::unix::pipe;

use crate::error::{Error, Result};
use crate::files;
use crate::launch_file::LaunchFile;
use crate::shim_id::ShimId;
use crate::spec::LaunchSpec;
use process::Process;

pub(crate) use answer::Answer;

/// The engine's handle on the spawner process, which ends when this is dropped.
#[derive(Debug)]
pub struct Spawner {
    /// Replaced as a whole when it is found dead; whoever asked it last may still hold it.
    process: Mutex<Arc<Process>>,
}

/// A launch that was asked for.
struct Asked {
    /// Where its answer arrives.
    answer: OwnedFd,
    /// Who was asked.
    process: Arc<Process>,
}

impl Spawner {
    /// Forks the spawner process; the first thing a program's `main` does.
    ///
    /// Where this program was executed to be a spawner itself (see [`Self::execute`]), this serves and never returns.
    ///
    /// # Errors
    /// [`Error::Threaded`] when there is a second thread already, [`Error::System`] when the fork is refused.
    pub fn fork_early() -> Result<Self> {
        require_single_thread()?;
        process::serve_if_executed();
        Ok(Self::of(Process::fork()?))
    }

    /// Executes this program anew as a spawner: for a program that has threads. Its `main` must begin with
    /// [`Self::fork_early`].
    ///
    /// # Errors
    /// [`Error::NoSpawner`] when the program cannot be executed.
    pub fn execute() -> Result<Self> {
        Ok(Self::of(Process::execute()?))
    }

    fn of(process: Process) -> Self {
        Self { process: Mutex::new(Arc::new(process)) }
    }

    /// The process id of the spawner that is asked next.
    pub fn pid(&self) -> i32 {
        self.current().pid()
    }

    /// Starts a launch and waits until its program is forked and its control socket listens.
    ///
    /// Whether the program could be executed is in the record of its end. Blocks for about as long as a fork takes; see
    /// [`Self::spawn_async`] for async callers. A spawner that was killed is replaced, and its successor asked again.
    ///
    /// # Errors
    /// [`Error::Spec`], [`Error::File`] for the file of the launch, [`Error::Prepare`] with the shim's words,
    /// [`Error::NoSpawner`], [`Error::SpawnerGone`] when the successor was killed too.
    pub fn spawn(&self, spec: &LaunchSpec) -> Result<ShimId> {
        for _ in 0..ASKED_MAX {
            let asked = self.request(spec)?;
            let mut text = Vec::new();
            let mut answer = BufReader::new(File::from(asked.answer));
            answer.read_until(b'\n', &mut text).map_err(|error| unanswered(&error))?;
            if !text.is_empty() {
                return answer::understand(&text);
            }
            self.replace(&asked.process)?;
        }
        Err(Error::SpawnerGone)
    }

    /// As [`Self::spawn`], without blocking the executor; any number at once.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub async fn spawn_async(&self, spec: &LaunchSpec) -> Result<ShimId> {
        for _ in 0..ASKED_MAX {
            let asked = self.request(spec)?;
            let mut text = Vec::new();
            let answer = pipe::Receiver::from_owned_fd(asked.answer).map_err(|error| unanswered(&error))?;
            tokio::io::BufReader::new(answer).read_until(b'\n', &mut text).await.map_err(|error| unanswered(&error))?;
            if !text.is_empty() {
                return answer::understand(&text);
            }
            self.replace(&asked.process)?;
        }
        Err(Error::SpawnerGone)
    }

    /// Writes the launch down, asks for a shim, and returns where its answer will arrive. The answer ends when every writer
    /// is gone: with a shim that dies without a word, and empty when no shim ever ran, which is when the spawner died.
    fn request(&self, spec: &LaunchSpec) -> Result<Asked> {
        spec.validate()?;
        files::clear(&spec.attempt_dir)?;
        let launch = LaunchFile::create(spec)?;
        let (answer, shims_end) = pipe2(OFlag::O_CLOEXEC).map_err(Error::system("make a pipe"))?;
        let mut process = self.current();
        match send_request(process.socket(), launch.path(), &shims_end) {
            Err(Error::SpawnerGone) => {
                process = self.replace(&process)?;
                send_request(process.socket(), launch.path(), &shims_end)?;
            }
            sent => sent?,
        }
        Ok(Asked { answer, process })
    }

    fn current(&self) -> Arc<Process> {
        Arc::clone(&self.lock())
    }

    /// The successor of a spawner that was found dead, made by whoever finds it first.
    fn replace(&self, dead: &Arc<Process>) -> Result<Arc<Process>> {
        let mut current = self.lock();
        if Arc::ptr_eq(&current, dead) {
            dead.end();
            *current = Arc::new(Process::execute()?);
        }
        Ok(Arc::clone(&current))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many spawners in a row are asked for one launch: the second is new, so its death is no accident of long ago.
const ASKED_MAX: u32 = 2;

fn unanswered(error: &io::Error) -> Error {
    Error::Prepare { message: format!("its answer was not understood: {error}") }
}

fn send_request(socket: &OwnedFd, launch: &Path, answer: &OwnedFd) -> Result<()> {
    let text = [IoSlice::new(launch.as_os_str().as_bytes())];
    let descriptors = [answer.as_fd().as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    loop {
        match sendmsg::<()>(socket.as_raw_fd(), &text, &rights, MsgFlags::MSG_NOSIGNAL, None) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EPIPE | Errno::ECONNRESET) => return Err(Error::SpawnerGone),
            Err(errno) => return Err(Error::system("ask the spawner")(errno)),
        }
    }
}

/// Refuses when this process has more than one thread.
pub(crate) fn require_single_thread() -> Result<()> {
    let path = Path::new("/proc/self/task");
    let threads = std::fs::read_dir(path).map_err(Error::file("list", path))?.count();
    if threads == 1 { Ok(()) } else { Err(Error::Threaded { threads }) }
}
