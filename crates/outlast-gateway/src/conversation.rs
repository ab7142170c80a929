//! What an agent knows and what it was answered, read from the bodies that pass: the same shape for every dialect.
//!
//! A request holds the whole conversation so far. It is read leniently: what is not known is passed over, and a body
//! that is none of the dialect's gives nothing, since a request goes on to its provider whatever is made of it here.

mod answer;
mod chat;
mod gemini;
mod messages;
mod responses;

use std::collections::BTreeMap;

use outlast_core::research::{Conversation, Item, Role};

use crate::dialect::Dialect;
use crate::json::Node;

pub use answer::answer_items;

/// The conversation that a request's body holds; `None` when it is no request of this dialect.
///
/// Thinking, pictures and the tools on offer are left out. Calls and results are tied by id; where a dialect has none,
/// one is made up from the tool's name and its place among the calls of that name.
pub fn conversation(dialect: Dialect, body: &[u8]) -> Option<Conversation> {
    let body = Node(body);
    let items = match dialect {
        Dialect::Anthropic => messages::request(body),
        Dialect::Responses => responses::request(body),
        Dialect::Chat => chat::request(body),
        Dialect::Gemini => gemini::request(body),
    }?;
    Some(Conversation { items })
}

/// A text, unless it is empty.
fn said(role: Role, text: String) -> Option<Item> {
    (!text.is_empty()).then_some(Item::Said { role, text })
}

/// A string, or the texts of a list of parts, joined by line breaks.
fn text_of(content: Node<'_>) -> String {
    if let Some(text) = content.text() {
        return text;
    }
    let mut joined = String::new();
    for text in content.elements().filter_map(|part| part.text().or_else(|| part.field("text")?.text())) {
        if !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(&text);
    }
    joined
}

/// The text of a string member, or an empty one.
fn text(node: Option<Node<'_>>) -> String {
    node.and_then(Node::text).unwrap_or_default()
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Makes up ids where a dialect has none: the name and the place among those of that name.
#[derive(Default)]
struct Ids {
    called: BTreeMap<String, u32>,
    answered: BTreeMap<String, u32>,
}

impl Ids {
    fn of_call(&mut self, id: String, name: &str) -> String {
        Self::pick(&mut self.called, id, name)
    }

    fn of_result(&mut self, id: String, name: &str) -> String {
        Self::pick(&mut self.answered, id, name)
    }

    fn pick(seen: &mut BTreeMap<String, u32>, id: String, name: &str) -> String {
        if !id.is_empty() {
            return id;
        }
        let place = seen.entry(name.to_owned()).or_default();
        *place += 1;
        format!("{name}#{place}")
    }
}

#[cfg(test)]
mod tests;
