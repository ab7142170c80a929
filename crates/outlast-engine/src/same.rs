//! Which task of an earlier plan a task of this one is: the same work, also under another name or in another place.

use std::collections::BTreeMap;

use outlast_core::TaskId;
use outlast_core::plan::{Plan, Task};

/// The tasks of a plan as an earlier plan has them, by their names now. A task is what is to be done: who does it, for how
/// long, after what and how it is checked is not what.
///
/// One that keeps its name is found by that; one that has another is the earlier one of the same work which nothing else
/// of the plan is. No earlier task is two of now.
pub fn earlier<'n, 'b>(now: &'n Plan, before: &'b Plan) -> BTreeMap<&'n TaskId, &'b TaskId> {
    let mut left: BTreeMap<&TaskId, &'b Task> = before.tasks.iter().map(|task| (&task.id, task)).collect();
    let mut found = BTreeMap::new();
    for task in &now.tasks {
        if left.get(&task.id).is_some_and(|before| what(before) == what(task)) {
            found.extend(left.remove(&task.id).map(|before| (&task.id, &before.id)));
        }
    }
    if found.len() == now.tasks.len() || left.is_empty() {
        return found;
    }
    let mut by_work: BTreeMap<String, Vec<&'b TaskId>> = BTreeMap::new();
    // The first of several is the last here, and so the first to be taken.
    for task in before.tasks.iter().rev().filter(|task| left.contains_key(&task.id)) {
        by_work.entry(format!("{:?}", what(task))).or_default().push(&task.id);
    }
    for task in now.tasks.iter().filter(|task| !found.contains_key(&task.id)).collect::<Vec<_>>() {
        found.extend(by_work.get_mut(&format!("{:?}", what(task))).and_then(Vec::pop).map(|before| (&task.id, before)));
    }
    found
}

/// What is to be done.
fn what(task: &Task) -> impl PartialEq + std::fmt::Debug {
    let Task { goal, writes, reads, steps, example, output, .. } = task;
    (goal, writes, reads, steps, example, output)
}
