//! OpenAI Responses.

use outlast_core::research::{Item, Role};

use super::{quoted, said, text, text_of};
use crate::json::Node;

/// The items of a request.
pub(super) fn request(body: Node<'_>) -> Option<Vec<Item>> {
    let [instructions, input] = body.fields(["instructions", "input"]);
    let input = input?;
    let mut items: Vec<Item> = instructions.and_then(|text| said(Role::System, text_of(text))).into_iter().collect();
    match input.text() {
        Some(text) => items.extend(said(Role::User, text)),
        None if input.0.starts_with(b"[") => items.extend(input.elements().filter_map(item)),
        None => return None,
    }
    Some(items)
}

/// One item of an input or output.
pub(super) fn item(item: Node<'_>) -> Option<Item> {
    // One walk over the item for all that any kind of it may hold.
    let [kind, role, content, id, name, arguments, input, action, output, success] = item.fields([
        "type",
        "role",
        "content",
        "call_id",
        "name",
        "arguments",
        "input",
        "action",
        "output",
        "success",
    ]);
    let kind = kind.map_or_else(|| "message".to_owned(), |kind| text(Some(kind)));
    match kind.as_str() {
        "message" => {
            let role = match text(role).as_str() {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                "system" | "developer" => Role::System,
                _ => return None,
            };
            said(role, text_of(content?))
        }
        "function_call" => Some(Item::Call { id: text(id), name: text(name), arguments: text(arguments) }),
        "custom_tool_call" => Some(Item::Call { id: text(id), name: text(name), arguments: quoted(&text(input)) }),
        "local_shell_call" => Some(Item::Call {
            id: text(id),
            name: "local_shell".to_owned(),
            arguments: action.map(Node::raw).unwrap_or_default(),
        }),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let (text, failed) = output.map(result).unwrap_or_default();
            let failed = failed || success.is_some_and(|success| success.0 == b"false");
            Some(Item::Result { id: super::text(id), text, is_error: failed })
        }
        _ => None,
    }
}

/// A result's text, and whether it says that it failed: some clients send an object with both.
fn result(output: Node<'_>) -> (String, bool) {
    if output.0.starts_with(b"{") {
        let [content, body, success] = output.fields(["content", "body", "success"]);
        let text = content.or(body).map(text_of).unwrap_or_default();
        return (text, success.is_some_and(|success| success.0 == b"false"));
    }
    (text_of(output), false)
}
