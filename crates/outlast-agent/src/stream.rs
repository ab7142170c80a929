//! The CLIs' output formats: one parser each, and what they share.

pub(crate) mod codex;
pub(crate) mod gemini;
pub(crate) mod kimi;
pub(crate) mod messages;
pub(crate) mod opencode;
pub(crate) mod plain;

use serde_json::Value;

/// Longest summary of a tool call, in characters: one line of a status screen.
const SUMMARY_MAX: usize = 120;

/// The argument of a tool call that tells a person most: the command, the file, else the first text there is.
pub(crate) fn tool_summary(arguments: &Value) -> String {
    let Value::Object(fields) = arguments else {
        return String::new();
    };
    let telling = ["command", "cmd", "file_path", "filePath", "absolute_path", "path", "pattern"];
    let value =
        telling.iter().find_map(|name| fields.get(*name)).or_else(|| fields.values().find(|value| value.is_string()));
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    };
    shorten(&text)
}

/// The first line of a text, shortened to fit a status screen.
pub(crate) fn shorten(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    if line.chars().count() <= SUMMARY_MAX {
        return line.to_owned();
    }
    line.chars().take(SUMMARY_MAX - 1).chain(['…']).collect()
}

/// A string field of a JSON object.
pub(crate) fn str_of<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// A count in a JSON object, zero where it is absent.
pub(crate) fn count_of(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// An HTTP status in a JSON object.
pub(crate) fn status_of(value: &Value, pointer: &str) -> Option<u16> {
    value.pointer(pointer).and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok())
}

/// A line as JSON; anything else on standard output (a warning, a truncation mark) is no event.
pub(crate) fn json(line: &[u8]) -> Option<Value> {
    if line.first() == Some(&b'{') { serde_json::from_slice(line).ok() } else { None }
}
