//! The `stream-json` output of Claude Code, which Qwen Code speaks too: one JSON object a line, shaped like messages.
//!
//! Events of sub-agents carry `parent_tool_use_id`; their turns are not the task's turns.

use outlast_core::{Usage, reset};
use serde_json::Value;

use super::{count_of, json, status_of, str_of, tool_summary};
use crate::event::Event;
use crate::reader::Parse;
use crate::refusal;

/// Claude Code stands in for the provider's answer under this model name when a request failed.
const MADE_UP_MODEL: &str = "<synthetic>";

/// Parser of `stream-json`.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    session: Option<String>,
    message: Option<String>,
    qwen: bool,
}

/// What Qwen Code's text for a failed request begins with: it reports it as a success.
const QWEN_ERROR: &str = "[API Error";

impl Messages {
    /// A parser for what Qwen Code makes of the format.
    pub(crate) const fn qwen() -> Self {
        Self { session: None, message: None, qwen: true }
    }

    fn session(&mut self, line: &Value, events: &mut Vec<Event>) {
        if let Some(id) = str_of(line, "/session_id")
            && self.session.as_deref() != Some(id)
        {
            self.session = Some(id.to_owned());
            events.push(Event::SessionSeen(id.to_owned()));
        }
    }

    fn assistant(&mut self, line: &Value, events: &mut Vec<Event>) {
        if str_of(line, "/message/model") == Some(MADE_UP_MODEL) {
            return;
        }
        let sub_agent = str_of(line, "/parent_tool_use_id").is_some();
        let id = str_of(line, "/message/id");
        // One answer comes as one event for each of its blocks, all with the answer's id.
        if !sub_agent && (id.is_none() || id != self.message.as_deref()) {
            self.message = id.map(str::to_owned);
            events.push(Event::Turn);
        }
        for block in blocks(line) {
            match str_of(block, "/type") {
                Some("tool_use") => events.push(Event::ToolStarted {
                    name: str_of(block, "/name").unwrap_or_default().to_owned(),
                    summary: tool_summary(&block["input"]),
                }),
                Some("text") if !sub_agent => {
                    if let Some(text) = str_of(block, "/text").filter(|text| !text.is_empty()) {
                        events.push(Event::Text(text.to_owned()));
                    }
                }
                _ => {}
            }
        }
    }

    fn result(&self, line: &Value, events: &mut Vec<Event>) {
        events.push(Event::Usage(self.usage(line)));
        let subtype = str_of(line, "/subtype").unwrap_or_default();
        let text = str_of(line, "/result").or_else(|| str_of(line, "/error/message")).unwrap_or(subtype).to_owned();
        // After a cut it follows the part of the answer that came.
        let given_away = self.qwen && text.trim_end().ends_with(']') && text.contains(QWEN_ERROR);
        let failed = line["is_error"].as_bool().unwrap_or(false) || given_away;
        let status = status_of(line, "/api_error_status");
        // Of its own failures (a limit on turns, a session that is not there) the subtype tells.
        if failed && (subtype == "success" || status.is_some()) {
            events.push(Event::ProviderError { status, text: text.clone() });
        }
        events.push(Event::Result { ok: subtype == "success" && !failed, text });
    }
}

impl Messages {
    /// The totals of a result event. Anthropic's `input_tokens` leaves cached tokens out, Qwen Code's holds them.
    fn usage(&self, line: &Value) -> Usage {
        let cache_read = count_of(line, "/usage/cache_read_input_tokens");
        let input = count_of(line, "/usage/input_tokens");
        Usage {
            input: if self.qwen { input.saturating_sub(cache_read) } else { input },
            cache_write: count_of(line, "/usage/cache_creation_input_tokens"),
            cache_read,
            output: count_of(line, "/usage/output_tokens"),
            ..Usage::default()
        }
    }
}

impl Parse for Messages {
    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) {
        let Some(line) = json(line) else { return };
        self.session(&line, events);
        match (str_of(&line, "/type"), str_of(&line, "/subtype")) {
            (Some("assistant"), _) => self.assistant(&line, events),
            (Some("user"), _) => {
                let results = blocks(&line).filter(|block| str_of(block, "/type") == Some("tool_result"));
                events.extend(results.map(|_| Event::ToolEnded));
            }
            (Some("system"), Some("api_retry")) => events.push(Event::Retry {
                status: status_of(&line, "/error_status"),
                text: str_of(&line, "/error").unwrap_or_default().to_owned(),
            }),
            (Some("result"), _) => self.result(&line, events),
            (Some("rate_limit_event"), _) => rate_limit(&line, events),
            // A limit as some programs that wrap a CLI pass it on: no last word, since they may go on.
            (None, _) => {
                let limit = str_of(&line, "/result").filter(|text| refusal::is_limit_alone(text));
                events.extend(limit.map(|text| Event::Complaint(text.to_owned())));
            }
            _ => {}
        }
    }
}

/// What Claude Code says of its account's windows: a warning calls for nothing, and fields of overage name no time.
fn rate_limit(line: &Value, events: &mut Vec<Event>) {
    let info = line.get("rate_limit_info").unwrap_or(line);
    if str_of(info, "/status") == Some("rejected") {
        let resets_at = info.get("resetsAt").and_then(Value::as_f64).and_then(reset::epoch);
        events.push(Event::Rejected { resets_at });
    }
}

fn blocks(line: &Value) -> impl Iterator<Item = &Value> {
    line.pointer("/message/content").and_then(Value::as_array).into_iter().flatten()
}
