//! Moves the target to a verified commit, or finds that it was moved before a crash.

use std::sync::Arc;

use outlast_core::Oid;
use outlast_core::admit::{Command, LandingNews};
use outlast_core::desired::OperationKey;
use outlast_git::Move;

use crate::context::Context;
use crate::error::Error;

pub(crate) async fn perform(
    context: &Arc<Context>,
    key: &OperationKey,
    old: Option<Oid>,
    new: Oid,
    refusals: u32,
) -> Result<Command, Error> {
    crate::fault::point("before_move");
    context.room_to_land()?;
    let known = context.task_facts(&key.run, &key.task).await?;
    let parent = old.clone().unwrap_or(known.run_base);
    let step = Move { run: key.run.clone(), task: key.task.clone(), target: known.target, old, new: new.clone() };
    let moved = context.in_git(move |git| git.move_target(&step, &parent)).await?;
    crate::fault::point("after_move");
    let news = match moved {
        Ok(()) => LandingNews::Landed(new),
        Err((cause, detail)) => LandingNews::Refused { commit: Some(new), refusals, cause, detail },
    };
    Ok(Command::Landing { run: key.run.clone(), task: key.task.clone(), news })
}
