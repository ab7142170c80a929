//! Follows a shim to its end: reads what its program writes as it is written, and notices however it ends.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use outlast_agent::{Event as Said, Reader, Source, Summary};
use outlast_process::{ExitRecord, ShimClient, ShimId, files};

use crate::error::Error;

/// One of a program's two outputs, read as it grows.
struct Tail {
    path: PathBuf,
    source: Source,
    file: Option<File>,
}

impl Tail {
    fn new(dir: &Path, name: &str, source: Source) -> Self {
        Self { path: dir.join(name), source, file: None }
    }

    /// Feeds everything that is there and has not been read.
    fn read(&mut self, reader: &mut Reader, said: &mut Vec<Said>) -> Result<(), Error> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(Error::at(&self.path, error)),
            }
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer).map_err(|error| Error::at(&self.path, error))? {
                0 => return Ok(()),
                n => said.extend(reader.feed(self.source, &buffer[..n])),
            }
        }
    }
}

/// Everything that a program has said so far.
pub(crate) struct Output {
    tails: [Tail; 2],
    reader: Reader,
    /// What it amounts to.
    pub(crate) summary: Summary,
}

impl Output {
    /// The output in `dir`, read from its start: a restarted engine reads it again and comes to the same.
    pub(crate) fn new(dir: &Path, reader: Reader) -> Self {
        let tails = [Tail::new(dir, files::STDOUT, Source::Stdout), Tail::new(dir, files::STDERR, Source::Stderr)];
        Self { tails, reader, summary: Summary::default() }
    }

    /// Reads what is new.
    pub(crate) fn read(&mut self) -> Result<Vec<Said>, Error> {
        let mut said = Vec::new();
        for tail in &mut self.tails {
            tail.read(&mut self.reader, &mut said)?;
        }
        self.note(said)
    }

    /// Reads what is left, once nothing more can come.
    pub(crate) fn finish(&mut self) -> Result<Vec<Said>, Error> {
        let mut said = self.read()?;
        let last = self.reader.finish();
        said.extend(self.note(last)?);
        Ok(said)
    }

    fn note(&mut self, said: Vec<Said>) -> Result<Vec<Said>, Error> {
        for said in &said {
            self.summary.note(said);
        }
        Ok(said)
    }
}

/// Waits until the shim is gone, whatever becomes of it, and says how its program ended, where that is on record.
///
/// # Errors
/// Where the shim cannot be watched, or its exit record cannot be read.
pub(crate) async fn until_gone(dir: &Path, shim: &ShimId) -> Result<Option<ExitRecord>, Error> {
    shim.wait_gone().await?;
    Ok(files::load_exit(dir)?)
}

/// A line to the shim; nothing where it is gone already or does not answer.
pub(crate) async fn connect(dir: &Path) -> Option<ShimClient> {
    ShimClient::connect(dir).await.ok()
}
