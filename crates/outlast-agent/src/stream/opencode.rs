//! The `--format json` output of OpenCode: the parts of its messages, and no last word of its own.
//!
//! A step is one answer of the model; one that ends with reason `stop` is the last.

use outlast_core::Usage;
use serde_json::Value;

use super::{count_of, json, status_of, str_of, tool_summary};
use crate::event::Event;
use crate::reader::Parse;

/// Parser of `opencode run --format json`.
#[derive(Debug, Default)]
pub(crate) struct OpenCode {
    session: Option<String>,
    text: String,
    usage: Usage,
}

impl OpenCode {
    fn step_finished(&mut self, part: &Value, events: &mut Vec<Event>) {
        self.usage.add(&Usage {
            input: count_of(part, "/tokens/input"),
            cache_write: count_of(part, "/tokens/cache/write"),
            cache_read: count_of(part, "/tokens/cache/read"),
            output: count_of(part, "/tokens/output") + count_of(part, "/tokens/reasoning"),
            ..Usage::default()
        });
        events.push(Event::Usage(self.usage));
        match str_of(part, "/reason") {
            Some("tool-calls") => {}
            Some("stop") => events.push(Event::Result { ok: true, text: std::mem::take(&mut self.text) }),
            reason => {
                let text = format!("the model stopped: {}", reason.unwrap_or("no reason given"));
                events.push(Event::Result { ok: false, text });
            }
        }
    }

    fn tool(&mut self, part: &Value, events: &mut Vec<Event>) {
        let name = str_of(part, "/tool").unwrap_or_default().to_owned();
        events.push(Event::ToolStarted { name, summary: tool_summary(&part["state"]["input"]) });
        if matches!(str_of(part, "/state/status"), Some("completed" | "error")) {
            events.push(Event::ToolEnded);
        }
    }
}

impl Parse for OpenCode {
    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        let Some(line) = json(line) else { return };
        if let Some(id) = str_of(&line, "/sessionID")
            && self.session.as_deref() != Some(id)
        {
            self.session = Some(id.to_owned());
            events.push(Event::SessionSeen(id.to_owned()));
        }
        let part = &line["part"];
        match str_of(&line, "/type") {
            Some("step_start") => {
                self.text.clear();
                events.push(Event::Turn);
            }
            Some("text") => {
                let text = str_of(part, "/text").unwrap_or_default();
                self.text.push_str(text);
                events.push(Event::Text(text.to_owned()));
            }
            Some("tool_use") => self.tool(part, events),
            Some("step_finish") => self.step_finished(part, events),
            Some("error") => {
                let name = str_of(&line, "/error/name").unwrap_or_default();
                let text = str_of(&line, "/error/data/message").unwrap_or(name).to_owned();
                events.push(Event::ProviderError {
                    status: status_of(&line, "/error/data/statusCode"),
                    text: text.clone(),
                });
                events.push(Event::Result { ok: false, text });
            }
            _ => {}
        }
    }
}
