//! Ends an attempt: kill what it started, prove that nothing of it lives, keep its tree.
//!
//! The reason is on record before this begins, so a crash in between ends with the same reason.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::admit::{AttemptNews, Command};
use outlast_core::record::{EndReason, ShimRef};
use outlast_core::{AttemptId, Epoch, Oid};
use outlast_process::{ShimId, Trace, end_survivors, survivors};

use crate::context::Context;
use crate::error::Error;
use crate::home::reopen;
use crate::notes;
use crate::ops::attempt::is_there;
use crate::ops::follow::connect;
use crate::ops::launch::marker;
use crate::ops::prepare;

/// How long a killed process may take to be gone: one in the middle of a disk access takes a while.
const SURVIVORS_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn perform(
    context: &Arc<Context>,
    id: AttemptId,
    epoch: Epoch,
    reason: &EndReason,
    shim: Option<ShimRef>,
) -> Result<Command, Error> {
    crate::fault::point("before_end");
    let news = |news| Command::Attempt { run: id.run.clone(), task: id.task.clone(), number: id.number, epoch, news };
    let dir = context.home.attempt(&id);
    let (file, is_damaged) = match context.launched(&dir).await {
        // A damaged file names nobody: the journal does, and whatever else lives of it bears its marker.
        Err(Error::Process(outlast_process::Error::Format { .. })) => (None, true),
        other => (other?, false),
    };
    // A pid namespace ends with its shim: who else is in the workspace, and not in it, is a person's shell or editor.
    let is_contained = match &file {
        Some(file) => file.containment.pid_ns,
        None => shim.is_none() && !is_damaged,
    };
    let known = file.map(|file| file.shim).or_else(|| shim.map(shim_id));
    if let Some(shim) = known.filter(ShimId::is_alive) {
        kill_shim(&shim, &dir, &why(reason)).await?;
    }
    let workspace = context.home.workspace(&id.run, &id.task);
    // Where there is no pid namespace, what has left the tree may have outlived it.
    let (marker, place) = (marker(context, &id), workspace.clone());
    let left = context
        .waiting(move || {
            let find = || {
                let mut found = survivors(&marker, &place)?;
                found.retain(|each| !is_contained || each.trace == Trace::Marker || !is_beside_us(each.pid));
                Ok(found)
            };
            Ok(end_survivors(find, SURVIVORS_PATIENCE)?)
        })
        .await?;
    if !left.is_empty() {
        return Err(Error::Alive { attempt: id, processes: left.len() });
    }
    context.loops.forget(&id);
    context.fill.forget(&id);
    reopen(&workspace)?;
    // Without the store a workspace looks as if nobody had ever been in it.
    context.git.is_there()?;
    let kept = if is_there(&workspace) { keep(context, &id).await } else { Ok(None) };
    match kept {
        Ok(Some(commit)) => {
            context.tell(news(AttemptNews::Checkpointed(commit))).await?;
            crate::fault::point("after_checkpoint");
        }
        Ok(None) => {}
        // Whoever waits for the end would wait for ever.
        Err(error) if context.is_lost_for_good(&error) => {
            context.note_finding(&id, notes::not_kept_at_the_end(&error.to_string()));
        }
        Err(error) => return Err(error),
    }
    crate::fault::point("after_end");
    Ok(news(AttemptNews::Ended))
}

/// Keeps the tree of a workspace in which nobody is at work any more.
async fn keep(context: &Arc<Context>, id: &AttemptId) -> Result<Option<Oid>, Error> {
    // A damaged repository knows nothing of what was staged and committed in it, and neither would the checkpoint.
    prepare::mend(context, id).await?;
    context.checkpoint_if_made(id, "end of the attempt").await
}

/// Whether a process is in our own pid namespace; one of a namespace that is just ending is not.
fn is_beside_us(pid: i32) -> bool {
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    let ours = namespace("self");
    ours.is_some() && namespace(&pid.to_string()) == ours
}

/// Ends the command that a folder and a marker belong to, where one is running.
///
/// # Errors
/// Where it cannot be ended.
pub(crate) async fn kill_all(context: &Context, dir: &Path, marker: &str, why: &str) -> Result<(), Error> {
    let Some(file) = context.launched(dir).await? else { return Ok(()) };
    if !file.shim.is_alive() {
        return Ok(());
    }
    kill_shim(&file.shim, dir, why).await?;
    let (marker, nowhere) = (marker.to_owned(), dir.join("nowhere"));
    let left = context.waiting(move || Ok(end_survivors(|| survivors(&marker, &nowhere), SURVIVORS_PATIENCE)?)).await?;
    if left.is_empty() { Ok(()) } else { Err(Error::Internal(format!("{} processes do not end", left.len()))) }
}

async fn kill_shim(shim: &ShimId, dir: &Path, why: &str) -> Result<(), Error> {
    match connect(dir).await {
        Some(mut client) => client.kill(why).await?,
        None => shim.kill()?,
    }
    Ok(shim.wait_gone().await?)
}

fn shim_id(shim: ShimRef) -> ShimId {
    ShimId { pid: i32::try_from(shim.pid).unwrap_or_default(), start_time: shim.start_time, boot_id: shim.boot_id }
}

fn why(reason: &EndReason) -> String {
    match reason {
        EndReason::Finished => "its agent has ended".to_owned(),
        EndReason::Failed { why, .. } => why.clone(),
        EndReason::Parked => "the run was paused".to_owned(),
        EndReason::Limit { class } => format!("what it waits for takes too long ({class})"),
        EndReason::Discarded => "the task was discarded".to_owned(),
    }
}
