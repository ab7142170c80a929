//! Gemini `generateContent`.

use outlast_core::research::{Item, Role};

use super::{Ids, said, text, text_of};
use crate::json::Node;

/// The items of a request.
pub(super) fn request(body: Node<'_>) -> Option<Vec<Item>> {
    let [system, contents] = body.fields(["systemInstruction", "contents"]);
    let contents = contents.filter(|list| list.0.starts_with(b"["))?;
    let system = system.and_then(|system| system.field("parts")).and_then(|parts| said(Role::System, text_of(parts)));
    let mut items: Vec<Item> = system.into_iter().collect();
    let mut ids = Ids::default();
    for content in contents.elements() {
        read_content(content, &mut ids, &mut items);
    }
    Some(items)
}

/// The items of one content.
pub(super) fn read_content(content: Node<'_>, ids: &mut Ids, items: &mut Vec<Item>) {
    let [role, parts] = content.fields(["role", "parts"]);
    let role = if text(role) == "model" { Role::Assistant } else { Role::User };
    items.extend(parts.into_iter().flat_map(Node::elements).filter_map(|part| item(part, role, ids)));
}

fn item(part: Node<'_>, role: Role, ids: &mut Ids) -> Option<Item> {
    let [thought, call, result, said_text] = part.fields(["thought", "functionCall", "functionResponse", "text"]);
    if thought.is_some_and(Node::is_true) {
        return None;
    }
    if let Some(call) = call {
        let [id, name, arguments] = call.fields(["id", "name", "args"]);
        let name = text(name);
        let id = ids.of_call(text(id), &name);
        return Some(Item::Call { id, name, arguments: arguments.map(Node::raw).unwrap_or_default() });
    }
    if let Some(result) = result {
        let [id, name, response] = result.fields(["id", "name", "response"]);
        let id = ids.of_result(text(id), &text(name));
        let (text, is_error) = response.map(outcome).unwrap_or_default();
        return Some(Item::Result { id, text, is_error });
    }
    said(role, text(said_text))
}

/// A tool's result: by custom its text is under `output`, an error under `error`.
fn outcome(response: Node<'_>) -> (String, bool) {
    let [output, error] = response.fields(["output", "error"]);
    if let Some(text) = error.and_then(Node::text) {
        return (text, true);
    }
    (output.and_then(Node::text).unwrap_or_else(|| response.raw()), false)
}
