//! Keeps what an agent has done at each of its turns, while the provider is at work on the answer.
//!
//! An agent's next request means that its tools have ended, so that its tree holds still until the answer is there: the
//! answer is held back until the tree is durable. On a full disk that is when there is room: an agent that went on would
//! write half of what it means to, over work that is kept nowhere. Nor does one go on while the user's repository or our
//! store is gone. A tree that cannot be kept for another reason holds nobody
//! up, nor one that takes very long, for which the agent's timeouts would stand still: the attempt goes on with the
//! checkpoint before, and whoever watches is told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use outlast_core::admit::{AttemptNews, Command};
use outlast_core::record::Outcome;
use outlast_core::task::Stage;
use outlast_core::{AttemptId, Core, Epoch};
use outlast_gateway::{Arrived, Dialect, TurnKind};

use crate::context::Context;
use crate::error::Error;
use crate::fill::Near;
use crate::research;

/// How long an answer is held back for the tree at most. What takes longer is kept all the same, beside the agent's work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A turn of a living attempt.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) id: AttemptId,
    pub(crate) epoch: Epoch,
    /// Counted from 1 over all attempts of the task.
    pub(crate) number: u32,
}

/// What a turn's request says.
#[derive(Clone)]
struct Said {
    kind: TurnKind,
    /// The agent that asks, where the attempt's own agent has started it.
    sub_agent: Option<String>,
    dialect: Dialect,
    body: Bytes,
}

/// Keeps the tree of whoever asks; ready once that is done, or is nobody's business here.
pub(crate) fn keep(context: Arc<Context>, arrived: Arrived, near: Option<Near>) -> BoxFuture<'static, ()> {
    let kind = arrived.ask.turn_kind;
    if !matches!(kind, TurnKind::Main | TurnKind::SubAgent) || arrived.ask.path_attempt.is_none() {
        return Box::pin(std::future::ready(()));
    }
    let Arrived { ask, body } = arrived;
    let said = Said { kind, sub_agent: ask.sub_agent.clone(), dialect: ask.dialect, body };
    let asker = context.engine.asker(ask);
    let for_turn = Arc::clone(&context);
    // A task of its own: an agent that gives up its request has done its work all the same.
    let mut kept = tokio::spawn(async move {
        if let Ok(Some(turn)) = asker.await {
            keep_of(&for_turn, &turn, said, near).await;
        }
    });
    Box::pin(async move {
        // A panic has been printed; the agent is not at fault.
        while tokio::time::timeout(PATIENCE, &mut kept).await.is_err() && context.obstacle().is_some() {}
        context.until_clear().await;
    })
}

/// Keeps a turn, as soon as nothing is in the way; tells of one that cannot be kept.
async fn keep_of(context: &Arc<Context>, turn: &Turn, said: Said, mut near: Option<Near>) {
    loop {
        let kept = at(context, turn, said.clone(), &mut near);
        tokio::pin!(kept);
        let done = tokio::select! {
            done = &mut kept => done,
            () = tokio::time::sleep(PATIENCE) => {
                context.note_slow(&turn.id, turn.number, PATIENCE);
                kept.await
            }
        };
        match done {
            Ok(()) => return,
            // It says so in many ways that the disk is full, or the store gone.
            Err(_) if context.obstacle().is_some() => context.until_clear().await,
            Err(error) => return context.note_not_kept(&turn.id, turn.number, &error),
        }
    }
}

async fn at(context: &Arc<Context>, turn: &Turn, said: Said, near: &mut Option<Near>) -> Result<(), Error> {
    let lock = context.tree_lock(&turn.id);
    let _tree = match (said.kind, lock.clone().try_lock_owned()) {
        (_, Ok(tree)) => tree,
        // Agents that an agent has started do not wait for each other: the tree that is being kept holds the work of all.
        // What this one knows is put beside it afterwards, and its answer does not wait for that.
        (TurnKind::SubAgent, Err(_)) => {
            let (context, turn) = (Arc::clone(context), turn.clone());
            tokio::spawn(async move {
                let _tree = lock.lock_owned().await;
                if let Err(error) = part(&context, &turn, said).await {
                    context.note_not_kept(&turn.id, turn.number, &error);
                }
            });
            return Ok(());
        }
        // Whoever has waited in vain is not kept late, and in the midst of what comes next: the next turn is.
        (_, Err(_)) => match tokio::time::timeout(PATIENCE, lock.lock_owned()).await {
            Ok(tree) => tree,
            Err(_) => return Err(Error::Busy),
        },
    };
    // Whoever ends an attempt says so first and then waits for the tree: nothing is kept behind its back.
    if !works(context, turn).await? {
        return Ok(());
    }
    crate::fault::point("turn_before_checkpoint");
    let commit = context.keep_tree(&turn.id, format!("turn {}", turn.number), true).await?;
    crate::fault::point("turn_after_checkpoint");
    let stuck = match said.kind {
        TurnKind::Main => research::keep(context, turn, said.dialect, said.body, &commit, near.take()).await?,
        _ => {
            part(context, turn, said).await?;
            None
        }
    };
    tell(context, turn, AttemptNews::Checkpointed(commit)).await?;
    match stuck {
        // Its processes are ended as those of any attempt that has failed.
        Some((class, why)) => {
            let outcome = Outcome::Failed { class, why, until: None };
            tell(context, turn, AttemptNews::Exited(outcome)).await
        }
        None => Ok(()),
    }
}

async fn tell(context: &Context, turn: &Turn, news: AttemptNews) -> Result<(), Error> {
    let AttemptId { run, task, number } = turn.id.clone();
    context.tell(Command::Attempt { run, task, number, epoch: turn.epoch, news }).await
}

/// Keeps what an agent knows that the attempt's own has started; for whoever has the tree's lock.
async fn part(context: &Arc<Context>, turn: &Turn, said: Said) -> Result<(), Error> {
    let Some(sub_agent) = said.sub_agent else { return Ok(()) };
    if !works(context, turn).await? {
        return Ok(());
    }
    research::keep_part(context, turn, sub_agent, said.dialect, said.body).await
}

/// Whether the attempt is still at work.
async fn works(context: &Context, turn: &Turn) -> Result<bool, Error> {
    let Turn { id, epoch, .. } = turn.clone();
    let works = move |core: &Core| {
        let attempt = core.run(&id.run)?.task(&id.task)?.attempt()?;
        Some(attempt.number == id.number && attempt.epoch == epoch && attempt.stage == Stage::Working)
    };
    Ok(context.engine.look(works).await?.unwrap_or(false))
}
