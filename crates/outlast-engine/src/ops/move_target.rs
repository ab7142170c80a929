//! Moves the target to a verified commit, or finds that it was moved before a crash.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::admit::{Command, LandingNews};
use outlast_core::desired::OperationKey;
use outlast_core::{AttemptId, Oid};
use outlast_git::{Move, until_let_go};

use crate::context::Context;
use crate::error::Error;

/// How long the lock of a checkout is waited for that somebody's git holds: most hold one for less than a second. What lasts
/// longer is told with the command that lands.
const LOCK_PATIENCE: Duration = Duration::from_secs(15);

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
    until_unlocked(context, key, known.target.clone()).await?;
    let step =
        Move { run: key.run.clone(), task: key.task.clone(), target: known.target.clone(), old, new: new.clone() };
    let moved = context.in_git(move |git| git.move_target(&step, &known.landed, &known.run_base)).await?;
    crate::fault::point("after_move");
    let news = match moved {
        Ok(()) => LandingNews::Landed(new),
        Err((cause, detail)) => LandingNews::Refused { commit: Some(new), refusals, cause, detail },
    };
    Ok(Command::Landing { run: key.run.clone(), task: key.task.clone(), news })
}

/// Waits for the lock of a checkout that holds the target, where there is one.
async fn until_unlocked(context: &Arc<Context>, key: &OperationKey, target: String) -> Result<(), Error> {
    let branch = target.clone();
    let Some(lock) = context.in_git(move |git| git.checkout_lock(&branch)).await? else { return Ok(()) };
    // The whole task is meant, whichever attempt has done it.
    let id = AttemptId { run: key.run.clone(), task: key.task.clone(), number: 0 };
    let (place, seconds) = (lock.display(), LOCK_PATIENCE.as_secs());
    context.note_finding(
        &id,
        format!("`{target}` is checked out and locked (`{place}`): its landing waits {seconds} s for that"),
    );
    context.waiting(move || Ok(until_let_go(&lock, LOCK_PATIENCE))).await.map(drop)
}
