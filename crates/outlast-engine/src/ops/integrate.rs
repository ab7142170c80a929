//! Verify in the integration worktree, on exactly the commit that would land, where no agent can write.

use std::sync::Arc;

use outlast_core::{AttemptId, Class, Oid, plan};
use outlast_git::Candidate;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::ops::commands::{self, Place};

/// Why the candidate does not pass, with the class of that; nothing where it does. A tree that has passed is not verified twice.
pub(crate) async fn verify(
    context: &Arc<Context>,
    id: &AttemptId,
    plan: &plan::Plan,
    task: &plan::Task,
    run_base: &Oid,
    candidate: &Candidate,
    token: &CancellationToken,
) -> Result<Option<(Class, String)>, Error> {
    let key = (id.run.clone(), id.task.clone());
    if task.verify.is_empty() || context.has_verified(&key, &candidate.tree) {
        return Ok(None);
    }
    let _alone = context.integration.lock().await;
    let (trusted, commit) = (run_base.clone(), candidate.commit.clone());
    let cwd = context.in_git(move |git| git.integrate(&trusted, &commit)).await?;
    let home = &context.home;
    let place = Place {
        cwd,
        home: home.verify_home(&id.run),
        temp: home.verify_temp(&id.run),
        outputs: home.attempt(id),
        attempt: id.clone(),
        timeout: task.timeout,
        token: token.clone(),
        may_connect: false,
    };
    let commands = plan.run.setup.iter().filter(|_| !context.is_set_up(&id.run, &candidate.tree));
    let setup: Vec<String> = commands.cloned().collect();
    if let Some(failed) = commands::run(context, &place, "setup-merged", &setup).await? {
        let (class, why) = failed.told(task, "setup");
        return Ok(Some((class, if class == Class::Verify { format!("setup {why}") } else { why })));
    }
    context.note_set_up(&id.run, &candidate.tree);
    if let Some(failed) = commands::run(context, &place, "verify-merged", &task.verify).await? {
        let (class, why) = failed.told(task, "verify");
        return Ok(Some((class, if class == Class::Verify { format!("on the merged tree, {why}") } else { why })));
    }
    context.note_verified(key, candidate.tree.clone());
    Ok(None)
}
