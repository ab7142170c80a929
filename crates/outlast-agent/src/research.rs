//! From a conversation to the research state: what each CLI's tools are called, what they are given, and what they bring
//! back.
//!
//! A CLI's [`Vocabulary`] says what a call does and how its result is to be read; [`collect`] walks the conversation once
//! and keeps the books. What a vocabulary does not know is passed over: a tool of a later version is one fact less and
//! never a wrong one.

mod claude;
mod codex;
mod collect;
mod files;
mod gemini;
mod kimi;
mod opencode;
mod patch;
mod qwen;
mod script;
mod shell;

use std::borrow::Cow;

use outlast_core::research::{Ended, TodoItem, TodoState};
use serde_json::Value;

pub(crate) use claude::CLAUDE;
pub(crate) use codex::CODEX;
pub(crate) use collect::collect;
pub use files::text_hash;
pub(crate) use gemini::GEMINI;
pub(crate) use kimi::KIMI;
pub(crate) use opencode::OPENCODE;
pub(crate) use qwen::QWEN;

use patch::FilePatch;

/// What one call of a tool does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Use {
    /// Shows a file.
    Read {
        path: String,
        /// Whether only a part was asked for.
        part: bool,
        /// The first line asked for, from 1.
        from: Option<u64>,
    },
    /// Creates or replaces a file.
    Write { path: String, text: String },
    /// Adds to the end of a file.
    Append { path: String, text: String },
    /// Replaces texts in a file.
    Edit { path: String, changes: Vec<Change> },
    /// Changes files by a patch.
    Patch(Vec<FilePatch>),
    /// Runs a shell command.
    Shell { command: String, folder: Option<String> },
    /// Looks after a command that runs already.
    Poll { session: String },
    /// Searches or lists.
    Look(String),
    /// Replaces the to-do list.
    Todo(Vec<TodoItem>),
    /// Adds to the to-do list.
    TodoAdd(String),
    /// Changes an entry of the to-do list, by its number from 1.
    TodoSet { number: usize, text: Option<String>, state: Option<TodoState> },
    /// Starts a sub-agent.
    Agent(String),
    /// Tells people something.
    Say(String),
}

/// One replacement in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: String,
    pub(crate) new: String,
    /// Whether every occurrence is replaced.
    pub(crate) all: bool,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome<'a> {
    pub(crate) ended: Ended,
    pub(crate) exit: Option<i32>,
    /// What the tool brought back, without what the CLI puts around it.
    pub(crate) text: Cow<'a, str>,
    /// The name by which a command that still runs is looked after.
    pub(crate) session: Option<String>,
    /// Whether the CLI left something of it out.
    pub(crate) cut: bool,
}

impl<'a> Outcome<'a> {
    /// An outcome that says no more than how it ended.
    pub(crate) fn new(ended: Ended, text: impl Into<Cow<'a, str>>) -> Self {
        Self { ended, exit: None, text: text.into(), session: None, cut: false }
    }

    /// The outcome of a command with this exit status.
    pub(crate) fn exit(code: i32, text: impl Into<Cow<'a, str>>) -> Self {
        let ended = if code == 0 { Ended::Ok } else { Ended::Failed };
        Self { exit: Some(code), ..Self::new(ended, text) }
    }
}

/// A file as a result shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// The number of its first line.
    pub(crate) first: u64,
    /// Whether it is all there is.
    pub(crate) whole: bool,
}

/// How a CLI speaks of its tools. Plain functions: a vocabulary keeps nothing.
pub(crate) struct Vocabulary {
    /// What a call does; nothing for a tool that is of no interest here.
    pub(crate) uses: fn(name: &str, arguments: &Value) -> Vec<Use>,
    /// How a call ended, from its result and whether the dialect marks it as an error.
    pub(crate) outcome: for<'a> fn(what: &Use, text: &'a str, is_error: bool) -> Outcome<'a>,
    /// The file's text in what a reading tool brought back; `None` where the result says nothing about it.
    pub(crate) shown: fn(text: &str, part: bool, from: Option<u64>) -> Option<Shown>,
    /// What stands before the working directory in what the CLI tells its model at the start.
    pub(crate) folder_leads: &'static [&'static str],
    /// Beginnings of texts that the CLI puts into the model's mouth.
    pub(crate) made_up: &'static [&'static str],
}

/// A text argument under the first of these names that is there.
fn text(arguments: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| arguments.get(name)?.as_str()).map(str::to_owned)
}

/// A number argument.
fn number(arguments: &Value, name: &str) -> Option<u64> {
    let value = arguments.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The one replacement that `old_string` and its companions describe.
fn change(arguments: &Value, old: &[&str], new: &[&str], all: &[&str]) -> Option<Change> {
    let all = all.iter().any(|name| arguments.get(name).and_then(Value::as_bool).unwrap_or(false));
    Some(Change { old: text(arguments, old)?, new: text(arguments, new)?, all })
}

/// A to-do list, its entries' texts under the first of `names`.
fn todo(list: Option<&Value>, names: &[&str]) -> Vec<TodoItem> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries
        .filter_map(|entry| {
            let state = entry.get("status").and_then(Value::as_str).map_or(TodoState::Open, todo_state);
            Some(TodoItem { text: text(entry, names)?, state })
        })
        .collect()
}

/// The state that a word of any of the CLIs means.
fn todo_state(word: &str) -> TodoState {
    match word {
        "completed" | "done" => TodoState::Done,
        "in_progress" => TodoState::Begun,
        "cancelled" | "deleted" | "blocked" => TodoState::Dropped,
        _ => TodoState::Open,
    }
}

/// A search or listing as a line: the tool and its short arguments.
fn look(name: &str, arguments: &Value) -> Use {
    let mut what = name.to_owned();
    for (key, value) in arguments.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        what.push_str(&format!(" {key}={value}"));
    }
    Use::Look(what)
}

/// The number that follows `lead` in a text.
fn number_after<T: std::str::FromStr>(text: &str, lead: &str) -> Option<T> {
    let (_, rest) = text.split_once(lead)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The text of numbered lines (`NUMBER`, `mark`, line) and the number of the first. `None` where they are none.
fn unnumbered(text: &str, mark: &str) -> Option<(String, u64)> {
    let mut first = None;
    let mut plain = String::new();
    for (at, line) in text.lines().enumerate() {
        let (number, line) = line.split_once(mark)?;
        let number: u64 = number.trim().parse().ok()?;
        if number != *first.get_or_insert(number) + at as u64 {
            return None;
        }
        if at > 0 {
            plain.push('\n');
        }
        plain.push_str(line);
    }
    Some((plain, first?))
}

#[cfg(test)]
mod tests;
