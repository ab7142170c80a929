//! One try: prepare the workspace, launch or re-adopt the agent, read what it says, and judge how it ended.

use std::path::Path;
use std::sync::Arc;

use outlast_agent::{Adapter, Event};
use outlast_core::admit::{AttemptNews, Command};
use outlast_core::record::{Outcome, Rung, ShimRef};
use outlast_core::{AttemptId, Class, Epoch, Oid, plan};
use outlast_process::{ShimClient, ShimId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::ops::commands::Place;
use crate::ops::follow::{Output, connect, until_gone};
use crate::ops::judge::{self, Left};
use crate::ops::patience::{Ended, Patience};
use crate::ops::steps::{self, Shown};
use crate::ops::{launch, prepare, resumption};

/// What an attempt is about.
pub(crate) struct Attempt {
    pub(crate) id: AttemptId,
    pub(crate) epoch: Epoch,
    pub(crate) rung: Rung,
    pub(crate) needs: Vec<Oid>,
    pub(crate) shim: Option<ShimRef>,
}

/// Why an attempt got no further.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) class: Class,
    pub(crate) why: String,
}

impl Fault {
    pub(crate) fn new(class: Class, why: impl Into<String>) -> Self {
        Self { class, why: why.into() }
    }
}

/// Brings an attempt to the end of its agent; nothing where it was cancelled on the way.
pub(crate) async fn perform(
    context: &Arc<Context>,
    attempt: Attempt,
    token: &CancellationToken,
) -> Result<Option<Command>, Error> {
    // Without it nothing is known of the task: nobody is at fault, and no try is used.
    context.plan(&attempt.id.run).await?;
    let outcome = match work(context, &attempt, token).await {
        Ok(Some(failed @ Outcome::Failed { .. })) => on_a_full_disk(context, failed),
        Ok(Some(outcome)) => outcome,
        Ok(None) => return Ok(None),
        // What it was at is ended with it.
        Err(_) if token.is_cancelled() => return Ok(None),
        Err(Fault { class, why }) => {
            // What could not be prepared is prepared once there is room.
            context.room()?;
            failed(class, &why)
        }
    };
    crate::fault::point("after_exit");
    Ok(Some(news(&attempt, AttemptNews::Exited(outcome))))
}

/// An agent that failed while nothing could be written is not at fault.
fn on_a_full_disk(context: &Context, outcome: Outcome) -> Outcome {
    match (context.room(), &outcome) {
        (Err(full), Outcome::Failed { why, .. }) => failed(Class::Vanished, &format!("{full}; {why}")),
        _ => outcome,
    }
}

pub(crate) fn failed(class: Class, why: &str) -> Outcome {
    Outcome::Failed { class, why: one_line(why), until: None }
}

fn news(attempt: &Attempt, news: AttemptNews) -> Command {
    let AttemptId { run, task, number } = attempt.id.clone();
    Command::Attempt { run, task, number, epoch: attempt.epoch, news }
}

