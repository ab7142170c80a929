//! The search for a key where it must not be: environments and command lines of processes while they run, and everything
//! on disk afterwards, packed or not.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::processes::{descends, parents};

/// How often processes are looked at.
const PERIOD: Duration = Duration::from_millis(50);

/// Whose processes are looked at, and for what.
#[derive(Debug, Clone)]
pub(crate) struct Suspects {
    /// This process and all that descend from it.
    pub(crate) ancestor: i32,
    /// And those with this folder in their environment: every attempt's marker begins with it.
    pub(crate) root: PathBuf,
    pub(crate) canary: String,
}

/// What was seen of processes.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    /// How often all of them were looked at.
    pub(crate) looks: usize,
    /// The attempts whose processes were seen, by their markers.
    pub(crate) attempts: BTreeSet<String>,
    /// Where the key was, as `/proc` names it.
    pub(crate) found: BTreeSet<String>,
}

impl Suspects {
    /// Looks at all of them once.
    pub(crate) fn look(&self, seen: &mut Sightings) {
        let parents = parents();
        let own = i32::try_from(std::process::id()).unwrap();
        for &pid in parents.keys().filter(|&&pid| pid != own) {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let ours = holds(&environment, self.root.as_os_str().as_bytes());
            if !ours && !descends(&parents, pid, self.ancestor) {
                continue;
            }
            let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            for (name, bytes) in [("environ", &environment), ("cmdline", &command_line)] {
                if holds(bytes, self.canary.as_bytes()) {
                    seen.found.insert(format!("/proc/{pid}/{name}"));
                }
            }
            let marker = environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(b"OUTLAST_ATTEMPT="));
            seen.attempts.extend(marker.map(|marker| String::from_utf8_lossy(marker).into_owned()));
        }
        seen.looks += 1;
    }

    /// Looks every 50 ms until told to stop.
    pub(crate) fn watch(self) -> Watch {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut seen = Sightings::default();
            let mut next = Instant::now();
            loop {
                self.look(&mut seen);
                next = (next + PERIOD).max(Instant::now());
                match stopped.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return seen,
                }
            }
        });
        Watch { stop, thread }
    }
}

/// A watch over processes.
pub(crate) struct Watch {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Sightings>,
}

impl Watch {
    /// Ends it; what it saw.
    pub(crate) fn stop(self) -> Sightings {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// What a search of a folder came to.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// How many files were read.
    pub(crate) files: usize,
    /// How many of them were packs of bodies, read decoded too.
    pub(crate) packs: usize,
    /// How many git repositories were read object by object.
    pub(crate) repositories: usize,
    /// The files that hold the text.
    pub(crate) found: Vec<PathBuf>,
}

/// Searches everything below a folder for a text, but for one file. Links are not followed: what they lead to is below
/// the folder, or not ours.
pub(crate) fn search(folder: &Path, text: &str, spared: &Path) -> Search {
    let mut result = Search::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
            result.repositories += 1;
            if holds(&objects(&folder), text.as_bytes()) {
                result.found.push(folder.join("objects"));
            }
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && path != spared {
                result.files += 1;
                let bytes = fs::read(&path).unwrap();
                let packed = path.extension().is_some_and(|extension| extension == "zst");
                result.packs += usize::from(packed);
                if holds(&bytes, text.as_bytes()) || packed && holds(&decoded(&path), text.as_bytes()) {
                    result.found.push(path);
                }
            }
        }
    }
    result
}

/// A pack of bodies as what was packed; a pack is frames one after the other.
fn decoded(pack: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    zstd::Decoder::new(File::open(pack).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Every object of a repository, unpacked.
fn objects(repository: &Path) -> Vec<u8> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(["cat-file", "--batch", "--batch-all-objects", "--unordered"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", repository.display(), String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    // Most bytes are not its first one: this is faster than to compare whole windows.
    let Some((&first, rest)) = text.split_first() else { return true };
    let mut left = bytes;
    while let Some(at) = left.iter().position(|&byte| byte == first) {
        left = &left[at + 1..];
        if left.starts_with(rest) {
            return true;
        }
    }
    false
}
