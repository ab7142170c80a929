//! What has become of an attempt, once its agent is gone: out of how it ended, what it said, and what it changed.

use std::sync::Arc;
use std::time::Duration;

use outlast_agent::{Adapter, Exit, ExitStatus, Unbegun, Verdict};
use outlast_core::admit::{AttemptNews, Command};
use outlast_core::record::{Outcome, Rung};
use outlast_core::reset::{End, Said};
use outlast_core::{AttemptId, Class, Timestamp, plan};
use outlast_process::{ExitReason, ExitRecord};

use crate::context::Context;
use crate::error::Error;
use crate::home::reopen;
use crate::ops::attempt::{WHY_LEN_MAX, brief, failed, is_there, one_line};
use crate::ops::follow::Output;
use crate::ops::launch::{START_TIMEOUT, start_timeout};
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
        matches!(reason, Some(ExitReason::WallTimeout | ExitReason::IdleTimeout | ExitReason::StartTimeout))
    }
}

/// What an attempt's end amounts to.
pub(crate) struct Judged {
    /// By how it ended and what it said.
    outcome: Outcome,
    /// What it is instead if it has changed nothing: its last word was a provider's error, or it never began.
    if_nothing_changed: Option<Outcome>,
}

/// Judges an end by how it came and what was said. Whether it has asked its model anything by way of the gateway tells of
/// one that said nothing more for long: refusals that it has printed before that are none that it waited for.
pub(crate) fn of(adapter: &dyn Adapter, task: &plan::Task, output: &Output, left: &Left, has_asked: bool) -> Judged {
    let alone = |outcome| Judged { outcome, if_nothing_changed: None };
    let Some(record) = &left.record else {
        return alone(failed(Class::Vanished, "its shim was killed and left no exit status"));
    };
    let last_word = || adapter.last_word(&output.summary).map(|verdict| outcome(verdict, output, record));
    let detail = record.detail.as_deref().unwrap_or_default();
    let over = |class, why: &str| {
        // One that tells of nothing but its provider's refusals has waited for that, and is not at fault.
        if let Some(refused) = last_word().filter(|_| !has_asked) {
            return alone(refused);
        }
        if output.summary.waits_for_input() {
            return alone(failed(Class::Startup, Ended::NeverBegan.words()));
        }
        let says_more = |unbegun: &Unbegun<'_>| class != Class::Startup || *unbegun != Unbegun::Silent;
        let unbegun = output.summary.unbegun().filter(|_| !has_asked).filter(says_more);
        let instead = unbegun.map(|unbegun| failed(Class::Startup, &unanswered(unbegun, task, why)));
        Judged { outcome: failed(class, why), if_nothing_changed: instead }
    };
    let lingered = match (record.reason, left.ended) {
        // It had said its last word, and only did not leave in time.
        (ExitReason::WallTimeout | ExitReason::IdleTimeout, _) if output.summary.is_over() => true,
        (ExitReason::WallTimeout, _) => {
            return over(Class::Timeout, &format!("it ran longer than its `timeout`, {}", written(task.timeout)));
        }
        (ExitReason::IdleTimeout, _) => {
            let limit = written(task.idle_timeout);
            return over(Class::Timeout, &format!("it was silent longer than its `idle_timeout`, {limit}"));
        }
        (ExitReason::StartTimeout, _) => {
            let silence = (!output.summary.has_complained()).then_some(task.idle_timeout);
            return over(Class::Startup, &never_began(task.timeout, silence));
        }
        (ExitReason::LaunchFailed, _) => return alone(failed(Class::Startup, detail)),
        (ExitReason::ListenerLost | ExitReason::ShimTerminated, _) => {
            return alone(failed(Class::Vanished, "its shim was ended"));
        }
        (_, Some(ended @ (Ended::Refused | Ended::Retrying | Ended::NeverBegan))) => {
            return over(ended.class(), ended.words());
        }
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

/// An end by what the provider said of it, where a refusal that no waiting mends was the last that the agent was handed: one
/// that then says it has finished has finished nothing. A request that was taken for wrong in words that nobody knows tells
/// of a session that was gone on with: what it holds is asked with each time.
pub(crate) fn explained(outcome: Outcome, passed: Option<(Class, String)>, rung: &Rung) -> Outcome {
    let Some((class, body)) = passed else { return outcome };
    let why = in_words(&body);
    match outcome {
        // Its CLI may take for the provider's own trouble what only a person mends.
        Outcome::Failed { class: Class::Overload | Class::Network, .. }
            if matches!(class, Class::Auth | Class::Billing) =>
        {
            failed(class, &why)
        }
        Outcome::Finished if class != Class::Unknown => failed(class, &why),
        Outcome::Failed { class: Class::Crash | Class::Startup | Class::GaveUp | Class::Unknown, .. } => match rung {
            _ if class != Class::Unknown => failed(class, &why),
            Rung::Session(_) => {
                failed(Class::CorruptSession, &format!("its provider takes the session no more: {why}"))
            }
            Rung::Fresh | Rung::HandOver => outcome,
        },
        outcome => outcome,
    }
}

/// An agent that was to go on with a session and ended since a file that it reads is no JSON, before it has asked anything, ended
/// by its session's file: it was killed while it wrote it, and would end so each time.
pub(crate) fn of_a_broken_file(outcome: Outcome, output: &Output, rung: &Rung, has_asked: bool) -> Outcome {
    match (outcome, rung, output.summary.unreadable()) {
        (
            Outcome::Failed { class: Class::Crash | Class::Startup | Class::GaveUp | Class::Unknown, .. },
            Rung::Session(_),
            Some(said),
        ) if !has_asked => failed(Class::CorruptSession, &format!("its session cannot be read: {said}")),
        (outcome, ..) => outcome,
    }
}

/// What is said of an agent that stood still before it began: the question that nobody has answered, and what helps.
fn unanswered(unbegun: Unbegun<'_>, task: &plan::Task, why: &str) -> String {
    match unbegun {
        Unbegun::Asks(question) => format!(
            "it asked `{question}` and waited, before it had asked its model for anything: nobody answers an agent here. Give it what \
             it asks for, or the option that keeps it from asking, in [agent.{}]",
            task.agent
        ),
        Unbegun::Silent => format!("it never began: {why}"),
    }
}

/// What is said of an agent that was waited for in vain at its start: for how long, and which key says so. One that has not
/// even complained is not waited for longer than it may be silent.
fn never_began(timeout: Duration, silence: Option<Duration>) -> String {
    let start = start_timeout(timeout);
    let (limit, of) = match silence {
        Some(silence) if silence < start => (silence, "the task's `idle_timeout`"),
        _ if timeout < START_TIMEOUT => (start, "the task's `timeout`"),
        _ => (start, "the most there is; a shorter `timeout` cuts it"),
    };
    format!("it neither said nor asked anything for {} after its start ({of})", written(limit))
}

/// A duration as a plan writes it.
fn written(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let text: String =
        parts.into_iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}")).collect();
    if text.is_empty() { format!("{}ms", duration.as_millis()) } else { text }
}

/// What the body of a provider's error says to people.
fn in_words(body: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let message = value.as_ref().and_then(|value| {
        let error = value.get(0).unwrap_or(value);
        ["/error/message", "/message"].iter().find_map(|at| error.pointer(at)?.as_str())
    });
    message.unwrap_or(body).to_owned()
}

/// A verdict as it goes on record, with the time at which a limit ends.
fn outcome(verdict: Verdict, output: &Output, record: &ExitRecord) -> Outcome {
    match verdict {
        Verdict::Finished { .. } => Outcome::Finished,
        Verdict::Failed { class, why, report } if class.is_limit() => {
            let zone = jiff::tz::TimeZone::system();
            // An engine that was away reads it later than it was said.
            let said = Said { at: Timestamp::from_millis(record.ended_at), zone: &zone };
            let end = output.summary.limit_ends(&report, said);
            Outcome::Failed { class, why: of_a_limit(&why, end), until: end.map(End::at) }
        }
        Verdict::Failed { class, why, .. } => failed(class, &why),
        Verdict::TryLater => failed(Class::Overload, "it asks to be tried later"),
        Verdict::Question { text } => failed(Class::Question, &text),
    }
}

/// What is said of a limit: where it is tried again before the time that its own words state, that too.
fn of_a_limit(why: &str, end: Option<End>) -> String {
    const SOONER: &str = " (tried again sooner: no such limit lasts that long)";
    let why = one_line(why);
    match end {
        Some(End::Cut(_)) => format!("{}{SOONER}", brief(&why, WHY_LEN_MAX - SOONER.len())),
        _ => why,
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
        // What there was then may be lost: nobody can tell that nothing came since.
        let since = || match is_empty(&then) {
            Err(Error::Git(outlast_git::Error::Object { .. })) => Ok(true),
            is_empty => is_empty.map(|is_empty| !is_empty),
        };
        Ok(!is_empty(&base)? && (before.made_headway || since()?))
    };
    context.in_git(changes).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_with_its_length_and_its_key() {
        assert_eq!(
            never_began(Duration::from_secs(5), None),
            "it neither said nor asked anything for 5s after its start (the task's `timeout`)"
        );
        let of = |timeout, silence| never_began(Duration::from_secs(timeout), Some(Duration::from_secs(silence)));
        assert!(of(1200, 600).contains("for 2m after its start (the most there is"));
        assert!(of(1200, 3).ends_with("for 3s after its start (the task's `idle_timeout`)"));
        assert!(of(5, 5).ends_with("for 5s after its start (the task's `timeout`)"));
        // It has complained, and was waited for till then.
        assert!(never_began(Duration::from_secs(1200), None).contains("for 2m after its start (the most there is"));
        let times = [1, 90, 1200, 3600, 5405].map(|seconds| written(Duration::from_secs(seconds)));
        assert_eq!(times, ["1s", "1m30s", "20m", "1h", "1h30m5s"]);
    }

    #[test]
    fn a_limit_that_is_tried_before_its_own_words_say_is_told_so() {
        let at = Timestamp::from_millis(1);
        let said = "You've hit your session limit · resets 7pm\n/upgrade";
        assert_eq!(of_a_limit(said, Some(End::Stated(at))), "You've hit your session limit · resets 7pm");
        assert_eq!(of_a_limit(said, None), "You've hit your session limit · resets 7pm");
        let cut = of_a_limit(said, Some(End::Cut(at)));
        assert_eq!(
            cut,
            "You've hit your session limit · resets 7pm (tried again sooner: no such limit lasts that long)"
        );
        let long = of_a_limit(&"x".repeat(900), Some(End::Cut(at)));
        assert!(long.ends_with("that long)") && long.chars().count() == WHY_LEN_MAX, "{long}");
    }

    #[test]
    fn h01_a_session_that_the_provider_takes_no_more_is_broken_in_whatever_words() {
        let (session, fresh) = (Rung::Session("s".to_owned()), Rung::Fresh);
        let crashed = || failed(Class::Crash, "it ended with exit code 1");
        let body = |text: &str| format!("{{\n  \"error\": {{\n    \"code\": 400, \"message\": \"{text}\"\n  }}\n}}");
        let ends = |outcome, class, text: &str, rung| match explained(outcome, Some((class, body(text))), rung) {
            Outcome::Finished => ("finished", String::new()),
            Outcome::Failed { class, why, .. } => (class.name(), why),
        };
        let known = "No tool output found for function call c.";
        for rung in [&session, &fresh] {
            assert_eq!(ends(crashed(), Class::CorruptSession, known, rung), ("corrupt_session", known.to_owned()));
            assert_eq!(ends(Outcome::Finished, Class::CorruptSession, known, rung).0, "corrupt_session");
        }
        let (class, why) = ends(crashed(), Class::Unknown, "made-up words", &session);
        assert_eq!(class, "corrupt_session");
        assert!(why.ends_with("made-up words"), "{why}");
        assert_eq!(ends(crashed(), Class::Unknown, "made-up words", &fresh).0, "crash");
        assert_eq!(ends(Outcome::Finished, Class::Unknown, "made-up words", &session).0, "finished");
        let window = failed(Class::WindowQuota, "used up");
        assert_eq!(ends(window, Class::Unknown, "made-up words", &session).0, "window_quota");
    }
}
