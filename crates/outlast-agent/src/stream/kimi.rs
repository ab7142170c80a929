//! The `stream-json` output of Kimi CLI: the messages of its conversation, one a line, and no last word of its own.
//!
//! A message of the model is printed when its first tool has ended, not before. What ends a session badly comes as plain text
//! after the last message, broken into lines of 80 characters. Which message is the last one only the end tells: a task in
//! the background may call the model again after a message without tools.

use serde_json::Value;

use super::{json, str_of, tool_summary};
use crate::event::Event;
use crate::kimi::SESSION_MARK;
use crate::reader::Parse;

/// Parser of `kimi --print --output-format stream-json`.
#[derive(Debug, Default)]
pub(crate) struct Kimi {
    /// The text of the last message, if it was the model's and called no tool.
    closing: Option<String>,
    /// The plain lines since the last message.
    plain: Vec<String>,
}

/// What stands before the status in the text of a request that was refused.
const REFUSED: &[&str] = &["Error code: ", "LLM provider error: "];

impl Kimi {
    fn assistant(&mut self, line: &Value, events: &mut Vec<Event>) {
        events.push(Event::Turn);
        let text = text_of(&line["content"]);
        if !text.is_empty() {
            events.push(Event::Text(text.clone()));
        }
        let calls: Vec<&Value> = line["tool_calls"].as_array().into_iter().flatten().collect();
        for call in &calls {
            let arguments = str_of(call, "/function/arguments").unwrap_or_default();
            let arguments = serde_json::from_str(arguments).unwrap_or(Value::Null);
            events.push(Event::ToolStarted {
                name: str_of(call, "/function/name").unwrap_or_default().to_owned(),
                summary: tool_summary(&arguments),
            });
        }
        self.closing = calls.is_empty().then_some(text);
    }
}

impl Parse for Kimi {
    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        let Some(line) = json(line) else {
            let text = String::from_utf8_lossy(line);
            if !text.trim().is_empty() {
                self.plain.push(text.trim().to_owned());
            }
            return;
        };
        match str_of(&line, "/role") {
            Some("assistant") => self.assistant(&line, events),
            Some("tool") => {
                self.closing = None;
                events.push(Event::ToolEnded);
            }
            _ => return,
        }
        self.plain.clear();
    }

    /// Our own line names the session; its last one tells people how to resume it.
    fn complaint(&mut self, line: &str, events: &mut Vec<Event>) {
        if let Some(id) = line.strip_prefix(SESSION_MARK) {
            events.push(Event::SessionSeen(id.trim().to_owned()));
        } else if !line.trim_start().starts_with("To resume this session: ") {
            events.push(Event::Complaint(line.to_owned()));
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        if self.plain.is_empty() {
            events.extend(self.closing.take().map(|text| Event::Result { ok: true, text }));
            return;
        }
        let text = self.plain.join(" ");
        if let Some((_, rest)) = REFUSED.iter().find_map(|mark| text.split_once(mark)) {
            let status = rest.get(..3).and_then(|status| status.parse().ok());
            events.push(Event::ProviderError { status, text: text.clone() });
        }
        events.push(Event::Result { ok: false, text });
    }
}

/// A text, or the texts among a list of parts; what the model thought is left out.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| str_of(part, "/text")).collect(),
        _ => String::new(),
    }
}
