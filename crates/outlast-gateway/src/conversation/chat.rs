//! OpenAI Chat Completions.

use outlast_core::research::{Item, Role};

use super::{Ids, said, text, text_of};
use crate::json::Node;

/// The items of a request.
pub(super) fn request(body: Node<'_>) -> Option<Vec<Item>> {
    let messages = body.field("messages").filter(|list| list.0.starts_with(b"["))?;
    let mut items = Vec::new();
    let mut ids = Ids::default();
    for message in messages.elements() {
        read_message(message, &mut ids, &mut items);
    }
    Some(items)
}

/// The items of one message.
pub(super) fn read_message(message: Node<'_>, ids: &mut Ids, items: &mut Vec<Item>) {
    let [role, content] = message.fields(["role", "content"]);
    let content = content.map(text_of).unwrap_or_default();
    match text(role).as_str() {
        "system" | "developer" => items.extend(said(Role::System, content)),
        "user" => items.extend(said(Role::User, content)),
        "assistant" => {
            let [calls, legacy] = message.fields(["tool_calls", "function_call"]);
            items.extend(said(Role::Assistant, content));
            for call in calls.into_iter().flat_map(Node::elements) {
                let [id, function] = call.fields(["id", "function"]);
                items.extend(function.map(|function| call_of(text(id), function, ids)));
            }
            items.extend(
                legacy.filter(|call| call.0.starts_with(b"{")).map(|function| call_of(String::new(), function, ids)),
            );
        }
        "tool" | "function" => {
            let [id, name] = message.fields(["tool_call_id", "name"]);
            let id = ids.of_result(text(id), &text(name));
            items.push(Item::Result { id, text: content, is_error: false });
        }
        _ => {}
    }
}

fn call_of(id: String, function: Node<'_>, ids: &mut Ids) -> Item {
    let [name, arguments] = function.fields(["name", "arguments"]);
    let name = text(name);
    let id = ids.of_call(id, &name);
    Item::Call { id, name, arguments: text(arguments) }
}
