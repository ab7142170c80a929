//! Anthropic Messages.

use outlast_core::research::{Item, Role};

use super::{said, text, text_of};
use crate::json::Node;

/// The items of a request.
pub(super) fn request(body: Node<'_>) -> Option<Vec<Item>> {
    let [system, messages] = body.fields(["system", "messages"]);
    let messages = messages.filter(|list| list.0.starts_with(b"["))?;
    let mut items: Vec<Item> = system.and_then(|system| said(Role::System, text_of(system))).into_iter().collect();
    for message in messages.elements() {
        let [role, content] = message.fields(["role", "content"]);
        let Some(content) = content else { continue };
        let role = match text(role).as_str() {
            "assistant" => Role::Assistant,
            "user" => Role::User,
            // Recent clients put system texts into the list.
            "system" => Role::System,
            _ => continue,
        };
        match content.text() {
            Some(text) => items.extend(said(role, text)),
            None => items.extend(content.elements().filter_map(|part| block(part, role))),
        }
    }
    Some(items)
}

/// The item of one block of a message.
pub(super) fn block(block: Node<'_>, role: Role) -> Option<Item> {
    // One walk over the block for all that any kind of it may hold.
    let [kind, said_text, id, name, input, answers, content, is_error] =
        block.fields(["type", "text", "id", "name", "input", "tool_use_id", "content", "is_error"]);
    match text(kind).as_str() {
        "text" => said(role, text(said_text)),
        "tool_use" => {
            Some(Item::Call { id: text(id), name: text(name), arguments: input.map(Node::raw).unwrap_or_default() })
        }
        "tool_result" => Some(Item::Result {
            id: text(answers),
            text: content.map(text_of).unwrap_or_default(),
            is_error: is_error.is_some_and(Node::is_true),
        }),
        _ => None,
    }
}
