//! Gemini generateContent, as a client.

use serde_json::{Value, json};

use super::{Heard, Speaker, count, text};
use crate::wire::{Call, Item, Usage};

pub(super) fn body(speaker: &Speaker, items: &[Item]) -> Value {
    let contents: Vec<Value> = items
        .iter()
        .map(|item| {
            let (role, part) = match item {
                Item::User { text } => ("user", json!({"text": text})),
                Item::Assistant { text } => ("model", json!({"text": text})),
                Item::Call(call) => {
                    ("model", json!({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}))
                }
                Item::Result { id, name, text } => {
                    ("user", json!({"functionResponse": {"id": id, "name": name, "response": {"output": text}}}))
                }
            };
            json!({"role": role, "parts": [part]})
        })
        .collect();
    let declarations: Vec<Value> = speaker
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.name, "parametersJsonSchema": tool.parameters}))
        .collect();
    json!({
        "contents": contents,
        "systemInstruction": {"parts": [{"text": speaker.system}]},
        "tools": [{"functionDeclarations": declarations}],
    })
}

pub(super) fn hear_events(events: &[Value]) -> Result<Heard, String> {
    let mut heard = Heard::default();
    let mut whole = false;
    for event in events {
        let cache_read = count(event, "/usageMetadata/cachedContentTokenCount");
        let reasoning = count(event, "/usageMetadata/thoughtsTokenCount");
        heard.usage = Usage {
            input: count(event, "/usageMetadata/promptTokenCount").saturating_sub(cache_read),
            cache_read,
            cache_write: 0,
            output: count(event, "/usageMetadata/candidatesTokenCount") + reasoning,
            reasoning,
        };
        whole |= text(event, "/candidates/0/finishReason").is_some();
        let parts = event.pointer("/candidates/0/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            if part.get("thought").and_then(Value::as_bool) == Some(true) {
                continue;
            }
            heard.text.push_str(text(part, "/text").unwrap_or_default());
            if let Some(call) = part.get("functionCall") {
                let word = |pointer: &str| text(call, pointer).unwrap_or_default().to_owned();
                heard.call = Some(Call { id: word("/id"), name: word("/name"), arguments: call["args"].clone() });
            }
        }
    }
    if whole { Ok(heard) } else { Err("the stream ended without a finishReason".to_owned()) }
}
