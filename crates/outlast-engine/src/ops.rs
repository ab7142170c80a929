//! What the engine does in the world, one file an operation.
//!
//! Each begins by looking at what is already so, because it may be the second of its kind after a crash.

mod attempt;
mod candidate;
mod commands;
mod discard;
mod end;
mod follow;
mod integrate;
mod judge;
pub(crate) mod launch;
mod move_target;
mod patience;
mod prepare;
mod resumption;
mod setup;
mod steps;
mod verify;

use std::sync::Arc;

use outlast_core::admit::Command;
use outlast_core::desired::{Operation, OperationKey};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
pub(crate) use commands::Unshown;

/// Performs an operation and says what came of it; nothing where it was cancelled.
///
/// # Errors
/// Where nothing came of it and it is worth doing again: the caller does, after a pause.
pub(crate) async fn perform(
    context: &Arc<Context>,
    key: &OperationKey,
    operation: Operation,
    token: &CancellationToken,
) -> Result<Option<Command>, Error> {
    // What is not there would be taken for removed by a person, or for a change that does not pass. Processes are ended
    // all the same, and an agent that has ended is looked at by itself.
    let needs_all = !matches!(operation, Operation::Attempt { .. } | Operation::End { .. });
    if needs_all {
        context.git.is_there()?;
    }
    let came_of_it = match operation {
        Operation::Attempt { number, epoch, rung, needs, shim } => {
            let attempt = attempt::Attempt { id: attempt_id(key, number), epoch, rung, needs, shim };
            attempt::perform(context, attempt, token).await
        }
        Operation::End { number, epoch, reason, shim } => {
            end::perform(context, attempt_id(key, number), epoch, &reason, shim).await.map(Some)
        }
        Operation::Verify { number, base } => {
            verify::perform(context, attempt_id(key, number), base, token).await.map(Some)
        }
        Operation::Candidate { result, base, refusals } => {
            candidate::perform(context, key, result, base, refusals, token).await.map(Some)
        }
        Operation::Move { old, new, refusals } => {
            move_target::perform(context, key, old, new, refusals).await.map(Some)
        }
        Operation::Discard => discard::perform(context, key).await.map(Some),
    };
    match came_of_it {
        // Whoever is told that the disk is full may leave: not while something lives that is to be ended.
        Err(error @ Error::Alive { .. }) => Err(error),
        // What fails on a full disk fails for that reason, whatever it says.
        Err(error) => Err(context.room().err().unwrap_or(error)),
        Ok(_) if needs_all && !token.is_cancelled() => context.git.is_there().and(came_of_it),
        came_of_it => came_of_it,
    }
}

fn attempt_id(key: &OperationKey, number: u32) -> outlast_core::AttemptId {
    outlast_core::AttemptId { run: key.run.clone(), task: key.task.clone(), number }
}
