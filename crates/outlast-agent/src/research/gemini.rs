//! The tools of Gemini CLI.

use outlast_core::research::Ended;
use serde_json::Value;

use super::{Outcome, Shown, Use, Vocabulary, change, look, number, number_after, text, todo};

/// How Gemini CLI speaks of its tools.
pub(crate) const GEMINI: Vocabulary = Vocabulary {
    uses,
    outcome,
    shown,
    folder_leads: &["**Workspace Directories:**\n  - "],
    made_up: &["[The previous response was interrupted"],
};

fn uses(name: &str, arguments: &Value) -> Vec<Use> {
    let path = || text(arguments, &["file_path", "absolute_path", "path"]);
    let found = match name {
        "read_file" => path().map(|path| Use::Read {
            path,
            part: ["start_line", "end_line", "offset", "limit"].iter().any(|name| arguments.get(name).is_some()),
            from: number(arguments, "start_line").or(Some(1)),
        }),
        "write_file" => path().map(|path| Use::Write { path, text: text(arguments, &["content"]).unwrap_or_default() }),
        "replace" => path().map(|path| Use::Edit {
            path,
            changes: change(arguments, &["old_string"], &["new_string"], &["allow_multiple"]).into_iter().collect(),
        }),
        "run_shell_command" => text(arguments, &["command"])
            .map(|command| Use::Shell { command, folder: text(arguments, &["dir_path", "directory"]) }),
        "grep_search"
        | "search_file_content"
        | "glob"
        | "list_directory"
        | "read_many_files"
        | "google_web_search"
        | "web_fetch" => Some(look(name, arguments)),
        "write_todos" => Some(Use::Todo(todo(arguments.get("todos"), &["description"]))),
        "update_topic" => text(arguments, &["summary", "strategic_intent", "title"]).map(Use::Say),
        "invoke_agent" => text(arguments, &["objective", "prompt", "task", "agent_name"]).map(Use::Agent),
        _ => None,
    };
    found.into_iter().collect()
}

fn outcome<'a>(what: &Use, text: &'a str, is_error: bool) -> Outcome<'a> {
    let Use::Shell { .. } = what else {
        return Outcome::new(if is_error { Ended::Failed } else { Ended::Ok }, text);
    };
    let inner = text.strip_prefix("<untrusted_context>\n").unwrap_or(text);
    let inner = inner.strip_suffix("\n</untrusted_context>").unwrap_or(inner);
    if inner.starts_with("Command was automatically cancelled") || inner.starts_with("Command was cancelled") {
        return Outcome::new(Ended::Interrupted, inner);
    }
    if inner.starts_with("Command moved to background") {
        return Outcome::new(Ended::Running, inner);
    }
    let Some(body) = inner.strip_prefix("Output: ") else {
        return Outcome::new(if is_error { Ended::Failed } else { Ended::Unknown }, inner);
    };
    // What follows the output is lines of the CLI's own; the last ones count, as the output may say anything.
    let mut output = body;
    let mut exit = None;
    let mut failed = is_error;
    while let Some((before, line)) = output.rsplit_once('\n') {
        if line.starts_with("Exit Code: ") {
            exit = number_after(line, "Exit Code: ");
        } else if line.starts_with("Error: ") || line.starts_with("Signal: ") {
            failed = true;
        } else if !line.starts_with("Process Group PGID: ") && !line.starts_with("Background PIDs: ") {
            break;
        }
        output = before;
    }
    let output = if output == "(empty)" { "" } else { output };
    match exit {
        Some(code) => Outcome::exit(code, output),
        None if failed => Outcome::new(Ended::Failed, output),
        // It names the status where it is not 0.
        None => Outcome::exit(0, output),
    }
}

fn shown(text: &str, part: bool, from: Option<u64>) -> Option<Shown> {
    if let Some((head, content)) = text.split_once("--- FILE CONTENT (truncated) ---\n")
        && head.contains("IMPORTANT: The file content has been truncated")
    {
        return Some(Shown { text: content.to_owned(), first: number_after(head, "Showing lines ")?, whole: false });
    }
    // Where instructions of a folder are found, they are put behind the file.
    let cut = text.contains("... [truncated]") || text.contains("Newly Discovered Project Context");
    Some(Shown { text: text.to_owned(), first: from?, whole: !part && !cut })
}
