//! What stands before a report in a line of a log: a time, a level, who says it. And what stands behind one in an output: where
//! in the program it came from, and how the program ends.

/// Longest name that stands before a report.
const NAME_MAX: usize = 40;
/// Longest line that only says how a program ends.
const CLOSING_MAX: usize = 200;

/// Programs and their parts that put their name before what they say.
const NAMES: &[&str] = &[
    "agent",
    "cli",
    "client",
    "stream",
    "http",
    "https",
    "api",
    "llm",
    "model",
    "provider",
    "sdk",
    "proxy",
    "request",
    "fetch",
    "node",
    "undici",
    "openai",
    "anthropic",
    "bedrock",
    "claude",
    "codex",
    "gemini",
    "qwen",
    "kimi",
    "opencode",
    "aider",
    "goose",
    "cline",
    "copilot",
    "cursor",
    "amp",
];

const LEVELS: &[&str] = &["error", "err", "warn", "warning", "fatal", "critical", "severe", "info"];

/// A line in lower case without the time, the level and the name that a log puts before what is said; nothing where it has none.
pub(crate) fn without(line: &str) -> Option<&str> {
    let mut rest = line;
    let mut is_log = false;
    loop {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '[');
        let next = tag(rest).or_else(|| time(rest)).or_else(|| level(rest));
        if let Some(next) = next {
            (rest, is_log) = (next, true);
            continue;
        }
        match name(rest, is_log) {
            Some(next) => rest = next,
            None => break,
        }
    }
    let rest = logged(line).unwrap_or(rest);
    (rest.len() < line.len() && !rest.is_empty()).then_some(rest)
}

/// `[agent] …`, also where its opening bracket is gone already.
fn tag(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[').unwrap_or(text);
    let end = inside.find(']').filter(|end| (2..=NAME_MAX).contains(end))?;
    let holds_more = inside[..end].contains(['[', '{', '"', '\'', '/', '=']);
    (!holds_more).then(|| &inside[end + 1..])
}

/// `2026-12-01T08:00:00.123Z …`, `08:00:00 …`.
fn time(text: &str) -> Option<&str> {
    let (word, rest) = text.split_once(' ')?;
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_time = word.bytes().all(|b| b.is_ascii_digit() || b"-:.,tz+/".contains(&b));
    (is_time && digits >= 4 && word.contains(['-', ':'])).then_some(rest)
}

fn level(text: &str) -> Option<&str> {
    let level = LEVELS.iter().find(|level| text.starts_with(**level))?;
    let rest = &text[level.len()..];
    rest.starts_with([' ', ':', ']', '|', '\t']).then_some(rest)
}

/// `claude: …`, and in a log anybody's: `openai._base_client: …`, `agent - …`.
fn name(text: &str, is_log: bool) -> Option<&str> {
    let end = text.find([':', ' ']).filter(|end| (2..=NAME_MAX).contains(end))?;
    let (name, rest) = (&text[..end], &text[end..]);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    // The names of exceptions are a part of the report.
    let is_report = ["error", "exception", "exhausted"].iter().any(|end| name.ends_with(end));
    let is_set_off = rest.starts_with(": ") || is_log && [" - ", " | ", " — "].iter().any(|by| rest.starts_with(by));
    let is_known = is_log || NAMES.contains(&name);
    (is_name && !is_report && is_set_off && is_known && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(rest)
}

/// What a line of keys and values says: `level=error msg="Premature close"`.
fn logged(line: &str) -> Option<&str> {
    if !["time=", "ts=", "level=", "lvl="].iter().any(|key| line.starts_with(key)) {
        return None;
    }
    let keys = ["msg=", "message=", "err=", "error="];
    let value = keys.iter().rev().find_map(|key| line.split_once(&format!(" {key}"))).map(|(_, value)| value)?;
    match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split(' ').next(),
    }
}

/// Whether a line says where in its program an error came from: a frame, a field of the error, a mark below a line.
pub(crate) fn is_trace(line: &str) -> bool {
    const FRAMES: &[&str] = &[
        "at ",
        "file \"",
        "traceback (most recent call last)",
        "stack trace",
        "stack backtrace",
        "goroutine ",
        "node:",
        "node.js v",
        "caused by",
        "[cause]",
        "during handling of the above exception",
        "the above exception was the direct cause",
        "npm err!",
        "note: run with `rust_backtrace",
    ];
    let trimmed = line.trim();
    let lower = trimmed.to_lowercase();
    line.starts_with(['\t', ' '])
        || !trimmed.contains(char::is_alphanumeric)
        || FRAMES.iter().any(|f| lower.starts_with(f))
}

/// Whether a line says nothing but how a program ends, or what it has used and kept: whatever it failed by was said before.
pub(crate) fn is_closing(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "exit",
        "abort",
        "giving up",
        "gave up",
        "stopp",
        "shutting down",
        "terminat",
        "closing",
        "closed",
        "session",
        "request id",
        "request_id",
        "request-id",
        "trace id",
        "tokens",
        "cost",
        "duration",
        "elapsed",
        "failed",
        "failure",
        "could not continue",
        "cannot continue",
        "unable to continue",
        "not completed",
        "incomplete",
        "retries",
        "attempts",
        "logs",
        "log file",
        "try again",
        "please wait",
        "resum",
        "goodbye",
        "status.",
    ];
    const CLAIMS: &[&str] = &[
        "done",
        "success",
        "complete.",
        "completed.",
        "is complete",
        "finished",
        "fixed",
        "passed",
        "implemented",
        "added",
    ];
    let lower = line.trim().to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let speaks = ["i ", "i'", "i’", "we "].iter().any(|word| lower.starts_with(word)) || lower.contains(" i ");
    lower.len() <= CLOSING_MAX && says(WORDS) && !says(CLAIMS) && !speaks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_puts_before_what_is_said() {
        for line in [
            "[agent] premature close",
            "agent] premature close",
            "2026-12-01t08:00:00.123z error premature close",
            "2026-12-01 08:00:00,123 - openai._base_client - error - premature close",
            "[08:00:00] [error] agent: premature close",
            "error agent: premature close",
            "claude: premature close",
            "level=error msg=\"premature close\"",
            "time=\"2026-12-01t08:00:00z\" level=error msg=\"request failed\" error=\"premature close\"",
        ] {
            assert_eq!(without(line), Some("premature close"), "{line}");
        }
        for line in
            ["premature close", "note: premature close", "limits.rs:12: premature close", "let x = a[1]; premature"]
        {
            assert!(without(line).is_none_or(|rest| rest != "premature close"), "{line}");
        }
    }
}
