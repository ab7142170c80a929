//! Reports of failed requests among the lines that a program prints: which line is nothing but one.
//!
//! Programs that are no known CLI, and CLIs in their plain text mode, say what their provider told them in one line of text.
//! An agent that writes of limits uses the same words, so a line counts only where it begins as such a report does, is
//! short, and says something that a provider says of an account or a conversation. A tool of the agent's may fail with
//! "connection refused" or "500" as well: what any server may say is no report of the model's.

use outlast_core::Class;
use serde_json::Value;

use crate::refusal::classify;
use crate::{broken, network, preface};

/// Longest line that is a report: providers' sentences are short.
const LENGTH_MAX: usize = 400;
/// Longest that is one as JSON.
const JSON_LENGTH_MAX: usize = 4_000;

/// How a report begins, whoever prints it: with a word for a failure…
const MARKERS: &[&str] = &[
    "provider.",
    "request failed",
    "request rejected",
    "an error occurred (",
    "http ",
    "http/",
    "status ",
    "exceeded retry limit",
    "stream disconnected",
    "stream error",
];

/// … by itself, or before what went wrong, and not before the name of a test or a file …
const WORDS: &[&str] = &[
    "error",
    "api error",
    "apierror",
    "fatal",
    "fatal error",
    "llm error",
    "provider error",
    "llm provider error",
    "agent error",
    "model error",
    "request error",
    "stream error",
    "streaming error",
    "network error",
    "connection error",
    "unexpected error",
    "unhandled error",
    "domexception",
];

/// … or as the sentences of providers and CLIs themselves do.
const SENTENCES: &[&str] = &[
    "you've hit your",
    "you’ve hit your",
    "you hit your",
    "you have hit your",
    "you've reached your",
    "you’ve reached your",
    "you have reached your",
    "you have exhausted your",
    "you exceeded your current quota",
    "you've run out of",
    "you're out of",
    "you’re out of",
    "your workspace is out of credits",
    "claude usage limit reached",
    "claude ai usage limit reached",
    "5-hour limit reached",
    "session limit reached",
    "weekly limit reached",
    "usage limit reached for",
    "limits will reset at",
    "access resets at",
    "credit balance",
    "your credit balance",
    "insufficient balance",
    "connection reset",
    "read econnreset",
    "econnreset",
    "socket hang up",
    "our servers are currently overloaded",
    "no capacity available",
    "free allocated quota exceeded",
    "allocated quota exceeded",
    "rate limit is exceeded",
    "rate limit reached",
    "rate limit exceeded",
    "too many requests",
    "throttlingexception",
    "prompt is too long",
    "failed to authenticate",
    "invalid api key",
];

/// The class of a line that is nothing but the report of a failed request; nothing for any other line.
pub(crate) fn reported(line: &str) -> Option<Class> {
    as_report(line, LENGTH_MAX)
}

fn as_report(line: &str, length_max: usize) -> Option<Class> {
    let text = plain(line);
    let text = text.trim();
    if text.starts_with('{') && text.len() <= JSON_LENGTH_MAX {
        return body(text);
    }
    let bare = text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    // A status is followed by the body that came with it.
    let length_max = if text.contains('{') && status_of(&bare).is_some() { JSON_LENGTH_MAX } else { length_max };
    if text.len() > length_max || text.contains('\n') {
        return None;
    }
    as_it_stands(&bare).or_else(|| as_it_stands(preface::without(&bare)?))
}

/// The class of a line that begins as a report does.
fn as_it_stands(bare: &str) -> Option<Class> {
    let is_one = begins_as_one(bare) || broken::begins_as_one(bare) || network::begins_as_one(bare);
    is_one.then(|| of_a_provider(status_of(bare), bare)).flatten()
}

/// How many lines a report is broken into at most by those that print to a terminal's width.
const BROKEN_INTO_MAX: usize = 8;
/// Shortest of those lines but the last: who breaks lines fills them, and breaks none that ends by itself.
const BROKEN_LENGTH_MIN: usize = 56;
/// Longest report of several lines.
const BROKEN_TEXT_MAX: usize = 1_200;

