//! What is known of a model request once it has been read: the question that the books answer.

use crate::provider::fault::InlineFault;
use crate::provider::log::{Ended, LogEntry};
use crate::provider::refusal::Refusal;
use crate::wire::{Dialect, Usage};

/// A model request that could be read and whose key is accepted.
#[derive(Debug)]
pub(super) struct Arrival {
    pub entry: LogEntry,
    pub dialect: Dialect,
    /// Tells this conversation's faults apart from those of others with the same script.
    pub conversation: String,
    /// The faults that the script puts on this turn.
    pub faults: Vec<InlineFault>,
    pub body: bytes::Bytes,
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Ruling {
    /// It is answered; the fault, if any, spoils the answer.
    Answer {
        number: u64,
        fault: Option<super::Fault>,
        /// Headers that tell how full the windows are.
        headroom: Vec<(String, String)>,
    },
    /// It is turned away.
    Refuse { refusal: Refusal },
}

/// How an answered request ended.
#[derive(Debug)]
pub(super) struct Settlement {
    pub number: u64,
    pub status: u16,
    pub ended: Ended,
    pub billed: Option<Usage>,
}
