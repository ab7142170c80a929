//! Gemini generateContent and streamGenerateContent: reads requests, writes answers.
//!
//! Model and streaming are said in the URL, so the caller fills them in.

use bytes::Bytes;
use serde_json::{Value, json};

use super::sse::{declaring, pieces, unnamed};
use super::{Answer, Call, Conversation, Dialect, Frame, Item, Tool, Usage};
use crate::{Error, Result};

/// Reads a request body.
///
/// # Errors
/// [`Error::Wire`] when `contents` is missing.
pub fn read_request(body: &Value) -> Result<Conversation> {
    let contents = body
        .get("contents")
        .and_then(Value::as_array)
        .ok_or_else(|| Error::Wire { dialect: Dialect::Gemini, why: "contents is not specified".to_owned() })?;
    let mut items = Vec::new();
    for content in contents {
        let model = content.get("role").and_then(Value::as_str) == Some("model");
        for part in content.get("parts").and_then(Value::as_array).into_iter().flatten() {
            items.extend(read_part(part, model));
        }
    }
    let declarations = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    let declarations =
        declarations.filter_map(|tool| tool.get("functionDeclarations").and_then(Value::as_array)).flatten();
    Ok(Conversation {
        model: String::new(),
        stream: false,
        system: body.pointer("/systemInstruction/parts").map(text_of).unwrap_or_default(),
        tools: declarations.map(read_tool).collect(),
        items,
        schema: body
            .pointer("/generationConfig/responseJsonSchema")
            .or(body.pointer("/generationConfig/responseSchema"))
            .cloned(),
    })
}

fn read_part(part: &Value, model: bool) -> Option<Item> {
    if part.get("thought").and_then(Value::as_bool).unwrap_or(false) {
        return None;
    }
    if let Some(call) = part.get("functionCall") {
        let arguments = call.get("args").cloned().unwrap_or(Value::Null);
        return Some(Item::Call(Call { id: string(call, "id"), name: string(call, "name"), arguments }));
    }
    if let Some(result) = part.get("functionResponse") {
        let text = result.get("response").map(Value::to_string).unwrap_or_default();
        return Some(Item::Result { id: string(result, "id"), name: string(result, "name"), text });
    }
    let text = part.get("text").and_then(Value::as_str)?.to_owned();
    Some(if model { Item::Assistant { text } } else { Item::User { text } })
}

fn read_tool(tool: &Value) -> Tool {
    let parameters = tool.get("parametersJsonSchema").or(tool.get("parameters")).cloned().unwrap_or(Value::Null);
    Tool { name: string(tool, "name"), parameters }
}

fn text_of(parts: &Value) -> String {
    let parts = parts.as_array().into_iter().flatten();
    parts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")
}

fn string(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// `promptTokenCount` includes the cached tokens, `candidatesTokenCount` excludes the thoughts.
fn usage_json(usage: &Usage) -> Value {
    json!({
        "promptTokenCount": usage.all_input(),
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.total(),
    })
}

fn chunk(answer: &Answer, parts: &[Value], finish: Option<&str>, usage: &Usage) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(reason) = finish {
        candidate["finishReason"] = json!(reason);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage_json(usage),
        "modelVersion": answer.model,
        "responseId": answer.seed,
    })
}

fn thought(text: &str) -> Value {
    json!({"text": text, "thought": true})
}

fn call_part(call: &Call) -> Value {
    json!({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}})
}

/// Writes an answer as one JSON body.
pub fn whole(answer: &Answer) -> Value {
    let mut parts: Vec<Value> = answer.thinking.iter().map(|text| thought(text)).collect();
    if !answer.text.is_empty() {
        parts.push(json!({"text": answer.text}));
    }
    parts.extend(answer.call.iter().map(call_part));
    chunk(answer, &parts, Some("STOP"), &answer.usage)
}

/// Writes an answer as server-sent events; every one carries the usage so far, the last one all of it.
pub fn frames(answer: &Answer) -> Vec<Frame> {
    let mut parts: Vec<Value> =
        answer.thinking.iter().flat_map(|text| pieces(text)).map(|piece| thought(&piece)).collect();
    parts.extend(pieces(&answer.text).into_iter().map(|piece| json!({"text": piece})));
    parts.extend(answer.call.iter().map(call_part));
    if parts.is_empty() {
        parts.push(json!({"text": ""}));
    }
    let last = parts.len() - 1;
    let opening = Usage { output: 0, reasoning: 0, ..answer.usage };
    let frame = |(index, part): (usize, &Value)| {
        let (finish, usage) = if index == last { (Some("STOP"), answer.usage) } else { (None, opening) };
        declaring(unnamed(&chunk(answer, std::slice::from_ref(part), finish, &usage)), usage)
    };
    parts.iter().enumerate().map(frame).collect()
}

/// The body of a refusal, as Google writes it.
pub fn error_body(status: u16, kind: &str, message: &str) -> Value {
    json!({"error": {"code": status, "message": message, "status": kind}})
}

/// An overload that arrives inside a stream.
pub fn error_frame(message: &str) -> Bytes {
    unnamed(&error_body(503, "UNAVAILABLE", message))
}
