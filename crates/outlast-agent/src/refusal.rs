//! What a CLI's report of a failed request means, from the provider's status first and the CLI's words second.
//!
//! The gateway sees the real answer and knows better; this is for a failure that reached the agent all the same.

use outlast_core::Class;

use crate::report::reported;
use crate::{broken, network};

/// The class of a failed request as a CLI reported it.
pub fn classify(status: Option<u16>, text: &str) -> Class {
    let is_broken = broken::says_so(text);
    let text = text.to_lowercase();
    let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    let status = status.or_else(|| status_in(&text));
    // Two kinds of 400 have a remedy of their own, and CLIs report them without the status.
    if says(CONTEXT) {
        return Class::ContextOverflow;
    }
    if is_broken {
        return Class::CorruptSession;
    }
    match status {
        Some(402) => Class::Billing,
        Some(429 | 400 | 403) | None if says(BILLING) => Class::Billing,
        // Some providers answer an exhausted window with 403 instead of 429.
        Some(429 | 403) | None if says(WINDOW) => Class::WindowQuota,
        Some(401 | 403) => Class::Auth,
        Some(429) => Class::MinuteLimit,
        Some(500..=599) => Class::Overload,
        Some(408) => Class::Network,
        Some(_) => Class::Unknown,
        None => match in_words(&says) {
            Class::Unknown if network::is_cut(&text) => Class::Network,
            class => class,
        },
    }
}

/// Whether a text is nothing but a provider's word that a window or an account is used up: one short line, or a few that begin
/// as a report does. An agent that writes of limits writes more than that.
pub(crate) fn is_limit_alone(text: &str) -> bool {
    const LENGTH_MAX: usize = 300;
    const LINES_MAX: usize = 4;
    let is_limit = |class| matches!(class, Class::WindowQuota | Class::Billing);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (Some(first), more) = (lines.next(), lines.count()) else { return false };
    match more {
        0 => first.len() <= LENGTH_MAX && is_limit(classify(None, first)),
        more => more < LINES_MAX && text.len() <= 2 * LENGTH_MAX && reported(first).is_some_and(is_limit),
    }
}

/// The class of a failure that came without a status.
fn in_words(says: &dyn Fn(&[&str]) -> bool) -> Class {
    let table: [(&[&str], Class); 4] = [
        (&["overloaded", "no capacity"], Class::Overload),
        (&["rate limit", "rate_limit", "too many requests", "throttl", "resource_exhausted"], Class::MinuteLimit),
        (&["invalid api key", "failed to authenticate", "unauthorized"], Class::Auth),
        (NETWORK, Class::Network),
    ];
    table.iter().find(|(needles, _)| says(needles)).map_or(Class::Unknown, |(_, class)| *class)
}

const CONTEXT: &[&str] = &[
    "prompt is too long",
    "context_length_exceeded",
    "exceed context limit",
    "context window",
    "maximum context length",
    "prompt exceeds max length",
    "range of input length",
    "input token count",
];
const BILLING: &[&str] = &[
    "insufficient_quota",
    "exceeded your current quota",
    "credit balance",
    "insufficient balance",
    "requires more credits",
    "out of credits",
];
const WINDOW: &[&str] = &[
    "usage limit",
    "out of extra usage",
    "hour limit",
    "limits will reset",
    "access resets",
    "límite de uso",
    "使用上限",
    "usage_limit_reached",
    "billing cycle",
    "weekly limit",
    "session limit",
    "hit your limit",
    "exhausted your capacity",
    "quota_exhausted",
    "allocated quota exceeded",
    "requestsperday",
];
const NETWORK: &[&str] = &[
    "connection",
    "econn",
    "enotfound",
    "eai_again",
    "etimedout",
    "ehostunreach",
    "enetunreach",
    "unable to connect",
    "terminated",
    "fetch failed",
    "socket",
    "stream disconnected",
    "network",
    "timed out",
    "timeout",
];

/// The HTTP status a CLI wrote into its words, as in `API Error: 529 …` or `status 429`.
fn status_in(text: &str) -> Option<u16> {
    let markers = ["api error: ", "status code ", "status: ", "status ", "http ", "error ", "rejected ("];
    markers.iter().find_map(|marker| {
        text.match_indices(marker).find_map(|(at, _)| {
            let digits = text.get(at + marker.len()..at + marker.len() + 3)?;
            let next = text[at + marker.len() + 3..].chars().next();
            let status: u16 = if digits.bytes().all(|b| b.is_ascii_digit()) {
                digits.parse().ok()?
            } else {
                return None;
            };
            (!next.is_some_and(|c| c.is_ascii_digit()) && (400..600).contains(&status)).then_some(status)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let table = [
            (Some(429), "made-up refusal", Class::MinuteLimit),
            (Some(429), "You exceeded your current quota", Class::Billing),
            (Some(429), "The usage limit has been reached", Class::WindowQuota),
            (Some(403), "usage limit for this billing cycle", Class::WindowQuota),
            (Some(403), "not allowed", Class::Auth),
            (Some(401), "", Class::Auth),
            (Some(402), "Insufficient Balance", Class::Billing),
            (Some(402), "This request requires more credits, or fewer max_tokens.", Class::Billing),
            (None, "Your workspace is out of credits. Add credits to continue.", Class::Billing),
            (
                None,
                "You've hit your usage limit. Visit https://x.example/usage to purchase more credits or try again at Dec 4th, \
                 2026 12:04 AM.",
                Class::WindowQuota,
            ),
            (None, "You're out of extra usage · resets 9am (UTC)", Class::WindowQuota),
            (Some(529), "", Class::Overload),
            (Some(500), "", Class::Overload),
            (Some(400), "prompt is too long: 3 tokens > 2 maximum", Class::ContextOverflow),
            (Some(400), "tool_use ids were found without `tool_result` blocks", Class::CorruptSession),
            (Some(400), "made-up refusal", Class::Unknown),
            (None, "No conversation found with session ID: x", Class::CorruptSession),
            (None, "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found", Class::CorruptSession),
            (
                None,
                "Error: thread/resume: thread/resume failed: no rollout found for thread id 01a22ab2 (code -32600)",
                Class::CorruptSession,
            ),
            (None, "[API Error: 529 overloaded]", Class::Overload),
            (None, "API Error: Request rejected (429) · slow down", Class::MinuteLimit),
            (None, "[API Error: terminated]", Class::Network),
            (None, "Unable to connect to API (ConnectionRefused)", Class::Network),
            (None, "exceeded retry limit, last status: 429 Too Many Requests", Class::MinuteLimit),
            (None, "I stopped after error 4290", Class::Unknown),
        ];
        for (status, text, class) in table {
            assert_eq!(classify(status, text), class, "{status:?} {text:?}");
        }
    }
}
