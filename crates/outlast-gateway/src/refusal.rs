//! What a refusal states: its kind and when to come back. Pure: text and headers in, facts out.
//!
//! A value that cannot be read counts as missing, so that no wait is ever derived from garbage.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};
use outlast_core::Timestamp;
use outlast_core::reset::{self, Said};

use crate::admission::RefusalKind;

/// Whether an answer of this status is put to the ruling of `Admission` instead of being passed on.
pub(crate) const fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 402 | 403 | 408 | 429 | 500..=599)
}

/// A first guess at what the refusal means.
pub(crate) fn kind(status: StatusCode, body: &[u8]) -> RefusalKind {
    let says = |words: &[&str]| words.iter().any(|w| memchr::memmem::find(body, w.as_bytes()).is_some());
    match status.as_u16() {
        402 => RefusalKind::Billing,
        // Anthropic's word for an empty balance comes as a broken request does.
        400 if says(&["credit balance"]) => RefusalKind::Billing,
        // `insufficient_quota` is OpenAI's name for an empty balance, not for a window that comes back.
        429 if says(&["insufficient_quota"]) => RefusalKind::Billing,
        429 => RefusalKind::Limit,
        // Kimi's billing-cycle and 5-hour limits arrive as 403.
        403 if says(&["usage limit", "quota", "rate_limit"]) => RefusalKind::Limit,
        401 | 403 => RefusalKind::Auth,
        503 | 529 => RefusalKind::Overload,
        _ => RefusalKind::Server,
    }
}

/// When the provider says to come back; never before it said so, at `said.at`.
///
/// In this order: `retry-after-ms`, `retry-after` (seconds, or a date measured against the answer's own `Date`, as
/// clocks differ), `anthropic-ratelimit-unified-reset`, what the body names or says ([`reset::stated`]), then
/// `x-ratelimit-reset-…` of what nothing is left of.
pub(crate) fn retry_at(headers: &HeaderMap, body: &[u8], said: Said<'_>) -> Option<Timestamp> {
    let stated = from_headers(headers, said.at)
        .or_else(|| reset::stated(&String::from_utf8_lossy(body), said))
        .or_else(|| used_up(headers, said.at))?;
    Some(stated.max(said.at))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

fn from_headers(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let text = |name| text(headers, name);
    let in_millis = || Some(now.plus(reset::seconds_of(text("retry-after-ms")?.parse::<f64>().ok()? / 1000.0)?));
    let after = || {
        let value = text("retry-after")?;
        if let Some(span) = reset::span(value) {
            return Some(now.plus(span));
        }
        let at = httpdate::parse_http_date(value).ok()?;
        let sent = text("date").and_then(|d| httpdate::parse_http_date(d).ok());
        match sent {
            Some(sent) => Some(now.plus(at.duration_since(sent).unwrap_or(Duration::ZERO))),
            None => timestamp(at),
        }
    };
    let unified = || reset::epoch(text("anthropic-ratelimit-unified-reset")?.parse::<f64>().ok()?);
    in_millis().or_else(after).or_else(unified)
}

/// OpenAI's minute limits: when what is used up is there again. Of two, the later.
fn used_up(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let of = |what: &str| {
        let is_gone = text(headers, &format!("x-ratelimit-remaining-{what}"))?.parse::<f64>().ok()? <= 0.0;
        let span = reset::span(text(headers, &format!("x-ratelimit-reset-{what}"))?)?;
        is_gone.then(|| now.plus(span))
    };
    of("requests").max(of("tokens"))
}

fn timestamp(at: SystemTime) -> Option<Timestamp> {
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::EPOCH.plus(since))
}

#[cfg(test)]
mod tests;
