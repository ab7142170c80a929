//! The four ways to ask the provider, and a goal to ask with.

use http::Method;
use outlast_testkit::provider::{Provider, Running, Script};
use serde_json::{Value, json};

use crate::client::{Got, send};

pub(crate) const GOAL: &str = "Go.\n```outlast-script\nthink \"hm\"\nrun \"echo hi\"\nsay \"done with it\"\n```";

/// The four ways to ask, each with a shell tool under the name of a real CLI.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

pub(crate) const WAYS: [Way; 4] = [Way::Anthropic, Way::Responses, Way::Chat, Way::Gemini];

impl Way {
    pub(crate) fn path(self, stream: bool) -> &'static str {
        match (self, stream) {
            (Self::Anthropic, _) => "/t/x/v1/messages?beta=true",
            (Self::Responses, _) => "/t/x/v1/responses",
            (Self::Chat, _) => "/t/x/v1/chat/completions",
            (Self::Gemini, true) => "/t/x/v1beta/models/m:streamGenerateContent?alt=sse",
            (Self::Gemini, false) => "/t/x/v1beta/models/m:generateContent",
        }
    }

    pub(crate) fn key(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Anthropic => ("x-api-key", key.to_owned()),
            Self::Responses | Self::Chat => ("authorization", format!("Bearer {key}")),
            Self::Gemini => ("x-goog-api-key", key.to_owned()),
        }
    }

    pub(crate) fn body(self, goal: &str, stream: bool) -> Value {
        let schema =
            json!({"type": "object", "properties": {"command": {"type": "string"}, "cmd": {"type": "string"}}});
        match self {
            Self::Anthropic => json!({
                "model": "m", "stream": stream, "max_tokens": 10,
                "messages": [{"role": "user", "content": goal}],
                "tools": [{"name": "Bash", "input_schema": schema}],
            }),
            Self::Responses => json!({
                "model": "m", "stream": stream,
                "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": goal}]}],
                "tools": [{"type": "function", "name": "exec_command", "parameters": schema}],
            }),
            Self::Chat => json!({
                "model": "m", "stream": stream,
                "messages": [{"role": "user", "content": goal}],
                "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}],
            }),
            Self::Gemini => json!({
                "contents": [{"role": "user", "parts": [{"text": goal}]}],
                "tools": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": schema}]}],
            }),
        }
    }

    pub(crate) async fn ask(self, provider: &Running, key: &str, goal: &str, stream: bool) -> Got {
        let (name, value) = self.key(key);
        send(provider.addr, Method::POST, self.path(stream), &[(name, &value)], &self.body(goal, stream).to_string())
            .await
    }

    /// Tokens as the client learns them: all input, from the cache, output.
    pub(crate) fn usage(self, got: &Got) -> (u64, u64, u64) {
        let answers =
            if got.header("content-type").starts_with("text/event-stream") { got.events() } else { vec![got.json()] };
        let last =
            |pointer: &str| answers.iter().rev().find_map(|answer| answer.pointer(pointer)?.as_u64()).unwrap_or(0);
        match self {
            Self::Anthropic => {
                let cached = last("/usage/cache_read_input_tokens");
                let input = last("/usage/input_tokens") + cached + last("/usage/cache_creation_input_tokens");
                (input, cached, last("/usage/output_tokens"))
            }
            Self::Responses => {
                let last = |field: &str| last(&format!("/response/usage/{field}")) + last(&format!("/usage/{field}"));
                (last("input_tokens"), last("input_tokens_details/cached_tokens"), last("output_tokens"))
            }
            Self::Chat => (
                last("/usage/prompt_tokens"),
                last("/usage/prompt_tokens_details/cached_tokens"),
                last("/usage/completion_tokens"),
            ),
            Self::Gemini => {
                let thoughts = last("/usageMetadata/thoughtsTokenCount");
                let output = last("/usageMetadata/candidatesTokenCount") + thoughts;
                (last("/usageMetadata/promptTokenCount"), last("/usageMetadata/cachedContentTokenCount"), output)
            }
        }
    }
}

pub(crate) async fn start(script: Script) -> Running {
    Provider::start_local(script).await.unwrap()
}
