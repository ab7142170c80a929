//! Stage "dialect", second half: the little the gateway must know of a request's body.
//!
//! Reads, never changes; the one change ever made to a body, another model's name, is [`with_model`].

use std::ops::Range;

use bytes::Bytes;
use http::HeaderMap;

use crate::admission::TurnKind;
use crate::dialect::{Dialect, Endpoint, Operation, gemini_model};
use crate::json;

/// What a request's path and body say about it.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The model asked for.
    pub(crate) model: Option<String>,
    /// Where the model's JSON string stands in the body; `None` when it stands in the path or nowhere.
    model_span: Option<Range<usize>>,
    /// Whether the request offers tools, as an agent's own turns do and its titles and summaries do not.
    has_tools: bool,
}

/// Reads the facts from a request.
pub(crate) fn read(endpoint: Endpoint, path: &str, body: &[u8]) -> Facts {
    let mut facts = Facts::default();
    if endpoint.dialect == Dialect::Gemini {
        facts.model = gemini_model(path).map(|(_, model)| model.to_owned());
    }
    for (key, span) in json::members(body) {
        match key {
            b"model" if endpoint.dialect != Dialect::Gemini => {
                facts.model = json::text(body, span.clone());
                facts.model_span = facts.model.is_some().then_some(span);
            }
            b"tools" => facts.has_tools |= json::first_element(body, span).is_some(),
            b"input" => facts.has_tools |= opens_with_tools(body, span),
            _ => {}
        }
    }
    facts
}

/// Newer codex models carry their tools in the first input item instead of a top-level list.
fn opens_with_tools(body: &[u8], input: Range<usize>) -> bool {
    let Some(first) = json::first_element(body, input) else {
        return false;
    };
    let item = &body[first];
    json::members(item).any(|(key, span)| key == b"type" && &item[span] == b"\"additional_tools\"")
}

/// What part of an agent's work a request is; `sub_agent` is who asks, see [`sub_agent`].
pub(crate) fn turn_kind(endpoint: Endpoint, sub_agent: Option<&str>, facts: &Facts) -> TurnKind {
    match endpoint.operation {
        Operation::CountTokens => TurnKind::CountTokens,
        Operation::Models | Operation::Probe => TurnKind::Models,
        Operation::Generate => match (sub_agent.is_some(), facts.has_tools) {
            (true, _) => TurnKind::SubAgent,
            (false, true) => TurnKind::Main,
            (false, false) => TurnKind::Background,
        },
    }
}

/// The name of the agent that asks, where another agent has started it: claude names it, codex says that it is one and
/// gives each a thread of its own.
pub(crate) fn sub_agent(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| Some(headers.get(name)?.to_str().unwrap_or_default().chars().take(NAME_MAX).collect());
    text("x-claude-code-agent-id").or_else(|| {
        let kind = text("x-openai-subagent")?;
        Some(text("thread-id").unwrap_or(kind))
    })
}

/// Longest name of an agent, in characters.
const NAME_MAX: usize = 100;

/// The body with `model` in place of the one it names; every other byte as it was.
pub(crate) fn with_model(body: &Bytes, facts: &Facts, model: &str) -> Bytes {
    let Some(span) = &facts.model_span else {
        return body.clone();
    };
    let name = serde_json::Value::from(model).to_string();
    [&body[..span.start], name.as_bytes(), &body[span.end..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POST: Endpoint = Endpoint { dialect: Dialect::Anthropic, operation: Operation::Generate };

    #[test]
    fn the_model_is_spliced_and_nothing_else_moves() {
        let body =
            Bytes::from_static(b"{ \"max_tokens\" : 5,\"model\" :  \"sonnet\" ,\r\n\"messages\":[{\"model\":\"x\"}] }");
        let facts = read(POST, "/v1/messages", &body);
        assert_eq!(facts.model.as_deref(), Some("sonnet"));
        let spliced = with_model(&body, &facts, "claude-\"5\"");
        let expected = String::from_utf8_lossy(&body).replace("\"sonnet\"", "\"claude-\\\"5\\\"\"");
        assert_eq!(spliced, expected);
    }

    #[test]
    fn turns_are_told_apart() {
        let kind = |body: &str, header: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(name) = header {
                headers.insert(name, "x".parse().unwrap());
            }
            turn_kind(POST, sub_agent(&headers).as_deref(), &read(POST, "/", body.as_bytes()))
        };
        assert_eq!(kind(r#"{"tools":[{"name":"Bash"}]}"#, None), TurnKind::Main);
        assert_eq!(kind(r#"{"tools":[]}"#, None), TurnKind::Background);
        assert_eq!(kind(r#"{"messages":[]}"#, None), TurnKind::Background);
        assert_eq!(kind(r#"{"input":[{"type":"additional_tools","tools":[]}]}"#, None), TurnKind::Main);
        assert_eq!(kind(r#"{"tools":[{}]}"#, Some("x-claude-code-agent-id")), TurnKind::SubAgent);
        assert_eq!(kind(r#"{"tools":[{}]}"#, Some("x-openai-subagent")), TurnKind::SubAgent);
    }

    #[test]
    fn an_agent_that_an_agent_has_started_has_a_name() {
        let name = |headers: &[(&'static str, &str)]| {
            let headers = headers.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()));
            sub_agent(&headers.collect())
        };
        assert_eq!(name(&[("x-claude-code-session-id", "s")]), None);
        assert_eq!(name(&[("x-claude-code-agent-id", "a7f3")]).as_deref(), Some("a7f3"));
        let codex = [("session-id", "s"), ("thread-id", "t2"), ("x-openai-subagent", "collab_spawn")];
        assert_eq!(name(&codex).as_deref(), Some("t2"));
        assert_eq!(name(&codex[2..]).as_deref(), Some("collab_spawn"));
        assert_eq!(name(&codex[..2]), None, "every codex has a thread");
    }

    #[test]
    fn a_gemini_model_is_in_the_path_alone() {
        let endpoint = Endpoint { dialect: Dialect::Gemini, operation: Operation::Generate };
        let body = Bytes::from_static(b"{\"model\":\"other\"}");
        let facts = read(endpoint, "/v1beta/models/gemini-2.5-pro:generateContent", &body);
        assert_eq!(facts.model.as_deref(), Some("gemini-2.5-pro"));
        assert_eq!(with_model(&body, &facts, "x"), body);
    }
}
