//! The one place that starts the git program.
//!
//! Every call gets an environment without `GIT_*`, no prompt, no optional locks, no hooks and no file-system monitor.
//! A call never gets a configuration or a repository that an agent can write: callers hand in folders of the user's
//! checkouts or of outlast only.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::lock::Lock;
use crate::{Error, Refusal, Result};

/// The oldest git that outlast works with.
const MINIMUM: (u32, u32) = (2, 39);

/// How long git waits for another's lock on a ref: people's hooks and other tools hold them for seconds.
const REF_PATIENCE: Duration = Duration::from_secs(15);

/// Whether a lock is one that git itself waits for before it gives up: that of a ref, or of all packed ones.
pub fn is_waited_for(lock: &str) -> bool {
    lock.ends_with("/packed-refs.lock") || lock.contains("/refs/")
}

/// A git program that was found and is new enough.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    version: String,
    ref_patience: Duration,
}

impl Git {
    /// Finds git: `OUTLAST_GIT` where set, else `git` on the search path.
    ///
    /// # Errors
    /// [`Refusal::GitMissing`] and [`Refusal::GitTooOld`].
    pub fn locate() -> std::result::Result<Self, Refusal> {
        Self::at(std::env::var_os("OUTLAST_GIT").map_or_else(|| PathBuf::from("git"), PathBuf::from))
    }