async fn work(context: &Arc<Context>, attempt: &Attempt, token: &CancellationToken) -> Result<Option<Outcome>, Fault> {
    let plan = context.plan(&attempt.id.run).await?;
    let task = context.task(&plan, &attempt.id.run, &attempt.id.task).await?;
    let task = &task.ok_or_else(|| Fault::new(Class::Unknown, "the task is not in the plan"))?;
    let dir = context.home.attempt(&attempt.id);
    let known = context.launched(&dir).await?;
    let (shim, adapter) = match known {
        Some(file) => (file.shim, launch::adapter_of(&plan, task)?.1),
        // The record says that it was launched and its folder says nothing: it went with the host's last boot.
        None if attempt.shim.is_some() => return Err(Fault::new(Class::Vanished, "its process left no trace")),
        None => match launch_anew(context, attempt, &plan, task, token).await? {
            Some(Launch::Agent(shim, adapter)) => (shim, adapter),
            Some(Launch::NotNeeded) => return Ok(Some(Outcome::Finished)),
            None => return Ok(None),
        },
    };
    context.tell(news(attempt, AttemptNews::Spawned(shim_ref(&shim)))).await?;
    crate::fault::point("after_spawn");
    let mut output = Output::new(&dir, adapter.reader());
    let sessions = launch::can_resume(&plan, task, adapter);
    let Some(exit) = watch(context, attempt, &mut output, &shim, sessions, token).await? else { return Ok(None) };
    let known = context.task_facts(&attempt.id.run, &attempt.id.task).await?;
    if exit.ran_out_of_time() && output.summary.is_over() {
        context.note_finding(&attempt.id, format!("{}, until its time was over", Ended::Lingered.words()));
    }
    let judged = judge::of(adapter, task, &output, &exit, known.has_asked);
    let outcome = judge::unless_it_did_nothing(context, &attempt.id, task, judged).await?;
    let outcome = judge::explained(outcome, context.passed.take(&attempt.id), &attempt.rung);
    let outcome = judge::of_a_broken_file(outcome, &output, &attempt.rung, known.has_asked);
    let outcome = judge::of_a_broken_answer(outcome, known.answer_broke);
    if exit.ran_out_of_time() {
        late(context, &attempt.id, task, outcome, token).await.map(Some)
    } else {
        Ok(Some(outcome))
    }
}

/// What has become of an agent that ran out of time: it may have done its work all the same.
async fn late(
    context: &Arc<Context>,
    id: &AttemptId,
    task: &plan::Task,
    outcome: Outcome,
    token: &CancellationToken,
) -> Result<Outcome, Fault> {
    let Outcome::Failed { why, .. } = &outcome else { return Ok(outcome) };
    let shown = steps::shown(context, id, task, token).await?;
    if !steps::all_done(context, id, task, &shown, token).await? {
        return Ok(outcome);
    }
    context.note_finding(id, format!("{why}, with all its steps done (late)"));
    Ok(Outcome::Finished)
}

/// Whether the work itself was looked at last time, and found wanting: then its steps may hold, and something is left to do.
async fn is_judged(context: &Context, id: &AttemptId) -> Result<bool, Error> {
    let last = context.task_facts(&id.run, &id.task).await?.last_failure;
    let is_verdict = |class| matches!(class, Class::Verify | Class::Scope | Class::GaveUp | Class::Question);
    Ok(last.is_some_and(|failure| is_verdict(failure.class)))
}

/// Whether an agent has done its work, and all that kept that from being checked was a program that was not there. Steps that
/// can be asked say themselves what is left.
async fn only_lacks_a_check(context: &Context, id: &AttemptId, task: &plan::Task) -> Result<bool, Error> {
    let last = context.task_facts(&id.run, &id.task).await?.last_failure;
    let has_steps = task.steps.iter().any(|step| step.command.is_some());
    Ok(!has_steps && !task.verify.is_empty() && last.is_some_and(|failure| failure.class == Class::NoProgram))
}

