//! What the provider tells about itself: one entry per request, and the bill. Plain data in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::closing::ClosingTally;
use crate::wire::{Dialect, Usage};

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Still in flight.
    Open,
    /// The whole answer was handed to the socket.
    Complete,
    /// The request was turned away.
    Refused,
    /// The provider broke it off, as its script says.
    Cut,
    /// The client went away first.
    ClientGone,
}

/// One request, as it arrived and as it was dealt with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The request's number, from 1, over all requests.
    pub number: u64,
    /// Unix time of arrival, in milliseconds.
    pub arrived_at_ms: u64,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header names in lower case with their values, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The key that came with it; empty when none did.
    pub key: String,
    /// The wire format, of model requests.
    pub dialect: Option<Dialect>,
    /// The model asked for.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Length of the body.
    pub body_bytes: u64,
    /// SHA-256 of the body, in hex.
    pub body_sha256: String,
    /// The scenario that answers.
    pub scenario: Option<String>,
    /// The turn of the scenario, from 1.
    pub step: Option<usize>,
    /// A request beside the conversation (a title); it moves no scenario on.
    pub background: bool,
    /// The status of the answer; 0 when no header was sent.
    pub status: u16,
    /// The fault that struck.
    pub fault: Option<String>,
    /// The window that refused it.
    pub window: Option<String>,
    /// That window's refusal was already known to this key, a closing's to anybody.
    pub into_closed_window: bool,
    /// How it ended.
    pub ended: Ended,
    /// What was billed for it.
    pub billed: Option<Usage>,
}

/// Requests and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Model requests, refused or not.
    pub requests: u64,
    /// Those that were answered, wholly or in part.
    pub answered: u64,
    /// Those that were refused.
    pub refused: u64,
    /// The tokens billed.
    pub tokens: Usage,
}

/// The provider's bill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    /// Everything.
    pub total: Tally,
    /// By key.
    pub keys: BTreeMap<String, Tally>,
    /// By scenario; background requests are under `background`.
    pub scenarios: BTreeMap<String, Tally>,
    /// Requests into a window whose closing was already known to the key.
    pub requests_into_closed_window: u64,
    /// The closings that have begun.
    #[serde(default)]
    pub closings: Vec<ClosingTally>,
    /// How many requests are being answered at this moment.
    #[serde(default)]
    pub in_flight: u64,
}