/// How much may stand behind a report that a program has ended by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// What says where it came from, how the program ends, and what people may do: one that claims to be done has gone on.
    Closing,
    /// A few lines of anything but another error: it did end badly.
    Little,
}

/// How many lines may stand behind a report that say something else.
const BEHIND_MAX: usize = 4;
/// How many behind a connection that broke: it may have been made again.
pub(crate) const BEHIND_A_CUT_MAX: usize = 1;
/// How far back a report is looked for.
const BACK_MAX: usize = 60;

/// The report that a text ends with, broken into lines or not.
pub(crate) fn last_report(text: &str, behind: Behind) -> Option<(Class, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let most = if behind == Behind::Little { BEHIND_MAX } else { 0 };
    let mut others = 0;
    for end in (1..=lines.len()).rev().take(BACK_MAX) {
        let last = lines[end - 1];
        if is_advice(last.trim()) {
            continue;
        }
        if let Some((class, report)) = ends_with_one(&lines[..end]) {
            let is_behind = class == Class::Network && others > BEHIND_A_CUT_MAX;
            let advice = lines[end..].iter().copied().take_while(|line| is_advice(line.trim()));
            return (!is_behind)
                .then(|| (class, std::iter::once(&*report).chain(advice).collect::<Vec<_>>().join("\n")));
        }
        if says_no_more(last) {
            continue;
        }
        others += 1;
        // What it names itself is what it ended by.
        if others > most || names_an_error(last) {
            return None;
        }
    }
    None
}

/// Whether a line behind a report says nothing else.
pub(crate) fn says_no_more(line: &str) -> bool {
    preface::is_trace(line) || preface::is_closing(line)
}

fn names_an_error(line: &str) -> bool {
    let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    begins_as_one(&bare) || preface::without(&bare).is_some_and(begins_as_one)
}

/// The report that is the last of these lines, or the one before where the last says until when; broken into lines or not.
fn ends_with_one(lines: &[&str]) -> Option<(Class, String)> {
    let (last, before) = lines.split_last()?;
    let last = last.trim();
    if let Some(class) = reported(last) {
        return Some((class, last.to_owned()));
    }
    if let Some(line) = before.last().filter(|_| is_about_to_retry(last) || last.to_lowercase().contains("reset"))
        && let Some(class) = reported(line)
    {
        return Some((class, format!("{}\n{last}", line.trim())));
    }
    let is_full =
        |line: &&&str| line.trim().chars().count() >= BROKEN_LENGTH_MIN && !line.ends_with(['.', '!', '?', '}']);
    let full = before.iter().rev().take(BROKEN_INTO_MAX - 1).take_while(is_full).count();
    (1..=full).find_map(|lines| {
        let whole =
            before[before.len() - lines..].iter().copied().chain([last]).map(str::trim).collect::<Vec<_>>().join(" ");
        Some((as_report(&whole, BROKEN_TEXT_MAX)?, whole))
    })
}

/// Whether a line tells people what they may do, after a report: which it is no part of.
fn is_advice(line: &str) -> bool {
    const ADVICE: &[&str] =
        &["if this persists", "please do not share", "/upgrade", "/login", "see log:", "for more information"];
    let line = line.to_lowercase();
    line.len() <= LENGTH_MAX && ADVICE.iter().any(|beginning| line.starts_with(beginning))
}

/// The last line of a text that holds anything.
pub(crate) fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty())
}

/// Whether it tells of nothing but that its request is sent again: it says so between two reports.
pub(crate) fn is_about_to_retry(line: &str) -> bool {
    let text = line.to_lowercase();
    text.len() <= LENGTH_MAX
        && ["retry", "waiting", "backoff", "backing off", "try again"].iter().any(|w| text.contains(w))
}

/// Whether a line says that it waits for what nobody will type.
pub(crate) fn waits_for_input(line: &str) -> bool {
    let text = plain(line).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let names_it = says(&["stdin", "standard input"]) && says(&["reading", "waiting", "read from", "pipe", "expect"]);
    text.len() <= LENGTH_MAX
        && (names_it || says(&["waiting for input", "waiting for user input", "press any key", "press enter to"]))
}

