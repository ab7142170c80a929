//! OpenAI Chat Completions, as a client.

use serde_json::{Value, json};

use super::{Heard, Speaker, arguments, count, text};
use crate::wire::{Call, Item, Usage};

pub(super) fn body(speaker: &Speaker, items: &[Item]) -> Value {
    let mut messages = vec![json!({"role": "system", "content": speaker.system})];
    messages.extend(items.iter().map(|item| match item {
        Item::User { text } => json!({"role": "user", "content": text}),
        Item::Assistant { text } => json!({"role": "assistant", "content": text}),
        Item::Call(call) => {
            let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": call.id, "type": "function", "function": function}]})
        }
        Item::Result { id, text, .. } => json!({"role": "tool", "tool_call_id": id, "content": text}),
    }));
    let tools: Vec<Value> = speaker
        .tools
        .iter()
        .map(|tool| json!({"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}))
        .collect();
    let mut body = json!({"model": speaker.model, "messages": messages, "tools": tools, "stream": speaker.streams});
    if speaker.streams {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

fn usage(value: &Value) -> Usage {
    let cache_read = count(value, "/prompt_tokens_details/cached_tokens");
    Usage {
        input: count(value, "/prompt_tokens").saturating_sub(cache_read),
        cache_read,
        cache_write: 0,
        output: count(value, "/completion_tokens"),
        reasoning: count(value, "/completion_tokens_details/reasoning_tokens"),
    }
}

pub(super) fn hear_whole(answer: &Value) -> Result<Heard, String> {
    let message = answer.pointer("/choices/0/message").ok_or("the answer has no message")?;
    let call = match message.pointer("/tool_calls/0") {
        Some(call) => Some(Call {
            id: text(call, "/id").unwrap_or_default().to_owned(),
            name: text(call, "/function/name").unwrap_or_default().to_owned(),
            arguments: arguments(text(call, "/function/arguments").unwrap_or_default())?,
        }),
        None => None,
    };
    Ok(Heard { text: text(message, "/content").unwrap_or_default().to_owned(), call, usage: usage(&answer["usage"]) })
}

pub(super) fn hear_events(events: &[Value]) -> Result<Heard, String> {
    let mut heard = Heard::default();
    let mut json = String::new();
    let mut whole = false;
    for event in events {
        whole |= event.as_str() == Some("[DONE]");
        if event.get("usage").is_some_and(Value::is_object) {
            heard.usage = usage(&event["usage"]);
        }
        heard.text.push_str(text(event, "/choices/0/delta/content").unwrap_or_default());
        let Some(piece) = event.pointer("/choices/0/delta/tool_calls/0") else { continue };
        if let Some(name) = text(piece, "/function/name") {
            let id = text(piece, "/id").unwrap_or_default().to_owned();
            heard.call = Some(Call { id, name: name.to_owned(), arguments: Value::Null });
        }
        json.push_str(text(piece, "/function/arguments").unwrap_or_default());
    }
    if let Some(call) = &mut heard.call {
        call.arguments = arguments(&json)?;
    }
    if whole { Ok(heard) } else { Err("the stream ended without [DONE]".to_owned()) }
}
