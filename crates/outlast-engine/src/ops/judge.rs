//! What has become of an attempt, once its agent is gone: out of how it ended, what it said, and what it changed.

use std::sync::Arc;

use outlast_agent::{Adapter, Exit, ExitStatus, Verdict};
use outlast_core::admit::{AttemptNews, Command};
use outlast_core::record::Outcome;
use outlast_core::reset::Said;
use outlast_core::{AttemptId, Class, Timestamp, plan};
use outlast_process::{ExitReason, ExitRecord};

use crate::context::Context;
use crate::error::Error;
use crate::home::reopen;
use crate::ops::attempt::{failed, is_there, one_line};
use crate::ops::follow::Output;
use crate::ops::patience::Ended;

/// The signal that nothing survives.
pub(crate) const SIGKILL: i32 = nix::sys::signal::Signal::SIGKILL as i32;

/// How an agent left.
pub(crate) struct Left {
    /// What its shim put on record; nothing where it left none.
    pub(crate) record: Option<ExitRecord>,
    /// Why it was ended by us, if it was.
    pub(crate) ended: Option<Ended>,
}

impl Left {
    /// Whether its time was over, of which kind ever.
    pub(crate) fn ran_out_of_time(&self) -> bool {
        let reason = self.record.as_ref().map(|record| record.reason);
        matches!(reason, Some(ExitReason::WallTimeout | ExitReason::IdleTimeout))
    }
}

/// What an attempt's end amounts to.
pub(crate) struct Judged {
    /// By how it ended and what it said.
    outcome: Outcome,
    /// What it is instead if it has changed nothing: its last word was a provider's error.
    if_nothing_changed: Option<Outcome>,
}

/// Judges an end by how it came and what was said. Whether it has asked its model anything by way of the gateway tells of
/// one that said nothing more for long: refusals that it has printed before that are none that it waited for.
pub(crate) fn of(adapter: &dyn Adapter, output: &Output, left: &Left, has_asked: bool) -> Judged {
    let alone = |outcome| Judged { outcome, if_nothing_changed: None };
    let Some(record) = &left.record else {
        return alone(failed(Class::Vanished, "its shim was killed and left no exit status"));
    };
    let last_word = || adapter.last_word(&output.summary).map(|verdict| outcome(verdict, output, record));
    let detail = record.detail.as_deref().unwrap_or_default();
    let over = |class, why: &str| {
        // One that tells of nothing but its provider's refusals has waited for that, and is not at fault.
        alone(last_word().filter(|_| !has_asked).unwrap_or_else(|| match output.summary.waits_for_input() {
            true => failed(Class::Startup, Ended::NeverBegan.words()),
            false => failed(class, why),
        }))
    };
    let lingered = match (record.reason, left.ended) {
        (ExitReason::WallTimeout, _) => return over(Class::Timeout, "it ran longer than its timeout"),
        (ExitReason::IdleTimeout, _) => return over(Class::Timeout, "it was silent longer than its idle timeout"),
        (ExitReason::StartTimeout, _) => {
            return over(Class::Startup, "it neither said nor asked anything after its start");
        }
        (ExitReason::LaunchFailed, _) => return alone(failed(Class::Startup, detail)),
        (ExitReason::ListenerLost | ExitReason::ShimTerminated, _) => {
            return alone(failed(Class::Vanished, "its shim was ended"));
        }
        (_, Some(ended @ (Ended::Refused | Ended::NeverBegan))) => return over(ended.class(), ended.words()),
        (ExitReason::Killed, None) => return alone(failed(Class::Vanished, detail)),
        // Not by us: by a person, or by a host that is out of memory.
        (ExitReason::Exited, _) if record.signal == Some(SIGKILL) => {
            return alone(failed(Class::Vanished, "its agent was killed from outside (signal 9)"));
        }
        (_, ended) => ended == Some(Ended::Lingered),
    };
    let status = match record.code {
        Some(code) => ExitStatus::Code(code),
        None => ExitStatus::Signal(record.signal.unwrap_or_default()),
    };
    let judged = outcome(adapter.judge(&Exit { status, lingered }, &output.summary), output, record);
    let if_nothing_changed = if judged == Outcome::Finished { last_word() } else { None };
    Judged { outcome: judged, if_nothing_changed }
}

/// An agent that ends badly after an answer to it broke in the middle ended by that, and not by a fault of its own: the provider's
/// connection, or an engine that was killed, cut it off, and not every CLI asks again or says why it ends.
pub(crate) fn of_a_broken_answer(outcome: Outcome, answer_broke: bool) -> Outcome {
    match outcome {
        Outcome::Failed { class: Class::Crash | Class::Startup | Class::GaveUp | Class::Unknown, why, .. }
            if answer_broke =>
        {
            failed(Class::Network, &format!("an answer to it broke in the middle; {why}"))
        }
        outcome => outcome,
    }
}

/// A verdict as it goes on record, with the time at which a limit ends.
fn outcome(verdict: Verdict, output: &Output, record: &ExitRecord) -> Outcome {
    match verdict {
        Verdict::Finished { .. } => Outcome::Finished,
        Verdict::Failed { class, why, report } if class.is_limit() => {
            let zone = jiff::tz::TimeZone::system();
            // An engine that was away reads it later than it was said.
            let said = Said { at: Timestamp::from_millis(record.ended_at), zone: &zone };
            Outcome::Failed { class, why: one_line(&why), until: output.summary.limit_ends(&report, said) }
        }
        Verdict::Failed { class, why, .. } => failed(class, &why),
        Verdict::TryLater => failed(Class::Overload, "it asks to be tried later"),
        Verdict::Question { text } => failed(Class::Question, &text),
    }
}

/// An agent that says it is done, whose last word was a provider's error and that has changed nothing, ended by that error.
///
/// # Errors
/// Where its tree cannot be looked at.
pub(crate) async fn unless_it_did_nothing(
    context: &Arc<Context>,
    id: &AttemptId,
    task: &plan::Task,
    judged: Judged,
) -> Result<Outcome, Error> {
    match judged.if_nothing_changed {
        Some(instead) if !has_changed_anything(context, id, task).await? => Ok(instead),
        _ => Ok(judged.outcome),
    }
}

/// Whether there is a change that could land, and this attempt has had a part in it.
async fn has_changed_anything(context: &Arc<Context>, id: &AttemptId, task: &plan::Task) -> Result<bool, Error> {
    let workspace = context.home.workspace(&id.run, &id.task);
    reopen(&workspace)?;
    if !is_there(&workspace) {
        return Ok(false);
    }
    let before = context.task_facts(&id.run, &id.task).await?;
    let (Some(base), Some(then)) = (before.base, before.checkpoint) else { return Ok(false) };
    let now = {
        let _tree = context.tree_lock(id).lock_owned().await;
        context.keep_tree(id, "what its last word leaves".to_owned(), true).await?
    };
    if now != then
        && let Some(epoch) = before.epoch
    {
        let (run, task, number) = (id.run.clone(), id.task.clone(), id.number);
        let news = AttemptNews::Checkpointed(now.clone());
        context.tell(Command::Attempt { run, task, number, epoch, news }).await?;
    }
    let writes = task.writes.clone();
    let changes = move |git: &crate::repositories::Repositories| {
        let is_empty = |from| Ok::<_, Error>(git.split(from, &now, &writes)?.in_scope.is_empty());
        Ok(!is_empty(&base)? && (before.made_headway || !is_empty(&then)?))
    };
    context.in_git(changes).await
}
