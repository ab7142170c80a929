//! OpenAI Responses, as a client.

use serde_json::{Value, json};

use super::{Heard, Speaker, arguments, count, text};
use crate::wire::{Call, Item, Usage};

pub(super) fn body(speaker: &Speaker, items: &[Item]) -> Value {
    let input: Vec<Value> = items
        .iter()
        .map(|item| match item {
            Item::User { text } => json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
            Item::Assistant { text } => {
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
            }
            Item::Call(call) => {
                json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments.to_string()})
            }
            Item::Result { id, text, .. } => json!({"type": "function_call_output", "call_id": id, "output": text}),
        })
        .collect();
    let tools: Vec<Value> = speaker
        .tools
        .iter()
        .map(|tool| json!({"type": "function", "name": tool.name, "parameters": tool.parameters}))
        .collect();
    json!({
        "model": speaker.model,
        "instructions": speaker.system,
        "input": input,
        "tools": tools,
        "stream": speaker.streams,
        "store": false,
    })
}

pub(super) fn hear_whole(response: &Value) -> Result<Heard, String> {
    let output = response.get("output").and_then(Value::as_array).ok_or("the response has no output")?;
    let cache_read = count(response, "/usage/input_tokens_details/cached_tokens");
    let usage = Usage {
        input: count(response, "/usage/input_tokens").saturating_sub(cache_read),
        cache_read,
        cache_write: 0,
        output: count(response, "/usage/output_tokens"),
        reasoning: count(response, "/usage/output_tokens_details/reasoning_tokens"),
    };
    let mut heard = Heard { usage, ..Heard::default() };
    for item in output {
        match text(item, "/type") {
            Some("message") => heard.text.push_str(text(item, "/content/0/text").unwrap_or_default()),
            Some("function_call") => {
                heard.call = Some(Call {
                    id: text(item, "/call_id").unwrap_or_default().to_owned(),
                    name: text(item, "/name").unwrap_or_default().to_owned(),
                    arguments: arguments(text(item, "/arguments").unwrap_or_default())?,
                });
            }
            _ => {}
        }
    }
    Ok(heard)
}

pub(super) fn hear_events(events: &[Value]) -> Result<Heard, String> {
    if let Some(failed) = events.iter().find(|event| text(event, "/type") == Some("response.failed")) {
        return Err(format!("the response failed: {}", failed["response"]["error"]));
    }
    let completed = events.iter().find(|event| text(event, "/type") == Some("response.completed"));
    let completed = completed.ok_or("the stream ended without response.completed")?;
    let heard = hear_whole(&completed["response"])?;
    let deltas: String = events
        .iter()
        .filter(|event| text(event, "/type") == Some("response.output_text.delta"))
        .filter_map(|event| text(event, "/delta"))
        .collect();
    if deltas == heard.text {
        Ok(heard)
    } else {
        Err("the deltas are not the text of the completed response".to_owned())
    }
}
