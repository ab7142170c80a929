//! The ledger: one row per exchange with a provider, and the bodies of both directions.
//!
//! Answer bytes are written to a spool file before they pass, so that a killed process loses none; everything after
//! that (hashing, compressing, the row, the fsync) happens on other threads and delays no byte. The ledger never reads
//! a body, and knows of no price but the one it is given.

mod aside;
mod body;
mod frames;
mod keeper;
pub(crate) mod pack;
mod query;
pub(crate) mod record;
mod recovery;
mod row;
mod slot;
mod spool;

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

pub use aside::Aside;
pub use body::BodyHash;
pub use query::{Selection, Totals};
pub use recovery::Recovery;
pub use row::{AnswerHead, Closing, ExchangeRow, Opening, Outcome, Reckoning, Unfinished, Usage};
pub use spool::Spool;

use crate::lock::FileLock;
use crate::{Error, Journal, fault, schema};
use aside::Shelf;
use keeper::{Gathering, Keeper, Message};
use slot::Slots;

/// The folder beside the journal that holds the bodies.
const BODIES: &str = "blobs";
/// The folder beside the journal that holds the answers under way.
const SPOOL: &str = "spool";

/// The writing side of the ledger. Cloning gives another handle; when the last handle and the last [`Spool`] are gone,
/// what was finished has been written.
#[derive(Debug, Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    sender: Sender<Message>,
    slots: Arc<Slots>,
    gathering: Arc<Gathering>,
    shelf: Arc<Shelf>,
    thread: Option<JoinHandle<()>>,
    // Last, so that nobody else uses the spool folder before the thread has ended.
    _lock: FileLock,
}

impl Ledger {
    /// Opens the ledger in `journal`, and first writes what an earlier process left in the spool: whatever an answer
    /// had delivered becomes its body, as [`Outcome::Cut`] without a number where nobody said how it ended.
    ///
    /// # Errors
    /// [`Error::Locked`] when the ledger is open already; [`Error::NoSpace`] on a full disk (the spool stays).
    pub fn open(journal: &Journal) -> Result<(Self, Recovery), Error> {
        Self::open_with(journal, |_| Reckoning::CUT)
    }

    /// As [`Ledger::open`]; `reckon` is asked what an exchange that nobody ended had come to.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open_with(
        journal: &Journal,
        reckon: impl Fn(&Unfinished<'_>) -> Reckoning,
    ) -> Result<(Self, Recovery), Error> {
        let folder = schema::folder_of(journal.path()).join(SPOOL);
        fs::create_dir_all(&folder).map_err(|error| fault::io(&folder, "create", error))?;
        let lock = FileLock::take(&folder)?;
        let (slots, left) = recovery::collect(&folder)?;
        let shelf = Arc::new(Shelf::new(&folder));
        let slots = Arc::new(slots);
        let (sender, receiver) = mpsc::channel();
        let gathering = Arc::new(Gathering::default());
        let writer = Arc::clone(journal.writer());
        let keeper = Keeper::new(receiver, sender.clone(), writer, Arc::clone(&slots), Arc::clone(&gathering))?;
        let thread = std::thread::Builder::new()
            .name("journal-ledger".to_owned())
            .spawn(move || keeper.run())
            .map_err(|error| fault::io(&folder, "start the keeper of", error))?;
        let shared = Shared { sender, slots, gathering, shelf, thread: Some(thread), _lock: lock };
        let ledger = Self { shared: Arc::new(shared) };
        let recovery = recovery::keep(&left, &ledger, reckon)?;
        Ok((ledger, recovery))
    }

    /// Begins an exchange: its opening and the request's body are in the spool when this returns, so call it before
    /// the request goes out.
    ///
    /// # Errors
    /// [`Error::NoSpace`] on a full disk, [`Error::Io`] when the spool cannot be written.
    pub fn begin(&self, opening: &Opening, request: &[u8]) -> Result<Spool, Error> {
        Spool::begin(Arc::clone(&self.shared), opening, request)
    }

    /// Puts the body of a request that waits on disk, out of memory. It is no record, and gone with this process.
    ///
    /// # Errors
    /// [`Error::NoSpace`] on a full disk, [`Error::Io`] when it cannot be written.
    pub fn put_aside(&self, body: &[u8]) -> Result<Aside, Error> {
        self.shared.shelf.put(body)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The thread holds a sender of its own, so it is told; it has ended by itself only after a panic.
        drop(self.sender.send(Message::Close));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the ledger's keeper panicked; its spool is written at the next start");
        }
    }
}
