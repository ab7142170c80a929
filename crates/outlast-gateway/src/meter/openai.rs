//! Usage in OpenAI Responses and Chat Completions, whose input counts include what the cache served.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use outlast_journal::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::{Reading, count, event_data, mentions_usage, parse, replace};
use crate::sse;

#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    error: Option<Value>,
    #[serde(borrow)]
    code: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    service_tier: Option<Cow<'a, str>>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    service_tier: Option<Cow<'a, str>>,
    usage: Option<Value>,
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    /// Moonshot puts the usage of a stream here.
    usage: Option<Value>,
}

static RESPONSE_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"response."));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\":\""));
static FINISH_SPACED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\": \""));

pub(super) fn responses_event(event: &[u8], reading: &mut Reading) {
    // As in Messages: a piece of an answer has no price of its own.
    if sse::is_named(event, |name| name.ends_with(b".delta")) {
        return;
    }
    let last = mentions_usage(event) && RESPONSE_END.find(event).is_some();
    if !last && ERROR.find(event).is_none() {
        return;
    }
    let data = event_data(event);
    let Some(parsed) = parse::<ResponseEvent<'_>>(&data) else {
        return;
    };
    match parsed.kind.as_deref() {
        Some(kind @ ("response.completed" | "response.incomplete" | "response.failed")) => {
            reading.ended = true;
            let Some(response) = parsed.response else {
                return;
            };
            if kind == "response.failed" {
                reading.error = Some(error_name(response.error.as_ref()));
            }
            take_response(response, reading);
        }
        Some("error") => {
            reading.error = Some(parsed.code.map_or_else(|| error_name(parsed.error.as_ref()), Cow::into_owned));
        }
        _ => {}
    }
}

pub(super) fn responses_document(document: &[u8], reading: &mut Reading) {
    if let Some(response) = parse::<Response<'_>>(document) {
        take_response(response, reading);
    }
}

pub(super) fn chat_event(event: &[u8], reading: &mut Reading) {
    let data = event_data(event);
    if data.trim_ascii() == b"[DONE]" {
        reading.ended = true;
        return;
    }
    let finishes = FINISH.find(&data).is_some() || FINISH_SPACED.find(&data).is_some();
    if !mentions_usage(&data) && !finishes && ERROR.find(&data).is_none() {
        return;
    }
    let Some(chunk) = parse::<Chunk<'_>>(&data) else {
        return;
    };
    reading.ended |= chunk.choices.iter().any(|c| c.finish_reason.is_some());
    if let Some(error) = chunk.error.as_ref().filter(|e| !e.is_null()) {
        reading.error = Some(error_name(Some(error)));
    }
    take_chunk(chunk, reading);
}

pub(super) fn chat_document(document: &[u8], reading: &mut Reading) {
    if let Some(chunk) = parse::<Chunk<'_>>(document) {
        take_chunk(chunk, reading);
    }
}

fn take_response(response: Response<'_>, reading: &mut Reading) {
    reading.model = response.model.map(Cow::into_owned);
    reading.service_tier = response.service_tier.map(Cow::into_owned);
    if let Some(usage) = &response.usage {
        take(
            &mut reading.usage,
            count(usage, &["input_tokens"]),
            count(usage, &["input_tokens_details", "cached_tokens"]),
            count(usage, &["input_tokens_details", "cache_write_tokens"]),
        );
        replace(&mut reading.usage.output, count(usage, &["output_tokens"]));
        replace(&mut reading.usage.reasoning, count(usage, &["output_tokens_details", "reasoning_tokens"]));
    }
}

fn take_chunk(chunk: Chunk<'_>, reading: &mut Reading) {
    if let Some(model) = chunk.model {
        reading.model = Some(model.into_owned());
    }
    if let Some(tier) = chunk.service_tier {
        reading.service_tier = Some(tier.into_owned());
    }
    let usage = chunk.usage.filter(Value::is_object).or_else(|| chunk.choices.into_iter().find_map(|c| c.usage));
    let Some(usage) = usage else { return };
    // DeepSeek and Moonshot name the cached part in their own way.
    let cached = count(&usage, &["prompt_tokens_details", "cached_tokens"])
        .or_else(|| count(&usage, &["prompt_cache_hit_tokens"]))
        .or_else(|| count(&usage, &["cached_tokens"]));
    let written = count(&usage, &["prompt_tokens_details", "cache_write_tokens"]);
    take(&mut reading.usage, count(&usage, &["prompt_tokens"]), cached, written);
    replace(&mut reading.usage.output, count(&usage, &["completion_tokens"]));
    replace(&mut reading.usage.reasoning, count(&usage, &["completion_tokens_details", "reasoning_tokens"]));
}

/// Takes the cached parts out of an input count that includes them.
fn take(usage: &mut Usage, input: Option<u64>, cached: Option<u64>, written: Option<u64>) {
    let Some(input) = input else { return };
    let cached_known = cached.unwrap_or(0);
    usage.input = Some(input.saturating_sub(cached_known).saturating_sub(written.unwrap_or(0)));
    usage.cache_read = cached;
    usage.cache_write_5m = written;
}

fn error_name(error: Option<&Value>) -> String {
    let name = error.and_then(|e| e.get("code").filter(|c| c.is_string()).or_else(|| e.get("type")));
    name.and_then(Value::as_str).unwrap_or("error").to_owned()
}
