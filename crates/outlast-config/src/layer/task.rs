//! Reading one task, from a `[[task]]` table or from front matter.

use outlast_core::TaskId;
use outlast_core::plan::Span;

use super::{Shared, StepLayer, Texts, shared};
use crate::document::Table;
use crate::paths::{self, Meant};
use crate::reader::{Located, Reader, find};
use crate::{Code, keys};

/// A task as its file says it.
#[derive(Debug, Clone)]
pub(crate) struct TaskLayer {
    pub(crate) id: TaskId,
    /// Where the task begins.
    pub(crate) at: Span,
    pub(crate) goal: Option<Located<String>>,
    pub(crate) writes: Option<Texts>,
    pub(crate) needs: Option<Texts>,
    pub(crate) steps: Vec<StepLayer>,
    pub(crate) shared: Shared,
}

/// Longer ids fit no line of a table.
const ID_LEN_MAX: usize = 200;

/// Reads a `[[task]]` table, which has to name its id.
pub(super) fn read_listed(reader: &mut Reader<'_>, table: &Table, at: usize) -> Option<TaskLayer> {
    if find(table, "id").is_none() {
        reader.check_keys(table, "a task", keys::TASK);
        reader.note(Code::MissingKey, at, "a task has no `id`", "add `id = \"…\"`");
        return None;
    }
    read_task(reader, table, at, None)
}

/// Reads a task's keys; `stem` is its id where no key names one.
pub(crate) fn read_task(reader: &mut Reader<'_>, table: &Table, at: usize, stem: Option<&str>) -> Option<TaskLayer> {
    let id = match reader.text(table, "id") {
        Some(id) => id,
        None if find(table, "id").is_some() => return None,
        None => reader.located(stem?.to_owned(), at),
    };
    if let Some(fault) = id_fault(&id.value) {
        let message = format!("the id `{}` {fault}", id.value.escape_debug());
        reader.note(Code::BadId, &id.at, message, "choose another id");
        return None;
    }
    let id = TaskId::new(id.value);
    reader.task = Some(id.clone());
    reader.check_keys(table, &format!("task `{id}`"), keys::TASK);
    let task = TaskLayer {
        at: reader.span(at),
        goal: reader.text(table, "goal"),
        writes: paths::read_list(reader, table, "writes", Meant::Glob),
        needs: reader.texts(table, "needs"),
        steps: shared::read_steps(reader, table),
        shared: shared::read(reader, table),
        id,
    };
    reader.task = None;
    Some(task)
}

/// What keeps a text from being a task's id.
fn id_fault(id: &str) -> Option<&'static str> {
    match id {
        "" => Some("is empty"),
        long if long.len() > ID_LEN_MAX => Some("is longer than 200 bytes"),
        id if id.trim() != id => Some("begins or ends with white space"),
        id if id.chars().any(char::is_control) => Some("holds a control character"),
        id if id.starts_with('-') => Some("begins with `-`, like an option"),
        id if id.contains(['*', '?', '[', ']', '{', '}']) => Some("holds a character of globs"),
        id if id.starts_with("state:") || id.starts_with("group:") => Some("reads like a selector"),
        _ => None,
    }
}
