//! What an answer had used when the process that passed it on ended: read from the spool as the meter would have read it.
//!
//! An answer that says that it is whole is billed as it says; of one that broke off, more may be billed than it had
//! named by then, and of one that never began, nothing is known.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use outlast_journal::{AnswerHead, Outcome, Reckoning, Unfinished, Usage};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::meter::Meter;
use crate::price;
use crate::upstream::Upstream;

/// Reckons what an exchange came to that nobody ended; `upstreams` price it. Blocks while the price table is decoded.
pub fn reckon<'a>(upstreams: impl IntoIterator<Item = &'a Upstream>, unfinished: &Unfinished<'_>) -> Reckoning {
    let Unfinished { opening, head, answer } = *unfinished;
    let Some(head) = head else { return Reckoning::CUT };
    if !(200..300).contains(&head.status) {
        return Reckoning { outcome: Outcome::Refused, ..Reckoning::CUT };
    }
    let Some(dialect) = Dialect::ALL.into_iter().find(|dialect| dialect.as_str() == opening.dialect) else {
        return Reckoning::CUT;
    };
    let mut meter = Meter::new(dialect, &headers(head));
    meter.feed(answer);
    let is_stream = meter.is_stream();
    let reading = meter.finish();
    let usage = reading.usage;
    // A document that can be read is whole; a stream says itself where it ends.
    let whole = if is_stream { reading.ended && reading.error.is_none() } else { usage != Usage::UNKNOWN };
    let mut upstreams = upstreams.into_iter();
    let usd_nanos = upstreams.find(|upstream| upstream.account == opening.account).and_then(|upstream| {
        price::usd_nanos(upstream.provider, &upstream.base_url, opening.model.as_deref(), &reading, opening.started_at)
    });
    let estimated = reading.split_unknown || !whole && usage != Usage::UNKNOWN;
    Reckoning { outcome: Outcome::Cut, usage, usd_nanos, estimated }
}

/// The headers of an answer that say how its body is to be read.
fn headers(head: &AnswerHead) -> HeaderMap {
    let kept: Value = serde_json::from_str(&head.headers).unwrap_or_default();
    let one = |name: &HeaderName| {
        let value = kept.get(name.as_str())?;
        // A repeated one became an array.
        let value = value.as_str().or_else(|| value.get(0)?.as_str())?;
        HeaderValue::from_str(value).ok().map(|value| (name.clone(), value))
    };
    [CONTENT_TYPE, CONTENT_ENCODING].iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests;
