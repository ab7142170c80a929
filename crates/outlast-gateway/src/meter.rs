//! Stage "meter": what an answer used, read from its bytes as they pass.
//!
//! What the provider does not say stays unknown: never zero, never a count of our own. Nothing here changes a byte.
//!
//! The accounting rules, each from faults seen in other gateways: (a) Anthropic's input excludes cache tokens, OpenAI's
//! and Gemini's include them, and here they are always apart; (b) usage in a stream is cumulative: a later value
//! replaces an earlier one; (c) the split of cache writes comes from the last usage that has it, the total minus the
//! split is priced as 5-minute writes; (d) an answer nobody waited for is read to its end; (e) a price not known is none.

mod anthropic;
mod gemini;
mod openai;

use std::sync::LazyLock;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use memchr::memmem::Finder;
use outlast_journal::Usage;
use serde_json::Value;

use crate::dialect::Dialect;
use crate::sse::{self, Scanner};

/// The longest answer in one JSON document that is kept for reading.
const DOCUMENT_BYTES_MAX: usize = 32 << 20;

/// What was read from an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) usage: Usage,
    /// Searches the provider ran for the answer, which are priced apart.
    pub(crate) web_searches: Option<u64>,
    /// The model that answered, as the provider names it.
    pub(crate) model: Option<String>,
    /// The service tier the provider says it billed.
    pub(crate) service_tier: Option<String>,
    /// The dialect's own end of an answer was seen.
    pub(crate) ended: bool,
    /// The type of an error inside an answer that began as a success.
    pub(crate) error: Option<String>,
    /// Cache was written without the provider saying for how long it lives.
    pub(crate) split_unknown: bool,
}

/// Reads usage from an answer's bytes.
#[derive(Debug)]
pub(crate) struct Meter {
    dialect: Dialect,
    form: Form,
    reading: Reading,
}

#[derive(Debug)]
enum Form {
    Events(Scanner),
    Document(Vec<u8>),
    /// Compressed although asked not to be, or too long: passed on unread.
    Unread,
}

impl Meter {
    /// A meter for an answer with these headers.
    pub(crate) fn new(dialect: Dialect, headers: &HeaderMap) -> Self {
        let plain = headers.get(CONTENT_ENCODING).is_none_or(|v| v.as_bytes().eq_ignore_ascii_case(b"identity"));
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |v| v.as_bytes());
        let form = if !plain {
            Form::Unread
        } else if kind.len() >= 17 && kind[..17].eq_ignore_ascii_case(b"text/event-stream") {
            Form::Events(Scanner::default())
        } else {
            Form::Document(Vec::new())
        };
        Self { dialect, form, reading: Reading::default() }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Self { dialect, form, reading } = self;
        match form {
            Form::Events(scanner) => scanner.feed(bytes, |event| read_event(*dialect, event, reading)),
            Form::Document(document) if document.is_empty() && looks_like_events(bytes) => {
                // Some providers and proxies label a stream as plain text or JSON.
                *form = Form::Events(Scanner::default());
                self.feed(bytes);
            }
            Form::Document(document) if document.len() + bytes.len() > DOCUMENT_BYTES_MAX => *form = Form::Unread,
            Form::Document(document) => document.extend_from_slice(bytes),
            Form::Unread => {}
        }
    }

    /// Whether the dialect's own end of the answer was seen.
    pub(crate) const fn ended(&self) -> bool {
        self.reading.ended
    }

    /// Whether the answer is a stream of events, which says itself when it ends.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self.form, Form::Events(_))
    }

    /// Takes the end of the body.
    pub(crate) fn finish(mut self) -> Reading {
        let Self { dialect, form, reading } = &mut self;
        match form {
            Form::Events(scanner) => scanner.finish(|event| read_event(*dialect, event, reading)),
            Form::Document(document) => read_document(*dialect, document, reading),
            Form::Unread => {}
        }
        self.reading
    }
}

fn looks_like_events(bytes: &[u8]) -> bool {
    [&b"data:"[..], b"event:", b": "].iter().any(|start| bytes.starts_with(start))
}

static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage"));

/// Whether `bytes` may hold a usage member; most events do not, and are not parsed.
fn mentions_usage(bytes: &[u8]) -> bool {
    USAGE.find(bytes).is_some()
}

fn read_event(dialect: Dialect, event: &[u8], reading: &mut Reading) {
    match dialect {
        Dialect::Anthropic => anthropic::event(event, reading),
        Dialect::Responses => openai::responses_event(event, reading),
        Dialect::Chat => openai::chat_event(event, reading),
        Dialect::Gemini => gemini::event(event, reading),
    }
}

fn read_document(dialect: Dialect, document: &[u8], reading: &mut Reading) {
    match dialect {
        Dialect::Anthropic => anthropic::document(document, reading),
        Dialect::Responses => openai::responses_document(document, reading),
        Dialect::Chat => openai::chat_document(document, reading),
        Dialect::Gemini => gemini::document(document, reading),
    }
}

/// Parses an event's data; `None` when it is no JSON of this shape.
fn parse<'a, T: serde::Deserialize<'a>>(data: &'a [u8]) -> Option<T> {
    serde_json::from_slice(data).ok()
}

/// No answer has as many tokens: what says so has not counted, and neither is it billed so.
const COUNT_MAX: u64 = 1 << 40;

/// A count of tokens at `path`; whole numbers only, written with or without a fraction. One beyond all reason is none.
fn count(value: &Value, path: &[&str]) -> Option<u64> {
    let found = path.iter().try_fold(value, |v, name| v.get(name))?;
    let count = found.as_u64().or_else(|| {
        let float = found.as_f64()?;
        (float >= 0.0 && float.fract() == 0.0 && float <= COUNT_MAX as f64).then_some(float as u64)
    });
    count.filter(|count| *count <= COUNT_MAX)
}

/// Replaces `slot` when there is something newer: usage in a stream is cumulative.
fn replace(slot: &mut Option<u64>, newer: Option<u64>) {
    if newer.is_some() {
        *slot = newer;
    }
}

/// The data of an event as one slice.
fn event_data(event: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    sse::data(event)
}

#[cfg(test)]
mod tests;
