//! Lines in which a program says that it asks its provider again since a limit holds, in whatever words.
//!
//! Such a line begins as a client's log does, names a limit, and says that something is sent again.

use outlast_core::Class;

use crate::preface;
use crate::refusal::classify;
use crate::report::{plain, reported};

/// Longest line that counts, as far as it is no body of an answer.
const LENGTH_MAX: usize = 400;

/// What a line says of a limit and of what is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// That it asks again since a limit holds.
    Again,
    /// That a limit holds.
    Limit,
    /// That it asks again, or waits.
    Retry,
    /// Nothing by itself: the rest of an answer's body, a line that is drawn.
    Nothing,
    /// Something else.
    Else,
}

/// What stands first where a client says that it asks again …
const RETRIES: &[&str] = &[
    "retry",
    "retries:",
    "retrying",
    "re-trying",
    "attempt",
    "try",
    "trying",
    "will retry",
    "will try again",
    "going to retry",
    "automatically retrying",
    "backoff",
    "back-off",
    "backing off",
    "wait",
    "waiting",
    "still waiting",
    "sleep",
    "sleeping",
    "pausing",
    "cooldown",
    "cooling down",
    "reconnecting",
    "resending",
    "next attempt",
    "next retry",
    "next try",
];
/// … and where it says what failed.
const FAILURES: &[&str] = &[
    "rate limit",
    "rate limited",
    "rate limiting",
    "rate limits",
    "rate-limit",
    "rate-limited",
    "ratelimit",
    "ratelimited",
    "ratelimiterror",
    "rate_limit",
    "rate_limited",
    "rate_limit_error",
    "rate_limit_exceeded",
    "too many requests",
    "throttled",
    "throttling",
    "throttlingexception",
    "quota",
    "usage limit",
    "limit",
    "429",
    "hit",
    "got",
    "received",
    "http",
    "http/1.1",
    "http/2",
    "httpx",
    "https",
    "status",
    "error",
    "fatal",
    "exception",
    "request",
    "api",
    "api error",
    "llm",
    "model",
    "call",
    "completion",
    "server",
    "provider",
    "upstream",
    "response",
    "failed",
    "failure",
    "temporary",
    "temporarily",
    "transient",
    "unexpected",
    "still",
];
/// What says that something is sent again, wherever it stands.
const SENT_AGAIN: &[&str] = &[
    "retry",
    "retries",
    "re-try",
    "attempt",
    "backoff",
    "back-off",
    "backing off",
    "waiting",
    "wait ",
    "sleeping",
    "sleep ",
    "try again",
    "trying again",
    "next try",
    "pausing",
    "cooldown",
    "cooling down",
    "resending",
    "reconnect",
];
/// What a client's own words have not: code, tests, and what people and agents say of their work …
const NO_LOG: &[&str] = &[
    "`",
    "==",
    "=>",
    "();",
    "def ",
    "fn ",
    "assert",
    " expect",
    "test",
    "src/",
    " i ",
    "i'm ",
    "i’m ",
    " we ",
    " should ",
    " now ",
    "passed",
    "fixed",
    "implemented",
    " added",
    " handled",
    " works",
    "listening",
];
/// … the names of files …
const FILES: &[&str] = &[".rs", ".py", ".ts", ".js", ".go", ".md", ".txt", ".toml", ".json"];
/// … and the marks of lists, changes and passed tests.
const MARKS: &[char] = &['+', '-', '*', '>', '#', '/', '|', '✓', '✔', '√'];

/// What a line of either output says.
pub(crate) fn told(line: &str) -> Told {
    let text = plain(line);
    if text.starts_with([' ', '\t', '"']) || !text.contains(char::is_alphanumeric) {
        return Told::Nothing;
    }
    if reported(line).is_some_and(Class::is_limit) {
        let again = text.to_lowercase();
        return if says(&again, SENT_AGAIN) || is_numbered(&again) { Told::Again } else { Told::Limit };
    }
    let lower = text.trim().to_lowercase();
    // A line of a log as an object: what it says and how often stands in its fields.
    let is_object =
        lower.starts_with('{') && ["\"level\"", "\"severity\"", "\"lvl\""].iter().any(|key| lower.contains(key));
    let own = match lower.find('{') {
        Some(0) if is_object => &*lower,
        Some(at) => &lower[..at],
        None => &*lower,
    };
    if own.len() > LENGTH_MAX || own.starts_with(MARKS) || says(own, NO_LOG) || names_a_file(own) {
        return Told::Else;
    }
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let said = without_names(preface::without(bare).unwrap_or(bare), bare);
    let begins = |words: &[&str]| words.iter().any(|word| begins_with(said, word));
    let is_retry = begins(RETRIES);
    // What stands in brackets may pass for a log's own.
    let is_numbered = is_numbered(bare) || is_numbered(said);
    if !(is_object || is_retry || begins(FAILURES) || is_numbered) {
        return Told::Else;
    }
    match (names_a_limit(&lower), says(&lower, SENT_AGAIN) || is_numbered) {
        (true, true) => Told::Again,
        (true, false) => Told::Limit,
        (false, true) if is_retry || is_object => Told::Retry,
        (false, _) => Told::Else,
    }
}

