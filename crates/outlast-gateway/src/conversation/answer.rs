//! What a model answered: the texts and calls of an answer's body, be it a stream or one document.
//!
//! A call counts once it is whole: of an answer that was cut off, no agent runs the call it did not get to its end.

use std::collections::BTreeMap;

use outlast_core::research::{Item, Role};

use super::{Ids, chat, gemini, messages, responses, said, text};
use crate::dialect::Dialect;
use crate::json::Node;
use crate::sse::{Scanner, data};

/// The texts and whole calls of an answer's body, in order; empty for anything that is none.
///
/// Put behind the items of its request, they make the conversation as it stands while the agent's tools run.
pub fn answer_items(dialect: Dialect, body: &[u8]) -> Vec<Item> {
    let start = body.trim_ascii_start();
    if start.starts_with(b"{") || start.starts_with(b"[") {
        return document(dialect, Node(start));
    }
    let mut events: Vec<Vec<u8>> = Vec::new();
    let mut scanner = Scanner::default();
    let mut keep = |event: &[u8]| events.push(data(event).into_owned());
    scanner.feed(body, &mut keep);
    scanner.finish(&mut keep);
    match dialect {
        Dialect::Anthropic => messages_stream(&events),
        Dialect::Responses => responses_stream(&events),
        Dialect::Chat => chat_stream(&events),
        Dialect::Gemini => gemini_chunks(events.iter().map(|event| Node(event))),
    }
}

fn document(dialect: Dialect, body: Node<'_>) -> Vec<Item> {
    match dialect {
        Dialect::Anthropic => {
            let blocks = body.field("content").into_iter().flat_map(Node::elements);
            blocks.filter_map(|block| messages::block(block, Role::Assistant)).collect()
        }
        Dialect::Responses => {
            let output = body.field("output").into_iter().flat_map(Node::elements);
            output.filter_map(responses::item).collect()
        }
        Dialect::Chat => {
            let mut items = Vec::new();
            if let Some(choice) = first(body, "choices")
                && let Some(message) = choice.field("message")
            {
                chat::read_message(message, &mut Ids::default(), &mut items);
            }
            items
        }
        // Without `alt=sse`, a stream is one array of chunks.
        Dialect::Gemini if body.0.starts_with(b"[") => gemini_chunks(body.elements()),
        Dialect::Gemini => gemini_chunks([body].into_iter()),
    }
}

fn first<'a>(node: Node<'a>, list: &str) -> Option<Node<'a>> {
    node.field(list)?.elements().next()
}

/// A block of a message as it grows.
#[derive(Default)]
struct Block {
    call: Option<(String, String)>,
    text: String,
    input: String,
    whole: bool,
}

fn messages_stream(events: &[Vec<u8>]) -> Vec<Item> {
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    for event in events.iter().map(|event| Node(event)) {
        let [kind, index, block, delta] = event.fields(["type", "index", "content_block", "delta"]);
        let kind = text(kind);
        if !kind.starts_with("content_block_") {
            continue;
        }
        let entry = blocks.entry(number(index)).or_default();
        match kind.as_str() {
            "content_block_start" => {
                let Some(block) = block else { continue };
                let [of, id, name, begun] = block.fields(["type", "id", "name", "text"]);
                match text(of).as_str() {
                    "tool_use" => entry.call = Some((text(id), text(name))),
                    "text" => entry.text.push_str(&text(begun)),
                    _ => {}
                }
            }
            "content_block_delta" => {
                let Some(delta) = delta else { continue };
                let [more, json] = delta.fields(["text", "partial_json"]);
                entry.text.push_str(&text(more));
                entry.input.push_str(&text(json));
            }
            "content_block_stop" => entry.whole = true,
            _ => {}
        }
    }
    let item = |block: Block| match block.call {
        Some((id, name)) => block.whole.then_some(Item::Call { id, name, arguments: or_empty(block.input) }),
        None => said(Role::Assistant, block.text),
    };
    blocks.into_values().filter_map(item).collect()
}

fn responses_stream(events: &[Vec<u8>]) -> Vec<Item> {
    let done = events.iter().filter_map(|event| {
        let [kind, item] = Node(event).fields(["type", "item"]);
        if text(kind) == "response.output_item.done" { item } else { None }
    });
    done.filter_map(responses::item).collect()
}

fn chat_stream(events: &[Vec<u8>]) -> Vec<Item> {
    let mut told = String::new();
    let mut calls: BTreeMap<u64, (String, String, String)> = BTreeMap::new();
    let mut whole = false;
    for event in events {
        if event.trim_ascii() == b"[DONE]" {
            whole = true;
            continue;
        }
        let Some(choice) = first(Node(event), "choices") else { continue };
        let [delta, finish] = choice.fields(["delta", "finish_reason"]);
        whole |= finish.is_some_and(|finish| finish.0.starts_with(b"\""));
        let Some(delta) = delta else { continue };
        let [content, more] = delta.fields(["content", "tool_calls"]);
        told.push_str(&text(content));
        for call in more.into_iter().flat_map(Node::elements) {
            let [index, id, function] = call.fields(["index", "id", "function"]);
            let entry = calls.entry(number(index)).or_default();
            entry.0.push_str(&text(id));
            let [name, arguments] = function.map(|function| function.fields(["name", "arguments"])).unwrap_or_default();
            entry.1.push_str(&text(name));
            entry.2.push_str(&text(arguments));
        }
    }
    let mut items: Vec<Item> = said(Role::Assistant, told).into_iter().collect();
    if whole {
        let mut ids = Ids::default();
        items.extend(calls.into_values().map(|(id, name, arguments)| Item::Call {
            id: ids.of_call(id, &name),
            name,
            arguments: or_empty(arguments),
        }));
    }
    items
}

fn gemini_chunks<'a>(chunks: impl Iterator<Item = Node<'a>>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut ids = Ids::default();
    for chunk in chunks {
        let Some(content) = first(chunk, "candidates").and_then(|candidate| candidate.field("content")) else {
            continue;
        };
        let mut parts = Vec::new();
        gemini::read_content(content, &mut ids, &mut parts);
        for part in parts {
            match (items.last_mut(), part) {
                // A text comes in pieces.
                (Some(Item::Said { text, .. }), Item::Said { text: more, .. }) => text.push_str(&more),
                (_, Item::Said { text, .. }) => items.push(Item::Said { role: Role::Assistant, text }),
                (_, part) => items.push(part),
            }
        }
    }
    items
}

fn number(node: Option<Node<'_>>) -> u64 {
    node.and_then(|node| serde_json::from_slice(node.0).ok()).unwrap_or(0)
}

/// The arguments of a call that has none.
fn or_empty(arguments: String) -> String {
    if arguments.is_empty() { "{}".to_owned() } else { arguments }
}
