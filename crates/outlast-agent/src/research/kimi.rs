//! The tools of Kimi CLI. A result is what it says of the call, in a `<system>` frame, and then what the tool brought back.

use outlast_core::research::Ended;
use serde_json::Value;

use super::{Change, Outcome, Shown, Use, Vocabulary, look, number_after, text, todo, unnumbered};

/// How Kimi CLI speaks of its tools.
pub(crate) const KIMI: Vocabulary =
    Vocabulary { uses, outcome, shown, folder_leads: &["The current working directory is `"], made_up: &[] };

fn uses(name: &str, arguments: &Value) -> Vec<Use> {
    let path = || text(arguments, &["path"]);
    let found = match name {
        "ReadFile" => path().map(|path| Use::Read {
            path,
            part: arguments.get("line_offset").is_some() || arguments.get("n_lines").is_some(),
            // A negative one counts from the end; the lines are numbered in any case.
            from: arguments.get("line_offset").map_or(Some(1), Value::as_u64),
        }),
        "WriteFile" => path().map(|path| {
            let text = text(arguments, &["content"]).unwrap_or_default();
            let appends = arguments.get("mode").and_then(Value::as_str) == Some("append");
            if appends { Use::Append { path, text } } else { Use::Write { path, text } }
        }),
        "StrReplaceFile" => path().map(|path| Use::Edit { path, changes: changes(arguments.get("edit")) }),
        "Shell" => text(arguments, &["command"]).map(|command| Use::Shell { command, folder: None }),
        "Grep" | "Glob" | "FetchURL" | "SearchWeb" => Some(look(name, arguments)),
        "SetTodoList" => arguments.get("todos").map(|todos| Use::Todo(todo(Some(todos), &["title"]))),
        "Agent" => text(arguments, &["description", "prompt"]).map(Use::Agent),
        _ => None,
    };
    found.into_iter().collect()
}

/// One edit or a list of them.
fn changes(edit: Option<&Value>) -> Vec<Change> {
    let edits = match edit {
        Some(Value::Array(edits)) => edits.as_slice(),
        Some(edit) => std::slice::from_ref(edit),
        None => &[],
    };
    edits.iter().filter_map(|edit| super::change(edit, &["old"], &["new"], &["replace_all"])).collect()
}

/// What it says of the call, and what the tool brought back.
fn parts(text: &str) -> (&str, &str) {
    let framed = text.strip_prefix("<system>").and_then(|text| text.split_once("</system>"));
    framed.map_or(("", text), |(said, output)| (said, output.strip_prefix('\n').unwrap_or(output)))
}

fn outcome<'a>(what: &Use, text: &'a str, _is_error: bool) -> Outcome<'a> {
    let (said, output) = parts(text);
    let failed = said.starts_with("ERROR: ");
    let cut = said.contains("Output is truncated");
    let ended = if failed { Ended::Failed } else { Ended::Ok };
    match what {
        Use::Shell { .. } => {
            let outcome = match number_after(said, "failed with exit code: ") {
                Some(code) => Outcome::exit(code, output),
                None if said.starts_with("Command executed successfully") => Outcome::exit(0, output),
                None if said.contains("killed by timeout") => Outcome::new(Ended::Interrupted, output),
                None if said.starts_with("Background task started") => Outcome::new(Ended::Running, output),
                None => Outcome::new(if failed { Ended::Failed } else { Ended::Unknown }, output),
            };
            Outcome { cut, ..outcome }
        }
        // What it says of a file tells how much of it is there.
        Use::Read { .. } => Outcome::new(ended, text),
        _ => Outcome { cut, ..Outcome::new(ended, output) },
    }
}

fn shown(text: &str, part: bool, _from: Option<u64>) -> Option<Shown> {
    let (said, output) = parts(text);
    let (plain, first) = if output.is_empty() { (String::new(), 1) } else { unnumbered(output, "\t")? };
    let whole = !part && first == 1 && said.contains("End of file reached") && !said.contains("truncated");
    Some(Shown { text: plain, first, whole })
}