fn says(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Whether a text begins with a word, and not with a longer one or the name of something.
fn begins_with(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| {
        let mut rest = rest.chars();
        match rest.next() {
            None | Some(' ' | ':' | ',' | ';' | ')' | ']' | '#' | '!' | '…') => true,
            // The end of a sentence, and no file's or field's name.
            Some('.') => rest.next().is_none_or(|next| next == ' ' || next == '.'),
            _ => false,
        }
    })
}

/// Whether a text names a file of the work: `client.rs`, and no host such as `api.google.com`.
fn names_a_file(text: &str) -> bool {
    let ends = |(at, end): (usize, &str)| !text[at + end.len()..].starts_with(char::is_alphanumeric);
    FILES.iter().any(|end| text.match_indices(end).any(ends))
}

/// What is said after the names that a log puts before it without a space: `openai._base_client:retrying request to …`.
fn without_names<'a>(mut said: &'a str, line: &str) -> &'a str {
    let is_log = said.len() < line.len();
    let is_own = |name: &str| RETRIES.contains(&name) || FAILURES.contains(&name);
    while is_log
        && let Some((name, rest)) = said.split_once(':')
        && !is_own(name)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    {
        said = rest.trim_start_matches([':', ' ']);
    }
    said
}

/// Whether a text names a limit: by its status, or in words.
fn names_a_limit(text: &str) -> bool {
    let is_apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '.'));
    let is_status = |at: usize| {
        // The last of 429 steps is none.
        if ["/", "of"].iter().any(|before| text[..at].trim_end().ends_with(before)) {
            return false;
        }
        let after = text[at + 3..].strip_prefix('.').unwrap_or(&text[at + 3..]);
        is_apart(text[..at].chars().next_back()) && is_apart(after.chars().next())
    };
    text.match_indices("429").any(|(at, _)| is_status(at))
        || says(
            text,
            &[
                "rate-limited",
                "ratelimited",
                "ratelimiterror",
                "quota exceeded",
                "quota exhausted",
                "limit reached",
                "limit exceeded",
                "limit hit",
            ],
        )
        || classify(None, text).is_limit()
}

/// Whether a text begins with which of how many tries it is, and goes on with the limit at once: `7/10] 429 Too Many Requests`.
/// What is counted otherwise may be anything: steps of a build, requests of a load test.
fn is_numbered(text: &str) -> bool {
    let Some(end) = count(text) else { return false };
    let rest = text[end..].trim_start_matches(|c: char| !c.is_alphanumeric());
    rest.starts_with("429") || reported(rest).is_some_and(Class::is_limit)
}

