//! What only codex has: the patch tool that takes free text, and the tool that takes JavaScript and holds all others.

use serde_json::{Value, json};

use crate::wire::Tool;

/// The patch that creates or replaces a file. The text must end with a line break, as every line of a patch does.
pub(super) fn whole_file_patch(path: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

/// The patch that replaces whole lines of a file; both texts end with a line break, or are empty.
pub(super) fn lines_patch(path: &str, old: &str, new: &str) -> String {
    let marked = |mark: char, text: &str| text.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
    let (old, new) = (marked('-', old), marked('+', new));
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n{old}{new}*** End Patch\n")
}

/// The tools that scripts of the JavaScript tool can call, as they are declared elsewhere.
pub(super) fn nested_tools() -> Vec<Tool> {
    let command = json!({"properties": {"cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}}});
    vec![
        Tool { name: "exec_command".to_owned(), parameters: command },
        Tool { name: "apply_patch".to_owned(), parameters: Value::Null },
    ]
}

/// A script for the JavaScript tool that makes one call and tells its result.
pub(super) fn script(tool: &str, arguments: &Value) -> String {
    format!("const result = await tools.{tool}({arguments});\ntext(result);\n")
}
