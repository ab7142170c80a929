//! The `stream-json` output of Gemini CLI: messages in pieces, tools, and a result with a status.

use outlast_core::Usage;
use serde_json::Value;

use super::{count_of, json, shorten, str_of, tool_summary};
use crate::event::Event;
use crate::reader::Parse;

/// Parser of `gemini -o stream-json`.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    text: String,
    /// Within an answer of the model: a tool's result ends it.
    answering: bool,
}

impl Gemini {
    fn answer(&mut self, events: &mut Vec<Event>) {
        if !self.answering {
            self.answering = true;
            self.text.clear();
            events.push(Event::Turn);
        }
    }

    fn result(&mut self, line: &Value, events: &mut Vec<Event>) {
        events.push(Event::Usage(usage(line)));
        if str_of(line, "/status") == Some("success") {
            let text = std::mem::take(&mut self.text);
            events.push(Event::Text(text.clone()));
            events.push(Event::Result { ok: true, text });
            return;
        }
        let text = str_of(line, "/error/message").unwrap_or("no message").to_owned();
        events.push(Event::ProviderError { status: None, text: text.clone() });
        events.push(Event::Result { ok: false, text });
    }
}

impl Parse for Gemini {
    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        let Some(line) = json(line) else { return };
        match str_of(&line, "/type") {
            Some("init") => {
                events.extend(str_of(&line, "/session_id").map(|id| Event::SessionSeen(id.to_owned())));
            }
            Some("message") if str_of(&line, "/role") == Some("assistant") => {
                self.answer(events);
                self.text.push_str(str_of(&line, "/content").unwrap_or_default());
            }
            Some("tool_use") => {
                self.answer(events);
                let name = str_of(&line, "/tool_name").unwrap_or_default().to_owned();
                events.push(Event::ToolStarted { name, summary: tool_summary(&line["parameters"]) });
            }
            Some("tool_result") => {
                self.answering = false;
                events.push(Event::ToolEnded);
            }
            Some("result") => self.result(&line, events),
            _ => {}
        }
    }

    /// It tells of a request sent again in its error output only.
    fn complaint(&mut self, line: &str, events: &mut Vec<Event>) {
        let attempt = line.strip_prefix("Attempt ").and_then(|rest| rest.split_once(" failed"));
        if let Some((_, rest)) = attempt {
            let status =
                rest.split("status ").nth(1).and_then(|rest| rest.get(..3)).and_then(|status| status.parse().ok());
            events.push(Event::Retry { status, text: shorten(line) });
        } else {
            events.push(Event::Complaint(line.to_owned()));
        }
    }
}

/// The totals of the session: Gemini's counts, where `input_tokens` holds cached tokens too.
fn usage(line: &Value) -> Usage {
    let cache_read = count_of(line, "/stats/cached");
    Usage {
        input: count_of(line, "/stats/input_tokens").saturating_sub(cache_read),
        cache_read,
        output: count_of(line, "/stats/output_tokens"),
        ..Usage::default()
    }
}
