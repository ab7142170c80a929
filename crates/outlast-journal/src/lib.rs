//! Durable records, their replay, snapshots, and the ledger of exchanges.
//!
//! One SQLite file holds the append-only records of an engine ([`Journal`]) and one row per exchange with a provider
//! ([`Ledger`]); the bodies of exchanges lie in pack files beside it, by hash. One thread writes, and everything that
//! waits for it at one moment shares one transaction and one fsync. [`JournalReader`] reads both from any process,
//! with or without an engine alive.
//!
//! This crate knows no policy: it never looks into a record's body and never decides what an entry means.

mod connection;
mod entry;
mod error;
mod fault;
mod journal;
mod ledger;
mod lock;
mod pending;
mod reader;
mod reserve;
mod schema;
mod snapshot;
mod writer;

pub use entry::Entry;
pub use error::Error;
pub use journal::Journal;
pub use ledger::{
    AnswerHead, Aside, BodyHash, Closing, ExchangeRow, Ledger, Opening, Outcome, Reckoning, Recovery, Selection, Spool,
    Totals, Unfinished, Usage,
};
pub use pending::Pending;
pub use reader::JournalReader;
pub use reserve::LEN as RESERVE_LEN;
pub use snapshot::Snapshot;
