//! What an attempt's end means. Never the exit code alone: a CLI may end with 0 having done nothing, or be killed after
//! it had finished.

use outlast_core::Class;

use crate::account::ClosingAccount;
use crate::event::Summary;
use crate::refusal;
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
        return failed(class, format!("the provider's refusal reached the agent{status}: {}", shorten(text)));
    }
    match (&summary.result, exit.status) {
        (Some((true, text)), ExitStatus::Code(0)) => finished(text),
        (Some((true, text)), _) if exit.lingered => finished(text),
        // Some report success in the same breath as a limit; then it stands by itself.
        (Some((true, text)), _) if refusal::is_limit_alone(text) => {
            failed(class_of(None, text, summary), shorten(text))
        }
        (Some((true, _)), status) => {
            failed(Class::Crash, format!("it reported success, then ended with {}", named(status)))
        }
        (Some((false, text)), _) => match class_of(None, text, summary) {
            Class::Unknown => match complaint(summary) {
                Some((class, line)) => failed(class, shorten(line)),
                None => failed(Class::GaveUp, format!("it ended without success: {}", shorten(text))),
            },
            class => failed(class, shorten(text)),
        },
        (None, ExitStatus::Code(0)) => failed(Class::GaveUp, "it ended with exit code 0 and no result".to_owned()),
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
    if let Some((class, line)) = complaint(summary) {
        return failed(class, shorten(line));
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

/// The last line of error output that names a cause, and its class.
pub(crate) fn complaint(summary: &Summary) -> Option<(Class, &str)> {
    let classified = summary.complaints.iter().rev().map(|line| (refusal::classify(None, line), line.as_str()));
    classified.into_iter().find(|(class, _)| *class != Class::Unknown)
}

/// A failure.
pub(crate) const fn failed(class: Class, why: String) -> Verdict {
    Verdict::Failed { class, why }
}

/// An exit status for people.
pub(crate) fn named(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("exit code {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
    }
}
