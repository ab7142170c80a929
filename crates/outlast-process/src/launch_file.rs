//! The file of a launch: what is to run, then who runs it, then how it ended, one line each.
//!
//! One file and not three: a run of thousands of short launches makes and removes as many files as a file system will take
//! in that time. A line counts once its end is there, so a reader sees all of an entry or none of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::exit::ExitRecord;
use crate::files::{self, LAUNCH};
use crate::shim_id::ShimFile;
use crate::spec::LaunchSpec;

/// A line of the file.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Entry<'a> {
    Launch(&'a LaunchSpec),
    Shim(&'a ShimFile),
    Exit(&'a ExitRecord),
}

/// What a file holds.
#[derive(Default)]
pub(crate) struct Launch {
    pub(crate) spec: Option<LaunchSpec>,
    pub(crate) shim: Option<ShimFile>,
    pub(crate) exit: Option<ExitRecord>,
}

/// A line as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Read {
    Launch(Box<LaunchSpec>),
    Shim(ShimFile),
    Exit(ExitRecord),
}

impl Launch {
    /// Reads what `attempt_dir` holds; nothing of what is not there yet.
    pub(crate) fn read(attempt_dir: &Path) -> Result<Self> {
        let path = attempt_dir.join(LAUNCH);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        let mut launch = Self::default();
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            let read = serde_json::from_slice(line).map_err(|source| Error::Format { path: path.clone(), source })?;
            match read {
                Read::Launch(spec) => launch.spec = Some(*spec),
                Read::Shim(shim) => launch.shim = Some(shim),
                Read::Exit(exit) => launch.exit = Some(exit),
            }
        }
        Ok(launch)
    }
}

/// The file, open for what comes next. A launch that has been replaced in its folder writes into its own file still, and
/// never into its successor's.
#[derive(Debug)]
pub(crate) struct LaunchFile {
    path: PathBuf,
    file: File,
}

impl LaunchFile {
    /// Makes the file anew; what an earlier launch left in the folder must have been cleared.
    pub(crate) fn create(spec: &LaunchSpec) -> Result<Self> {
        let path = spec.attempt_dir.join(LAUNCH);
        let file = files::create_new(&path).map_err(Error::file("create", &path))?;
        let mut launch = Self { path, file };
        launch.add(&Entry::Launch(spec))?;
        Ok(launch)
    }

    /// Opens the file of a launch that has been asked for.
    pub(crate) fn open(path: &Path) -> Result<(Self, LaunchSpec)> {
        let failed = Error::file("open", path);
        let mut options = OpenOptions::new();
        let file = options.append(true).custom_flags(libc::O_NOFOLLOW).open(path).map_err(failed)?;
        let spec = Launch::read(path.parent().unwrap_or(path))?.spec;
        let spec = spec.ok_or_else(|| Error::file("read", path)(io::ErrorKind::UnexpectedEof.into()))?;
        Ok((Self { path: path.to_owned(), file }, spec))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Says who the shim is.
    pub(crate) fn runs(&mut self, shim: &ShimFile) -> Result<()> {
        self.add(&Entry::Shim(shim))
    }

    /// Says how it ended; on disk when this returns.
    pub(crate) fn ended(&mut self, exit: &ExitRecord) -> Result<()> {
        self.add(&Entry::Exit(exit))?;
        self.file.sync_data().map_err(Error::file("sync", &self.path))
    }

    fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let format = |source| Error::Format { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(entry).map_err(format)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::file("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_its_end_is_not_there_and_one_that_is_no_entry_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join(LAUNCH), text).unwrap();
            Launch::read(folder.path())
        };
        let exit = r#"{"exit":{"code":3,"signal":null,"reason":"exited","detail":null,"started_at":1,"ended_at":2,"stdout_bytes":0,"stderr_bytes":0,"capture_error":null}}"#;
        assert!(read(exit).unwrap().exit.is_none());
        assert_eq!(read(&format!("{exit}\n")).unwrap().exit.unwrap().code, Some(3));
        assert!(read(&format!("{exit}\n{{\"exit\"")).unwrap().exit.is_some());
        assert!(matches!(read("{}\n"), Err(Error::Format { .. })));
        assert!(read("").unwrap().spec.is_none());
    }
}