/// Where the count ends that a text begins with: which of how many tries it is, in small numbers and in their order.
fn count(text: &str) -> Option<usize> {
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        Some((text[..end].parse::<u32>().ok().filter(|number| *number < 1000)?, end))
    };
    let (first, end) = number(text)?;
    let rest = text[end..].strip_prefix('/').or_else(|| text[end..].strip_prefix(" of "))?.trim_start();
    let (last, end) = number(rest)?;
    let is_apart = !rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == '/');
    (is_apart && first <= last).then(|| text.len() - rest.len() + end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked_again::AskedAgain;

    /// What a line comes to that is said forty times.
    fn times(line: &str) -> u32 {
        let mut again = AskedAgain::default();
        (0..40).for_each(|_| _ = again.note(line));
        again.times()
    }

    #[test]
    fn a13_a_retry_for_a_limit_is_one_in_whatever_words() {
        for line in [
            "attempt 7: 429 Too Many Requests, retrying in 3s",
            "Attempt 7/10 failed: 429",
            "Retry 3/10 after error: 429 {\"error\":{\"message\":\"slow down, `x` => assert\"}}",
            "Rate limited. Waiting 4 s before retry",
            "[12:03:11] WARN retrying (7/10) after 429",
            "Rate limited, retrying...",
            "\u{1b}[33m⚠ Rate limit hit, backing off for 12.5s\u{1b}[0m",
            "2026-12-01T08:00:00Z WARN llm: throttled, sleeping 8s",
            "WARN:my_agent.client:Retrying after 429 (attempt 4)",
            "Too many requests; waiting 30 seconds…",
            "Got 429 from the provider, trying again in 10 s",
            "received 429, backoff 2.0s",
            "HTTP 429 on try 4, retry-after: 30",
            "request failed with status 429, will retry in 2000ms",
            "Request failed (attempt 3 of 8): 429.",
            "[7/10] 429 Too Many Requests",
            "Retrying in 5 s: You've hit your session limit · resets 5pm (UTC)",
            "API rate-limited: cooling down for 60s",
            "Error: 429 Too Many Requests, retrying in 600 s",
            "level=warn msg=\"retrying after 429\" attempt=7",
            "{\"level\":\"warn\",\"msg\":\"retrying after 429\",\"attempt\":7}",
            "2026-12-01T08:00:00Z  WARN some_agent::client: retrying 3/10 after 429",
            "unexpected status 429 of generativelanguage.googleapis.com, retrying in 2s",
            "quota exceeded: next attempt in 1m",
        ] {
            assert_eq!(told(line), Told::Again, "{line}");
            assert_eq!(times(line), 40, "{line}");
        }
    }

    #[test]
    fn a13_what_an_agent_or_a_tool_of_it_says_of_limits_is_none() {
        for line in [
            "I made the client retry 3 times after a 429.",
            "I'm waiting for the rate limit before I retry.",
            "The client retries (3/10) after 429 Too Many Requests now.",
            "Next I will test that a 429 is retried in 3s",
            "Retry 3/10 after 429 is handled in client.rs",
            "Retrying after a 429 works now, up to attempt 10",
            "- `attempt 7: 429 Too Many Requests, retrying in 3s` is what the log says",
            "test retry_3_of_10_after_429 ... ok",
            "test rate_limit::retries_in_3s_after_429 ... ok",
            "retry_after_429_waits PASSED [ 30%]",
            "tests/test_rate_limit.py::test_retry_after_429 PASSED [ 3/10]",
            "ok 7 - retries after 429",
            "✓ retries 3 times after 429 (12 ms)",
            "src/retry.rs:12: attempt 7: 429 Too Many Requests, retrying in 3s",
            "src/client.py:88:    log.warning(\"Rate limited. Waiting %s s before retry\")",
            "12:    println!(\"attempt {n}: 429 Too Many Requests, retrying in {s}s\");",
            "+    retry(429, 3);",
            "retry.max_attempts = 10  # 429",
            "RETRY_429=3",
            "+ Rate limited requests wait for 4 s and are sent again, 10 times: retry.",
            "* Retry 3/10 after 429",
            "> attempt 7: 429 Too Many Requests, retrying in 3s",
            "# Rate limited: retry 3/10",
            "commit 4a5b6c7: retry after 429, attempt 2",
            "[17/429] Building CXX object CMakeFiles/app.dir/m17.cpp.o",
            "[17/429] items migrated",
            "[41/900] Building CXX object source/ratelimit/CMakeFiles/limit.dir/a.cc.o",
            "[41/900] Building CXX object util/rate_limiter.cc.o",
            "[40/500] Linking quota_tool_40",
            "waiting for the quota service to start (35/60)",
            "Attempt 3 of 429",
            "Request 51/90: 429 Too Many Requests",
            "Server listening, rate limit 10/min, retry window 60 s",
            "rate_limit_test.go:12: retry 3/10 after 429",
            "retry-limit-429.txt",
            "Compiling retry v0.429.0 (3/10)",
            "Running 429 tests, attempt 1",
            "Attempt 2: fixed the rate limit test",
            "attempt 7: connection refused, retrying in 3s",
            "Retry 3/10 after error: 500",
            "waiting for port 4290 (7/10)",
            "Downloaded 429 of 1000 crates",
            "All done: a request that is rate limited waits and is sent again.",
            "",
        ] {
            assert_ne!(told(line), Told::Again, "{line}");
            assert_eq!(times(line), 0, "{line}");
        }
    }
}
