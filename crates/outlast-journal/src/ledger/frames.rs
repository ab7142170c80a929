//! The format of a spool file: what one exchange looked like, in the order it happened.
//!
//! `OLSPOOL1`, then frames of a kind (one byte), a length (four bytes, little-endian) and that many bytes. A file may
//! end in the middle of a frame, because the process ended there: what had been written counts.

use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::row::{AnswerHead, Closing, Opening};

/// The first bytes of every spool file in use.
pub(super) const MAGIC: &[u8; 8] = b"OLSPOOL1";
/// Kind and length.
pub(super) const PREFIX_LEN: usize = 5;

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
}

/// What a spool file says; bodies lie where they were read to.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    pub opening: Opening,
    pub request: &'a [u8],
    pub head: Option<AnswerHead>,
    pub answer: &'a [u8],
    pub end: Option<End>,
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

/// The prefix of a frame; none when `len` does not fit.
pub(super) fn prefix(kind: Kind, len: usize) -> Option<[u8; PREFIX_LEN]> {
    let len = u32::try_from(len).ok()?.to_le_bytes();
    Some([kind as u8, len[0], len[1], len[2], len[3]])
}

/// Reads a whole spool file. The pieces of its answer are moved together where they lie: bodies are long, and memory for
/// another copy of each would be fetched and given back for every exchange.
pub(super) fn parse(file: &mut [u8]) -> Parsed<'_> {
    if !file.starts_with(MAGIC) {
        return if MAGIC.starts_with(file) { Parsed::NeverBegan } else { Parsed::Unreadable };
    }
    let (mut opening, mut request, mut head, mut end) = (None, None, None, None);
    let mut answer = 0..0;
    let mut at = MAGIC.len();
    while let Some((kind, range, whole)) = next(file, at) {
        at = range.end;
        let frame = &file[range.clone()];
        match (kind, whole) {
            (1, true) => opening = json::<Opening>(frame),
            (2, true) => request = Some(range),
            (3, true) => head = json::<AnswerHead>(frame),
            (4, _) => answer = join(file, answer, range),
            (5, true) => end = json::<End>(frame),
            // Cut short, or zeros that a power cut left where data had been promised.
            (1..=3 | 5, false) | (0, _) => break,
            _ => return Parsed::Unreadable,
        }
    }
    match (opening, request) {
        (Some(Some(opening)), Some(request)) => {
            let (head, end) = (head.flatten(), end.flatten());
            let (request, answer) = (&file[request], &file[answer]);
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

/// The frame at `at` as far as it is there: kind, where its bytes lie, and whether that is all of them.
fn next(file: &[u8], at: usize) -> Option<(u8, Range<usize>, bool)> {
    let ([kind, len @ ..], rest) = file.get(at..)?.split_first_chunk::<PREFIX_LEN>()?;
    let (len, start) = (usize::try_from(u32::from_le_bytes(*len)).ok()?, at + PREFIX_LEN);
    Some((*kind, start..start + len.min(rest.len()), len <= rest.len()))
}

/// Outer `None`: not there; inner `None`: not what this release reads.
fn json<T: DeserializeOwned>(frame: &[u8]) -> Option<Option<T>> {
    Some(serde_json::from_slice(frame).ok())
}

#[cfg(test)]
mod tests;
