//! What an attempt's end means. Never the exit code alone: a CLI may end with 0 having done nothing, or be killed after
//! it had finished.

use outlast_core::Class;

use crate::account::ClosingAccount;
use crate::event::Summary;
use crate::refusal;
use crate::report::{BEHIND_A_CUT_MAX, Behind, last_report, reported, says_no_more};
use crate::stream::shorten;

/// How the agent's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// Whether it had said its last word and was then ended from outside because it did not leave by itself.
    pub lingered: bool,
}

impl Exit {
    /// An exit by itself with this code.
    pub const fn code(code: i32) -> Self {
        Self { status: ExitStatus::Code(code), lingered: false }
    }

    /// An end by this signal.
    pub const fn signal(signal: i32) -> Self {
        Self { status: ExitStatus::Signal(signal), lingered: false }
    }
}

/// Exit code or signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
}

/// What an attempt's end means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The agent takes its work for done; whether it is, the task's `done_when` and `verify` say.
    Finished {
        /// What it said about its work.
        account: ClosingAccount,
    },
    /// It did not finish.
    Failed {
        /// Why, as one word with one remedy.
        class: Class,
        /// Why, for people.
        why: String,
        /// The report that it was drawn from, whole: when a limit ends is stated there, or nowhere. Empty where there is none.
        report: String,
    },
    /// It asks to be tried again later.
    TryLater,
    /// It asks a person something.
    Question {
        /// What it asks.
        text: String,
    },
}

/// The verdict for a CLI that has a last word (see [`Summary::result`]).
pub(crate) fn judge(exit: &Exit, summary: &Summary) -> Verdict {
    if let Some((status, text)) = &summary.provider_error {
        let class = class_of(*status, text, summary);
        let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
        let why = format!("the provider's refusal reached the agent{status}: {}", shorten(text));
        return Verdict::Failed { class, why, report: text.clone() };
    }
    match (&summary.result, exit.status) {
        (Some((true, text)), ExitStatus::Code(0)) => finished(text),
        (Some((true, text)), _) if exit.lingered => finished(text),
        // Some report success in the same breath as a limit; then it stands by itself.
        (Some((true, text)), _) if refusal::is_limit_alone(text) => by_report(class_of(None, text, summary), text),
        (Some((true, _)), status) => {
            failed(Class::Crash, format!("it reported success, then ended with {}", named(status)))
        }
        (Some((false, text)), _) => match class_of(None, text, summary) {
            Class::Unknown => match complaint(summary) {
                Some((class, report)) => by_report(class, &report),
                None => failed(Class::GaveUp, format!("it ended without success: {}", shorten(text))),
            },
            class => by_report(class, text),
        },
        (None, ExitStatus::Code(0)) => last_word(summary)
            .unwrap_or_else(|| failed(Class::GaveUp, "it ended with exit code 0 and no result".to_owned())),
        (None, status) => ended_badly(status, summary),
    }
}

/// The verdict on a success's text.
pub(crate) fn finished(text: &str) -> Verdict {
    let account = ClosingAccount::parse(text);
    match (&account.question, &account.missing) {
        (Some(question), _) => Verdict::Question { text: question.clone() },
        (None, Some(missing)) => failed(Class::MissingDependency, missing.clone()),
        (None, None) => Verdict::Finished { account },
    }
}

/// The verdict on an end with no last word and no success: its error output may hold the cause.
pub(crate) fn ended_badly(status: ExitStatus, summary: &Summary) -> Verdict {
    if summary.rejected.is_some() {
        return failed(Class::WindowQuota, "a window of its account is used up".to_owned());
    }
    if let Some((class, report)) = complaint(summary) {
        return by_report(class, &report);
    }
    let said = summary.complaints.back().map(|line| format!(": {}", shorten(line))).unwrap_or_default();
    let why = format!("it ended with {}{said}", named(status));
    let started = summary.session.is_some() || summary.turns > 0;
    let by_itself = matches!(status, ExitStatus::Code(_));
    failed(if by_itself && !started { Class::Startup } else { Class::Crash }, why)
}

