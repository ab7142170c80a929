//! OpenAI Responses: reads requests, writes answers.

use bytes::Bytes;
use serde_json::{Value, json};

use super::sse::{declaring, named, pieces, plain};
use super::{Answer, Call, Conversation, Dialect, Frame, Item, Tool, Usage};
use crate::{Error, Result};

/// Reads a request body.
///
/// # Errors
/// [`Error::Wire`] when `input` is missing.
pub fn read_request(body: &Value) -> Result<Conversation> {
    let input = body.get("input").ok_or_else(|| Error::Wire {
        dialect: Dialect::Responses,
        why: "missing required parameter: input".to_owned(),
    })?;
    let mut system = string(body, "instructions");
    let mut items = Vec::new();
    let mut tools: Vec<Tool> = read_tools(body.get("tools"));
    if let Some(text) = input.as_str() {
        items.push(Item::User { text: text.to_owned() });
    }
    for item in input.as_array().into_iter().flatten() {
        match item.get("type").and_then(Value::as_str).unwrap_or("message") {
            "message" => read_message(item, &mut system, &mut items),
            "function_call" => items.push(Item::Call(Call {
                id: string(item, "call_id"),
                name: string(item, "name"),
                arguments: serde_json::from_str(&string(item, "arguments")).unwrap_or(Value::Null),
            })),
            "custom_tool_call" => items.push(Item::Call(Call {
                id: string(item, "call_id"),
                name: string(item, "name"),
                arguments: json!(string(item, "input")),
            })),
            "function_call_output" | "custom_tool_call_output" => items.push(Item::Result {
                id: string(item, "call_id"),
                name: String::new(),
                text: text_of(item.get("output").unwrap_or(&Value::Null)),
            }),
            // Models of the catalogue get their tools inside the input instead of at the top, by namespace.
            "additional_tools" => {
                for namespace in item.get("tools").and_then(Value::as_array).into_iter().flatten() {
                    tools.extend(read_tools(namespace.get("tools")));
                }
            }
            _ => {}
        }
    }
    Ok(Conversation {
        model: string(body, "model"),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        system,
        tools,
        items,
        schema: body.pointer("/text/format/schema").cloned(),
    })
}

fn read_message(item: &Value, system: &mut String, items: &mut Vec<Item>) {
    let text = text_of(item.get("content").unwrap_or(&Value::Null));
    match item.get("role").and_then(Value::as_str) {
        Some("assistant") => items.push(Item::Assistant { text }),
        Some("system" | "developer") => {
            system.push('\n');
            system.push_str(&text);
        }
        _ => items.push(Item::User { text }),
    }
}

fn read_tools(tools: Option<&Value>) -> Vec<Tool> {
    let tools = tools.and_then(Value::as_array).into_iter().flatten();
    tools
        .map(|tool| Tool {
            name: string(tool, "name"),
            parameters: tool.get("parameters").cloned().unwrap_or(Value::Null),
        })
        .collect()
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

/// `input_tokens` includes the cached ones; there is no price for writing the cache.
fn usage_json(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.all_input(),
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

/// The output items of an answer, in order.
fn output(answer: &Answer) -> Vec<Value> {
    let seed = &answer.seed;
    let mut items = Vec::new();
    if let Some(thinking) = &answer.thinking {
        let summary = json!([{"type": "summary_text", "text": thinking}]);
        items.push(json!({"type": "reasoning", "id": format!("rs_{seed}"), "summary": summary, "encrypted_content": format!("c2NyaXB0ZWQ{seed}==")}));
    }
    if !answer.text.is_empty() {
        let content = json!([{"type": "output_text", "text": answer.text, "annotations": []}]);
        items.push(json!({"type": "message", "id": format!("msg_{seed}"), "status": "completed", "role": "assistant", "content": content}));
    }
    match &answer.call {
        Some(Call { id, name, arguments: Value::String(input) }) => items.push(json!({
            "type": "custom_tool_call", "id": format!("ctc_{seed}"), "status": "completed",
            "call_id": id, "name": name, "input": input,
        })),
        Some(Call { id, name, arguments }) => items.push(json!({
            "type": "function_call", "id": format!("fc_{seed}"), "status": "completed",
            "call_id": id, "name": name, "arguments": arguments.to_string(),
        })),
        None => {}
    }
    items
}

fn response(answer: &Answer, status: &str, output: &[Value], usage: &Value) -> Value {
    json!({
        "id": format!("resp_{}", answer.seed),
        "object": "response",
        "created_at": answer.created_at,
        "status": status,
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": true,
        "error": null,
        "incomplete_details": null,
        "usage": usage,
    })
}

/// Writes an answer as one JSON body.
pub fn whole(answer: &Answer) -> Value {
    response(answer, "completed", &output(answer), &usage_json(&answer.usage))
}

/// Numbers the events of one stream.
struct Events {
    frames: Vec<Frame>,
}

impl Events {
    fn push(&mut self, kind: &str, mut data: Value, usage: Option<Usage>) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.frames.len());
        let bytes = named(kind, &data);
        self.frames.push(usage.map_or_else(|| plain(bytes.clone()), |usage| declaring(bytes.clone(), usage)));
    }
}