/// How an attempt begins.
enum Launch {
    /// With its agent.
    Agent(ShimId, &'static dyn Adapter),
    /// With nothing left to do.
    NotNeeded,
}

async fn launch_anew(
    context: &Arc<Context>,
    attempt: &Attempt,
    plan: &plan::Plan,
    task: &plan::Task,
    token: &CancellationToken,
) -> Result<Option<Launch>, Fault> {
    context.room()?;
    crate::fault::point("before_workspace");
    let prepared = prepare::workspace(context, attempt, plan, token).await?;
    context.tell(news(attempt, AttemptNews::WorkspaceReady(prepared.base.clone()))).await?;
    crate::fault::point("after_workspace");
    // A first attempt has nothing to show: steps that hold before anything was done are told by the check of the result.
    let shown = match attempt.rung {
        Rung::Fresh => Shown::default(),
        Rung::Session(_) | Rung::HandOver => steps::shown(context, &attempt.id, task, token).await?,
    };
    let may_be_over = shown.is_all() && !is_judged(context, &attempt.id).await?;
    if may_be_over && steps::all_done(context, &attempt.id, task, &shown, token).await? {
        context.note_finding(&attempt.id, "all its steps are done already, so it needs no agent".to_owned());
        return Ok(Some(Launch::NotNeeded));
    }
    if only_lacks_a_check(context, &attempt.id, task).await? {
        let place = Place::workspace(context, &attempt.id, task, token);
        if steps::passes(context, &place, task).await? {
            let what = "its verify can be run now and passes, so it needs no agent";
            context.note_finding(&attempt.id, what.to_owned());
            return Ok(Some(Launch::NotNeeded));
        }
    }
    let resumption = resumption::of(context, attempt, plan, task, &prepared.base, &shown).await?;
    let ask = launch::Ask {
        id: &attempt.id,
        epoch: attempt.epoch,
        rung: &attempt.rung,
        plan,
        task,
        workspace: &prepared.path,
        resumption,
    };
    let ready = launch::build(context, &ask)?;
    if token.is_cancelled() {
        return Ok(None);
    }
    crate::fault::point("before_spawn");
    let shim = context.spawner.spawn_async(&ready.spec).await.map_err(Error::from)?;
    Ok(Some(Launch::Agent(shim, ready.adapter)))
}

/// Follows the agent until it is gone; nothing where the attempt was cancelled meanwhile.
async fn watch(
    context: &Context,
    attempt: &Attempt,
    output: &mut Output,
    shim: &ShimId,
    sessions: bool,
    token: &CancellationToken,
) -> Result<Option<Left>, Fault> {
    let dir = context.home.attempt(&attempt.id);
    let mut client = connect(&dir).await;
    let gone = until_gone(&dir, shim);
    tokio::pin!(gone);
    let mut patience = Patience::default();
    let mut ended = None;
    loop {
        let over = async {
            match (patience.ends(), ended) {
                (Some((at, why)), None) => {
                    tokio::time::sleep_until(at).await;
                    why
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            record = &mut gone => {
                let said = output.finish()?;
                report(context, attempt, &said, sessions).await?;
                return Ok(Some(Left { record: record?, ended }));
            }
            () = token.cancelled() => return Ok(None),
            event = next(&mut client) => {
                if event.is_none() {
                    client = None;
                }
                let said = output.read()?;
                report(context, attempt, &said, sessions).await?;
                patience.note(&output.summary, Instant::now());
            }
            why = over => {
                // What is refused on its way through the gateway is waited for there, and never said: its limits are another's.
                let is_for_a_limit = matches!(why, Ended::Refused | Ended::Retrying);
                if is_for_a_limit && context.task_facts(&attempt.id.run, &attempt.id.task).await?.has_asked {
                    patience.is_answered();
                    continue;
                }
                ended = Some(why);
                context.note_finding(&attempt.id, format!("{}, so it is ended", why.words()));
                match &mut client {
                    Some(client) => client.kill(why.words()).await.map_err(Error::from)?,
                    None => shim.kill().map_err(Error::from)?,
                }
            }
        }
    }
}

async fn next(client: &mut Option<ShimClient>) -> Option<outlast_process::Event> {
    match client {
        Some(client) => client.next_event().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// Puts on record what must survive: the session, where a next attempt can continue it.
async fn report(context: &Context, attempt: &Attempt, said: &[Event], sessions: bool) -> Result<(), Fault> {
    for said in said {
        if let Event::SessionSeen(session) = said
            && sessions
        {
            context.tell(news(attempt, AttemptNews::SessionSeen(session.clone()))).await?;
        }
    }
    Ok(())
}

/// The record of a process in the core's terms.
fn shim_ref(shim: &ShimId) -> ShimRef {
    ShimRef {
        pid: u32::try_from(shim.pid).unwrap_or_default(),
        start_time: shim.start_time,
        boot_id: shim.boot_id.clone(),
    }
}

/// Longest reason that goes on record: records stay small.
pub(crate) const WHY_LEN_MAX: usize = 300;

/// The first line of a text, as short as a record wants it.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    brief(line, WHY_LEN_MAX)
}

/// A text of at most so many characters, which says where it is cut.
pub(crate) fn brief(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// Whether a path exists without following a link that an agent may have planted.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