    /// Takes this program as git.
    ///
    /// # Errors
    /// [`Refusal::GitMissing`] and [`Refusal::GitTooOld`].
    pub fn at(program: PathBuf) -> std::result::Result<Self, Refusal> {
        let missing = |why: String| Refusal::GitMissing { program: program.display().to_string(), why };
        let output = Command::new(&program).arg("--version").output().map_err(|e| missing(e.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = said.split_whitespace().nth(2).unwrap_or("").to_owned();
        let mut numbers = version.split('.').map(|n| n.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) if (major, minor) >= MINIMUM => {
                Ok(Self { program, version, ref_patience: REF_PATIENCE })
            }
            (Some(_), Some(_)) => Err(Refusal::GitTooOld { found: version }),
            _ => Err(missing(format!("it answered {:?}", said.trim()))),
        }
    }

    /// One that waits this long for another's lock on a ref, and no longer.
    #[must_use]
    pub fn with_ref_patience(self, ref_patience: Duration) -> Self {
        Self { ref_patience, ..self }
    }

    /// The version git names, such as `2.47.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The program that is started.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Prepares a call in a checkout of the user's, whose configuration counts.
    pub(crate) fn in_checkout(&self, folder: &Path) -> Call {
        let mut call = Call::new(self);
        call.command.current_dir(folder);
        call
    }

    /// Prepares a call on a repository of ours: neither the user's nor the system's configuration counts.
    pub(crate) fn in_store(&self, git_dir: &Path) -> Call {
        let mut call = Call::new(self);
        call.command
            .current_dir(git_dir)
            .env("GIT_DIR", git_dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1");
        call.durably()
    }
}

/// One prepared start of git.
pub(crate) struct Call {
    command: Command,
    config: Vec<(OsString, OsString)>,
    stdin: Option<Vec<u8>>,
    input: Option<std::fs::File>,
    shown: Vec<String>,
}

impl Call {
    fn new(git: &Git) -> Self {
        let mut command = Command::new(&git.program);
        for (key, _) in std::env::vars_os() {
            if key.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(key);
            }
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            .env("GIT_EDITOR", ":")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let patience = git.ref_patience.as_millis().to_string();
        let call = Self { command, config: Vec::new(), stdin: None, input: None, shown: Vec::new() };
        call.config("core.hooksPath", "/dev/null")
            .config("core.fsmonitor", "false")
            .config("core.filesRefLockTimeout", &patience)
            .config("core.packedRefsTimeout", &patience)
            .config("gc.auto", "0")
            .config("maintenance.auto", "false")
            .config("advice.detachedHead", "false")
    }

    /// Sets one configuration value for this call only, above every file.
    pub(crate) fn config(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    /// What git writes in this call is on disk when it ends.
    pub(crate) fn durably(self) -> Self {
        self.config("core.fsync", "all").config("core.fsyncMethod", "fsync")
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.shown.push(arg.as_ref().to_string_lossy().into_owned());
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(self, args: impl IntoIterator<Item = A>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Bytes for git's standard input; without them it is empty.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// A file as git's standard input.
    pub(crate) fn input(mut self, file: std::fs::File) -> Self {
        self.input = Some(file);
        self
    }

    /// Lets git hold a lock of ours as its standard input, which it does not read: should we be killed, whoever wants the
    /// lock next waits for this git to end.
    pub(crate) fn holding(self, lock: &Lock) -> Result<Self> {
        Ok(self.input(lock.share()?))
    }

    /// Runs to the end, whatever the exit status.
    pub(crate) fn run(mut self) -> Result<Answer> {
        self.run_once()
    }

    fn run_once(&mut self) -> Result<Answer> {
        for (at, (key, value)) in self.config.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        self.command.env("GIT_CONFIG_COUNT", self.config.len().to_string());
        self.command.stdin(match (&self.stdin, self.input.take()) {
            (Some(_), _) => Stdio::piped(),
            (None, Some(file)) => file.into(),
            (None, None) => Stdio::null(),
        });
        let program = PathBuf::from(self.command.get_program());
        let mut child = self.command.spawn().map_err(|error| match self.command.get_current_dir() {
            // The system says the same of a program that is gone and of a folder that is: somebody has moved it.
            Some(folder) if !folder.is_dir() => Refusal::NotARepository(folder.to_owned()).into(),
            _ => Error::io("start", &program)(error),
        })?;
        let output = std::thread::scope(|scope| {
            if let (Some(bytes), Some(mut pipe)) = (self.stdin.as_deref(), child.stdin.take()) {
                // Git may end without reading all of it; its exit status says what that means.
                scope.spawn(move || pipe.write_all(bytes).ok());
            }
            child.wait_with_output()
        });
        let output = output.map_err(Error::io("run", &program))?;
        Ok(Answer { output, command: self.shown.join(" ") })
    }

    /// Runs one that only reads to the end, whatever the exit status, and again when something has killed it: nothing but its
    /// answer was lost.
    pub(crate) fn read(mut self) -> Result<Answer> {
        let mut answer = self.run_once()?;
        for _ in 1..READS_MAX {
            if answer.code().is_some() {
                break;
            }
            answer = self.run_once()?;
        }
        Ok(answer)
    }

    /// Runs to the end and hands over standard output; any other exit status than 0 is an error.
    ///
    /// One that is given nothing, and so holds no lock of ours, only reads, as [`Call::read`] does.
    pub(crate) fn ok(self) -> Result<Vec<u8>> {
        let only_reads = self.stdin.is_none() && self.input.is_none();
        let answer = if only_reads { self.read()? } else { self.run()? };
        if answer.output.status.success() { Ok(answer.output.stdout) } else { Err(answer.into_error()) }
    }
}

/// How often a git that only reads is started, if it is killed each time.
const READS_MAX: u32 = 3;

/// What a finished git left.
pub(crate) struct Answer {
    output: Output,
    command: String,
}

impl Answer {
    pub(crate) fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub(crate) fn stdout(&self) -> &[u8] {
        &self.output.stdout
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).trim().to_owned()
    }

    pub(crate) fn into_error(self) -> Error {
        Error::Git { status: self.output.status.to_string(), stderr: self.stderr(), command: self.command }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_that_was_moved_is_told_and_not_a_git_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::locate().unwrap();
        let gone = folder.path().join("moved");
        let error = git.in_checkout(&gone).arg("status").run().err().unwrap();
        assert!(matches!(error, Error::Refused(Refusal::NotARepository(path)) if path == gone));
    }

    #[test]
    fn a_git_that_is_killed_while_it_reads_runs_again_and_one_that_holds_a_lock_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("git");
        let script = "#!/bin/sh\n[ \"$1\" = version ] || [ \"$1\" = --version ] && echo git version 2.47.0 && exit\n\
                      echo >> $RUNS; test $(wc -l < $RUNS) -ge 3 || kill -9 $$; echo read";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let git = Git::at(program).unwrap();
        let runs = |name: &str| folder.path().join(name);
        let call = |name: &str| git.in_checkout(folder.path()).env("RUNS", runs(name)).arg("config");
        assert_eq!(call("reads").ok().unwrap(), b"read\n");
        assert_eq!(call("asked").read().unwrap().stdout(), b"read\n");
        let lock = Lock::acquire(&folder.path().join("lock")).unwrap();
        assert!(call("writes").holding(&lock).unwrap().ok().is_err());
        assert_eq!(std::fs::read_to_string(runs("writes")).unwrap(), "\n", "it ran once");
    }
}