/// Writes an answer as server-sent events; only the last one carries the usage.
pub fn frames(answer: &Answer) -> Vec<Frame> {
    let mut events = Events { frames: Vec::new() };
    let opening = response(answer, "in_progress", &[], &Value::Null);
    events.push("response.created", json!({"response": opening}), None);
    events.push("response.in_progress", json!({"response": opening}), None);
    for (index, item) in output(answer).iter().enumerate() {
        output_item(&mut events, index, item);
    }
    let whole = whole(answer);
    events.push("response.completed", json!({"response": whole}), Some(answer.usage));
    events.frames
}

fn output_item(events: &mut Events, index: usize, item: &Value) {
    let id = string(item, "id");
    let mut opening = item.clone();
    match string(item, "type").as_str() {
        "message" => {
            opening["content"] = json!([]);
            opening["status"] = json!("in_progress");
            events.push("response.output_item.added", json!({"output_index": index, "item": opening}), None);
            let place = json!({"item_id": id, "output_index": index, "content_index": 0});
            let text = text_of(&item["content"]);
            events.push(
                "response.content_part.added",
                with(&place, "part", json!({"type": "output_text", "text": "", "annotations": []})),
                None,
            );
            for piece in pieces(&text) {
                events.push("response.output_text.delta", with(&place, "delta", json!(piece)), None);
            }
            events.push("response.output_text.done", with(&place, "text", json!(text)), None);
            events.push("response.content_part.done", with(&place, "part", item["content"][0].clone()), None);
        }
        "function_call" => {
            let event = "response.function_call_arguments";
            call_item(events, index, item, "arguments", event);
        }
        "custom_tool_call" => {
            let event = "response.custom_tool_call_input";
            call_item(events, index, item, "input", event);
        }
        _ => {
            opening["summary"] = json!([]);
            events.push("response.output_item.added", json!({"output_index": index, "item": opening}), None);
            let place = json!({"item_id": id, "output_index": index, "summary_index": 0});
            let text = text_of(&item["summary"]);
            events.push(
                "response.reasoning_summary_part.added",
                with(&place, "part", json!({"type": "summary_text", "text": ""})),
                None,
            );
            for piece in pieces(&text) {
                events.push("response.reasoning_summary_text.delta", with(&place, "delta", json!(piece)), None);
            }
            events.push("response.reasoning_summary_text.done", with(&place, "text", json!(text)), None);
        }
    }
    events.push("response.output_item.done", json!({"output_index": index, "item": item}), None);
}

/// A tool call: its item without the text in `field`, the text in pieces, the text whole.
fn call_item(events: &mut Events, index: usize, item: &Value, field: &str, event: &str) {
    let mut opening = item.clone();
    opening[field] = json!("");
    opening["status"] = json!("in_progress");
    events.push("response.output_item.added", json!({"output_index": index, "item": opening}), None);
    let place = json!({"item_id": item["id"], "output_index": index});
    let text = string(item, field);
    for piece in pieces(&text) {
        events.push(&format!("{event}.delta"), with(&place, "delta", json!(piece)), None);
    }
    events.push(&format!("{event}.done"), with(&place, field, json!(text)), None);
}

fn with(place: &Value, key: &str, value: Value) -> Value {
    let mut event = place.clone();
    event[key] = value;
    event
}

/// A failure that arrives inside a stream.
pub fn error_frame(message: &str) -> Bytes {
    let error = json!({"code": "server_is_overloaded", "message": message});
    let response =
        json!({"id": "resp_failed", "object": "response", "status": "failed", "error": error, "usage": null});
    named("response.failed", &json!({"type": "response.failed", "sequence_number": 0, "response": response}))
}
