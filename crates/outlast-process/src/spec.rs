//! What a launch is made of: the one value a caller fills in, kept beside the attempt's output.
//!
//! It names programs, folders and times, and never what the program is for.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hold::HoldProfile;
use crate::text::{self, OsText};

/// The environment variable that marks every process of an attempt.
pub const MARKER_VARIABLE: &str = "OUTLAST_ATTEMPT";

/// Replaced by the listener's port in arguments, environment values and template files.
pub const PORT_PLACEHOLDER: &str = "{port}";

/// Everything a shim needs to run one program to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Program and arguments; a program without `/` is looked up in the `PATH` of [`Self::env`].
    pub argv: Vec<OsText>,
    /// The whole environment, but for [`MARKER_VARIABLE`], which the shim adds.
    pub env: BTreeMap<String, OsText>,
    /// Where the program starts.
    #[serde(with = "text::path")]
    pub cwd: PathBuf,
    /// Holds this launch's files (see [`crate::files`]); exists already, and the program cannot write it.
    #[serde(with = "text::path")]
    pub attempt_dir: PathBuf,
    /// Unique on this host for all time; the value of [`MARKER_VARIABLE`].
    pub marker: String,
    /// What of the file system the program may touch.
    pub sandbox: FileRules,
    /// Loopback and remote TCP ports it may connect to, besides the listener's own; `None` leaves TCP alone.
    pub connect_ports: Option<Vec<u16>>,
    /// How the process tree is held together.
    pub containment: ContainmentChoice,
    /// When to give up.
    pub timeouts: Timeouts,
    /// Between asking the tree to end (TERM) and ending it (KILL).
    pub kill_grace: Duration,
    /// Kept of stdout and of stderr, each.
    pub output_limit_bytes: u64,
    /// Kept of any single line; the rest of that line is left out and the next line is kept again.
    pub line_limit_bytes: u64,
    /// Files to write before the start.
    pub files: Vec<TemplateFile>,
    /// The program's way to the engine's gateway, if it has one.
    pub listener: Option<Listener>,
}

/// Wall-clock-free limits, on the monotonic clock; `None` is no limit.
///
/// Wall and idle stand still while a request waits for its answer to begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// From start to end.
    pub wall: Option<Duration>,
    /// Without output and without traffic.
    pub idle: Option<Duration>,
    /// Until the first output or the first request.
    pub start: Option<Duration>,
    /// Whether a word on standard error is a first output as well: an agent that only complains there has not begun.
    #[serde(default)]
    pub stderr_is_a_start: bool,
}

/// Paths by what may be done beneath them; whatever is beneath none of them is out of reach.
///
/// A path of `read`, `public` or `execute` that does not exist is left out; one of `write` that does not exist fails the launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRules {
    /// Everything but making device nodes.
    #[serde(with = "text::paths")]
    pub write: Vec<PathBuf>,
    /// Reading files and listing folders.
    #[serde(with = "text::paths")]
    pub read: Vec<PathBuf>,
    /// The same, but for what its owner has shut to others: where the program runs as root, that keeps nothing from it
    /// otherwise. Of a folder in which something is shut, files that come later are left out too.
    #[serde(with = "text::paths")]
    pub public: Vec<PathBuf>,
    /// Reading and executing.
    #[serde(with = "text::paths")]
    pub execute: Vec<PathBuf>,
}

impl FileRules {
    /// The system's programs, libraries, settings and processes: what every agent CLI and build tool was found to need.
    pub fn system() -> Self {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        Self {
            write: Vec::new(),
            read: paths(&["/proc"]),
            public: paths(&["/etc"]),
            execute: paths(&["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"]),
        }
    }
}

/// Which containment a launch wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainmentChoice {
    /// A pid namespace where the kernel allows one, else the sub-reaper.
    #[default]
    Auto,
    /// The sub-reaper alone: starts faster, but a `kill -9` of the shim leaves detached descendants.
    Subreaper,
}

/// A file written (mode 0600) before the start, with [`PORT_PLACEHOLDER`] replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateFile {
    /// An existing folder of ours.
    #[serde(with = "text::path")]
    pub root: PathBuf,
    /// Beneath `root`; missing folders are made, and a symbolic link on the way fails the launch.
    #[serde(with = "text::path")]
    pub path: PathBuf,
    /// The contents.
    pub text: String,
}

/// The loopback address offered to the program, and where its requests go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// The gateway's Unix socket; it may be away for hours.
    #[serde(with = "text::path")]
    pub upstream_socket: PathBuf,
    /// Put before every request's path, such as `/a/7f3a`; empty or starting with `/` and not ending in one.
    pub path_prefix: String,
    /// What the program hears while it waits.
    pub hold: HoldProfile,
}

impl LaunchSpec {
    /// Checks what can be checked without starting anything.
    ///
    /// # Errors
    /// [`Error::Spec`] naming the first thing that is wrong.
    pub fn validate(&self) -> Result<()> {
        self.find_fault().map_or(Ok(()), |why| Err(Error::Spec { marker: self.marker.clone(), why }))
    }

    fn find_fault(&self) -> Option<String> {
        if self.argv.is_empty() || self.argv[0].is_empty() {
            return Some("no program".to_owned());
        }
        let texts = self.argv.iter().chain(self.env.values());
        if texts.into_iter().any(|text| text.as_bytes().contains(&0)) {
            return Some("a NUL byte in an argument or environment value".to_owned());
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Some(format!("{name:?} cannot name an environment variable"));
        }
        if self.marker.is_empty() || self.marker.contains('\0') {
            return Some("the marker is empty or holds a NUL byte".to_owned());
        }
        if self.env.get(MARKER_VARIABLE).is_some_and(|value| **value != *self.marker) {
            return Some(format!("{MARKER_VARIABLE} differs from the marker"));
        }
        self.find_path_fault().or_else(|| self.find_listener_fault())
    }

    fn find_path_fault(&self) -> Option<String> {
        for path in [&self.cwd, &self.attempt_dir] {
            if !path.is_absolute() {
                return Some(format!("{} is not an absolute path", path.display()));
            }
        }
        let ours = &self.attempt_dir;
        if let Some(theirs) = self.sandbox.write.iter().find(|theirs| ours.starts_with(theirs)) {
            return Some(format!("the program could write {} through {}", ours.display(), theirs.display()));
        }
        for file in &self.files {
            let plain = file.path.components().all(|part| matches!(part, Component::Normal(_)));
            if !plain || file.path.as_os_str().is_empty() || !file.root.is_absolute() {
                return Some(format!("{} is no plain path beneath {}", file.path.display(), file.root.display()));
            }
        }
        None
    }

    fn find_listener_fault(&self) -> Option<String> {
        let listener = self.listener.as_ref()?;
        let prefix = &listener.path_prefix;
        if !prefix.is_empty() && (!prefix.starts_with('/') || prefix.ends_with('/')) {
            return Some(format!("path prefix {prefix:?} must start with / and not end in it"));
        }
        if let Err(why) = listener.hold.validate() {
            return Some(why);
        }
        let socket = &listener.upstream_socket;
        (!socket.is_absolute()).then(|| format!("{} is not an absolute path", socket.display()))
    }
}