/// A provider's error as its body has it.
fn body(text: &str) -> Option<Class> {
    let value: Value = serde_json::from_str(text).ok()?;
    let error = value.get("error");
    // A line of a log, whose level is a word or, in some, a number.
    let is_bad = |level: &Value| {
        level.as_str().is_some_and(|level| ["error", "fatal", "critical"].contains(&&*level.to_lowercase()))
            || level.as_u64().is_some_and(|level| level >= 50)
    };
    if ["level", "severity"].iter().any(|key| value.get(key).is_some_and(is_bad)) {
        let said = ["error", "err", "msg", "message"].iter().filter_map(|key| value.get(key)?.as_str());
        return said.filter(|said| !said.trim_start().starts_with('{')).find_map(reported);
    }
    if error.is_none() && value.get("type").and_then(Value::as_str) != Some("error") {
        return None;
    }
    let status = |of: &Value| ["status", "code", "status_code"].iter().find_map(|name| of.get(name)?.as_u64());
    let status = error.and_then(status).or_else(|| status(&value)).and_then(|status| u16::try_from(status).ok());
    of_a_provider(status.filter(|status| (400..600).contains(status)), &text.to_lowercase())
}

fn begins_as_one(bare: &str) -> bool {
    if MARKERS.iter().chain(SENTENCES).any(|beginning| bare.starts_with(beginning)) || status_first(bare).is_some() {
        return true;
    }
    let names_it =
        |rest: &str| rest.starts_with([':', '(', '[']) || rest.starts_with("code") || status_first(rest).is_some();
    if WORDS.iter().any(|word| bare.strip_prefix(word).is_some_and(|rest| names_it(rest.trim_start()))) {
        return true;
    }
    // `ThrottlingException: …`, `rate_limit_error: …`, `google.api_core.exceptions.ResourceExhausted: 429 …`.
    let name = bare.split([':', '(']).next().unwrap_or_default();
    let is_name = name.len() < bare.len() && ["exception", "error", "exhausted"].iter().any(|end| name.ends_with(end));
    is_name && !name.contains(['/', ' '])
}

/// The status that a report begins with, after what it calls itself: `Error code: 403 - You've reached …`.
fn status_of(bare: &str) -> Option<u16> {
    const NAMES: [&str; 11] =
        ["llm", "provider", "api", "error", "code", "status", "http", "fatal", "request", "failed", "rejected"];
    let mut rest = bare.split_once(": ").filter(|(name, _)| !name.contains(' ')).map_or(bare, |(_, rest)| rest);
    loop {
        rest = rest.trim_start_matches([' ', ':', '-', '(']);
        match NAMES.iter().find_map(|name| rest.strip_prefix(name)) {
            Some(after) => rest = after,
            None => return status_first(rest),
        }
    }
}

/// The status that a line begins with, as in `403 You've reached …`.
fn status_first(bare: &str) -> Option<u16> {
    let digits = bare.get(..3)?;
    let status = digits.parse().ok().filter(|status| (400..600).contains(status))?;
    bare[3..].starts_with([' ', ':', ')', ',']).then_some(status)
}

/// The class of a report, where only a model's provider can have said so.
fn of_a_provider(status: Option<u16>, text: &str) -> Option<Class> {
    let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    let class = classify(status, text);
    let is_theirs = match class {
        Class::WindowQuota | Class::Billing | Class::ContextOverflow | Class::CorruptSession => true,
        // An identifier of the code that is worked on may have it in its name.
        Class::MinuteLimit => status == Some(429) || says(MINUTE),
        Class::Overload => says(&["overloaded", "no capacity", "api error", "529", "serviceunavailableexception"]),
        Class::Network => {
            says(&["mid-response", "stream disconnected", "unable to connect to api", "api error"])
                || says(&["apiconnection", "api connection", "apitimeout", "api timeout"])
                || network::broke(text)
        }
        Class::Auth => says(&["api key", "api-key", "authenticat", "oauth", "/login", "api error"]),
        _ => false,
    };
    is_theirs.then_some(class)
}

