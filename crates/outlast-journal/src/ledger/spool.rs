//! One exchange under way: the bytes go to its spool file before they pass.
//!
//! Every call is one plain `write(2)` into the page cache: it survives the end of this process, and no call waits for
//! a disk.

use std::io::IoSlice;
use std::sync::Arc;

use serde::Serialize;

use super::Shared;
use super::frames::{End, Kind, PREFIX_LEN, Use};
use super::keeper::{Finished, Later, Message};
use super::row::{AnswerHead, Closing, Opening};
use super::slot::Slot;
use crate::Error;
use crate::pending::{self, Pending};

/// An exchange that has begun. Dropped without [`Spool::finish`], it goes into the ledger as cut.
#[derive(Debug)]
pub struct Spool {
    shared: Arc<Shared>,
    slot: Option<Slot>,
    this: Use,
    passed: u64,
    /// The frame of the answer's head: written with what follows it, which saves a system call.
    head: Vec<u8>,
    broken: Option<Error>,
}

impl Spool {
    pub(super) fn begin(shared: Arc<Shared>, opening: &Opening, request: &[u8]) -> Result<Self, Error> {
        let slot = shared.slots.take()?;
        let this = slot.this();
        let mut spool = Self { shared, slot: Some(slot), this, passed: 0, head: Vec::new(), broken: None };
        let opening = json(opening);
        let begun = spool.prefix(Kind::Opening, &opening).and_then(|first| {
            let second = spool.prefix(Kind::Request, request)?;
            spool.append(&mut [
                IoSlice::new(&this.start()),
                IoSlice::new(&first),
                IoSlice::new(&opening),
                IoSlice::new(&second),
                IoSlice::new(request),
            ])
        });
        if let Err(error) = begun {
            if let Some(slot) = spool.slot.take() {
                spool.shared.slots.put_back(slot);
            }
            return Err(error);
        }
        Ok(spool)
    }

    /// Notes how the answer begins; it reaches the spool with the answer's first bytes, or at the end.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for headers of more than four gigabytes.
    pub fn answer(&mut self, head: &AnswerHead) -> Result<(), Error> {
        let head = json(head);
        let prefix = self.prefix(Kind::Head, &head)?;
        self.head.extend_from_slice(&prefix);
        self.head.extend_from_slice(&head);
        Ok(())
    }

    /// Writes the next bytes of the answer; call it before they pass.
    ///
    /// # Errors
    /// [`Error::NoSpace`] on a full disk, and from then on: the exchange keeps its row and its numbers, but an answer
    /// that is not whole in the spool is not kept as its body.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.passed += bytes.len() as u64;
        self.frame(Kind::Answer, bytes)
    }

    /// Ends the exchange. Its row is durable when the answer to this comes, which nobody has to wait for: after the
    /// end of this process the next [`super::Ledger::open`] finishes the work.
    pub fn finish(mut self, closing: Closing) -> Pending<()> {
        let end = End { closing, passed: self.passed, unread: false };
        self.note(&end);
        self.hand_over(Some(end), None)
    }

    /// As [`Spool::finish`], for an exchange of which nobody waits to hear what it came to: `closing` says how it ended, and
    /// `read` all the rest of it, on the thread that writes its row. After the end of this process the next
    /// [`super::Ledger::open_with`] reckons it.
    pub fn finish_unread(mut self, closing: Closing, read: impl FnOnce() -> Closing + Send + 'static) -> Pending<()> {
        let end = End { closing, passed: self.passed, unread: true };
        self.note(&end);
        self.hand_over(Some(end), Some(Later(Box::new(read))))
    }

    /// A failure here is the same full disk that the ledger's own write will report.
    fn note(&mut self, end: &End) {
        if let Err(error) = self.frame(Kind::End, &json(end)) {
            tracing::warn!(%error, "an exchange's end is not in the spool");
        }
    }

    fn hand_over(&mut self, end: Option<End>, later: Option<Later>) -> Pending<()> {
        let (promise, pending) = pending::pair(self.slot.as_ref().map_or("".as_ref(), Slot::path));
        if let Some(slot) = self.slot.take() {
            // Refused only when the keeper has panicked: the promise in the message says so, and the file stays.
            let finished = Finished { slot, end, later, reckoning: None, promise: Some(promise) };
            drop(self.shared.sender.send(Message::Finished(Box::new(finished))));
            self.shared.gathering.one_more();
        }
        pending
    }

    fn frame(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), Error> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let prefix = self.prefix(kind, bytes)?;
        let head = std::mem::take(&mut self.head);
        self.append(&mut [IoSlice::new(&head), IoSlice::new(&prefix), IoSlice::new(bytes)])
    }

    fn append(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), Error> {
        let Some(slot) = &mut self.slot else {
            return Ok(());
        };
        // What follows half a frame is not read: nothing is written any more.
        slot.append(parts).inspect_err(|error| self.broken = Some(error.clone()))
    }

    fn prefix(&self, kind: Kind, bytes: &[u8]) -> Result<[u8; PREFIX_LEN], Error> {
        let too_large = || Error::TooLarge { what: "length of a body", value: bytes.len() as u64 };
        self.this.prefix(kind, bytes).ok_or_else(too_large)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if self.slot.is_some() {
            let head = std::mem::take(&mut self.head);
            if let Err(error) = self.append(&mut [IoSlice::new(&head)]) {
                tracing::warn!(%error, "the head of a cut answer is not in the spool");
            }
            // Nobody is left to wait for it.
            drop(self.hand_over(None, None));
        }
    }
}

/// Plain structs of text and numbers: their JSON cannot fail.
#[expect(clippy::expect_used, reason = "serialising a plain struct to memory has no failure")]
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("a plain struct serialises")
}
