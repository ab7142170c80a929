//! Which tasks a command may be about that names none.

use outlast_core::task::Task;
use outlast_git::word;

use crate::args::{Args, Command};
use crate::places::Places;
use crate::selection::Journalled;

/// How many tasks are named before the rest is summed up.
const NAMED_MAX: usize = 8;

/// The tasks that could be meant, and the command for one and for all of them; nothing where there is no run.
pub(super) fn tasks(args: &Args) -> Option<String> {
    let (verb, run, states): (_, _, &[&str]) = match args.command.as_ref()? {
        Command::Land(selection) => ("land", &selection.run, &["done"]),
        Command::Retry(retry) => ("retry", &retry.selection.run, &["failed", "blocked"]),
        Command::Discard(selection) => {
            ("discard", &selection.run, &["done", "failed", "stale", "blocked", "parked", "ready", "pending"])
        }
        Command::Log(selection) => ("log", &selection.run, &[]),
        Command::Diff(diff) => ("diff", &diff.selection.run, &[]),
        _ => return None,
    };
    let places = Places::new(args).ok()?;
    let (journalled, id) = Journalled::find(&places, run.as_deref()).ok()?;
    let run = journalled.core.run(&id)?;
    let is_meant = |task: &&Task| states.is_empty() || states.contains(&task.state()) && !is_empty(task);
    let meant: Vec<&Task> = run.tasks.iter().filter(is_meant).collect();
    let Some(first) = meant.first() else {
        return Some(format!("run {id} has no task that is {}; its tasks: outlast status {id}", states.join(" or ")));
    };
    let mut named: Vec<String> =
        meant.iter().take(NAMED_MAX).map(|task| format!("{} ({})", task.id, task.state())).collect();
    if meant.len() > NAMED_MAX {
        named.push(format!("{} more", meant.len() - NAMED_MAX));
    }
    let one = word(first.id.as_str());
    let all = match states {
        [] => "--all".to_owned(),
        _ => format!("state:{}", first.state()),
    };
    Some(format!(
        "tasks of run {id} that could be meant: {}\n  do:      outlast {verb} --run {id} {one}\n      or:  outlast {verb} --run {id} {all}",
        named.join(", ")
    ))
}

/// Whether there is nothing left to do with a result.
fn is_empty(task: &Task) -> bool {
    task.state() == "done" && task.is_on_target()
}
