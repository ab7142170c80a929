//! What an agent that goes on is told: why the work was interrupted, what was running, what is known, what is done.

use std::sync::Arc;

use outlast_agent::prompt::{HandOver, Resumption, handover_note, last_acts};
use outlast_core::record::Rung;
use outlast_core::{Oid, plan};

use crate::context::Context;
use crate::error::Error;
use crate::ops::attempt::Attempt;
use crate::ops::launch::adapter_of;
use crate::ops::steps::Shown;
use crate::research;

/// The account of a task's earlier attempts; empty for a first one.
pub(crate) async fn of(
    context: &Arc<Context>,
    attempt: &Attempt,
    plan: &plan::Plan,
    task: &plan::Task,
    base: &Oid,
    shown: &Shown,
) -> Result<Resumption, Error> {
    if attempt.rung == Rung::Fresh {
        return Ok(Resumption::default());
    }
    let known = context.task_facts(&attempt.id.run, &attempt.id.task).await?;
    let reason = known.last_failure.map(|failure| match failure.class {
        outlast_core::Class::Verify => format!("The work does not pass yet: {}.", failure.why),
        class => format!("The last attempt ended early ({class}): {}.", failure.why),
    });
    let Ok((_, adapter)) = adapter_of(plan, task) else { return Ok(Resumption { reason, ..Resumption::default() }) };
    let (id, home, task, base) = (attempt.id.clone(), context.home.clone(), task.clone(), base.clone());
    // A note is a claim; where a step has a command, that alone tells.
    let holds = shown.clone();
    let hands_over = attempt.rung == Rung::HandOver;
    context
        .in_git(move |git| {
            let state = research::of_task(&home, &id, adapter)?;
            let noted = research::noted_by(&home, &id, &task)?;
            let done = holds.done(&task.steps, &noted.done);
            if !hands_over {
                // A session knows what it has done, but often not what it was doing when it was killed.
                return Ok(Resumption { reason, interrupted: last_acts(&state), note: None, done });
            }
            let changes = known.checkpoint.map(|kept| git.store().diff(&base, &kept)).transpose()?.unwrap_or_default();
            let changed: Vec<_> = changes.iter().map(research::named).collect();
            let over = HandOver { task: &task, research: &state, done: &done, notes: &noted.notes, changed: &changed };
            Ok(Resumption { reason, interrupted: None, note: Some(handover_note(&over)), done })
        })
        .await
}
