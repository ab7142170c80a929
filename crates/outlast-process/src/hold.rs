//! What a program hears while its request waits: nothing at all, or a preamble and keep-alives in its own format.
//!
//! The bytes come with the profile; nothing here knows a dialect.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long one kind of client may be kept waiting, and what is said meanwhile.
///
/// After a preamble the status is spent: an upstream answer other than 200 then ends in a cut connection, which is what
/// the client would see of a provider that broke off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldProfile {
    /// Without an answer's head by then, a 200 with the preamble is sent; `None` holds without a byte for as long as it takes.
    pub headers_wait: Option<Duration>,
    /// Sent once, after the event-stream headers.
    pub preamble: String,
    /// Sent every [`Self::period`] until the answer's head is there (or all of it, with [`Self::buffer_whole`]).
    pub keep_alive: String,
    /// Between keep-alives.
    pub period: Duration,
    /// A request is for an event stream, and so may be given a preamble, when its path, query or body contains one of these.
    pub stream_marks: Vec<String>,
    /// The client dies of a cut answer: it passes only once it is whole, and one that broke off is asked for again.
    pub buffer_whole: bool,
}

impl HoldProfile {
    /// Checks that the parts fit together; the fault as text otherwise.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.headers_wait.is_none() {
            return Ok(());
        }
        if self.period < Duration::from_millis(10) {
            return Err(format!("hold profile: a keep-alive every {:?} is too often", self.period));
        }
        if self.keep_alive.is_empty() || self.stream_marks.is_empty() {
            return Err("hold profile: headers_wait needs keep_alive and stream_marks".to_owned());
        }
        Ok(())
    }

    /// Whether a request with this path and body may be answered with a preamble.
    pub(crate) fn speaks_to(&self, path_and_query: &str, body: &[u8]) -> bool {
        self.headers_wait.is_some()
            && self.stream_marks.iter().any(|mark| path_and_query.contains(mark) || contains(body, mark.as_bytes()))
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && haystack.windows(needle.len()).any(|window| window == needle)
}
