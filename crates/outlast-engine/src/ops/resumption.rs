//! What an agent that goes on is told: why the work was interrupted, what was running, what is known, what is done.

use std::sync::Arc;

use outlast_agent::prompt::{HandOver, Resumption, handover_note, last_acts, made};
use outlast_core::record::Rung;
use outlast_core::{Oid, plan};
use outlast_git::AgentState;

use crate::context::Context;
use crate::error::Error;
use crate::ops::attempt::Attempt;
use crate::ops::launch::adapter_of;
use crate::ops::steps::Shown;
use crate::plans::given_to;
use crate::{left_out, put_away, research};

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
    // Who worked on it last may be another agent than goes on with it: what it knew and noted is in its own words and home.
    let (home, id) = (context.home.clone(), attempt.id.clone());
    let before = context.blocking(move || Ok(research::last_agent(&home, &id))).await?;
    let before = given_to(task, before.unwrap_or_else(|| task.agent.clone()));
    let Ok((_, adapter)) = adapter_of(plan, &before) else { return Ok(Resumption { reason, ..Resumption::default() }) };
    if attempt.rung == Rung::HandOver
        && let Some(tokens) = known.dear_session
    {
        let why = format!(
            "its session of {tokens} tokens is in no cache any more, and would be paid for in full: a fresh one goes on from a note"
        );
        context.note_finding(&attempt.id, why);
    }
    let (id, home, task, base) = (attempt.id.clone(), context.home.clone(), task.clone(), base.clone());
    // A note is a claim; where a step has a command, that alone tells.
    let holds = shown.clone();
    let hands_over = attempt.rung == Rung::HandOver;
    context
        .in_git(move |git| {
            let reason = reason.clone();
            let state = research::of_task(&home, &id, adapter)?;
            let noted = research::noted_by(&home, &id, &before)?;
            let done = holds.done(&task.steps, &noted.done);
            let begun = known.checkpoint.as_ref().map(|kept| git.store().agent_state(kept)).transpose()?;
            let begun = begun.as_ref().and_then(under_way).into_iter().chain(put_away::told(&home, &id));
            let begun: Vec<String> = begun.chain(left_out::made::told(&home, &id)).collect();
            let begun = (!begun.is_empty()).then(|| begun.join("\n"));
            let last_turn = research::last_turn(&home, &id);
            let since = match (&last_turn, &known.checkpoint) {
                // What there was then may be lost: nobody can tell what came since.
                (Some(then), Some(kept)) => match git.store().diff(then, kept) {
                    Ok(changes) => Some(changes.iter().map(research::named).collect()),
                    Err(outlast_git::Error::Object { .. }) => None,
                    Err(error) => return Err(error.into()),
                },
                _ => None,
            };
            let since: Option<&Vec<_>> = since.as_ref();
            let since = since.map(Vec::as_slice);
            let changes =
                known.checkpoint.as_ref().map(|kept| git.store().diff(&base, kept)).transpose()?.unwrap_or_default();
            let changed: Vec<_> = changes.iter().map(research::named).collect();
            if !hands_over {
                // A session knows what it has done, but often not what it was doing when it was killed.
                let told: Vec<String> = last_acts(&state, since).into_iter().chain(begun).collect();
                let interrupted = (!told.is_empty()).then(|| told.join("\n"));
                return Ok(Resumption { reason, interrupted, made: made(&changed), note: None, done });
            }
            let (done_so_far, notes) = (&done, &noted.notes);
            let over = HandOver { task: &task, research: &state, done: done_so_far, notes, changed: &changed, since };
            Ok(Resumption { reason, interrupted: begun, made: Vec::new(), note: Some(handover_note(&over)), done })
        })
        .await
}

/// What git has begun in the workspace and waits for somebody to end; nothing where there is nothing of that kind.
fn under_way(state: &AgentState) -> Option<String> {
    let names: Vec<&str> = state.in_progress.iter().map(|begun| begun.what.as_str()).collect();
    let open = match state.unmerged {
        0 => String::new(),
        paths => format!(", paths left open: {paths}"),
    };
    let names = (!names.is_empty()).then(|| names.join(" and "))?;
    Some(format!("In the workspace git has begun and not ended: {names}{open}. `git status` shows where it stands."))
}
