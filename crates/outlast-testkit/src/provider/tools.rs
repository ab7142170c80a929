//! Puts an action into a call of a tool that the agent offers: each CLI names its tools and their arguments its own way.
//!
//! Where an agent has no tool for an action, its shell does it, as a model would. A call is never made up for a tool
//! that was not offered.

use serde_json::{Map, Value, json};

use self::place::{absolute, working_directory};
use self::shell::{edit_command, local_command, quote, write_command};
use crate::script::Action;
use crate::wire::{Conversation, Tool};

mod codex;
mod place;
mod shell;
#[cfg(test)]
mod tests;

/// The name and arguments of the call for an action.
///
/// # Errors
/// A sentence fragment when no offered tool can do it.
pub(super) fn call_for(action: &Action, conversation: &Conversation) -> Result<(String, Value), String> {
    let cwd = working_directory(conversation);
    let tools = &conversation.tools;
    if let Some(exec) = find(tools, &["exec"]).filter(|tool| tool.parameters.is_null()) {
        let (name, arguments) = choose(action, &codex::nested_tools(), cwd.as_deref())?;
        return Ok((exec.name.clone(), json!(codex::script(&name, &arguments))));
    }
    choose(action, tools, cwd.as_deref())
}

fn choose(action: &Action, tools: &[Tool], cwd: Option<&str>) -> Result<(String, Value), String> {
    let place = |path: &str| json!(absolute(cwd, path));
    match action {
        Action::Write { path, text } => {
            match find(tools, &["Write", "write_file", "write", "WriteFile", "apply_patch"]) {
                // Kimi's makes no folder for the file.
                Some(tool) if tool.name == "WriteFile" && path.contains('/') => {
                    shell(tools, &write_command(path, text))
                }
                Some(tool) if tool.name != "apply_patch" => {
                    Ok(fill(tool, &[(PATH, place(path)), (&["content"], json!(text))]))
                }
                Some(tool) if text.ends_with('\n') && tool.parameters.is_null() => {
                    Ok((tool.name.clone(), json!(codex::whole_file_patch(path, text))))
                }
                _ => shell(tools, &write_command(path, text)),
            }
        }
        Action::Edit { path, old, new } => match find(tools, &["Edit", "replace", "edit", "StrReplaceFile"]) {
            Some(tool) if tool.takes("edit") => {
                let edit = json!({ "old": old, "new": new });
                Ok(fill(tool, &[(PATH, place(path)), (&["edit"], edit)]))
            }
            Some(tool) => {
                let (old, new) = (json!(old), json!(new));
                Ok(fill(
                    tool,
                    &[(PATH, place(path)), (&["old_string", "oldString"], old), (&["new_string", "newString"], new)],
                ))
            }
            None => match find(tools, &["apply_patch"]).filter(|tool| tool.parameters.is_null()) {
                // A patch knows whole lines alone.
                Some(tool) if old.ends_with('\n') && (new.is_empty() || new.ends_with('\n')) => {
                    Ok((tool.name.clone(), json!(codex::lines_patch(path, old, new))))
                }
                _ => shell(tools, &edit_command(path, old, new)),
            },
        },
        Action::Read { path } => match find(tools, &["Read", "read_file", "read", "ReadFile"]) {
            Some(tool) => Ok(fill(tool, &[(PATH, place(path))])),
            None => shell(tools, &format!("cat -- {}", quote(path))),
        },
        Action::Append { path, text } => shell(tools, &format!("printf %s {} >> {}", quote(text), quote(path))),
        Action::Run { command } => shell(tools, command),
        Action::Local(step) => match find(tools, &["Local"]) {
            Some(tool) => Ok((tool.name.clone(), json!({"step": step.to_string()}))),
            None => shell(tools, &local_command(step)?),
        },
    }
}

/// The call that waits for a command which outlived its own call.
pub(super) fn poll_for(session: u64, conversation: &Conversation) -> Option<(String, Value)> {
    let tool = find(&conversation.tools, &["write_stdin"])?;
    Some((tool.name.clone(), json!({"session_id": session, "chars": "", "yield_time_ms": 30_000})))
}

const PATH: &[&str] = &["file_path", "filePath", "path"];

fn find<'a>(tools: &'a [Tool], names: &[&str]) -> Option<&'a Tool> {
    names.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name))
}

/// Fills the arguments under the names that the tool's schema knows, and the ones a schema demands for people's sake.
fn fill(tool: &Tool, arguments: &[(&[&str], Value)]) -> (String, Value) {
    let mut filled = Map::new();
    for (names, value) in arguments {
        let name = names.iter().find(|name| tool.takes(name)).unwrap_or(&names[0]);
        filled.insert((*name).to_owned(), value.clone());
    }
    for (name, value) in [("instruction", json!("Apply the scripted edit.")), ("description", json!("Scripted step"))] {
        if tool.takes(name) {
            filled.insert(name.to_owned(), value);
        }
    }
    if tool.takes("is_background") {
        filled.insert("is_background".to_owned(), json!(false));
    }
    (tool.name.clone(), Value::Object(filled))
}

fn shell(tools: &[Tool], command: &str) -> Result<(String, Value), String> {
    let names = ["Bash", "run_shell_command", "bash", "Shell", "exec_command", "shell_command", "shell", "local_shell"];
    let tool = find(tools, &names).ok_or("the request offers no shell tool that the provider knows")?;
    let command_is_list = tool.parameters.pointer("/properties/command/type").and_then(Value::as_str) == Some("array");
    let command = if command_is_list { json!(["bash", "-lc", command]) } else { json!(command) };
    let (name, mut arguments) = fill(tool, &[(&["command", "cmd"], command)]);
    if tool.name == "Shell" && tool.takes("timeout") {
        // Kimi's would end it after one minute; in seconds, and the most that it grants.
        arguments["timeout"] = json!(300);
    }
    if tool.takes("yield_time_ms") {
        arguments["yield_time_ms"] = json!(30_000);
    }
    Ok((name, arguments))
}
