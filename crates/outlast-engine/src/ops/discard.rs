//! Gives a task's work up: everything of it is kept under a ref, then its workspace goes.

use std::sync::Arc;

use outlast_core::AttemptId;
use outlast_core::admit::Command;
use outlast_core::desired::OperationKey;

use crate::context::Context;
use crate::error::Error;
use crate::home::reopen;
use crate::ops::attempt::is_there;
use crate::{left_out, notes};

pub(crate) async fn perform(context: &Arc<Context>, key: &OperationKey) -> Result<Command, Error> {
    let known = context.task_facts(&key.run, &key.task).await?;
    let mut last = known.checkpoint;
    let mut stays = false;
    let workspace = context.home.workspace(&key.run, &key.task);
    reopen(&workspace)?;
    if known.attempts > 0 && is_there(&workspace) {
        let id = AttemptId { run: key.run.clone(), task: key.task.clone(), number: known.attempts };
        last = context.checkpoint_if_made(&id, "before it was discarded").await?.or(last);
        // Given up or not: it is kept nowhere else.
        stays = !left_out::ignored_of(&context.home, &id).is_empty();
    }
    let (run, task) = (key.run.clone(), key.task.clone());
    if let Some(aside) = context.in_git(move |git| git.discard(&run, &task, last.as_ref(), stays)).await? {
        let id = AttemptId { run: key.run.clone(), task: key.task.clone(), number: known.attempts };
        context.note_finding(&id, notes::set_aside(&aside, "is not removed"));
    }
    Ok(Command::Discarded { run: key.run.clone(), task: key.task.clone() })
}
