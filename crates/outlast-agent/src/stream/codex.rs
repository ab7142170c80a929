//! The `--json` output of Codex CLI: threads, turns and items.
//!
//! Its "turn" is the whole run; an answer of the model shows only by the items it holds.

use outlast_core::Usage;
use serde_json::Value;

use super::{count_of, json, shorten, str_of, tool_summary};
use crate::event::Event;
use crate::reader::Parse;

/// Parser of `codex exec --json`.
#[derive(Debug, Default)]
pub(crate) struct Codex {
    text: Option<String>,
    /// A tool has ended since the last answer began, so what comes next is another answer.
    answered: bool,
}

impl Codex {
    fn turn(&mut self, events: &mut Vec<Event>) {
        if !self.answered {
            self.answered = true;
            events.push(Event::Turn);
        }
    }

    fn item(&mut self, started: bool, item: &Value, events: &mut Vec<Event>) {
        match (str_of(item, "/type"), started) {
            (Some("agent_message"), false) => {
                self.turn(events);
                let text = str_of(item, "/text").unwrap_or_default().to_owned();
                self.text = Some(text.clone());
                events.push(Event::Text(text));
            }
            // Warnings, such as one about a model it does not know.
            (Some("error"), _) => events.push(Event::Complaint(shorten(str_of(item, "/message").unwrap_or_default()))),
            (Some("reasoning" | "todo_list") | None, _) => {}
            (Some(name), true) => {
                self.turn(events);
                events.push(Event::ToolStarted { name: name.to_owned(), summary: tool_summary(item) });
            }
            (Some(_), false) => {
                self.answered = false;
                events.push(Event::ToolEnded);
            }
        }
    }
}

impl Parse for Codex {
    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        let Some(line) = json(line) else { return };
        match str_of(&line, "/type") {
            Some("thread.started") => {
                events.extend(str_of(&line, "/thread_id").map(|id| Event::SessionSeen(id.to_owned())));
            }
            Some("item.started") => self.item(true, &line["item"], events),
            Some("item.completed") => self.item(false, &line["item"], events),
            Some("error") => {
                let text = shorten(str_of(&line, "/message").unwrap_or_default());
                if text.starts_with("Reconnecting") {
                    self.answered = false;
                    events.push(Event::Retry { status: None, text });
                } else {
                    events.push(Event::Complaint(text));
                }
            }
            Some("turn.failed") => {
                let text = str_of(&line, "/error/message").unwrap_or_default().to_owned();
                events.push(Event::ProviderError { status: None, text: text.clone() });
                events.push(Event::Result { ok: false, text });
            }
            Some("turn.completed") => {
                events.push(Event::Usage(usage(&line)));
                events.push(Event::Result { ok: true, text: self.text.clone().unwrap_or_default() });
            }
            _ => {}
        }
    }
}

/// The totals of the run: OpenAI's counts, where `input_tokens` holds cached tokens too.
fn usage(line: &Value) -> Usage {
    let cache_read = count_of(line, "/usage/cached_input_tokens");
    let cache_write = count_of(line, "/usage/cache_write_input_tokens");
    Usage {
        input: count_of(line, "/usage/input_tokens").saturating_sub(cache_read + cache_write),
        cache_write,
        cache_read,
        output: count_of(line, "/usage/output_tokens"),
        ..Usage::default()
    }
}
