//! The agent's side of the wire formats: requests written, answers read. Independent of the provider's side, so that a
//! mistake in one of them shows.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

use super::hands::tools;
use super::options::Options;
use crate::wire::{Call, Dialect, Item, Tool, Usage};
use crate::{Error, Result};

/// One turn of the model, as it arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    pub text: String,
    pub call: Option<Call>,
    pub usage: Usage,
}

/// How this agent speaks to its gateway.
pub(super) struct Speaker {
    dialect: Dialect,
    /// Host and port.
    pub authority: String,
    prefix: String,
    key: String,
    model: String,
    pub streams: bool,
    system: String,
    tools: Vec<Tool>,
}

impl Speaker {
    /// Takes gateway and key from options and environment.
    ///
    /// # Errors
    /// [`Error::Usage`] when one is missing or the URL is not plain HTTP.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let missing = |name: &str| Error::Usage(format!("{name} is not set"));
        let url = options.gateway_url.clone().ok_or_else(|| missing("OUTLAST_GATEWAY_URL"))?;
        let key = std::env::var("OUTLAST_KEY").map_err(|_| missing("OUTLAST_KEY"))?;
        let rest =
            url.strip_prefix("http://").ok_or_else(|| Error::Usage(format!("{url} is not an http:// address")))?;
        let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        let cwd = std::env::current_dir().unwrap_or_default();
        Ok(Self {
            dialect: options.dialect(),
            authority: authority.to_owned(),
            prefix: if prefix.is_empty() { String::new() } else { format!("/{prefix}") },
            key,
            model: options.model.clone(),
            streams: !options.no_stream,
            system: format!("You are a scripted agent.\nWorking directory: {}", cwd.display()),
            tools: tools(),
        })
    }

    /// Path and query of the request.
    pub(super) fn path(&self) -> String {
        let tail = match self.dialect {
            Dialect::Anthropic => "/v1/messages".to_owned(),
            Dialect::Responses => "/v1/responses".to_owned(),
            Dialect::Chat => "/v1/chat/completions".to_owned(),
            Dialect::Gemini if self.streams => format!("/v1beta/models/{}:streamGenerateContent?alt=sse", self.model),
            Dialect::Gemini => format!("/v1beta/models/{}:generateContent", self.model),
        };
        format!("{}{tail}", self.prefix)
    }

    /// The headers that carry key and version.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        match self.dialect {
            Dialect::Anthropic => vec![("x-api-key", self.key.clone()), ("anthropic-version", "2023-06-01".to_owned())],
            Dialect::Responses | Dialect::Chat => vec![("authorization", format!("Bearer {}", self.key))],
            Dialect::Gemini => vec![("x-goog-api-key", self.key.clone())],
        }
    }

    /// The body of the request.
    pub(super) fn body(&self, items: &[Item]) -> Value {
        match self.dialect {
            Dialect::Anthropic => anthropic::body(self, items),
            Dialect::Responses => responses::body(self, items),
            Dialect::Chat => chat::body(self, items),
            Dialect::Gemini => gemini::body(self, items),
        }
    }

    /// Reads a whole answer.
    pub(super) fn hear_whole(&self, text: &str) -> Result<Heard> {
        let answer: Value = serde_json::from_str(text).map_err(|error| self.bad(error.to_string()))?;
        let heard = match self.dialect {
            Dialect::Anthropic => anthropic::hear_whole(&answer),
            Dialect::Responses => responses::hear_whole(&answer),
            Dialect::Chat => chat::hear_whole(&answer),
            Dialect::Gemini => gemini::hear_events(std::slice::from_ref(&answer)),
        };
        heard.map_err(|why| self.bad(why))
    }

    /// Reads a streamed answer.
    pub(super) fn hear_events(&self, events: &[Value]) -> Result<Heard> {
        if let Some(error) = events.iter().find(|event| event.get("error").is_some_and(|error| !error.is_null())) {
            return Err(Error::Refused { status: 200, body: error.to_string(), retry_after: None });
        }
        if let Some(broken) = events.iter().filter_map(Value::as_str).find(|data| *data != "[DONE]") {
            return Err(self.bad(format!("an event is not JSON: {broken}")));
        }
        let heard = match self.dialect {
            Dialect::Anthropic => anthropic::hear_events(events),
            Dialect::Responses => responses::hear_events(events),
            Dialect::Chat => chat::hear_events(events),
            Dialect::Gemini => gemini::hear_events(events),
        };
        heard.map_err(|why| self.bad(why))
    }

    fn bad(&self, why: String) -> Error {
        Error::Wire { dialect: self.dialect, why }
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// The arguments of a call, out of their JSON text.
fn arguments(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("the arguments of a call are not JSON: {error}"))
}
