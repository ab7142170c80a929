//! Front matter that another tool's task files have: what of it means the same here is taken, the rest is told.
//!
//! Such files (`depends_on`, `parallel`, `conflicts_with`, beside a name, a status and dates) are written by issue trackers
//! and planners. A file without any of the first three is ours: a name or a status in it is a slip, and an error.

use crate::Code;
use crate::document::{Table, Value};
use crate::reader::Reader;

/// What shows that a file lists a task.
const MARKS: [&str; 3] = ["depends_on", "parallel", "conflicts_with"];

/// What such a file says beside, and no run needs.
const UNREAD: [&str; 8] = ["name", "title", "status", "created", "updated", "github", "parallel", "conflicts_with"];

/// What `status` says of a task that is over.
const OVER: [&str; 5] = ["closed", "completed", "complete", "done", "cancelled"];

/// Whether the front matter is that of another tool's task.
pub(super) fn is_task(table: &Table) -> bool {
    table.entries.iter().any(|entry| MARKS.contains(&entry.key.as_str()))
}

/// The same front matter in our words: `depends_on` is `needs`. What is left out is told.
pub(super) fn translated(reader: &mut Reader<'_>, table: &Table) -> Table {
    let mut ours = Table::default();
    let mut unread = Vec::new();
    for entry in &table.entries {
        let mut entry = entry.clone();
        if entry.key == "depends_on" {
            if table.get("needs").is_some() {
                let message = "`needs` and `depends_on` stand in the front matter";
                reader.note(Code::BadValue, entry.key_at, message, "keep `needs`");
                continue;
            }
            "needs".clone_into(&mut entry.key);
        }
        if UNREAD.contains(&entry.key.as_str()) {
            unread.push(entry);
        } else {
            ours.entries.push(entry);
        }
    }
    if let Some(first) = unread.first() {
        let names: Vec<String> = unread.iter().map(|entry| format!("`{}`", entry.key)).collect();
        let message = format!("not read: {}", names.join(", "));
        let fix = "nothing, if `needs` (or `depends_on`) and `writes` say all that a run has to know";
        reader.note(Code::ForeignKey, first.key_at, message, fix);
    }
    if let Some(entry) = unread.iter().find(|entry| entry.key == "status")
        && let Value::Text(status) | Value::Plain(status) = &entry.node.value
        && OVER.contains(&status.as_str())
    {
        let message = format!("the status is `{status}`, and the task is started all the same");
        reader.note(Code::StatusInPlan, entry.key_at, message, "take the file out of the folder if it is done");
    }
    ours
}
