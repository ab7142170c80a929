//! What a starting shim tells whoever asked for it: one JSON line over a pipe of its own.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::shim_id::{ShimFile, ShimId};

#[derive(Debug, Serialize, Deserialize)]
enum Told {
    Started(ShimId),
    Failed(String),
}

/// The writing end of the pipe; dropping it unsaid tells that the shim died.
#[derive(Debug)]
pub(crate) struct Answer(File);

impl Answer {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self(pipe.into())
    }

    /// Says that a shim runs: an answer that ends before this is a spawner's, which was killed. The byte is nothing to
    /// whoever reads the line.
    pub(crate) fn begin(&mut self) {
        drop(self.0.write_all(b" "));
    }

    /// The pipe, for a shim that closes everything else.
    pub(crate) fn pipe(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Whether whoever asked still waits. An engine that was killed does not, and the next one must not find a program
    /// that nobody knows of.
    pub(crate) fn is_awaited(&self) -> bool {
        let mut watched = [PollFd::new(self.0.as_fd(), PollFlags::empty())];
        !poll(&mut watched, PollTimeout::ZERO).is_ok_and(|gone| gone > 0)
    }

    /// The program was forked.
    pub(crate) fn started(self, shim: &ShimFile) {
        self.tell(&Told::Started(shim.shim.clone()));
    }

    /// No program was started.
    pub(crate) fn failed(self, error: &Error) {
        self.tell(&Told::Failed(error.to_string()));
    }

    /// An engine that is gone is told nothing; it will find the shim by its file.
    fn tell(mut self, told: &Told) {
        if let Ok(mut text) = serde_json::to_vec(told) {
            text.push(b'\n');
            drop(self.0.write_all(&text));
        }
    }
}

/// Reads the whole answer.
pub(super) fn understand(text: &[u8]) -> Result<ShimId> {
    match serde_json::from_slice(text) {
        Ok(Told::Started(shim)) => Ok(shim),
        Ok(Told::Failed(message)) => Err(Error::Prepare { message }),
        Err(_) => {
            Err(Error::Prepare { message: "it ended without a word; see shim.err in the attempt folder".to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::unistd::pipe;

    use super::*;

    #[test]
    fn an_answer_is_awaited_only_while_somebody_could_read_it() {
        let (ours, theirs) = pipe().unwrap();
        let answer = Answer::new(theirs);
        assert!(answer.is_awaited());
        drop(ours);
        assert!(!answer.is_awaited());
    }
}
