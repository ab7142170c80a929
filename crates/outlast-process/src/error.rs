//! What can go wrong around a process, one variant per remedy.
//!
//! Never a place for what the agent did: how an attempt ended is data (`ExitRecord`), not an error.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure to start, watch or end a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The launch spec contradicts itself or a limit of the system; the caller has to change it.
    #[error("launch spec of {marker:?} refused: {why}")]
    Spec {
        /// The attempt's marker.
        marker: String,
        /// What is wrong, with the values.
        why: String,
    },
    /// The spawner was asked for too late: forking a program with threads would copy locks held by threads that are gone.
    #[error("the spawner must be forked before any thread exists, but there are {threads} threads")]
    Threaded {
        /// Threads of this process.
        threads: usize,
    },
    /// The spawner process was killed, and so was its successor: nothing was started, and the next launch finds a new one.
    #[error("the process that starts agents was killed, and so was the one in its place")]
    SpawnerGone,
    /// The spawner process was killed, and this host does not let us start another.
    #[error("the process that starts agents was killed, and there cannot be another: {source}")]
    NoSpawner {
        /// The system's answer.
        source: io::Error,
    },
    /// The shim started but could not prepare the attempt; no agent ran.
    #[error("the shim could not prepare the attempt: {message}")]
    Prepare {
        /// The shim's own words.
        message: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried, as an infinitive.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file of ours does not hold what this version writes.
    #[error("cannot understand {}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where the text went wrong.
        source: serde_json::Error,
    },
    /// A program could not be executed, for a reason that the system has few words for.
    #[error("cannot execute {}: {hint} ({errno})", path.display())]
    Execute {
        /// The program.
        path: PathBuf,
        /// What it most likely is.
        hint: &'static str,
        /// The system's answer.
        errno: Errno,
    },
    /// A system call was refused.
    #[error("cannot {action}: {errno}")]
    System {
        /// What was tried, as an infinitive.
        action: &'static str,
        /// The system's answer.
        errno: Errno,
    },
    /// The kernel's sandbox could not be set up, so the agent must not run.
    #[error("cannot apply the file sandbox: {why}")]
    Sandbox {
        /// What was refused.
        why: String,
    },
    /// The shim's control connection failed or said something unknown.
    #[error("control connection of a shim: {why}")]
    Control {
        /// What happened.
        why: String,
    },
}

impl Error {
    /// Wraps an input/output failure on `path`; `action` completes "cannot …".
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }

    /// Wraps a refused system call; `action` completes "cannot …".
    pub(crate) fn system(action: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::System { action, errno }
    }
}
