//! Puts an action into a call of a tool that the agent offers: each CLI names its tools and their arguments its own way.
//!
//! Where an agent has no tool for an action, its shell does it, as a model would. A call is never made up for a tool
//! that was not offered.

use serde_json::{Map, Value, json};

use crate::script::{Action, LocalStep};
use crate::wire::{Conversation, Item, Tool};

#[cfg(test)]
mod tests;

/// The name and arguments of the call for an action.
///
/// # Errors
/// A sentence fragment when no offered tool can do it.
pub(super) fn call_for(action: &Action, conversation: &Conversation) -> Result<(String, Value), String> {
    let tools = &conversation.tools;
    let cwd = working_directory(conversation);
    match action {
        Action::Write { path, text } => match find(tools, &["Write", "write_file", "write"]) {
            Some(tool) => Ok(fill(tool, &[(PATH, json!(absolute(&cwd, path))), (&["content"], json!(text))])),
            None => shell(
                tools,
                &format!("mkdir -p -- \"$(dirname -- {0})\" && printf %s {1} > {0}", quote(path), quote(text)),
            ),
        },
        Action::Edit { path, old, new } => match find(tools, &["Edit", "replace", "edit"]) {
            Some(tool) => Ok(fill(
                tool,
                &[
                    (PATH, json!(absolute(&cwd, path))),
                    (&["old_string", "oldString"], json!(old)),
                    (&["new_string", "newString"], json!(new)),
                ],
            )),
            None => shell(tools, &edit_command(path, old, new)),
        },
        Action::Read { path } => match find(tools, &["Read", "read_file", "read"]) {
            Some(tool) => Ok(fill(tool, &[(PATH, json!(absolute(&cwd, path)))])),
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
    let names = ["Bash", "run_shell_command", "bash", "exec_command", "shell_command", "shell", "local_shell"];
    let tool = find(tools, &names).ok_or("the request offers no shell tool that the provider knows")?;
    let command_is_list = tool.parameters.pointer("/properties/command/type").and_then(Value::as_str) == Some("array");
    let command = if command_is_list { json!(["bash", "-lc", command]) } else { json!(command) };
    let (name, mut arguments) = fill(tool, &[(&["command", "cmd"], command)]);
    if tool.takes("yield_time_ms") {
        arguments["yield_time_ms"] = json!(30_000);
    }
    Ok((name, arguments))
}

/// Single quotes for `sh`; the text arrives there unchanged.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Replaces the first occurrence of a text with awk, which every system with a shell has.
fn edit_command(path: &str, old: &str, new: &str) -> String {
    let program = r#"BEGIN { RS = "\001" } { i = index($0, ENVIRON["OLD"]); if (!i) exit 1; printf "%s%s%s", substr($0, 1, i - 1), ENVIRON["NEW"], substr($0, i + length(ENVIRON["OLD"])) }"#;
    let path = quote(path);
    format!(
        "edited=$(OLD={} NEW={} awk '{program}' {path} && echo x) && printf %s \"${{edited%x}}\" > {path}",
        quote(old),
        quote(new),
    )
}

/// What a misbehaviour looks like for an agent that only has a shell.
fn local_command(step: &LocalStep) -> Result<String, String> {
    let command = match step {
        LocalStep::Die(_) => "kill -9 $PPID".to_owned(),
        LocalStep::Hang => "sleep 2147483".to_owned(),
        LocalStep::Spin => "while :; do :; done".to_owned(),
        LocalStep::ForkDetached(command) => format!("setsid sh -c {} </dev/null >/dev/null 2>&1 &", quote(command)),
        LocalStep::Flood(bytes) => format!("head -c {bytes} /dev/zero | tr '\\0' x"),
        LocalStep::ReadStdin => "cat >/dev/null".to_owned(),
        LocalStep::Sleep(seconds) => format!("sleep {seconds}"),
        LocalStep::FromAttempt { attempt, command } => {
            format!("if [ \"${{OUTLAST_ATTEMPT##*.}}\" -ge {attempt} ]; then {command}\nfi")
        }
        LocalStep::Exit(_) | LocalStep::IgnoreTerm | LocalStep::Linger | LocalStep::FailFirst { .. } => {
            return Err(format!("`{step}` needs the scripted agent; this one offers no tool for it"));
        }
    };
    Ok(command)
}

/// The working directory, as the CLIs tell their models; `None` when none is told.
fn working_directory(conversation: &Conversation) -> Option<String> {
    // Codex says a new directory in a new message, so the newest counts there.
    let texts = conversation.items.iter().filter_map(|item| match item {
        Item::User { text } => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = std::iter::once(conversation.system.as_str()).chain(texts).collect();
    let newest = texts.iter().rev().find_map(|text| after(text, "<cwd>"));
    newest.or_else(|| {
        let leads = ["orking directory: ", "working in the directory: ", "**Workspace Directories:**\n  - "];
        texts.iter().find_map(|text| leads.iter().find_map(|lead| after(text, lead)))
    })
}

/// The absolute path that follows a lead-in.
fn after(text: &str, lead: &str) -> Option<String> {
    let (_, rest) = text.split_once(lead)?;
    let path = rest.split(['\n', '<']).next()?.trim();
    path.starts_with('/').then(|| path.to_owned())
}

fn absolute(cwd: &Option<String>, path: &str) -> String {
    match cwd {
        Some(cwd) if !path.starts_with('/') => format!("{}/{path}", cwd.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}
