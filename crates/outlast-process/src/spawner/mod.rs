//! Starting shims: a small single-threaded process, forked before the engine grows, forks one shim per launch.
//!
//! Forking the engine itself would copy its page tables and its threads' locks; executing a fat binary a thousand times
//! costs seconds. The spawner ends with the engine; shims outlive both.

mod answer;
mod serve;

use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};
use nix::unistd::pipe2;
use tokio::io::AsyncBufReadExt;
use tokio::net::unix::pipe;

use crate::error::{Error, Result};
use crate::files;
use crate::shim_id::ShimId;
use crate::spec::LaunchSpec;
use crate::sys::fork;

pub(crate) use answer::Answer;

/// The engine's handle on the spawner process, which ends when this is dropped.
#[derive(Debug)]
pub struct Spawner {
    socket: OwnedFd,
}

impl Spawner {
    /// Forks the spawner process; the first thing a program's `main` does.
    ///
    /// # Errors
    /// [`Error::Threaded`] when there is a second thread already, [`Error::System`] when the fork is refused.
    pub fn fork_early() -> Result<Self> {
        require_single_thread()?;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(Error::system("make the spawner's socket"))?;
        fork::fork_child(|| serve::serve(&theirs)).map_err(Error::system("fork the spawner"))?;
        Ok(Self { socket: ours })
    }

    /// Starts a launch and waits until its program is forked and its control socket listens.
    ///
    /// Whether the program could be executed is in `exit.json`. Blocks for about as long as a fork takes; see
    /// [`Self::spawn_async`] for async callers.
    ///
    /// # Errors
    /// [`Error::Spec`], [`Error::File`] for `launch.json`, [`Error::Prepare`] with the shim's words, [`Error::SpawnerGone`].
    pub fn spawn(&self, spec: &LaunchSpec) -> Result<ShimId> {
        let mut answer = BufReader::new(File::from(self.request(spec)?));
        let mut text = Vec::new();
        answer.read_until(b'\n', &mut text).map_err(|error| unanswered(&error))?;
        self.understand(&text)
    }

    /// As [`Self::spawn`], without blocking the executor; any number at once.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub async fn spawn_async(&self, spec: &LaunchSpec) -> Result<ShimId> {
        let answer = pipe::Receiver::from_owned_fd(self.request(spec)?).map_err(|error| unanswered(&error))?;
        let mut text = Vec::new();
        tokio::io::BufReader::new(answer).read_until(b'\n', &mut text).await.map_err(|error| unanswered(&error))?;
        self.understand(&text)
    }

    fn understand(&self, text: &[u8]) -> Result<ShimId> {
        // The request of a spawner that was killed dies with its socket, without a word either.
        if text.is_empty() && self.is_gone() { Err(Error::SpawnerGone) } else { answer::understand(text) }
    }

    fn is_gone(&self) -> bool {
        let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        poll(&mut watched, PollTimeout::ZERO).is_ok_and(|closed| closed > 0)
    }

    /// Writes `launch.json`, asks for a shim, and returns where its answer will arrive. The answer ends when every writer
    /// is gone, so a shim that dies without a word is noticed too.
    fn request(&self, spec: &LaunchSpec) -> Result<OwnedFd> {
        spec.validate()?;
        files::clear(&spec.attempt_dir)?;
        let launch = spec.attempt_dir.join(files::LAUNCH);
        files::write_whole(&launch, spec)?;
        let (answer, shims_end) = pipe2(OFlag::O_CLOEXEC).map_err(Error::system("make a pipe"))?;
        send_request(&self.socket, &launch, &shims_end)?;
        Ok(answer)
    }
}

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