/// The class of a failed request: a structured event that tells of a used-up window goes before words that say less.
fn class_of(status: Option<u16>, text: &str, summary: &Summary) -> Class {
    match refusal::classify(status, text) {
        Class::Unknown | Class::MinuteLimit | Class::Auth if summary.rejected.is_some() => Class::WindowQuota,
        class => class,
    }
}

/// What an agent ended with, where that is nothing but a provider's error: whatever its exit code says, one that has changed
/// nothing ended by it, and so did one that ran out of time.
pub(crate) fn last_word(summary: &Summary) -> Option<Verdict> {
    word_before(summary, Behind::Closing).or_else(|| retries(summary))
}

/// What it has asked again and again for, where that is all it says by now.
fn retries(summary: &Summary) -> Option<Verdict> {
    let (class, line) = summary.asked_again.report()?;
    // How long a program itself waits, and which of its tries it is, is no end of a limit that a provider has stated.
    let is_stated = ["reset", "again"].iter().any(|word| line.to_lowercase().contains(word));
    let report = if is_stated { line.to_owned() } else { String::new() };
    Some(Verdict::Failed { class, why: shorten(line), report })
}

/// The same, with as much behind it as may be.
pub(crate) fn word_before(summary: &Summary, behind: Behind) -> Option<Verdict> {
    if let Some((status, text)) = summary.provider_error.as_ref().or(summary.retried_for.as_ref()) {
        let class = class_of(*status, text, summary);
        return (class != Class::Unknown).then(|| by_report(class, text));
    }
    if summary.rejected.is_some() {
        return Some(failed(Class::WindowQuota, "a window of its account is used up".to_owned()));
    }
    let said = summary.result.as_ref().map(|(_, text)| text).or(summary.last_text.as_ref());
    let complained = || {
        let (class, at) = named_by(summary, reported)?;
        let is_last = said_after(summary, at) <= BEHIND_A_CUT_MAX;
        is_last.then(|| (class, report_at(summary, at, class)))
    };
    let (class, report) = said.and_then(|text| last_report(text, behind)).or_else(complained)?;
    Some(by_report(class, &report))
}

/// The last report in its error output that names a cause, and its class.
pub(crate) fn complaint(summary: &Summary) -> Option<(Class, String)> {
    let class_of = |line: &str| Some(refusal::classify(None, line)).filter(|class| *class != Class::Unknown);
    named_by(summary, class_of).map(|(class, at)| (class, report_at(summary, at, class)))
}

/// The last line of error output that names a cause for this reader of lines, and its place.
pub(crate) fn named_by(summary: &Summary, class_of: impl Fn(&str) -> Option<Class>) -> Option<(Class, usize)> {
    let lines = summary.complaints.iter().enumerate().rev();
    lines.into_iter().find_map(|(at, line)| Some((class_of(line)?, at)))
}

/// How many lines of error output stand behind this one that say something else.
pub(crate) fn said_after(summary: &Summary, at: usize) -> usize {
    summary.complaints.range(at + 1..).filter(|line| !says_no_more(line)).count()
}

/// The report whose last line that names the cause stands at a place: that line, those right before it that say the same
/// again, and the one after it, which may say until when. What stands elsewhere speaks of something else.
pub(crate) fn report_at(summary: &Summary, at: usize, class: Class) -> String {
    let names = |line: &String| refusal::classify(None, line);
    let lines = &summary.complaints;
    let before = lines.range(..at).rev().take_while(|line| names(line) == class).count();
    let after = lines.range(at + 1..).take(1).filter(|line| names(line) == Class::Unknown).count();
    let (first, last) = (at - before, at + after);
    // The latest of them counts, and is read first for people.
    let mut report = vec![lines[at].as_str()];
    report.extend(lines.range(at + 1..=last).map(String::as_str));
    report.extend(lines.range(first..at).rev().map(String::as_str));
    report.join("\n")
}

/// A failure that a report names the cause of.
pub(crate) fn by_report(class: Class, report: &str) -> Verdict {
    Verdict::Failed { class, why: shorten(report), report: report.to_owned() }
}

/// A failure.
pub(crate) const fn failed(class: Class, why: String) -> Verdict {
    Verdict::Failed { class, why, report: String::new() }
}

/// An exit status for people.
pub(crate) fn named(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("exit code {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
    }
}
