//! Faults on cue: what goes wrong, and the rules that say when. Data and matching; playing a fault is the player's.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::refusal::RefusalKind;
use crate::wire::Dialect;

#[cfg(test)]
mod tests;

/// Something that goes wrong with one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// A refusal in the dialect's own shape.
    Refuse {
        /// What is refused, and why.
        reason: RefusalKind,
        /// The stated time until the next try, in seconds.
        #[serde(default)]
        seconds: Option<u64>,
    },
    /// Any status, headers and body.
    Status {
        /// The HTTP status.
        status: u16,
        /// Headers beside `content-type`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The body: a string is sent as it stands, anything else as JSON.
        #[serde(default)]
        body: Value,
    },
    /// The connection breaks before the answer is whole.
    Cut {
        /// After this many events, and …
        #[serde(default)]
        after_frames: usize,
        /// … this many bytes more, whatever they belong to.
        #[serde(default)]
        and_bytes: usize,
    },
    /// The connection closes without one byte of an answer.
    Drop,
    /// The answer begins and then stands still.
    Hang {
        /// How many events pass first; 0 is headers only.
        #[serde(default)]
        after_frames: usize,
        /// How long, in seconds; for ever when absent.
        #[serde(default)]
        seconds: Option<f64>,
    },
    /// Not a byte, not even headers.
    Hold {
        /// How long, in seconds; for ever when absent.
        #[serde(default)]
        seconds: Option<f64>,
    },
    /// Every event takes its time.
    Slow {
        /// Milliseconds before each event.
        per_frame_ms: u64,
    },
    /// An error event in a stream that began well.
    ErrorEvent {
        /// How many events pass first.
        #[serde(default)]
        after_frames: usize,
    },
    /// An event that is not valid JSON, and then the end of the stream.
    Malformed {
        /// How many events pass first.
        #[serde(default)]
        after_frames: usize,
    },
    /// The right body under a wrong content type.
    ContentType {
        /// The content type.
        value: String,
    },
}

impl Fault {
    /// The fault's name in logs, as scripts write it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refuse { .. } => "refuse",
            Self::Status { .. } => "status",
            Self::Cut { .. } => "cut",
            Self::Drop => "drop",
            Self::Hang { .. } => "hang",
            Self::Hold { .. } => "hold",
            Self::Slow { .. } => "slow",
            Self::ErrorEvent { .. } => "error-event",
            Self::Malformed { .. } => "malformed",
            Self::ContentType { .. } => "content-type",
        }
    }

    /// Whether the request is turned away instead of answered: such a request uses up no quota.
    pub fn turns_away(&self) -> bool {
        matches!(self, Self::Refuse { .. } | Self::Status { .. } | Self::Drop)
    }
}

/// A fault written in a script, for the turn that follows.
#[derive(Debug, Clone, PartialEq)]
pub struct InlineFault {
    /// How many requests for that turn are hit.
    pub times: u64,
    /// What goes wrong.
    pub fault: Fault,
}

/// A fault and when it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which requests; all by default.
    #[serde(default)]
    pub when: When,
    /// What goes wrong.
    pub fault: Fault,
    /// How many requests are hit at most.
    #[serde(default)]
    pub times: Option<u64>,
}

/// Which requests a rule hits: those that meet every condition given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Only this scenario (an inline script's name begins with `inline-`).
    pub scenario: Option<String>,
    /// Only this turn of a scenario, from 1.
    pub step: Option<usize>,
    /// Only this key.
    pub key: Option<String>,
    /// Only this wire format.
    pub dialect: Option<Dialect>,
    /// Not before this many seconds after the start of the provider.
    pub after_seconds: Option<f64>,
    /// Not later than this many seconds after the start of the provider.
    pub before_seconds: Option<f64>,
    /// Only the nth of the requests that meet the conditions above, from 1.
    pub nth: Option<u64>,
    /// Only every nth of the requests that meet the conditions above.
    pub every: Option<u64>,
}

/// What a rule looks at in a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub scenario: Option<&'a str>,
    /// From 0.
    pub step: Option<usize>,
    pub key: &'a str,
    pub dialect: Dialect,
    pub since_start: Duration,
}

/// A rule and how often it was looked at and hit.
#[derive(Debug)]
pub(super) struct RuleState {
    rule: Rule,
    seen: u64,
    hit: u64,
}

impl RuleState {
    pub(super) fn new(rule: Rule) -> Self {
        Self { rule, seen: 0, hit: 0 }
    }

    /// Counts the request; the fault, if it is this request's turn.
    pub(super) fn strike(&mut self, subject: &Subject<'_>) -> Option<Fault> {
        if !self.rule.when.concerns(subject) {
            return None;
        }
        self.seen += 1;
        let when = &self.rule.when;
        let turn = when.nth.is_none_or(|nth| nth == self.seen)
            && when.every.is_none_or(|every| every > 0 && self.seen.is_multiple_of(every))
            && self.rule.times.is_none_or(|times| self.hit < times);
        if !turn {
            return None;
        }
        self.hit += 1;
        Some(self.rule.fault.clone())
    }
}

impl When {
    fn concerns(&self, subject: &Subject<'_>) -> bool {
        let elapsed = subject.since_start.as_secs_f64();
        self.scenario.as_deref().is_none_or(|name| subject.scenario == Some(name))
            && self.step.is_none_or(|step| subject.step.map(|at| at + 1) == Some(step))
            && self.key.as_deref().is_none_or(|key| key == subject.key)
            && self.dialect.is_none_or(|dialect| dialect == subject.dialect)
            && self.after_seconds.is_none_or(|after| elapsed >= after)
            && self.before_seconds.is_none_or(|before| elapsed <= before)
    }
}
