//! Gives a task's work up: everything of it is kept under a ref, then its workspace goes.

use std::sync::Arc;

use outlast_core::AttemptId;
use outlast_core::admit::Command;
use outlast_core::desired::OperationKey;

use crate::context::Context;
use crate::error::Error;
use crate::home::reopen;
use crate::ops::attempt::is_there;
use crate::repositories::Repositories;
use crate::{left_out, notes};

pub(crate) async fn perform(context: &Arc<Context>, key: &OperationKey) -> Result<Command, Error> {
    let known = context.task_facts(&key.run, &key.task).await?;
    let mut last = known.checkpoint;
    let mut stays = false;
    let workspace = context.home.workspace(&key.run, &key.task);
    reopen(&workspace)?;
    let id = AttemptId { run: key.run.clone(), task: key.task.clone(), number: known.attempts };
    if known.attempts > 0 && is_there(&workspace) {
        match context.checkpoint_if_made(&id, "before it was discarded").await {
            Ok(kept) => last = kept.or(last),
            // That is no reason to have a task for ever.
            Err(error) if context.is_lost_for_good(&error) => {
                stays = true;
                context.note_finding(&id, notes::not_kept_at_the_end(&error.to_string()));
            }
            Err(error) => return Err(error),
        }
        // Given up or not: it is kept nowhere else.
        stays |= !left_out::ignored_of(&context.home, &id).is_empty();
    }
    let (asked, base) = (last.clone(), known.base.unwrap_or(known.run_base));
    let whole = move |git: &Repositories| git.newest_whole(asked.as_ref(), &base);
    let whole = context.in_git(whole).await?;
    let (run, task) = (key.run.clone(), key.task.clone());
    if let Some(aside) = context.in_git(move |git| git.discard(&run, &task, whole.as_ref(), stays)).await? {
        context.note_finding(&id, notes::set_aside(&aside, "is not removed"));
    }
    Ok(Command::Discarded { run: key.run.clone(), task: key.task.clone() })
}
