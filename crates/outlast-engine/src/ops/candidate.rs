//! Makes a commit on the target's tip out of a verified result, and verifies that commit.

use std::sync::Arc;

use outlast_core::admit::{Command, LandingNews};
use outlast_core::desired::OperationKey;
use outlast_core::record::LandingCause;
use outlast_core::{AttemptId, Oid};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::ops::attempt::one_line;
use crate::ops::integrate;
use crate::repositories::{Candidacy, Landable};

pub(crate) async fn perform(
    context: &Arc<Context>,
    key: &OperationKey,
    result: Oid,
    base: Option<Oid>,
    refusals: u32,
    token: &CancellationToken,
) -> Result<Command, Error> {
    let refused = |cause, detail| LandingNews::Refused { commit: None, refusals, cause, detail };
    let news = |news| Command::Landing { run: key.run.clone(), task: key.task.clone(), news };
    let plan = context.plan(&key.run).await?;
    let known = context.task_facts(&key.run, &key.task).await?;
    let task =
        plan.task(&key.task).ok_or_else(|| Error::Internal(format!("task `{}` is not in the plan", key.task)))?;
    let base = base.ok_or_else(|| Error::Internal(format!("the result of `{}` has no base", key.task)))?;
    let (id, agent, facts, message) = (key.clone(), task.agent.clone(), known.clone(), message(task));
    // What was refused once may have been merged by hand since: it says what it is, however it was merged.
    if refusals > 0 {
        let (id, target, since) = (key.clone(), known.target.clone(), known.run_base.clone());
        let landed = context.in_git(move |git| git.landed(&id.run, &id.task, &target, &since)).await?;
        if let Some(commit) = landed {
            return Ok(news(LandingNews::Landed(commit)));
        }
    }
    let candidacy = context
        .in_git(move |git| {
            git.candidate(&Landable {
                run: &id.run,
                task: &id.task,
                agent: &agent,
                target: &facts.target,
                run_base: &facts.run_base,
                landed: &facts.landed,
                base: &base,
                tree: &result,
                message: &message,
                at: facts.started_at,
            })
        })
        .await?;
    let (candidate, old) = match candidacy {
        Candidacy::Ready { candidate, old } => (candidate, old),
        // A person has merged it, by a commit that says so or by one that does not: nothing of it is left to do.
        Candidacy::There(by) => {
            let (id, since) = (key.clone(), known.run_base.clone());
            let landed = context.in_git(move |git| git.landed(&id.run, &id.task, &known.target, &since)).await?;
            return Ok(news(landed.map_or(LandingNews::WasThere(by), LandingNews::Landed)));
        }
        Candidacy::Refused(cause, detail) => {
            let refused = refused(cause, one_line(&detail));
            if cause != LandingCause::Conflict {
                return Ok(news(refused));
            }
            // A person may have run the command that a refused landing named, or merged it by hand.
            let (id, since) = (key.clone(), known.run_base.clone());
            let landed = context.in_git(move |git| git.landed(&id.run, &id.task, &known.target, &since)).await?;
            return Ok(news(landed.map_or(refused, LandingNews::Landed)));
        }
    };
    let (id, made) = (key.clone(), candidate.clone());
    if let Some(detail) = context.in_git(move |git| git.unfiltered(&id.run, &id.task, &made)).await? {
        return Ok(news(refused(LandingCause::Filter, detail)));
    }
    let id = AttemptId { run: key.run.clone(), task: key.task.clone(), number: known.attempts };
    match integrate::verify(context, &id, &plan, task, &known.run_base, &candidate, token).await {
        Ok(None) => {}
        Ok(Some((_, why))) => return Ok(news(refused(LandingCause::Verify, one_line(&why)))),
        // It does not say that the result is bad, and no try is used: whether it is worth another go, a person decides.
        Err(unshown @ Error::Unshown { .. }) => {
            let why = format!("`outlast land` tries again: {unshown}");
            return Ok(news(refused(LandingCause::Verify, one_line(&why))));
        }
        Err(error) => return Err(error),
    }
    crate::fault::point("after_candidate");
    Ok(news(LandingNews::Candidate { old, new: candidate.commit }))
}

/// Longest first line of a landed commit, as git's own tools expect.
const SUBJECT_LEN_MAX: usize = 68;

/// The message of a landed commit: the task, and the first line of its goal.
fn message(task: &outlast_core::plan::Task) -> String {
    let goal = one_line(&task.goal);
    let subject = format!("{}: {goal}", task.id);
    if subject.chars().count() <= SUBJECT_LEN_MAX {
        return subject;
    }
    let short: String = subject.chars().take(SUBJECT_LEN_MAX - 1).collect();
    format!("{short}…\n\n{goal}")
}
