//! One output stream of the program: drained for as long as it lives, kept within two bounds.
//!
//! A line longer than its bound is cut and the next one kept again, so that a giant event never hides the one after it. Past
//! the bound of the whole stream only the newest bytes are kept, and appended at the end. Draining never stops: a program
//! must not block because its output is not wanted, nor because the disk is full.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::error::{Error, Result};
use crate::files;

/// At most this much of an overlong stream's end is kept.
const TAIL_MAX: u64 = 64 * 1024;
const CHUNK: usize = 64 * 1024;
/// More than any pipe can hold (1 MiB, the system's default bound), in chunks.
const LAST_CHUNKS: usize = 64;

/// A pipe being drained into a file.
#[derive(Debug)]
pub(crate) struct Capture {
    pipe: Option<File>,
    keeper: Keeper<LateFile>,
}

/// A file made when there is something to put in it: most launches write to one of their two outputs at most.
#[derive(Debug)]
struct LateFile {
    path: PathBuf,
    file: Option<File>,
}

impl Write for LateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(files::create_plainly(&self.path)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Capture {
    /// Keeps what comes out of `pipe` in a new file at `path`, if anything does.
    pub(crate) fn new(pipe: OwnedFd, path: PathBuf, limit: u64, line_limit: u64) -> Result<Self> {
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(Error::system("make a pipe non-blocking"))?;
        let out = LateFile { path, file: None };
        Ok(Self { pipe: Some(pipe.into()), keeper: Keeper::new(out, limit, line_limit) })
    }

    /// The pipe, until its end was seen.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, up to a bound that lets other events have their turn; how many bytes it was.
    pub(crate) fn drain(&mut self) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        let mut chunk = [0; CHUNK];
        match pipe.read(&mut chunk) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                self.keeper.absorb(&chunk[..length]);
                return length;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => {
                self.keeper.note_failure(&error);
                self.pipe = None;
            }
        }
        0
    }

    /// Takes what the pipe still holds and completes the file. Its end is not waited for: a descriptor that was passed to a
    /// process outside the tree would keep it open for ever.
    pub(crate) fn finish(&mut self) {
        for _ in 0..LAST_CHUNKS {
            if self.drain() == 0 {
                break;
            }
        }
        self.pipe = None;
        self.keeper.finish();
    }

    /// Bytes the program wrote, kept or not.
    pub(crate) fn seen(&self) -> u64 {
        self.keeper.seen
    }

    /// Why output could not be kept, if the file system was the reason.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.keeper.failure.as_deref()
    }
}

#[derive(Debug)]
struct Keeper<W> {
    out: W,
    line_limit: u64,
    /// What the head of the file may still take.
    room: u64,
    limit: u64,
    seen: u64,
    /// Length of the current line so far.
    line: u64,
    /// The newest bytes past the head; `None` until the head is full.
    tail: Option<VecDeque<u8>>,
    tail_max: u64,
    /// Bytes that fell out of the tail.
    left_out: u64,
    failure: Option<String>,
}

impl<W: Write> Keeper<W> {
    fn new(out: W, limit: u64, line_limit: u64) -> Self {
        let tail_max = TAIL_MAX.min(limit / 4);
        let (room, tail, failure) = (limit - tail_max, None, None);
        Self { out, line_limit, room, limit, seen: 0, line: 0, tail, tail_max, left_out: 0, failure }
    }

    fn absorb(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let allowed = usize::try_from(self.line_limit.saturating_sub(self.line)).unwrap_or(usize::MAX);
            self.keep(&text[..text.len().min(allowed)]);
            self.line += text.len() as u64;
            if ends {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let cut = self.line.saturating_sub(self.line_limit);
        if cut > 0 {
            self.keep(format!(" [outlast: {cut} more bytes of this line not kept]").as_bytes());
        }
        self.keep(b"\n");
        self.line = 0;
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(tail) = &mut self.tail {
            tail.extend(bytes);
            let excess = (tail.len() as u64).saturating_sub(self.tail_max);
            drop(tail.drain(..usize::try_from(excess).unwrap_or(0)));
            self.left_out += excess;
            return;
        }
        let fits = bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        self.room -= fits as u64;
        self.write(&bytes[..fits]);
        if fits < bytes.len() {
            let mark = format!("\n[outlast: the limit of {} bytes is reached; only the end follows]\n", self.limit);
            self.write(mark.as_bytes());
            self.tail = Some(VecDeque::new());
            self.keep(&bytes[fits..]);
        }
    }

    fn finish(&mut self) {
        if self.line > self.line_limit {
            self.end_line();
        }
        if let Some(tail) = self.tail.take() {
            self.write(format!("[outlast: {} bytes left out]\n", self.left_out).as_bytes());
            let (front, back) = tail.as_slices();
            let whole = [front, back].concat();
            self.write(&whole);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Err(error) = self.out.write_all(bytes) {
            self.note_failure(&error);
        }
    }

    fn note_failure(&mut self, error: &io::Error) {
        self.failure.get_or_insert_with(|| error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: u64, line_limit: u64, pieces: &[&[u8]]) -> String {
        let mut keeper = Keeper::new(Vec::new(), limit, line_limit);
        for piece in pieces {
            keeper.absorb(piece);
        }
        keeper.finish();
        String::from_utf8(keeper.out).unwrap()
    }

    #[test]
    fn short_output_is_kept_byte_for_byte_however_it_arrives() {
        assert_eq!(kept(1000, 100, &[b"one\ntw", b"o\n\n", b"\nno newline"]), "one\ntwo\n\n\nno newline");
    }

    #[test]
    fn d16_the_event_after_a_giant_line_is_kept() {
        let text = kept(10_000, 8, &[&[b'x'; 500], &[b'x'; 500], b"\n{\"done\"}", b"\n"]);
        assert_eq!(text, "xxxxxxxx [outlast: 992 more bytes of this line not kept]\n{\"done\"}\n");
    }

    #[test]
    fn d16_an_endless_stream_is_bounded_and_its_end_is_kept() {
        let text = kept(80, 1_000_000, &[&[b'x'; 100_000], b"\nlast words\n"]);
        assert!(text.starts_with(&"x".repeat(60)), "{text}");
        assert!(text.contains("the limit of 80 bytes is reached"), "{text}");
        assert!(text.ends_with("[outlast: 99932 bytes left out]\nxxxxxxxx\nlast words\n"), "{text}");
    }
}