/// What providers call a limit per minute.
const MINUTE: &[&str] = &[
    "rate limit",
    "rate_limit_error",
    "rate_limit_exceeded",
    "rate_limit_reached",
    "too many requests",
    "throttl",
    "resource_exhausted",
    "status: 429",
    "status 429",
    "(429)",
];

/// A line without what colours it.
pub(crate) fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = &after[end..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nothing_but_a_report() {
        for (line, class) in [
            ("ThrottlingException: Too many tokens, please wait before trying again.", Class::MinuteLimit),
            (
                "An error occurred (ThrottlingException) when calling the InvokeModel operation: Too many requests",
                Class::MinuteLimit,
            ),
            ("403 You've reached your usage limit for this billing cycle.", Class::WindowQuota),
            ("Error code: 403 - You've reached your usage limit for this billing cycle.", Class::WindowQuota),
            ("ERROR: You've hit your usage limit or try again at Apr 16th, 2026 12:04 AM.", Class::WindowQuota),
            ("\u{1b}[31m✗ You've hit your session limit · resets 12:50am (Asia/Dhaka)\u{1b}[0m", Class::WindowQuota),
            ("Claude AI usage limit reached|1762952400", Class::WindowQuota),
            ("You've hit your monthly limit · resets Dec 9 at 5pm (UTC)", Class::WindowQuota),
            ("You have hit your org's monthly spend limit", Class::WindowQuota),
            ("You're out of extra usage · resets 9am (UTC)", Class::WindowQuota),
            ("Your workspace is out of credits. Add credits to continue.", Class::Billing),
            (
                "ERROR: You've hit your usage limit. Visit https://x.example/usage to purchase more credits or try again at \
                 Dec 4th, 2026 12:04 AM.",
                Class::WindowQuota,
            ),
            ("5-hour limit reached ∙ resets 2am", Class::WindowQuota),
            ("Connection closed mid-response", Class::Network),
            ("API Error: Connection error.", Class::Network),
            ("socket hang up", Class::Network),
            ("Error: socket hang up", Class::Network),
            ("FetchError: request to https://api.example/v1/messages failed, reason: socket hang up", Class::Network),
            ("Error: read ECONNRESET", Class::Network),
            ("stream error: stream disconnected before completion: error sending request", Class::Network),
            ("ERROR: stream error: stream disconnected before completion", Class::Network),
            ("TypeError: terminated", Class::Network),
            ("Error: getaddrinfo ENOTFOUND api.anthropic.com", Class::Network),
            (
                "FetchError: request to https://api.openai.com/v1/responses failed, reason: connect ETIMEDOUT",
                Class::Network,
            ),
            ("Error: connect ECONNREFUSED api.anthropic.com:443", Class::Network),
            ("openai.APIConnectionError: Connection error.", Class::Network),
            ("APITimeoutError: Request timed out.", Class::Network),
            ("httpx.RemoteProtocolError: peer closed connection without sending complete message body", Class::Network),
            ("LLM provider error: 403 You've reached your usage limit for this billing cycle.", Class::WindowQuota),
            ("LLM provider error: Error code: 429 - {'error': {'message': 'slow down'}}", Class::MinuteLimit),
            ("API Error (Connection error.)", Class::Network),
            ("API Error: Request rejected (429) · slow down", Class::MinuteLimit),
            ("Error 429: slow down", Class::MinuteLimit),
            ("429 Too Many Requests", Class::MinuteLimit),
            ("rate_limit_error: slow down", Class::MinuteLimit),
            ("google.api_core.exceptions.ResourceExhausted: 429 slow down", Class::MinuteLimit),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Class::Overload),
            (r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#, Class::MinuteLimit),
            ("Credit balance is too low", Class::Billing),
            ("402 Insufficient Balance", Class::Billing),
            ("Invalid API key · Please run /login", Class::Auth),
            ("Error: 401 authentication_error: invalid x-api-key", Class::Auth),
            ("prompt is too long: 3 tokens > 2 maximum", Class::ContextOverflow),
        ] {
            assert_eq!(reported(line), Some(class), "{line}");
        }
    }

    #[test]
    fn a01_a_report_is_one_however_its_lines_are_broken_and_whatever_is_advised_after_it() {
        for text in [
            "editing a.py\nLLM provider error: 403 You've reached your usage limit for this billing cycle.\n",
            "editing a.py\nLLM provider error: Error code: 403 - {'error': {'message': \"You've reached\nyour usage limit for this \
             billing cycle. Your quota will be refreshed in the next\ncycle.\", 'type': 'access_terminated_error'}}\n",
            "LLM provider error: 403 You've reached your usage limit for this billing cycle.\n\nIf this persists, run kimi export \
             and send the exported data to support for assistance.\nPlease do not share the exported file publicly.\n",
            "You've hit your limit · resets 5pm (UTC)\n/upgrade to increase your usage limit.\n",
        ] {
            assert_eq!(last_report(text, Behind::Closing).map(|(class, _)| class), Some(Class::WindowQuota), "{text}");
        }
    }

    #[test]
    fn a01_a_report_in_a_log_is_one() {
        for (line, class) in [
            ("level=error msg=\"API Error: 529 Overloaded\"", Class::Overload),
            (r#"{"level":"error","time":1764576000,"msg":"API Error: 529 Overloaded"}"#, Class::Overload),
            (r#"{"level":50,"msg":"You've hit your limit · resets 5pm (UTC)"}"#, Class::WindowQuota),
            ("[2026-12-01 08:00:00] [ERROR] You've hit your usage limit.", Class::WindowQuota),
            ("2026-12-01 08:00:00,123 - openai._base_client - ERROR - Error code: 429 - slow down", Class::MinuteLimit),
        ] {
            assert_eq!(reported(line), Some(class), "{line}");
        }
    }

    #[test]
    fn what_an_agent_or_a_tool_of_it_says_is_none() {
        for line in [
            "usage limit reached, resets 5pm (UTC)",
            "I made the client wait after a 429 Too Many Requests.",
            "The message now reads: You've hit your usage limit.",
            "The banner now reads: You've hit your Opus limit · resets 5pm",
            "You've hit your monthly goal, and the limit is kept.",
            "You've reached your upload limit",
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
            "Error: getaddrinfo ENOTFOUND db.example.internal",
            "Error: connect ETIMEDOUT 10.0.0.7:5432",
            "Error: read ECONNRESET from redis at 127.0.0.1:6379",
            "Terminated",
            "the client must survive a socket hang up",
            "Error: read tcp 10.0.0.3:51234->10.0.0.7:5432: read: connection reset by peer",
            "Error: connection reset by 192.168.0.7",
            "redis: premature close of 10.0.0.7:6379",
            "syntax error: unexpected EOF while looking for matching `\"'",
            "unexpected EOF, expected `}`",
            "Premature close of the file was the cause.",
            "GOAWAY frames are answered now.",
            "Response stalled is what the page shows.",
            "TLS handshake tests pass.",
            "src/retry.rs:12: You've hit your usage limit",
            "Note: Premature close",
            "- `Connection closed mid-response` is retried now",
            "[x] the rate limit is kept",
            "sqlalchemy.exc.OperationalError: connection to server at \"localhost\" failed",
            "error: 500 Internal Server Error from http://localhost:3000",
            "npm error code E401 Unauthorized",
            "error: could not compile `client` due to 2 previous errors",
            "AssertionError: expected 403, found 200",
            "ERROR tests/test_rate_limit.py::test_waits",
            "ERROR the rate limit of the client is not set",
            "Error: tests/test_rate_limit.py: 1 failed",
            "404 tests passed",
            r#"{"result":"You've hit your limit"}"#,
            "",
        ] {
            assert_eq!(reported(line), None, "{line}");
        }
        assert_eq!(last_report("I have read the report of the limit.\nAll is done.\n", Behind::Closing), None);
        assert_eq!(reported(&format!("Error: rate limit {}", "x".repeat(LENGTH_MAX))), None);
    }
}
