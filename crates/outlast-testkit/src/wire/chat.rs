//! OpenAI Chat Completions: reads requests, writes answers. Also the error shape that Responses shares.

use bytes::Bytes;
use serde_json::{Value, json};

use super::sse::{declaring, pieces, plain, unnamed};
use super::{Answer, Call, Conversation, Dialect, Frame, Item, Tool, Usage};
use crate::{Error, Result};

/// Reads a request body.
///
/// # Errors
/// [`Error::Wire`] when `messages` is missing.
pub fn read_request(body: &Value) -> Result<Conversation> {
    let messages = body.get("messages").and_then(Value::as_array).ok_or_else(|| Error::Wire {
        dialect: Dialect::Chat,
        why: "missing required parameter: messages".to_owned(),
    })?;
    let mut system = String::new();
    let mut items = Vec::new();
    for message in messages {
        let text = text_of(message.get("content").unwrap_or(&Value::Null));
        match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => {
                system.push_str(&text);
                system.push('\n');
            }
            Some("assistant") => {
                if !text.is_empty() {
                    items.push(Item::Assistant { text });
                }
                let calls = message.get("tool_calls").and_then(Value::as_array);
                items.extend(calls.into_iter().flatten().map(|call| Item::Call(read_call(call))));
            }
            Some("tool") => items.push(Item::Result { id: string(message, "tool_call_id"), name: String::new(), text }),
            _ => items.push(Item::User { text }),
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
        schema: body.pointer("/response_format/json_schema/schema").cloned(),
    })
}

fn read_call(call: &Value) -> Call {
    let arguments = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or("{}");
    Call {
        id: string(call, "id"),
        name: call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        arguments: serde_json::from_str(arguments).unwrap_or(Value::Null),
    }
}

fn read_tool(tool: &Value) -> Tool {
    let function = tool.get("function").unwrap_or(tool);
    Tool { name: string(function, "name"), parameters: function.get("parameters").cloned().unwrap_or(Value::Null) }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn string(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// `prompt_tokens` includes the cached ones; there is no price for writing the cache.
fn usage_json(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.all_input(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    })
}

fn finish_reason(answer: &Answer) -> &'static str {
    if answer.call.is_some() { "tool_calls" } else { "stop" }
}

/// Writes an answer as one JSON body.
pub fn whole(answer: &Answer) -> Value {
    let mut message =
        json!({"role": "assistant", "content": (!answer.text.is_empty()).then_some(&answer.text), "refusal": null});
    if let Some(thinking) = &answer.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if let Some(call) = &answer.call {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        message["tool_calls"] = json!([{"id": call.id, "type": "function", "function": function}]);
    }
    json!({
        "id": format!("chatcmpl-{}", answer.seed),
        "object": "chat.completion",
        "created": answer.created_at,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer)}],
        "usage": usage_json(&answer.usage),
        "system_fingerprint": "fp_scripted",
    })
}

/// Writes an answer as server-sent events; the last chunk before `[DONE]` carries the usage.
pub fn frames(answer: &Answer) -> Vec<Frame> {
    let delta =
        |delta: Value| plain(unnamed(&chunk(answer, &json!([{"index": 0, "delta": delta, "finish_reason": null}]))));
    let mut frames = vec![delta(json!({"role": "assistant", "content": ""}))];
    for piece in answer.thinking.iter().flat_map(|thinking| pieces(thinking)) {
        frames.push(delta(json!({"reasoning_content": piece})));
    }
    for piece in pieces(&answer.text) {
        frames.push(delta(json!({"content": piece})));
    }
    if let Some(call) = &answer.call {
        let function = json!({"name": call.name, "arguments": ""});
        frames.push(delta(
            json!({"tool_calls": [{"index": 0, "id": call.id, "type": "function", "function": function}]}),
        ));
        for piece in pieces(&call.arguments.to_string()) {
            frames.push(delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})));
        }
    }
    let end = json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(answer)}]);
    frames.push(plain(unnamed(&chunk(answer, &end))));
    let mut usage = chunk(answer, &json!([]));
    usage["usage"] = usage_json(&answer.usage);
    frames.push(declaring(unnamed(&usage), answer.usage));
    frames.push(plain(Bytes::from_static(b"data: [DONE]\n\n")));
    frames
}

fn chunk(answer: &Answer, choices: &Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.seed),
        "object": "chat.completion.chunk",
        "created": answer.created_at,
        "model": answer.model,
        "system_fingerprint": "fp_scripted",
        "choices": choices,
    })
}

/// The body of a refusal, as OpenAI writes it.
pub fn error_body(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
}

/// An overload that arrives inside a stream.
pub fn error_frame(message: &str) -> Bytes {
    unnamed(&error_body("server_error", message))
}
