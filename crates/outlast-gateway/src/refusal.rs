//! What a refusal states: its kind and when to come back. Pure: text and headers in, facts out.
//!
//! Only what the provider states in a structured place is read; a sentence is never parsed for a time here. A value
//! that cannot be read counts as missing, so that no wait is ever derived from garbage.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};
use outlast_core::Timestamp;
use serde_json::Value;

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

/// When the provider says to come back; never before `now`.
///
/// In this order: `retry-after-ms`, `retry-after` (seconds, or a date measured against the answer's own `Date`, as
/// clocks differ), `anthropic-ratelimit-unified-reset`, then the body's `resets_in_seconds` or `resets_at` (codex) and
/// `RetryInfo.retryDelay` (Gemini).
pub(crate) fn retry_at(headers: &HeaderMap, body: &[u8], now: Timestamp) -> Option<Timestamp> {
    let stated = from_headers(headers, now).or_else(|| from_body(body, now))?;
    Some(stated.max(now))
}

fn from_headers(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let in_millis = || Some(now.plus(duration(text("retry-after-ms")?.parse::<f64>().ok()? / 1000.0)?));
    let after = || {
        let value = text("retry-after")?;
        if let Ok(seconds) = value.parse::<f64>() {
            return Some(now.plus(duration(seconds)?));
        }
        let at = httpdate::parse_http_date(value).ok()?;
        let sent = text("date").and_then(|d| httpdate::parse_http_date(d).ok());
        match sent {
            Some(sent) => Some(now.plus(at.duration_since(sent).unwrap_or(Duration::ZERO))),
            None => timestamp(at),
        }
    };
    let unified = || epoch(text("anthropic-ratelimit-unified-reset")?.parse::<f64>().ok()?);
    in_millis().or_else(after).or_else(unified)
}

fn from_body(body: &[u8], now: Timestamp) -> Option<Timestamp> {
    let parsed: Value = serde_json::from_slice(body).ok()?;
    // A Gemini stream answers an error as an array of one.
    let error = parsed.get("error").or_else(|| parsed.get(0)?.get("error"))?;
    let number = |name: &str| error.get(name).and_then(Value::as_f64);
    // The relative value needs no clock of ours to agree with theirs.
    let codex =
        || number("resets_in_seconds").and_then(duration).map(|d| now.plus(d)).or_else(|| epoch(number("resets_at")?));
    let gemini = || {
        let details = error.get("details")?.as_array()?;
        let delay = details.iter().find_map(|d| d.get("retryDelay")?.as_str())?;
        Some(now.plus(duration(delay.strip_suffix('s')?.parse().ok()?)?))
    };
    codex().or_else(gemini)
}

/// Seconds as a duration; `None` for what is no time to wait: negative, not a number, beyond a year.
fn duration(seconds: f64) -> Option<Duration> {
    const YEAR_SECONDS: f64 = 366.0 * 86_400.0;
    (0.0..=YEAR_SECONDS).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// An instant given as seconds, or as milliseconds, since the Unix epoch.
fn epoch(value: f64) -> Option<Timestamp> {
    // Past this the number can only be milliseconds: as seconds it would be the year 5138.
    const SECONDS_MAX: f64 = 1e11;
    if !(1.0..1e15).contains(&value) {
        return None;
    }
    let millis = if value < SECONDS_MAX { value * 1000.0 } else { value };
    Some(Timestamp::from_millis(millis as i64))
}

fn timestamp(at: SystemTime) -> Option<Timestamp> {
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::EPOCH.plus(since))
}

#[cfg(test)]
mod tests;
