//! What the agent prints: one JSON object per line, in the manner of the real CLIs.

use std::io::Write;

use serde_json::{Value, json};

use super::hands::Done;
use super::speak::Heard;
use crate::wire::Usage;

/// Prints the events of one session.
pub(super) struct Report {
    session_id: String,
    turns: u64,
    usage: Usage,
}

impl Report {
    /// Starts with the session's first event.
    pub(super) fn start(session_id: &str, model: &str) -> Self {
        let cwd = std::env::current_dir().unwrap_or_default();
        let report = Self { session_id: session_id.to_owned(), turns: 0, usage: Usage::default() };
        report.print(json!({"type": "system", "subtype": "init", "cwd": cwd.to_string_lossy(), "model": model}));
        report
    }

    /// What the model said.
    pub(super) fn heard(&mut self, heard: &Heard) {
        self.turns += 1;
        self.usage += heard.usage;
        let mut content = Vec::new();
        if !heard.text.is_empty() {
            content.push(json!({"type": "text", "text": heard.text}));
        }
        if let Some(call) = &heard.call {
            content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}));
        }
        let message = json!({"role": "assistant", "content": content, "usage": usage(&heard.usage)});
        self.print(json!({"type": "assistant", "message": message}));
    }

    /// What a tool brought back.
    pub(super) fn done(&self, call_id: &str, done: &Done) {
        let result =
            json!({"type": "tool_result", "tool_use_id": call_id, "content": done.text, "is_error": done.failed});
        self.print(json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }

    /// A request that is tried again.
    pub(super) fn retry(&self, attempt: u32, error: &str) {
        self.print(json!({"type": "system", "subtype": "api_retry", "attempt": attempt, "error": error}));
    }

    /// The end; `status` is the HTTP status of the refusal it died of.
    pub(super) fn result(&self, text: &str, failed: bool, status: Option<u16>) {
        self.print(json!({
            "type": "result",
            "subtype": if failed { "error_during_execution" } else { "success" },
            "is_error": failed,
            "api_error_status": status,
            "num_turns": self.turns,
            "result": text,
            "usage": usage(&self.usage),
        }));
    }

    fn print(&self, mut event: Value) {
        event["session_id"] = json!(self.session_id);
        // A reader that has gone away does not stop the agent: it works on, as the real ones do.
        drop(writeln!(std::io::stdout(), "{event}"));
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}
