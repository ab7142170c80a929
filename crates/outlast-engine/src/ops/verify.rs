//! Checks what an attempt left: its scope, its own verify in the warm workspace, then verify on exactly what would land.

use std::sync::Arc;

use outlast_core::admit::Command;
use outlast_core::record::Verdict;
use outlast_core::{AttemptId, Class, Oid, plan};
use outlast_git::{Note, ScopeDiff};
use tokio_util::sync::CancellationToken;

use crate::context::{Context, TaskFacts};
use crate::error::Error;
use crate::left_out;
use crate::notes;
use crate::ops::attempt::one_line;
use crate::ops::commands::{self, Place};
use crate::ops::integrate;
use crate::repositories::{Candidacy, Landable};

pub(crate) async fn perform(
    context: &Arc<Context>,
    id: AttemptId,
    base: Option<Oid>,
    token: &CancellationToken,
) -> Result<Command, Error> {
    let plan = context.plan(&id.run).await?;
    let known = context.task_facts(&id.run, &id.task).await?;
    let task = plan.task(&id.task).ok_or_else(|| Error::Internal(format!("task `{}` is not in the plan", id.task)))?;
    let base = base.ok_or_else(|| Error::Internal(format!("attempt {id} has no base")))?;
    let (kept, notes) = match context.checkpoint_with_notes(&id, "to be verified").await {
        Ok(kept) => kept,
        Err(Error::Git(outlast_git::Error::NoWorkspace { .. })) => return Ok(lost(id, "was removed")),
        Err(Error::Git(outlast_git::Error::DamagedWorkspace { .. })) => return Ok(lost(id, "was damaged")),
        Err(error) => return Err(error),
    };
    crate::fault::point("after_checkpoint");
    let (base, end, notes) = (&base, &kept, notes.as_slice());
    let check = Check { context, id: &id, plan: &plan, task, known: &known, base, end, notes, token };
    let verdict = match check.verdict().await {
        Ok(Ok(result)) => Verdict::Passed { result },
        Ok(Err((class, why))) => {
            // An agent that could write nothing has shown nothing, either.
            context.room()?;
            Verdict::Failed { class, why: one_line(&why) }
        }
        // Lost with its process, as an agent is that was killed from outside: the task is not at fault.
        Err(unshown @ Error::Unshown { .. }) => {
            Verdict::Failed { class: Class::Vanished, why: one_line(&unshown.to_string()) }
        }
        Err(error) => return Err(error),
    };
    crate::fault::point("after_verify");
    let AttemptId { run, task, number } = id;
    Ok(Command::Verified { run, task, number, checkpoint: Some(kept), verdict })
}

/// Somebody has removed or damaged the workspace: no waiting brings it back, the next attempt does, as it was at the last turn.
fn lost(AttemptId { run, task, number }: AttemptId, how: &str) -> Command {
    let why = format!("its workspace {how} before its work was checked: what is kept of it is from its last turn");
    let verdict = Verdict::Failed { class: Class::Vanished, why };
    Command::Verified { run, task, number, checkpoint: None, verdict }
}

struct Check<'a> {
    context: &'a Arc<Context>,
    id: &'a AttemptId,
    plan: &'a plan::Plan,
    task: &'a plan::Task,
    known: &'a TaskFacts,
    base: &'a Oid,
    end: &'a Oid,
    notes: &'a [Note],
    token: &'a CancellationToken,
}

/// The verified result, or why there is none.
type Judged = Result<Oid, (Class, String)>;

impl Check<'_> {
    async fn verdict(&self) -> Result<Judged, Error> {
        let (base, end, writes) = (self.base.clone(), self.end.clone(), self.task.writes.clone());
        let (split, tree) = self
            .context
            .in_git(move |git| {
                let split = git.split(&base, &end, &writes)?;
                let tree = git.in_scope_tree(&base, &split)?;
                Ok((split, tree))
            })
            .await?;
        if let Some(refused) = nothing_in_scope(&split, self.notes, &left_out::ignored_of(&self.context.home, self.id))
        {
            return Ok(Err(refused));
        }
        if let Some(what) = notes::stripped(&split) {
            self.context.note_finding(self.id, what);
        }
        if let Some(unpassed) = self.warm().await? {
            return Ok(Err(unpassed));
        }
        // Nobody but the check was at work here since the checkpoint that it began with.
        let id = self.id.clone();
        self.context.in_git(move |git| git.note_made(&id.run, &id.task)).await?;
        if let Some(unpassed) = self.on_what_would_land(&tree).await? {
            return Ok(Err(unpassed));
        }
        let (id, base, at) = (self.id.clone(), self.base.clone(), self.known.started_at);
        Ok(Ok(self.context.in_git(move |git| git.keep_result(&id, &base, &tree, at)).await?))
    }

    /// Verify in the workspace: quick, since everything is built there already.
    async fn warm(&self) -> Result<Option<(Class, String)>, Error> {
        let place = Place::workspace(self.context, self.id, self.task, self.token);
        let failed = commands::run(self.context, &place, "verify", &self.task.verify).await?;
        Ok(failed.map(|failed| failed.told(self.task, "verify")))
    }

    /// Verify on the target merged with the result, and with the results that it needs where they are not there yet: they
    /// land before it. A merge that conflicts is told at the landing, where it is due.
    async fn on_what_would_land(&self, tree: &Oid) -> Result<Option<(Class, String)>, Error> {
        let (known, id, agent) = (self.known.clone(), self.id.clone(), self.task.agent.clone());
        let base = if known.needs_landed { self.base.clone() } else { known.run_base.clone() };
        let tree = tree.clone();
        let candidacy = self
            .context
            .in_git(move |git| {
                git.candidate(&Landable {
                    run: &id.run,
                    task: &id.task,
                    agent: &agent,
                    target: &known.target,
                    run_base: &known.run_base,
                    landed: &known.landed,
                    base: &base,
                    tree: &tree,
                    message: "to be verified",
                    at: known.started_at,
                })
            })
            .await?;
        match candidacy {
            Candidacy::There(_) | Candidacy::Refused(..) => Ok(None),
            Candidacy::Ready { candidate, .. } => {
                let run_base = &self.known.run_base;
                integrate::verify(self.context, self.id, self.plan, self.task, run_base, &candidate, self.token).await
            }
        }
    }
}

/// Why a change cannot be a result: there is none, or none of it may land.
fn nothing_in_scope(split: &ScopeDiff, notes: &[Note], ignored: &[String]) -> Option<(Class, String)> {
    if let Some((change, block)) = split.blocked.first() {
        return Some((Class::Scope, format!("`{}` may never land: {}", change.path_lossy(), block.why())));
    }
    if !split.in_scope.is_empty() {
        return None;
    }
    if split.out_of_scope.is_empty() && !split.in_worktrees.is_empty() {
        let place = notes::worktrees(split);
        let why =
            format!("its work has to be in the workspace's own files, and is in a worktree that it made: {place}");
        return Some((Class::Scope, why));
    }
    if split.out_of_scope.is_empty() {
        let left: Vec<String> = notes::left_out(notes).into_iter().chain(ignored.iter().cloned()).collect();
        let why = match left.is_empty() {
            false => {
                format!("the agent ended without changing anything that can be kept; left out: {}", left.join(", "))
            }
            true => "the agent ended without changing anything".to_owned(),
        };
        return Some((Class::GaveUp, why));
    }
    Some((
        Class::Scope,
        format!("everything that it changed is outside `writes`: {}", notes::outside(&split.out_of_scope)),
    ))
}
