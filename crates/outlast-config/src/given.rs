//! What no program can be given: a text with a NUL, and one that is longer than the system hands over in one piece.
//!
//! Any text of a file may become an argument, a value of the environment or a path; refused here, none of them can hold up
//! a run that nobody could then mend. Nothing here knows a key but `goal`, which an agent can read from a file.

use outlast_core::placeholder::{self, Part};

use crate::document::{Node, Table, Value};
use crate::layer::{AgentLayer, Layer, TaskLayer};
use crate::plan::agent_of;
use crate::reader::{Located, Reader};
use crate::{Code, Finding};

/// Longest argument, its closing NUL left out: Linux refuses one of 128 KiB (`MAX_ARG_STRLEN`, execve(2)).
const LEN_MAX: usize = 128 * 1024 - 1;

const NUL_FIX: &str = "remove it: no program and no file's name can hold one";

/// Notes every key and text of a file that no program can be given. A NUL is replaced, so that it is noted once.
pub(crate) fn check(reader: &mut Reader<'_>, table: &mut Table) {
    for entry in &mut table.entries {
        if entry.key.contains('\0') {
            let shown = entry.key.escape_debug();
            reader.note(Code::BadValue, entry.key_at, format!("the key `{shown}` holds a NUL"), NUL_FIX);
            entry.key = replaced(&entry.key);
        }
        check_node(reader, &entry.key, &mut entry.node);
    }
}

fn check_node(reader: &mut Reader<'_>, key: &str, node: &mut Node) {
    match &mut node.value {
        Value::Text(text) | Value::Plain(text) => {
            if text.contains('\0') {
                reader.note(Code::BadValue, node.at, format!("`{key}` holds a NUL"), NUL_FIX);
                *text = replaced(text);
            }
            if text.len() > LEN_MAX && key != GOAL {
                note_long(reader, node.at, &format!("`{key}`"), text.len());
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| check_node(reader, key, item)),
        Value::Table(table) => check(reader, table),
        Value::Integer(_) | Value::Float(_) | Value::Bool(_) | Value::Other(_) => {}
    }
}

/// What may be as long as it likes: agents get it from a file, and a `command` where it asks for that.
const GOAL: &str = "goal";

fn replaced(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn note_long(reader: &mut Reader<'_>, at: usize, what: &str, len: usize) {
    let message = format!("{what} is {len} bytes long, and a program is given {LEN_MAX} at most in one piece");
    reader.note(Code::BadValue, at, message, "put it into a script or a file that is committed, and name that here");
}

/// Notes the first NUL of a text that is no value of a key: the body of a Markdown file.
pub(crate) fn check_text(reader: &mut Reader<'_>, from: usize) {
    if let Some(at) = reader.source.text()[from..].find('\0') {
        reader.note(Code::BadValue, from + at, "the text holds a NUL", NUL_FIX);
    }
}

/// Notes a step's command that stands in such a text, and is too long.
pub(crate) fn check_step(reader: &mut Reader<'_>, at: usize, command: &str) {
    if command.len() > LEN_MAX {
        note_long(reader, at, "the command of the step", command.len());
    }
}

/// Finds what a `command` would be given for a task in one piece, and is too long only when its placeholders are filled in.
pub(crate) fn check_filled(layer: &Layer, task: &TaskLayer, findings: &mut Vec<Finding>) {
    let Some(agent) = agent_of(layer, task).and_then(|name| layer.agents.get(&name)) else { return };
    let goal = task.goal.as_ref().map_or("", |goal| goal.value.trim());
    let arguments = agent.command.iter().flat_map(|command| &command.value).map(|argument| ("command", 0, argument));
    // One piece holds the name, `=` and the value.
    let values = agent.env.iter().map(|(name, value)| ("env", name.len() + 1, value));
    for (key, before, text) in arguments.chain(values) {
        let len = before + filled_len(layer, agent, task, goal, text);
        if len > LEN_MAX && text.value.len() <= LEN_MAX {
            let (id, written) = (&task.id, shortened(&text.value));
            let message = format!(
                "`{written}` in `{key}` is {len} bytes long for task `{id}`, and a program is given {LEN_MAX} at most in one piece"
            );
            let fix = "have the program read the goal from its file: write `{goal_file}` in place of `{goal}`";
            findings.push(Finding::new(Code::BadValue, Some(&text.at), message).fix(fix).task(id));
        }
    }
}

/// Bytes of a text with its placeholders filled in, as far as that is known before a launch.
fn filled_len(layer: &Layer, agent: &AgentLayer, task: &TaskLayer, goal: &str, text: &Located<String>) -> usize {
    let model = [&task.shared.model, &layer.defaults.model, &agent.model].into_iter().find_map(Option::as_ref);
    let len = |part: &Part<'_>| match part {
        Part::Text(text) => text.len(),
        Part::Placeholder("goal") => goal.len(),
        Part::Placeholder("task") => task.id.as_str().len(),
        Part::Placeholder("model") => model.map_or(0, |model| model.value.len()),
        Part::Placeholder(_) | Part::Unknown(_) => 0,
    };
    placeholder::parts(&text.value).iter().map(len).sum()
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text[..at].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests;
