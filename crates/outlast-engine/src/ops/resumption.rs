//! What an agent that goes on is told: why the work was interrupted, what has changed so far, which steps are done.

use std::fmt::Write as _;
use std::sync::Arc;

use outlast_agent::prompt::{Resumption, finished_steps};
use outlast_core::record::Rung;
use outlast_core::{Oid, plan};
use outlast_git::read_inside;

use crate::context::Context;
use crate::error::Error;
use crate::home::reopen;
use crate::ops::attempt::Attempt;
use crate::ops::launch::PROGRESS;

/// Longest note of steps that is read, in bytes: thousands of steps.
const PROGRESS_LEN_MAX: u64 = 1 << 20;
/// How many changed paths are named.
const PATHS_NAMED: usize = 100;

/// The account of a task's earlier attempts; empty for a first one.
pub(crate) async fn of(
    context: &Arc<Context>,
    attempt: &Attempt,
    task: &plan::Task,
    base: &Oid,
) -> Result<Resumption, Error> {
    if attempt.rung == Rung::Fresh {
        return Ok(Resumption::default());
    }
    let id = &attempt.id;
    let known = context.task_facts(&id.run, &id.task).await?;
    let reason = known.last_failure.map(|failure| match failure.class {
        outlast_core::Class::Verify => format!("The work does not pass yet: {}.", failure.why),
        class => format!("The last attempt ended early ({class}): {}.", failure.why),
    });
    let home = context.home.agent_home(&id.run, &id.task, task.agent.as_str());
    reopen(&home)?;
    // The home is the agent's to write: a link, a pipe or a flood there is no note of its steps.
    let progress = read_inside(&home, PROGRESS.into(), PROGRESS_LEN_MAX).ok().flatten().unwrap_or_default();
    let done = finished_steps(task, &String::from_utf8_lossy(&progress)).into_iter().map(str::to_owned).collect();
    // A session knows what it has done; whoever takes over has to be told.
    let note = match (&attempt.rung, known.checkpoint) {
        (Rung::HandOver, Some(checkpoint)) => Some(changes(context, base.clone(), checkpoint).await?),
        _ => None,
    };
    Ok(Resumption { reason, note, done, ..Resumption::default() })
}

async fn changes(context: &Arc<Context>, base: Oid, checkpoint: Oid) -> Result<String, Error> {
    let changed = context.in_git(move |git| Ok(git.store().diff(&base, &checkpoint)?)).await?;
    if changed.is_empty() {
        return Ok("Nothing has been changed so far.".to_owned());
    }
    let mut note = "The working tree holds the work so far. Changed files:".to_owned();
    for change in changed.iter().take(PATHS_NAMED) {
        let how = match (&change.old, &change.new) {
            (None, _) => "added",
            (_, None) => "deleted",
            _ => "changed",
        };
        // Writing to a string cannot fail.
        let _ = write!(note, "\n- {} ({how})", change.path_lossy());
    }
    if changed.len() > PATHS_NAMED {
        let _ = write!(note, "\n- and {} more", changed.len() - PATHS_NAMED);
    }
    Ok(note)
}
