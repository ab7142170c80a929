//! The format of a spool file: what one exchange looked like, in the order it happened.
//!
//! `OLSPOOL2`, the use of the file (four bytes), then frames of a kind (one byte), a length and a check (four bytes each,
//! little-endian) and as many bytes as the length says. A file is used again and again and never emptied in between, so
//! what follows the last frame of this use is anything: the rest of a frame whose process ended while it wrote it, or what
//! an earlier use has left. Neither passes the check, the CRC-32 of kind, length and bytes that begins at the use; there the
//! exchange ends as far as it is known. The bytes of a frame have passed only after all of it was written.
//!
//! Version 1 (`OLSPOOL1`, no use and no checks) had such a file for each exchange; half a frame of an answer counted there.

use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::row::{AnswerHead, Closing, Opening};

/// The first bytes of every spool file in use.
const MAGIC: &[u8; 8] = b"OLSPOOL2";
/// And of one of version 1.
const MAGIC_1: &[u8; 8] = b"OLSPOOL1";
/// Of one that waits for its next use: its exchange is in the ledger, or never began.
pub(super) const FREE: &[u8; 8] = b"OLSPFREE";
/// Magic and use.
pub(super) const START_LEN: usize = 12;
/// Kind, length and check.
pub(super) const PREFIX_LEN: usize = 9;
/// Kind and length.
const PREFIX_LEN_1: usize = 5;

/// One use of a spool file: no two that can leave something in the same file are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use(pub(super) u32);

impl Use {
    /// The first bytes of the file.
    pub(super) fn start(self) -> [u8; START_LEN] {
        let mut start = [0; START_LEN];
        start[..MAGIC.len()].copy_from_slice(MAGIC);
        start[MAGIC.len()..].copy_from_slice(&self.0.to_le_bytes());
        start
    }

    /// The prefix of a frame that holds `bytes`; none when they are too many.
    pub(super) fn prefix(self, kind: Kind, bytes: &[u8]) -> Option<[u8; PREFIX_LEN]> {
        let len = u32::try_from(bytes.len()).ok()?;
        let mut prefix = [0; PREFIX_LEN];
        prefix[0] = kind as u8;
        prefix[1..5].copy_from_slice(&len.to_le_bytes());
        let check = self.check(&prefix[..5], bytes);
        prefix[5..].copy_from_slice(&check.to_le_bytes());
        Some(prefix)
    }

    fn check(self, kind_and_len: &[u8], bytes: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(kind_and_len);
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// [`Opening`] as JSON.
    Opening = 1,
    /// The whole request body.
    Request = 2,
    /// [`AnswerHead`] as JSON.
    Head = 3,
    /// The next bytes of the answer.
    Answer = 4,
    /// [`End`] as JSON.
    End = 5,
}

/// The last frame.
#[derive(Debug, Clone, Serialize, serde::Deserialize)]
pub(super) struct End {
    /// How it ended.
    pub closing: Closing,
    /// Bytes of the answer that passed; more than the spool holds when the disk was full.
    pub passed: u64,
    /// That it is over is all that is known: what it came to had not been read yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
}

/// What a spool file says; bodies lie where they were read to.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    pub opening: Opening,
    pub request: &'a [u8],
    pub head: Option<AnswerHead>,
    pub answer: &'a [u8],
    end: Option<&'a [u8]>,
}

impl Contents<'_> {
    /// How it ended, where the file says so. Whoever has ended it just now knows without reading it again.
    pub(super) fn end(&self) -> Option<End> {
        self.end.and_then(json::<End>)
    }
}

/// What reading a spool file came to.
#[derive(Debug)]
pub(super) enum Parsed<'a> {
    /// An exchange whose request may have gone out.
    Exchange(Box<Contents<'a>>),
    /// The process ended before the request was whole here, so it never went out.
    NeverBegan,
    /// Not a spool file of ours, or one of a later format.
    Unreadable,
}

/// Reads a whole spool file. The pieces of its answer are moved together where they lie: bodies are long, and memory for
/// another copy of each would be fetched and given back for every exchange.
pub(super) fn parse(file: &mut [u8]) -> Parsed<'_> {
    let (format, mut at) = match file.first_chunk::<START_LEN>() {
        Some(start) if start.starts_with(MAGIC) => {
            let [.., a, b, c, d] = *start;
            (Format::Two(Use(u32::from_le_bytes([a, b, c, d]))), START_LEN)
        }
        _ if file.starts_with(MAGIC_1) => (Format::One, MAGIC_1.len()),
        // Cut off in its first bytes, or free.
        _ if [MAGIC, MAGIC_1].iter().any(|magic| magic.starts_with(file)) => return Parsed::NeverBegan,
        _ if file.starts_with(MAGIC) || file.starts_with(FREE) => return Parsed::NeverBegan,
        _ => return Parsed::Unreadable,
    };
    let (mut opening, mut request, mut head, mut end) = (None, None, None, None);
    let mut answer = 0..0;
    while let Some((kind, range, whole)) = format.next(file, at) {
        at = range.end;
        let frame = &file[range.clone()];
        match (kind, whole) {
            (1, true) => opening = Some(json::<Opening>(frame)),
            (2, true) => request = Some(range),
            (3, true) => head = json::<AnswerHead>(frame),
            (4, _) => answer = join(file, answer, range),
            (5, true) => end = Some(range),
            // Cut short, or zeros that a power cut left where data had been promised.
            (1..=3 | 5, false) | (0, _) => break,
            _ => return Parsed::Unreadable,
        }
    }
    match (opening, request) {
        (Some(Some(opening)), Some(request)) => {
            let (request, answer, end) = (&file[request], &file[answer], end.map(|end| &file[end]));
            Parsed::Exchange(Box::new(Contents { opening, request, head, answer, end }))
        }
        (Some(None), _) => Parsed::Unreadable,
        _ => Parsed::NeverBegan,
    }
}

/// Moves `piece` to the end of what is joined already, before which it cannot lie.
fn join(file: &mut [u8], joined: Range<usize>, piece: Range<usize>) -> Range<usize> {
    if joined.is_empty() {
        return piece;
    }
    let len = piece.len();
    file.copy_within(piece, joined.end);
    joined.start..joined.end + len
}

/// How a file's frames begin.
#[derive(Debug, Clone, Copy)]
enum Format {
    One,
    Two(Use),
}

impl Format {
    /// The frame at `at`: kind, where its bytes lie, and whether that is all of them.
    fn next(self, file: &[u8], at: usize) -> Option<(u8, Range<usize>, bool)> {
        let rest = file.get(at..)?;
        let (kind_and_len, _) = rest.split_first_chunk::<PREFIX_LEN_1>()?;
        let [kind, a, b, c, d] = *kind_and_len;
        let len = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        match self {
            Self::One => {
                let start = at + PREFIX_LEN_1;
                let there = len.min(file.len() - start);
                Some((kind, start..start + there, there == len))
            }
            Self::Two(this) => {
                let (check, rest) = rest[PREFIX_LEN_1..].split_first_chunk::<4>()?;
                let is_ours = u32::from_le_bytes(*check) == this.check(kind_and_len, rest.get(..len)?);
                let start = at + PREFIX_LEN;
                is_ours.then_some((kind, start..start + len, true))
            }
        }
    }
}

/// `None`: not what this release reads.
fn json<T: DeserializeOwned>(frame: &[u8]) -> Option<T> {
    serde_json::from_slice(frame).ok()
}

#[cfg(test)]
mod tests;
