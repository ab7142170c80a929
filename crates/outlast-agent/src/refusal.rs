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
        Some(429 | 403) | None if says(WINDOW) || names_a_limit(&text) => Class::WindowQuota,
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

/// Whether a sentence begins with "you've hit your … limit", of whatever window or model: "You've hit your Opus limit". What is
/// no window's limit is named, and words that nobody knows count only before a time to come back at.
fn names_a_limit(text: &str) -> bool {
    const BETWEEN_MAX: usize = 4;
    let text = text.replace('’', "'");
    let begins =
        ["you've hit your ", "you hit your ", "you have hit your ", "you've reached your ", "you have reached your "];
    let is_begin = |at: usize| {
        let before =
            text[..at].trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, ':' | ']' | ')' | ',' | '`'));
        // After nothing, a status, or a name: what is one of an error or has no words, and not a sentence about it.
        let is_name = before.ends_with([':', ']', ')'])
            && (["error", "fatal", "{"].iter().any(|name| before.contains(name)) || !before.contains(' '));
        let status = before.rsplit(' ').next().and_then(|word| word.parse::<u16>().ok());
        before.is_empty() || is_name || status.is_some_and(|status| (400..600).contains(&status))
    };
    begins.iter().flat_map(|begin| text.match_indices(begin)).filter(|(at, _)| is_begin(*at)).any(|(at, begin)| {
        let rest = &text[at + begin.len()..];
        let mut between = Vec::new();
        for word in rest.split_whitespace().take(BETWEEN_MAX + 1) {
            let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
            if bare.starts_with("limit") && bare.len() <= "limits".len() || word.starts_with("limit\"") {
                let is_told = rest.contains("reset") || rest.contains(" again ");
                return !between.iter().any(|word| OTHERS.contains(word))
                    && (is_told || between.iter().any(|word| WINDOWS.contains(word)));
            }
            // Another sentence has begun.
            if bare.len() < word.len() {
                return false;
            }
            between.push(bare);
        }
        false
    })
}

/// Words of a window, or of what has one.
const WINDOWS: &[&str] = &[
    "session", "hourly", "daily", "weekly", "monthly", "yearly", "annual", "opus", "sonnet", "haiku", "spend",
    "spending",
];
/// Words of limits that are over in a minute, or that no waiting ends.
const OTHERS: &[&str] = &[
    "rate",
    "minute",
    "concurrency",
    "concurrent",
    "request",
    "requests",
    "token",
    "tokens",
    "context",
    "output",
    "input",
    "length",
    "turn",
    "turns",
    "step",
    "steps",
    "tool",
    "size",
    "file",
    "upload",
    "memory",
    "disk",
    "storage",
    "time",
    "retry",
];

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
            (None, "You've hit your monthly limit · resets Dec 9 at 5pm (UTC)", Class::WindowQuota),
            (None, "You’ve reached your monthly limit · resets Dec 9", Class::WindowQuota),
            (None, "ERROR: You've hit your Opus limit · resets 5pm (UTC)", Class::WindowQuota),
            (None, "You've hit your Made-up Model limit · resets 5pm (UTC)", Class::WindowQuota),
            (None, "You've hit your org's monthly spend limit", Class::WindowQuota),
            (Some(429), r#"{"error":{"message":"You've hit your org's monthly spend limit."}}"#, Class::WindowQuota),
            (Some(403), "Error code: 403 - You've hit your org's monthly spend limit", Class::WindowQuota),
            (None, "API Error: 429 You've hit your Opus limit · resets 5pm (UTC)", Class::WindowQuota),
            (None, "The banner now reads: You've hit your Opus limit · resets 5pm (UTC)", Class::Unknown),
            (None, "You've hit your rate limit", Class::MinuteLimit),
            (Some(429), "You've reached your organization's concurrency limit, try again in 5s", Class::MinuteLimit),
            (Some(429), "You've reached your daily token limit per minute", Class::MinuteLimit),
            (None, "You've reached your upload limit", Class::Unknown),
            (None, "You've hit your stride. The monthly limit is shown again and resets", Class::Unknown),
            (None, "The page says you've hit your monthly limit, and when it resets", Class::Unknown),
            (None, "expected \"You've hit your Opus limit\"", Class::Unknown),
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
