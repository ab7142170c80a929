//! Anthropic Messages, as a client.

use serde_json::{Value, json};

use super::{Heard, Speaker, arguments, count, text};
use crate::wire::{Call, Item, Usage};

pub(super) fn body(speaker: &Speaker, items: &[Item]) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for item in items {
        let (role, block) = match item {
            Item::User { text } => ("user", json!({"type": "text", "text": text})),
            Item::Assistant { text } => ("assistant", json!({"type": "text", "text": text})),
            Item::Call(call) => {
                ("assistant", json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}))
            }
            Item::Result { id, text, .. } => {
                ("user", json!({"type": "tool_result", "tool_use_id": id, "content": text}))
            }
        };
        match messages.last_mut().filter(|last| last["role"] == role).and_then(|last| last["content"].as_array_mut()) {
            Some(content) => content.push(block),
            None => messages.push(json!({"role": role, "content": [block]})),
        }
    }
    let tools: Vec<Value> = speaker
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.name, "input_schema": tool.parameters}))
        .collect();
    json!({
        "model": speaker.model,
        "max_tokens": 8192,
        "system": [{"type": "text", "text": speaker.system}],
        "messages": messages,
        "tools": tools,
        "stream": speaker.streams,
    })
}

fn usage(value: &Value) -> Usage {
    Usage {
        input: count(value, "/input_tokens"),
        cache_read: count(value, "/cache_read_input_tokens"),
        cache_write: count(value, "/cache_creation_input_tokens"),
        output: count(value, "/output_tokens"),
        reasoning: 0,
    }
}

pub(super) fn hear_whole(answer: &Value) -> Result<Heard, String> {
    let content = answer.get("content").and_then(Value::as_array).ok_or("the answer has no content")?;
    let mut heard = Heard { usage: usage(&answer["usage"]), ..Heard::default() };
    for block in content {
        match text(block, "/type") {
            Some("text") => heard.text.push_str(text(block, "/text").unwrap_or_default()),
            Some("tool_use") => heard.call = Some(call(block, block["input"].clone())),
            _ => {}
        }
    }
    Ok(heard)
}

fn call(block: &Value, arguments: Value) -> Call {
    let word = |pointer: &str| text(block, pointer).unwrap_or_default().to_owned();
    Call { id: word("/id"), name: word("/name"), arguments }
}

pub(super) fn hear_events(events: &[Value]) -> Result<Heard, String> {
    let mut heard = Heard::default();
    let mut open: Option<(Value, String)> = None;
    let mut whole = false;
    for event in events {
        match text(event, "/type") {
            Some("message_start") => heard.usage = usage(&event["message"]["usage"]),
            Some("content_block_start") if text(event, "/content_block/type") == Some("tool_use") => {
                open = Some((event["content_block"].clone(), String::new()));
            }
            Some("content_block_delta") => {
                heard.text.push_str(text(event, "/delta/text").unwrap_or_default());
                if let (Some((_, json)), Some(piece)) = (&mut open, text(event, "/delta/partial_json")) {
                    json.push_str(piece);
                }
            }
            Some("content_block_stop") => {
                if let Some((block, json)) = open.take() {
                    heard.call = Some(call(&block, arguments(&json)?));
                }
            }
            // Cumulative: it replaces what the start said.
            Some("message_delta") => heard.usage = usage(&event["usage"]),
            Some("message_stop") => whole = true,
            _ => {}
        }
    }
    if whole { Ok(heard) } else { Err("the stream ended without message_stop".to_owned()) }
}
