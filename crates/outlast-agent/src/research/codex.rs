//! The tools of Codex CLI: a shell for nearly everything, a patch tool, and for its newest models a tool that runs
//! JavaScript which calls the others.

use std::borrow::Cow;

use outlast_core::research::Ended;
use serde_json::Value;

use super::{Outcome, Shown, Use, Vocabulary, number_after, patch, script, text, todo};

/// How Codex CLI speaks of its tools.
pub(crate) const CODEX: Vocabulary = Vocabulary { uses, outcome, shown, folder_leads: &["<cwd>"], made_up: &[] };

fn uses(name: &str, arguments: &Value) -> Vec<Use> {
    let found = match name {
        "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec" => shell(arguments),
        "write_stdin" => arguments
            .get("session_id")
            .map(|id| Use::Poll { session: id.as_str().map_or_else(|| id.to_string(), str::to_owned) }),
        "apply_patch" => {
            let text = arguments.as_str().map(str::to_owned).or_else(|| text(arguments, &["input", "patch"]));
            text.map(|text| Use::Patch(patch::parse(&text)))
        }
        "update_plan" => Some(Use::Todo(todo(arguments.get("plan"), &["step"]))),
        "spawn_agent" => text(arguments, &["message", "task", "prompt"]).map(Use::Agent),
        "exec" => return arguments.as_str().map(nested).unwrap_or_default(),
        _ => None,
    };
    found.into_iter().collect()
}

fn shell(arguments: &Value) -> Option<Use> {
    let command = match arguments.get("cmd").or_else(|| arguments.get("command"))? {
        Value::String(command) => command.clone(),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, flag, command] if flag.starts_with('-') && flag.ends_with('c') => (*command).to_owned(),
                words => words.join(" "),
            }
        }
        _ => return None,
    };
    let patch = if command.contains("apply_patch") { patch::parse(&command) } else { Vec::new() };
    if !patch.is_empty() {
        return Some(Use::Patch(patch));
    }
    Some(Use::Shell { command, folder: text(arguments, &["workdir"]) })
}

/// What the calls in a script do; the whole script as a command where it cannot be told.
fn nested(source: &str) -> Vec<Use> {
    let calls = script::calls(source);
    let found: Vec<Use> =
        calls.iter().filter(|(name, _)| name != "exec").flat_map(|(name, arguments)| uses(name, arguments)).collect();
    if found.is_empty() {
        return vec![Use::Shell { command: source.to_owned(), folder: None }];
    }
    found
}

/// What it puts in the place of a result that it was killed before.
const ABORTED: &str = "aborted";

fn outcome<'a>(what: &Use, text: &'a str, is_error: bool) -> Outcome<'a> {
    if text.trim() == ABORTED || text.starts_with("aborted by user") {
        return Outcome::new(Ended::Interrupted, "");
    }
    if text.starts_with("Script ") {
        return of_script(what, text);
    }
    if let Some(outcome) = of_json(text) {
        return outcome;
    }
    let Some((head, output)) = text.split_once("Output:\n").or_else(|| text.split_once("\nOutput:")) else {
        // The patch tool and refusals of a call say only what happened.
        let failed = is_error || ["failed", "error", "Failed", "Error"].iter().any(|word| text.starts_with(word));
        let ended = match what {
            _ if failed => Ended::Failed,
            Use::Patch(_) if text.contains("verification failed") => Ended::Failed,
            Use::Shell { .. } | Use::Poll { .. } => Ended::Unknown,
            _ => Ended::Ok,
        };
        return Outcome::new(ended, text);
    };
    let cut = head.contains("Total output lines:") || output.contains("tokens truncated");
    if let Some(session) = number_after::<u64>(head, "session ID ") {
        return Outcome { session: Some(session.to_string()), cut, ..Outcome::new(Ended::Running, output) };
    }
    let code = number_after(head, "exited with code ").or_else(|| number_after(head, "Exit code: "));
    match code {
        Some(code) => Outcome { cut, ..Outcome::exit(code, output) },
        None => Outcome { cut, ..Outcome::new(Ended::Unknown, output) },
    }
}

/// The form of earlier versions: the output and the exit status as an object.
fn of_json(text: &str) -> Option<Outcome<'static>> {
    let value: Value = text.starts_with('{').then(|| serde_json::from_str(text).ok())??;
    let output = value.get("output")?.as_str()?.to_owned();
    let code = value.pointer("/metadata/exit_code").or_else(|| value.get("exit_code")).and_then(Value::as_i64);
    let cut = output.contains("tokens truncated");
    Some(match (code.and_then(|code| i32::try_from(code).ok()), value.get("session_id").and_then(Value::as_u64)) {
        (Some(code), _) => Outcome { cut, ..Outcome::exit(code, output) },
        (None, Some(id)) => Outcome { session: Some(id.to_string()), ..Outcome::new(Ended::Running, output) },
        (None, None) => Outcome { cut, ..Outcome::new(Ended::Unknown, output) },
    })
}

/// The result of a script: what it printed, which is the result of its call where it prints that.
fn of_script<'a>(what: &Use, text: &'a str) -> Outcome<'a> {
    let completed = text.starts_with("Script completed");
    let printed = text.split_once("Output:\n").map_or("", |(_, printed)| printed).trim_start_matches('\n');
    if let Use::Shell { .. } | Use::Poll { .. } = what {
        return of_json(printed).unwrap_or_else(|| {
            let ended = if completed { Ended::Unknown } else { Ended::Failed };
            Outcome::new(if text.starts_with("Script running") { Ended::Running } else { ended }, printed)
        });
    }
    Outcome::new(if completed { Ended::Ok } else { Ended::Failed }, Cow::Borrowed(printed))
}

/// It has no tool that shows a file: its shell does.
fn shown(_text: &str, _part: bool, _from: Option<u64>) -> Option<Shown> {
    None
}
