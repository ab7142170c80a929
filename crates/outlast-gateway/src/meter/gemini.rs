//! Usage in Gemini answers: every part of a stream may carry it, the last one counts.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::Value;

use super::{Reading, count, event_data, mentions_usage, parse, replace};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    model_version: Option<Cow<'a, str>>,
    usage_metadata: Option<Value>,
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

/// Without `alt=sse` a stream is one JSON array whose elements arrive one by one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Document<'a> {
    #[serde(borrow)]
    Stream(Vec<Part<'a>>),
    #[serde(borrow)]
    Whole(Part<'a>),
}

static MARKS: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new("\"finishReason\""), Finder::new("\"error\"")]);

pub(super) fn event(event: &[u8], reading: &mut Reading) {
    if !mentions_usage(event) && MARKS.iter().all(|m| m.find(event).is_none()) {
        return;
    }
    let data = event_data(event);
    if let Some(part) = parse::<Part<'_>>(&data) {
        take(part, reading);
    }
}

pub(super) fn document(document: &[u8], reading: &mut Reading) {
    match parse::<Document<'_>>(document) {
        Some(Document::Stream(parts)) => parts.into_iter().for_each(|part| take(part, reading)),
        Some(Document::Whole(part)) => take(part, reading),
        None => {}
    }
}

fn take(part: Part<'_>, reading: &mut Reading) {
    if let Some(model) = part.model_version {
        reading.model = Some(model.into_owned());
    }
    reading.ended |= part.candidates.iter().any(|c| c.finish_reason.is_some());
    if let Some(error) = &part.error {
        reading.error = Some(error.get("status").and_then(Value::as_str).unwrap_or("error").to_owned());
    }
    let Some(usage) = &part.usage_metadata else {
        return;
    };
    let slots = &mut reading.usage;
    let cached = count(usage, &["cachedContentTokenCount"]);
    let tool_input = count(usage, &["toolUsePromptTokenCount"]).unwrap_or(0);
    let fresh = count(usage, &["promptTokenCount"]).map(|n| n.saturating_sub(cached.unwrap_or(0)) + tool_input);
    replace(&mut slots.input, fresh);
    replace(&mut slots.cache_read, cached);
    // Thoughts are billed as output and counted beside the candidates, not among them.
    let thoughts = count(usage, &["thoughtsTokenCount"]);
    let answer = count(usage, &["candidatesTokenCount"]);
    let output = (answer.is_some() || thoughts.is_some()).then(|| answer.unwrap_or(0) + thoughts.unwrap_or(0));
    replace(&mut slots.output, output);
    replace(&mut slots.reasoning, thoughts);
}
