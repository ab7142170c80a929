//! The tools of Qwen Code, which began as Gemini CLI and speaks another dialect.

use outlast_core::research::Ended;
use serde_json::Value;

use super::{Outcome, Shown, Use, Vocabulary, change, look, number, number_after, text, todo};

/// How Qwen Code speaks of its tools.
pub(crate) const QWEN: Vocabulary = Vocabulary {
    uses,
    outcome,
    shown,
    folder_leads: &["working in the directory: "],
    made_up: &["[API Error", "Got it. Thanks for the context!"],
};

fn uses(name: &str, arguments: &Value) -> Vec<Use> {
    let path = || text(arguments, &["file_path", "absolute_path", "path"]);
    let found = match name {
        "read_file" => path().map(|path| Use::Read {
            path,
            part: arguments.get("offset").is_some() || arguments.get("limit").is_some(),
            // Its offset counts from 0.
            from: Some(number(arguments, "offset").unwrap_or(0) + 1),
        }),
        "write_file" => path().map(|path| Use::Write { path, text: text(arguments, &["content"]).unwrap_or_default() }),
        "edit" | "replace" => path().map(|path| Use::Edit {
            path,
            changes: change(arguments, &["old_string"], &["new_string"], &["replace_all"]).into_iter().collect(),
        }),
        "run_shell_command" => {
            text(arguments, &["command"]).map(|command| Use::Shell { command, folder: text(arguments, &["directory"]) })
        }
        "grep_search" | "glob" | "list_directory" | "web_fetch" | "lsp" => Some(look(name, arguments)),
        "todo_write" => Some(Use::Todo(todo(arguments.get("todos"), &["content"]))),
        "agent" | "task" => text(arguments, &["description", "prompt"]).map(Use::Agent),
        _ => None,
    };
    found.into_iter().collect()
}

fn outcome<'a>(what: &Use, text: &'a str, _is_error: bool) -> Outcome<'a> {
    let ok = |ok: bool| Outcome::new(if ok { Ended::Ok } else { Ended::Failed }, text);
    match what {
        Use::Shell { .. } => shell(text),
        Use::Edit { .. } => ok(text.starts_with("The file: ") || text.starts_with("Created new file: ")),
        Use::Write { .. } => ok(text.starts_with("Successfully ")),
        Use::Read { .. } => ok(!text.starts_with("File not found") && !text.starts_with("Error")),
        _ => ok(!text.starts_with("Error")),
    }
}

fn shell(text: &str) -> Outcome<'_> {
    if text.starts_with("Command timed out") || text.starts_with("Command was cancelled") {
        return Outcome::new(Ended::Interrupted, text);
    }
    // The output may say anything, so its frame is looked for from both ends.
    let framed = text.split_once("\nOutput: ").and_then(|(_, rest)| rest.rsplit_once("\nError: "));
    let Some((output, end)) = framed else {
        let ended = if text.starts_with("Background shell started") {
            Ended::Running
        } else if text.starts_with("Blocked: ") || text.starts_with("Error") {
            Ended::Failed
        } else {
            Ended::Unknown
        };
        return Outcome::new(ended, text);
    };
    let output = if output == "(empty)" { "" } else { output };
    match number_after(end, "Exit Code: ") {
        Some(code) => Outcome::exit(code, output),
        None => Outcome::new(Ended::Interrupted, output),
    }
}

fn shown(text: &str, part: bool, from: Option<u64>) -> Option<Shown> {
    if text.starts_with("[File unchanged") || text.contains("has not changed since") && text.len() < 600 {
        return None;
    }
    if text.starts_with("Showing lines ")
        && let Some((head, content)) = text.split_once("\n\n---\n\n")
    {
        return Some(Shown { text: content.to_owned(), first: number_after(head, "Showing lines ")?, whole: false });
    }
    Some(Shown { text: text.to_owned(), first: from?, whole: !part && !text.contains("... [truncated]") })
}
