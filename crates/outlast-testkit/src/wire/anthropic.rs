//! Anthropic Messages: reads requests, writes answers. Shapes as in the public API reference and as real clients send.

use bytes::Bytes;
use serde_json::{Value, json};

use super::sse::{declaring, named, pieces, plain};
use super::{Answer, Call, Conversation, Dialect, Frame, Item, Tool, Usage};
use crate::{Error, Result};

/// Reads a request body.
///
/// # Errors
/// [`Error::Wire`] when `messages` is missing.
pub fn read_request(body: &Value) -> Result<Conversation> {
    let messages = body
        .get("messages")
        .and_then(Value::as_array)
        .ok_or_else(|| Error::Wire { dialect: Dialect::Anthropic, why: "messages: field required".to_owned() })?;
    let mut system = text_of(body.get("system").unwrap_or(&Value::Null));
    let mut items = Vec::new();
    for message in messages {
        let content = message.get("content").unwrap_or(&Value::Null);
        match message.get("role").and_then(Value::as_str) {
            Some("assistant") => read_assistant(content, &mut items),
            // Recent clients put system texts into the list of messages.
            Some("system") => {
                system.push('\n');
                system.push_str(&text_of(content));
            }
            _ => read_user(content, &mut items),
        }
    }
    Ok(Conversation {
        model: string(body, "model"),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        system,
        tools: body
            .get("tools")
            .and_then(Value::as_array)
            .map(|tools| tools.iter().map(read_tool).collect())
            .unwrap_or_default(),
        items,
        schema: body.pointer("/output_config/format/schema").cloned(),
    })
}

fn read_tool(tool: &Value) -> Tool {
    Tool { name: string(tool, "name"), parameters: tool.get("input_schema").cloned().unwrap_or(Value::Null) }
}

fn read_user(content: &Value, items: &mut Vec<Item>) {
    let Some(blocks) = content.as_array() else {
        items.push(Item::User { text: text_of(content) });
        return;
    };
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("tool_result") => items.push(Item::Result {
                id: string(block, "tool_use_id"),
                name: String::new(),
                text: text_of(block.get("content").unwrap_or(&Value::Null)),
            }),
            Some("text") => items.push(Item::User { text: string(block, "text") }),
            _ => {}
        }
    }
}

fn read_assistant(content: &Value, items: &mut Vec<Item>) {
    let Some(blocks) = content.as_array() else {
        items.push(Item::Assistant { text: text_of(content) });
        return;
    };
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => items.push(Item::Call(Call {
                id: string(block, "id"),
                name: string(block, "name"),
                arguments: block.get("input").cloned().unwrap_or(Value::Null),
            })),
            Some("text") => items.push(Item::Assistant { text: string(block, "text") }),
            _ => {}
        }
    }
}

/// A string, or the texts of a list of blocks, joined.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn string(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output,
        "service_tier": "standard",
    })
}

fn stop_reason(answer: &Answer) -> &'static str {
    if answer.call.is_some() { "tool_use" } else { "end_turn" }
}

/// A stand-in for the provider's signature over its thinking: opaque to every client.
fn signature(answer: &Answer) -> String {
    format!("c2NyaXB0ZWQ{}==", answer.seed)
}

/// Writes an answer as one JSON body.
pub fn whole(answer: &Answer) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &answer.thinking {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": signature(answer)}));
    }
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text}));
    }
    if let Some(call) = &answer.call {
        content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}));
    }
    json!({
        "id": format!("msg_{}", answer.seed),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop_reason(answer),
        "stop_sequence": null,
        "usage": usage_json(&answer.usage),
    })
}

/// Writes an answer as server-sent events.
pub fn frames(answer: &Answer) -> Vec<Frame> {
    let opening = Usage { output: 1, reasoning: 0, ..answer.usage };
    let start = json!({"type": "message_start", "message": {
        "id": format!("msg_{}", answer.seed), "type": "message", "role": "assistant", "model": answer.model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage_json(&opening),
    }});
    let mut frames =
        vec![declaring(named("message_start", &start), opening), plain(named("ping", &json!({"type": "ping"})))];
    let mut index = 0;
    if let Some(thinking) = &answer.thinking {
        let mut deltas: Vec<Value> =
            pieces(thinking).into_iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature(answer)}));
        block(&mut frames, &mut index, &json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !answer.text.is_empty() {
        let deltas =
            pieces(&answer.text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        block(&mut frames, &mut index, &json!({"type": "text", "text": ""}), deltas);
    }
    if let Some(call) = &answer.call {
        let deltas = pieces(&call.arguments.to_string())
            .into_iter()
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect();
        block(
            &mut frames,
            &mut index,
            &json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}),
            deltas,
        );
    }
    let end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
        "usage": usage_json(&answer.usage),
    });
    frames.push(declaring(named("message_delta", &end), answer.usage));
    frames.push(plain(named("message_stop", &json!({"type": "message_stop"}))));
    frames
}

fn block(frames: &mut Vec<Frame>, index: &mut usize, start: &Value, deltas: Vec<Value>) {
    let at = *index;
    let start = json!({"type": "content_block_start", "index": at, "content_block": start});
    frames.push(plain(named("content_block_start", &start)));
    for delta in deltas {
        let delta = json!({"type": "content_block_delta", "index": at, "delta": delta});
        frames.push(plain(named("content_block_delta", &delta)));
    }
    frames.push(plain(named("content_block_stop", &json!({"type": "content_block_stop", "index": at}))));
    *index += 1;
}

/// The body of a refusal.
pub fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// An overload that arrives inside a stream.
pub fn error_frame(message: &str) -> Bytes {
    named("error", &error_body("overloaded_error", message))
}
