//! What is known of an exchange: at its opening, at the head of its answer, at its end, and in the ledger.
//!
//! What is unknown is `None`, never zero: a total must be able to say that it is incomplete.

use outlast_core::{AccountId, AttemptId, Timestamp};
use serde::{Deserialize, Serialize};

use super::BodyHash;

/// What is known when a request goes out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The exchange's id, unique in the ledger.
    pub exchange: String,
    /// Whose it is; none for traffic that belongs to no plan.
    pub attempt: Option<AttemptId>,
    /// Which turn of the attempt, counted by the gateway.
    pub turn: u32,
    /// The wire format, such as `anthropic`.
    pub dialect: String,
    /// The model the request names.
    pub model: Option<String>,
    /// The account that pays.
    pub account: AccountId,
    /// When the request went out.
    pub started_at: Timestamp,
}

/// What is known when an answer begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerHead {
    /// The HTTP status.
    pub status: u16,
    /// When the answer began.
    pub first_byte_at: Timestamp,
    /// The headers worth keeping, as a JSON object.
    pub headers: String,
}

/// What is known at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The tokens the provider named.
    pub usage: Usage,
    /// The price in billionths of a US dollar, where the model's price is known.
    pub usd_nanos: Option<i64>,
    /// Whether any of the numbers is an estimate of ours rather than the provider's word.
    pub estimated: bool,
}

/// An exchange whose process ended before it did, as the spool has it.
#[derive(Debug, Clone, Copy)]
pub struct Unfinished<'a> {
    /// What was known when the request went out.
    pub opening: &'a Opening,
    /// How the answer began, if it did.
    pub head: Option<&'a AnswerHead>,
    /// As much of the answer as had passed.
    pub answer: &'a [u8],
}

/// What can be said of an exchange that nobody ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reckoning {
    /// How it ended, as far as its head tells.
    pub outcome: Outcome,
    /// The tokens that the provider had named by then.
    pub usage: Usage,
    /// The price in billionths of a US dollar, where tokens and the model's price are known.
    pub usd_nanos: Option<i64>,
    /// Whether more may be billed than the numbers say.
    pub estimated: bool,
}

impl Reckoning {
    /// That it broke off, and nothing else.
    pub const CUT: Self = Self { outcome: Outcome::Cut, usage: Usage::UNKNOWN, usd_nanos: None, estimated: false };
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The answer came whole and was passed on whole.
    Complete,
    /// The client left; the answer was read to its end all the same.
    ClientGone,
    /// The answer broke off, at the provider or because this process ended.
    Cut,
    /// The provider refused.
    Refused,
    /// No answer came.
    Error,
}

impl Outcome {
    const ALL: [Self; 5] = [Self::Complete, Self::ClientGone, Self::Cut, Self::Refused, Self::Error];

    /// The word used in the ledger and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientGone => "client_gone",
            Self::Cut => "cut",
            Self::Refused => "refused",
            Self::Error => "error",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// Tokens of one exchange. The kinds do not overlap, but for `reasoning`, which is part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens that no cache served or kept.
    pub input: Option<u64>,
    /// Input tokens written to a cache for five minutes.
    pub cache_write_5m: Option<u64>,
    /// Input tokens written to a cache for an hour.
    pub cache_write_1h: Option<u64>,
    /// Input tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// The part of the output that was reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        input: None,
        cache_write_5m: None,
        cache_write_1h: None,
        cache_read: None,
        output: None,
        reasoning: None,
    };

    /// The same without what no database can hold, which nobody has counted: one such number must not keep the row, and with
    /// it the next start of whoever finds it in the spool, from ever being.
    pub(super) fn storable(self) -> Self {
        let number = |count: Option<u64>| count.filter(|count| i64::try_from(*count).is_ok());
        Self {
            input: number(self.input),
            cache_write_5m: number(self.cache_write_5m),
            cache_write_1h: number(self.cache_write_1h),
            cache_read: number(self.cache_read),
            output: number(self.output),
            reasoning: number(self.reasoning),
        }
    }
}

/// One exchange as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeRow {
    /// The exchange's id.
    pub exchange: String,
    /// Whose it was.
    pub attempt: Option<AttemptId>,
    /// Which turn of the attempt.
    pub turn: u32,
    /// The wire format.
    pub dialect: String,
    /// The model the request named.
    pub model: Option<String>,
    /// The account that paid.
    pub account: AccountId,
    /// When the request went out.
    pub started_at: Timestamp,
    /// When the answer began; none if it never did.
    pub first_byte_at: Option<Timestamp>,
    /// When it ended; none if the process that saw it ended first.
    pub ended_at: Option<Timestamp>,
    /// The HTTP status; none if no answer came.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// The request's body; none if it was empty.
    pub request_hash: Option<BodyHash>,
    /// The answer's body; none if it was empty, or if a full disk kept it from being written whole.
    pub response_hash: Option<BodyHash>,
    /// Length of the request's body.
    pub request_bytes: u64,
    /// Length of the answer's body, as far as it passed.
    pub response_bytes: u64,
    /// Tokens.
    pub usage: Usage,
    /// Price in billionths of a US dollar.
    pub usd_nanos: Option<i64>,
    /// Whether any of the numbers is an estimate.
    pub estimated: bool,
    /// The headers kept of the answer, as a JSON object.
    pub headers: String,
}
