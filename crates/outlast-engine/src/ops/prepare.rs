//! A workspace that is ready for an agent: on its base, with the results of `setup`, its first tree kept.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_core::admit::{AttemptNews, Command};
use outlast_core::record::Rung;
use outlast_core::{AttemptId, Class, Oid, plan};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::notes;
use crate::ops::attempt::{Attempt, Fault, is_there};
use crate::ops::setup;
use crate::repositories::{Base, Repositories};

/// A workspace that an agent can start in.
pub(crate) struct Prepared {
    pub(crate) path: PathBuf,
    pub(crate) base: Oid,
}

pub(crate) async fn workspace(
    context: &Arc<Context>,
    attempt: &Attempt,
    plan: &plan::Plan,
    token: &CancellationToken,
) -> Result<Prepared, Fault> {
    let id = attempt.id.clone();
    let known = context.task_facts(&id.run, &id.task).await?;
    let (run_base, needs) = (known.run_base.clone(), attempt.needs.clone());
    // A workspace without a base on record never was ready: whoever made it was stopped on the way.
    let was_ready = known.base.is_some();
    // A task keeps the base that it was started from, so that its change stays measured against one thing.
    let base = match known.base {
        Some(base) => base,
        None => match context.in_git(move |git| git.base(&run_base, &needs)).await? {
            Base::Commit(base) => base,
            Base::Conflict(paths) => {
                return Err(Fault::new(Class::Conflict, format!("the results it needs do not merge: {paths}")));
            }
        },
    };
    let path = context.home.workspace(&id.run, &id.task);
    let was_there = is_there(&path);
    let is_new = attempt.rung == Rung::Fresh || !was_ready || !was_there;
    let for_git = id.clone();
    let aside = context.in_git(move |git| git.set_aside(&for_git)).await?;
    let kept = known.checkpoint;
    let had_work = kept.is_some();
    let (for_git, run_base, on_base, restore) = (id.clone(), known.run_base.clone(), base.clone(), kept.clone());
    let make = move |git: &Repositories| git.workspace(&for_git, &on_base, &run_base, restore.clone());
    let made = context.in_git(make).await?;
    mend(context, &id).await?;
    let goes_on = notes::goes_on(kept.as_ref(), made.restored().as_ref());
    if let Some(aside) = &aside {
        context.note_finding(&id, notes::set_aside(aside, goes_on));
    } else if !was_there && had_work && made.restored() != kept {
        context.note_finding(&id, notes::gone(goes_on));
    }
    let is_new = is_new || aside.is_some();
    let was_lost = had_work && !was_there || aside.is_some();
    if is_new && let Some(what) = notes::lacking(made.report()) {
        context.note_finding_once(&id, what);
    }
    if was_lost && matches!(attempt.rung, Rung::Session(_)) {
        // The session knows of work that came after the checkpoint, and would not do it again.
        let why = format!("its workspace was lost and {goes_on}: its session knows too much");
        return Err(Fault::new(Class::CorruptSession, why));
    }
    if is_new && !plan.run.setup.is_empty() {
        setup::bring(context, attempt, plan, &known.run_base, &base, &path, token).await?;
    }
    let commit = context.checkpoint(&id, "start of the attempt").await?;
    let news = AttemptNews::Checkpointed(commit);
    let (run, task, number, epoch) = (id.run, id.task, id.number, attempt.epoch);
    context.tell(Command::Attempt { run, task, number, epoch, news }).await?;
    Ok(Prepared { path, base })
}

/// Makes the repository of a task's workspace usable again, and tells what was damaged in it: for whoever knows that no process
/// is at work there.
pub(crate) async fn mend(context: &Arc<Context>, id: &AttemptId) -> Result<(), Error> {
    let kept = context.task_facts(&id.run, &id.task).await?.checkpoint;
    let for_git = id.clone();
    let mended = context.in_git(move |git| git.mend(&for_git, kept.as_ref())).await?;
    if !mended.is_empty() {
        context.note_finding(id, notes::mended(&mended));
    }
    Ok(())
}
