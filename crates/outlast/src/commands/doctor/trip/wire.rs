//! The smallest requests of each wire format, and what a list of models holds.

use hyper::Method;
use outlast_gateway::{Dialect, Provider};
use serde_json::{Value, json};

/// Every format of the gateway.
pub(super) const DIALECTS: [Dialect; 4] = [Dialect::Anthropic, Dialect::Responses, Dialect::Chat, Dialect::Gemini];

/// The version of Messages that every address of it knows.
const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");
/// Sent by Claude Code with a login and not with a key, as observed with 2.1.197.
const LOGIN_BETA: (&str, &str) = ("anthropic-beta", "oauth-2025-04-20");
/// The smallest bound that OpenAI's Responses take, by their reference.
const RESPONSES_TOKENS_MIN: u32 = 16;

/// A request before it is one.
pub(super) struct Wire {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: String,
}

impl Wire {
    /// Asks for the list of models.
    pub(super) fn models(provider: Provider, login: bool) -> Self {
        let path = if provider == Provider::Gemini { "/v1beta/models" } else { "/v1/models" };
        Self { method: Method::GET, path: path.to_owned(), headers: headers(provider, login), body: String::new() }
    }

    /// Asks a model for one word.
    pub(super) fn one_word(dialect: Dialect, provider: Provider, login: bool, model: &str) -> Self {
        const ASKED: &str = "Say ok.";
        let message = json!([{ "role": "user", "content": ASKED }]);
        let (path, body) = match dialect {
            Dialect::Anthropic => {
                let mut body = json!({ "model": model, "max_tokens": 1, "messages": message });
                if login {
                    // A subscription answers Claude Code alone, which says so in its first line.
                    body["system"] = json!("You are Claude Code, Anthropic's official CLI for Claude.");
                }
                ("/v1/messages".to_owned(), body)
            }
            Dialect::Responses => {
                let body = json!({ "model": model, "input": message, "max_output_tokens": RESPONSES_TOKENS_MIN });
                ("/v1/responses".to_owned(), body)
            }
            Dialect::Chat => {
                // OpenAI's newer models refuse the older name; other servers know no other.
                let bound = if provider == Provider::OpenAi { "max_completion_tokens" } else { "max_tokens" };
                ("/v1/chat/completions".to_owned(), json!({ "model": model, "messages": message, bound: 1 }))
            }
            Dialect::Gemini => {
                let contents = json!([{ "role": "user", "parts": [{ "text": ASKED }] }]);
                let body = json!({ "contents": contents, "generationConfig": { "maxOutputTokens": 1 } });
                (format!("/v1beta/models/{model}:generateContent"), body)
            }
        };
        Self { method: Method::POST, path, headers: headers(provider, login), body: body.to_string() }
    }
}

fn headers(provider: Provider, login: bool) -> Vec<(&'static str, &'static str)> {
    match (provider, login) {
        (Provider::Anthropic, true) => vec![ANTHROPIC_VERSION, LOGIN_BETA],
        (Provider::Anthropic, false) => vec![ANTHROPIC_VERSION],
        _ => Vec::new(),
    }
}

/// The same format as the adapters name it.
pub(super) const fn as_agents_name_it(dialect: Dialect) -> outlast_agent::Dialect {
    match dialect {
        Dialect::Anthropic => outlast_agent::Dialect::Messages,
        Dialect::Responses => outlast_agent::Dialect::Responses,
        Dialect::Chat => outlast_agent::Dialect::Chat,
        Dialect::Gemini => outlast_agent::Dialect::Gemini,
    }
}

/// The names in a list of models: `data[].id`, or Gemini's `models[].name`.
pub(super) fn listed(body: &[u8]) -> Vec<String> {
    let list: Value = serde_json::from_slice(body).unwrap_or_default();
    let ids = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    let names = list["models"].as_array().into_iter().flatten().filter_map(|model| model["name"].as_str());
    ids.chain(names.map(|name| name.strip_prefix("models/").unwrap_or(name))).map(str::to_owned).collect()
}

/// The model to ask: the first wanted one that is listed, by its name or, as agents abbreviate (`sonnet`), by a part of
/// it. Where nothing is listed, the first one wanted.
pub(super) fn choose(wanted: &[String], listed: &[String]) -> Option<String> {
    if listed.is_empty() {
        return wanted.first().cloned();
    }
    let exact = |name: &String| listed.iter().find(|model| *model == name);
    let part = |name: &String| listed.iter().find(|model| model.contains(name.as_str()));
    wanted.iter().find_map(|name| exact(name).or_else(|| part(name))).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_in_either_shape_and_chosen_by_name_or_part() {
        let anthropic = listed(br#"{"data":[{"id":"claude-opus-5"},{"id":"claude-sonnet-5"}]}"#);
        assert_eq!(listed(br#"{"models":[{"name":"models/gemini-3-pro"}]}"#), ["gemini-3-pro"]);
        assert_eq!(listed(b"not json"), Vec::<String>::new());
        let wanted = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(choose(&wanted(&["sonnet"]), &anthropic).as_deref(), Some("claude-sonnet-5"));
        assert_eq!(choose(&wanted(&["gone", "claude-opus-5"]), &anthropic).as_deref(), Some("claude-opus-5"));
        assert_eq!(choose(&wanted(&["gone"]), &anthropic), None);
        assert_eq!(choose(&wanted(&["local"]), &[]).as_deref(), Some("local"));
        assert_eq!(choose(&[], &anthropic), None);
    }
}
