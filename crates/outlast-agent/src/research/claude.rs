//! The tools of Claude Code.

use outlast_core::research::Ended;
use serde_json::Value;

use super::{Outcome, Shown, Use, Vocabulary, change, look, number, number_after, text, todo, todo_state, unnumbered};

/// How Claude Code speaks of its tools.
pub(crate) const CLAUDE: Vocabulary = Vocabulary {
    uses,
    outcome,
    shown,
    folder_leads: &["Primary working directory: ", "Working directory: "],
    made_up: &["No response requested.", "[Request interrupted", "API Error"],
};

fn uses(name: &str, arguments: &Value) -> Vec<Use> {
    let found = match name {
        "Read" => text(arguments, &["file_path"]).map(|path| Use::Read {
            path,
            part: arguments.get("offset").is_some() || arguments.get("limit").is_some(),
            from: number(arguments, "offset").or(Some(1)),
        }),
        "Write" => text(arguments, &["file_path"])
            .map(|path| Use::Write { path, text: text(arguments, &["content"]).unwrap_or_default() }),
        "Edit" => text(arguments, &["file_path"]).map(|path| Use::Edit {
            path,
            changes: change(arguments, &["old_string"], &["new_string"], &["replace_all"]).into_iter().collect(),
        }),
        "MultiEdit" => text(arguments, &["file_path"]).map(|path| Use::Edit {
            path,
            changes: arguments
                .get("edits")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|edit| change(edit, &["old_string"], &["new_string"], &["replace_all"]))
                .collect(),
        }),
        "NotebookEdit" => text(arguments, &["notebook_path"]).map(|path| Use::Edit { path, changes: Vec::new() }),
        "Bash" => text(arguments, &["command"]).map(|command| Use::Shell { command, folder: None }),
        "Grep" | "Glob" | "LS" | "WebFetch" | "WebSearch" => Some(look(name, arguments)),
        "TodoWrite" => Some(Use::Todo(todo(arguments.get("todos"), &["content"]))),
        "TaskCreate" => text(arguments, &["subject", "description"]).map(Use::TodoAdd),
        "TaskUpdate" => task_update(arguments),
        "Agent" | "Task" => text(arguments, &["description", "prompt"]).map(Use::Agent),
        _ => None,
    };
    found.into_iter().collect()
}

fn task_update(arguments: &Value) -> Option<Use> {
    let number = text(arguments, &["taskId"]).and_then(|id| id.parse().ok()).or_else(|| {
        let id = number(arguments, "taskId")?;
        usize::try_from(id).ok()
    })?;
    let state = arguments.get("status").and_then(Value::as_str).map(todo_state);
    Some(Use::TodoSet { number, text: text(arguments, &["subject"]), state })
}

/// What it prints for a command without output.
const NO_OUTPUT: &str = "(Bash completed with no output)";

fn outcome<'a>(what: &Use, text: &'a str, is_error: bool) -> Outcome<'a> {
    let Use::Shell { command, .. } = what else {
        return Outcome::new(if is_error { Ended::Failed } else { Ended::Ok }, text);
    };
    let plain = if text == NO_OUTPUT { "" } else { text };
    if is_error {
        if let Some(code) = number_after(text.lines().next().unwrap_or_default(), "Exit code ") {
            let output = text.split_once('\n').map_or("", |(_, output)| output);
            return Outcome::exit(code, output);
        }
        let cut_off = text.contains("interrupted") || text.contains("doesn't want to proceed");
        return Outcome::new(if cut_off { Ended::Interrupted } else { Ended::Failed }, plain);
    }
    if text.starts_with("Command running in background with ID: ") {
        return Outcome::new(Ended::Running, text);
    }
    let cut = text.contains("<persisted-output>") || text.contains("characters truncated");
    // A search that finds nothing ends with 1, which it passes over in silence.
    let outcome = if ends_with_a_search(command) { Outcome::new(Ended::Ok, plain) } else { Outcome::exit(0, plain) };
    Outcome { cut, ..outcome }
}

/// Whether a command's exit status is that of a program whose 1 is no error.
fn ends_with_a_search(command: &str) -> bool {
    let last = command.rsplit(['|', ';', '&', '\n']).find(|part| !part.trim().is_empty()).unwrap_or_default();
    let program = last.split_whitespace().next().unwrap_or_default();
    matches!(program.rsplit('/').next(), Some("grep" | "rg" | "find" | "diff" | "test" | "[" | "egrep" | "fgrep"))
        || command.trim_start().starts_with("git diff")
}

/// How many lines it shows of a file unless it is asked for others.
const LINES_MAX: usize = 2000;

fn shown(text: &str, part: bool, _from: Option<u64>) -> Option<Shown> {
    let (text, reminded) = match text.split_once("\n\n<system-reminder>") {
        Some((text, _)) => (text, true),
        None => (text, false),
    };
    if text.starts_with("<system-reminder>") {
        // What it says of an empty file.
        return (!part && text.contains("contents are empty")).then(|| Shown {
            text: String::new(),
            first: 1,
            whole: true,
        });
    }
    // Older versions put an arrow where newer ones put a tab.
    let (plain, first) = unnumbered(text, "\t").or_else(|| unnumbered(text, "→"))?;
    let lines = text.lines().count();
    let whole = !part && first == 1 && lines < LINES_MAX && !(reminded && text.contains("truncated"));
    Some(Shown { text: plain, first, whole })
}
