//! Usage in Anthropic Messages: `message_start` has the first count, `message_delta` replaces it.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::Value;

use super::{Reading, count, event_data, mentions_usage, parse, replace};
use crate::sse;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: Option<Value>,
}

static STOP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("message_stop"));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));

pub(super) fn event(event: &[u8], reading: &mut Reading) {
    // Nearly all of a stream is pieces of text, which say nothing of what they cost and need not be searched for it.
    if sse::is_named(event, |name| name == b"content_block_delta") {
        return;
    }
    if !mentions_usage(event) && STOP.find(event).is_none() && ERROR.find(event).is_none() {
        return;
    }
    let data = event_data(event);
    let Some(parsed) = parse::<Event<'_>>(&data) else {
        return;
    };
    match parsed.kind.as_deref() {
        Some("message_start") => {
            let Some(message) = parsed.message else {
                return;
            };
            reading.model = message.model.map(Cow::into_owned);
            take(message.usage.as_ref(), reading);
        }
        Some("message_delta") => take(parsed.usage.as_ref(), reading),
        Some("message_stop") => reading.ended = true,
        Some("error") => {
            let kind = parsed.error.as_ref().and_then(|e| e.get("type")).and_then(Value::as_str);
            reading.error = Some(kind.unwrap_or("error").to_owned());
        }
        _ => {}
    }
}

pub(super) fn document(document: &[u8], reading: &mut Reading) {
    let Some(message) = parse::<Message<'_>>(document) else {
        return;
    };
    reading.model = message.model.map(Cow::into_owned);
    take(message.usage.as_ref(), reading);
}

fn take(usage: Option<&Value>, reading: &mut Reading) {
    let Some(usage) = usage else { return };
    replace(&mut reading.web_searches, count(usage, &["server_tool_use", "web_search_requests"]));
    let slots = &mut reading.usage;
    replace(&mut slots.input, count(usage, &["input_tokens"]));
    replace(&mut slots.cache_read, count(usage, &["cache_read_input_tokens"]));
    replace(&mut slots.output, count(usage, &["output_tokens"]));
    replace(&mut slots.reasoning, count(usage, &["output_tokens_details", "thinking_tokens"]));

    let hour = count(usage, &["cache_creation", "ephemeral_1h_input_tokens"]);
    let minutes = count(usage, &["cache_creation", "ephemeral_5m_input_tokens"]);
    let total = count(usage, &["cache_creation_input_tokens"])
        .or_else(|| total(slots.cache_write_5m, slots.cache_write_1h))
        .or_else(|| total(minutes, hour));
    let Some(total) = total else { return };
    if hour.is_some() || minutes.is_some() {
        reading.split_unknown = false;
        slots.cache_write_1h = Some(hour.unwrap_or(0).min(total));
    } else if slots.cache_write_1h.is_none() {
        reading.split_unknown = total > 0;
    }
    slots.cache_write_5m = Some(total.saturating_sub(slots.cache_write_1h.unwrap_or(0)));
}

fn total(minutes: Option<u64>, hour: Option<u64>) -> Option<u64> {
    (minutes.is_some() || hour.is_some()).then(|| minutes.unwrap_or(0).saturating_add(hour.unwrap_or(0)))
}
