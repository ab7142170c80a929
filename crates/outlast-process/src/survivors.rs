//! Who is left of an attempt on this host: the last look before a successor starts in the same workspace.
//!
//! Finds by traces, whatever the containment was: the marker in the environment, the mark that is left where that is cleared,
//! or the workspace as working directory or open file. Killing is the caller's decision, for an editor or a shell of a person leaves the same traces.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use crate::error::{Error, Result};
use crate::mark;
use crate::spec::MARKER_VARIABLE;
use crate::sys::{pidfd, procfs};

/// A process with a trace of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// The program's name, at most 15 bytes.
    pub name: String,
    /// What gives it away.
    pub trace: Trace,
}

/// What ties a process to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// The marker is in its environment, or the mark on it: it was started by the attempt.
    Marker,
    /// Its working directory is in the workspace.
    WorkingDirectory(PathBuf),
    /// It has a file of the workspace open.
    OpenFile(PathBuf),
}

/// Every process but the caller with the marker in its environment or its mark, or its working directory or an open file
/// beneath `workspace`; of processes of other users only what the system shows.
///
/// # Errors
/// [`Error::File`] when `/proc` cannot be listed.
pub fn survivors(marker: &str, workspace: &Path) -> Result<Vec<Survivor>> {
    let entry = [MARKER_VARIABLE.as_bytes(), b"=", marker.as_bytes()].concat();
    let (workspace, mark) = (real(workspace), mark::of(marker));
    let me = std::process::id().cast_signed();
    let pids = procfs::pids().map_err(Error::file("list", Path::new("/proc")))?;
    let traced = |pid: i32| {
        let stat = procfs::stat(pid).ok().filter(|stat| !stat.is_dead())?;
        let trace = find_trace(pid, &entry, mark, &workspace)?;
        Some(Survivor { pid, start_time: stat.start_time, name: procfs::name(pid), trace })
    };
    Ok(pids.into_iter().filter(|pid| *pid != me).filter_map(traced).collect())
}

/// A folder as the kernel names it. A link that was put in the place of the folder itself is not followed: everybody who
/// works where it leads would count as a survivor, and be killed.
fn real(folder: &Path) -> PathBuf {
    let parts = folder.parent().and_then(|parent| parent.canonicalize().ok()).zip(folder.file_name());
    parts.map_or_else(|| folder.to_owned(), |(parent, name)| parent.join(name))
}

fn find_trace(pid: i32, entry: &[u8], mark: u64, workspace: &Path) -> Option<Trace> {
    if procfs::has_environment_entry(pid, entry) || mark::is_on(pid, mark) {
        return Some(Trace::Marker);
    }
    let inside = |path: &Path| is_beneath(path, workspace);
    if let Some(folder) = procfs::working_directory(pid).filter(|path| inside(path)) {
        return Some(Trace::WorkingDirectory(folder));
    }
    procfs::open_file(pid, inside).map(Trace::OpenFile)
}

/// A deleted folder or file is shown with a suffix that is part of its name.
fn is_beneath(path: &Path, workspace: &Path) -> bool {
    let deleted = [workspace.as_os_str().as_bytes(), b" (deleted)"].concat();
    path.starts_with(workspace) || path.as_os_str().as_bytes() == deleted
}

/// Kills (SIGKILL) whoever is found, and looks again until nobody is: one that was started while the others were looked for and
/// killed lives on otherwise. Returns those that are there after `patience`.
///
/// # Errors
/// As [`kill_survivors`], and whatever `find` says.
pub fn end_survivors(mut find: impl FnMut() -> Result<Vec<Survivor>>, patience: Duration) -> Result<Vec<Survivor>> {
    let until = Instant::now() + patience;
    loop {
        let found = find()?;
        if found.is_empty() {
            return Ok(found);
        }
        let left = kill_survivors(&found, until.saturating_duration_since(Instant::now()))?;
        if Instant::now() >= until {
            return if left.is_empty() { find() } else { Ok(left) };
        }
    }
}

/// Kills exactly these processes (SIGKILL) and waits until they are gone; returns those that were not within `patience`.
///
/// # Errors
/// [`Error::System`] when a process may not be killed.
pub fn kill_survivors(survivors: &[Survivor], patience: Duration) -> Result<Vec<Survivor>> {
    let until = Instant::now() + patience;
    let mut left = Vec::new();
    for survivor in survivors {
        let handle = match pidfd::open(survivor.pid) {
            Ok(handle) => handle,
            Err(Errno::ESRCH) => continue,
            Err(errno) => return Err(Error::system("watch a survivor")(errno)),
        };
        // Only now the pid cannot be reused: compare whom it names.
        if procfs::stat(survivor.pid).ok().map(|stat| stat.start_time) != Some(survivor.start_time) {
            continue;
        }
        match pidfd::send_signal(&handle, Signal::SIGKILL) {
            Ok(()) => left.push((survivor, handle)),
            Err(Errno::ESRCH) => {}
            Err(errno) => return Err(Error::system("kill a survivor")(errno)),
        }
    }
    left.retain(|(_, handle)| {
        let wait = PollTimeout::try_from(until.saturating_duration_since(Instant::now())).unwrap_or(PollTimeout::MAX);
        poll(&mut [PollFd::new(std::os::fd::AsFd::as_fd(handle), PollFlags::POLLIN)], wait) == Ok(0)
    });
    Ok(left.into_iter().map(|(survivor, _)| survivor.clone()).collect())
}
