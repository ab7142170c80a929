//! The tools of OpenCode.

use outlast_core::research::Ended;
use serde_json::Value;

use super::{Outcome, Shown, Use, Vocabulary, change, look, number, number_after, patch, text, todo, unnumbered};

/// How OpenCode speaks of its tools.
pub(crate) const OPENCODE: Vocabulary =
    Vocabulary { uses, outcome, shown, folder_leads: &["Working directory: "], made_up: &[] };

fn uses(name: &str, arguments: &Value) -> Vec<Use> {
    let path = || text(arguments, &["filePath"]);
    let found = match name {
        "read" => path().map(|path| Use::Read {
            path,
            part: arguments.get("offset").is_some() || arguments.get("limit").is_some(),
            from: number(arguments, "offset").or(Some(1)),
        }),
        "write" => path().map(|path| Use::Write { path, text: text(arguments, &["content"]).unwrap_or_default() }),
        "edit" => path().map(|path| Use::Edit {
            path,
            changes: change(arguments, &["oldString"], &["newString"], &["replaceAll"]).into_iter().collect(),
        }),
        "multiedit" => path().map(|path| Use::Edit { path, changes: edits(arguments) }),
        "patch" | "apply_patch" => text(arguments, &["patchText"]).map(|text| Use::Patch(patch::parse(&text))),
        "bash" => {
            text(arguments, &["command"]).map(|command| Use::Shell { command, folder: text(arguments, &["workdir"]) })
        }
        "grep" | "glob" | "list" | "webfetch" | "websearch" | "codesearch" => Some(look(name, arguments)),
        "todowrite" => Some(Use::Todo(todo(arguments.get("todos"), &["content"]))),
        "task" => text(arguments, &["description", "prompt"]).map(Use::Agent),
        _ => None,
    };
    found.into_iter().collect()
}

fn edits(arguments: &Value) -> Vec<super::Change> {
    let edits = arguments.get("edits").and_then(Value::as_array).into_iter().flatten();
    edits.filter_map(|edit| change(edit, &["oldString"], &["newString"], &["replaceAll"])).collect()
}

/// What it puts in the place of a result that it was killed before.
const INTERRUPTED: &str = "[Tool execution was interrupted]";

fn outcome<'a>(what: &Use, text: &'a str, _is_error: bool) -> Outcome<'a> {
    if text.trim() == INTERRUPTED {
        return Outcome::new(Ended::Interrupted, "");
    }
    match what {
        // It tells its model no exit status.
        Use::Shell { .. } => {
            let (output, note) = text.split_once("<shell_metadata>").unwrap_or((text, ""));
            let output = if output.trim() == "(no output)" { "" } else { output };
            let ended = if note.contains("terminated") || note.contains("timeout") || note.contains("abort") {
                Ended::Interrupted
            } else {
                Ended::Unknown
            };
            let cut = output.contains("output truncated") || output.contains("truncated...");
            Outcome { cut, ..Outcome::new(ended, output) }
        }
        Use::Write { .. } => Outcome::new(ok_if(text.starts_with("Wrote file successfully")), text),
        Use::Edit { .. } => Outcome::new(ok_if(text.contains("applied successfully")), text),
        Use::Patch(_) => Outcome::new(ok_if(text.starts_with("Success") || text.contains("successfully")), text),
        Use::Read { .. } => Outcome::new(ok_if(text.contains("<content>")), text),
        _ => Outcome::new(if text.starts_with("Error") { Ended::Failed } else { Ended::Ok }, text),
    }
}

const fn ok_if(ok: bool) -> Ended {
    if ok { Ended::Ok } else { Ended::Failed }
}

fn shown(text: &str, part: bool, _from: Option<u64>) -> Option<Shown> {
    let (_, content) = text.split_once("<content>\n")?;
    let (content, end) = content.rsplit_once("\n\n(")?;
    let (plain, first) = if content.trim().is_empty() { (String::new(), 1) } else { unnumbered(content, ": ")? };
    let total = number_after::<usize>(end, "total ");
    let whole = !part && first == 1 && end.starts_with("End of file") && total == Some(plain.lines().count());
    Some(Shown { text: plain, first, whole })
}
