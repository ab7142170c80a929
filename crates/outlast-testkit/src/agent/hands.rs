//! The agent's tools: how they are declared to the model, and how they work on the current directory.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::script::Action;
use crate::wire::{Call, Tool};

/// How much of a command's output the model is shown, in bytes.
const SHOWN: usize = 30_000;

/// What a tool brought back.
#[derive(Debug)]
pub(super) struct Done {
    pub text: String,
    pub failed: bool,
}

/// The tools that are offered to the model.
pub(super) fn tools() -> Vec<Tool> {
    let tool = |name: &str, arguments: &[&str]| {
        let properties: serde_json::Map<String, Value> =
            arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        let parameters = json!({"type": "object", "properties": properties, "required": arguments});
        Tool { name: name.to_owned(), parameters }
    };
    vec![
        tool("Write", &["file_path", "content"]),
        tool("Edit", &["file_path", "old_string", "new_string"]),
        tool("Read", &["file_path"]),
        tool("Bash", &["command"]),
        tool("Local", &["step"]),
    ]
}

/// What the model wants done: an action, or a line of the step language in a call of `Local`.
pub(super) enum Wish {
    Act(Action),
    Local(String),
}

/// Reads a call; `Err` tells the model what is wrong with it.
pub(super) fn read_call(call: &Call) -> Result<Wish, String> {
    let text = |name: &str| {
        let value = call.arguments.get(name).and_then(Value::as_str);
        value.map(ToOwned::to_owned).ok_or_else(|| format!("{} needs `{name}`", call.name))
    };
    let action = match call.name.as_str() {
        "Write" => Action::Write { path: text("file_path")?, text: text("content")? },
        "Edit" => Action::Edit { path: text("file_path")?, old: text("old_string")?, new: text("new_string")? },
        "Read" => Action::Read { path: text("file_path")? },
        "Bash" => Action::Run { command: text("command")? },
        "Local" => return Ok(Wish::Local(text("step")?)),
        other => return Err(format!("there is no tool named {other}")),
    };
    Ok(Wish::Act(action))
}

/// Writes an action as the call that a model would make for it.
pub(super) fn write_call(id: String, action: &Action) -> Call {
    let (name, arguments) = match action {
        Action::Write { path, text } => ("Write", json!({"file_path": path, "content": text})),
        Action::Edit { path, old, new } => ("Edit", json!({"file_path": path, "old_string": old, "new_string": new})),
        Action::Read { path } => ("Read", json!({"file_path": path})),
        Action::Append { path, text } => ("Append", json!({"file_path": path, "content": text})),
        Action::Run { command } => ("Bash", json!({"command": command})),
        Action::Local(step) => ("Local", json!({"step": step.to_string()})),
    };
    Call { id, name: name.to_owned(), arguments }
}

/// Performs an action in the current directory. Local steps are not its business.
pub(super) fn perform(action: &Action) -> Done {
    let outcome = match action {
        Action::Write { path, text } => write(path, text).map(|()| format!("wrote {path}")),
        Action::Append { path, text } => append(path, text).map(|()| format!("appended to {path}")),
        Action::Edit { path, old, new } => edit(path, old, new).map(|()| format!("edited {path}")),
        Action::Read { path } => std::fs::read(path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|error| format!("{path}: {error}")),
        Action::Run { command } => return run(command),
        Action::Local(step) => Err(format!("`{step}` is no action on files")),
    };
    match outcome {
        Ok(text) => Done { text, failed: false },
        Err(text) => Done { text, failed: true },
    }
}

fn write(path: &str, text: &str) -> Result<(), String> {
    if let Some(parent) = Path::new(path).parent() {
        std::fs::create_dir_all(parent).map_err(|error| format!("{path}: {error}"))?;
    }
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}

fn append(path: &str, text: &str) -> Result<(), String> {
    use std::io::Write;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| format!("{path}: {error}"))
}

fn edit(path: &str, old: &str, new: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    if old.is_empty() || !text.contains(old) {
        return Err(format!("{path}: the old text was not found"));
    }
    std::fs::write(path, text.replacen(old, new, 1)).map_err(|error| format!("{path}: {error}"))
}

/// Runs a command of the model with `sh`, as agents do.
pub(super) fn run(command: &str) -> Done {
    let output = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).output();
    match output {
        Ok(output) => {
            let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.push_str(&String::from_utf8_lossy(&output.stderr));
            if text.len() > SHOWN {
                text.truncate(text.floor_char_boundary(SHOWN));
                text.push_str("\n[output truncated]");
            }
            let failed = !output.status.success();
            if failed {
                text = format!("{text}\n[{}]", output.status);
            }
            Done { text, failed }
        }
        Err(error) => Done { text: format!("sh: {error}"), failed: true },
    }
}
