//! How long an agent is waited for that is alive and gets nowhere: after its last word, while its provider refuses all it
//! asks past the gateway, or before it has begun.

use std::time::Duration;

use outlast_agent::Summary;
use outlast_core::Class;
use tokio::time::Instant;

/// How long an agent may take to leave after its last word: some never do.
const LINGER: Duration = Duration::from_secs(10);
/// How long one may go on to ask that is told no again and again, and does nothing else.
const REFUSED: Duration = Duration::from_secs(5 * 60);
/// How many refusals in a row make up again and again.
const REFUSALS_MIN: u32 = 3;
/// So many in a row are enough, however quickly they came.
const REFUSALS_MAX: u32 = 30;
/// How many lines in a row that tell of a retry for a limit make up again and again, whatever they begin with, and for how
/// long they must have come: a test of the agent's that waits out a limit of its own prints such lines too, and goes on.
const RETRIES_MIN: u32 = 3;
/// So many are enough …
const RETRIES_MAX: u32 = 30;
/// … after this: what prints so many at once is no program that waits.
const RETRIED: Duration = Duration::from_secs(20);
/// How long one may wait for input that is at its end.
const START: Duration = Duration::from_secs(120);

/// Why an agent was ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It had said its last word.
    Lingered,
    /// Its provider refused it again and again.
    Refused,
    /// It said again and again that it asks once more, since a limit holds, and nothing else.
    Retrying,
    /// It waited for input.
    NeverBegan,
}

impl Ended {
    /// For people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Lingered => "it lingered after its last word",
            Self::Refused | Self::Retrying => "its provider refuses it again and again, and it does nothing else",
            Self::NeverBegan => "it waits for its standard input, which is at its end",
        }
    }

    /// What such an end is, where nothing says more.
    pub(crate) const fn class(self) -> Class {
        match self {
            Self::Lingered => Class::Unknown,
            Self::Refused | Self::Retrying => Class::MinuteLimit,
            Self::NeverBegan => Class::Startup,
        }
    }
}

/// Since when an agent gets nowhere.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    since: Option<(Ended, Instant)>,
    refusals: u32,
    retries: Option<Retries>,
    /// When it had said often and long enough that it asks again.
    retried: Option<Instant>,
}

/// A row of lines that tell of a retry for a limit.
#[derive(Debug, Clone, Copy)]
struct Retries {
    row: u32,
    times: u32,
    since: Instant,
}

impl Patience {
    /// Takes note of what it has said so far.
    pub(crate) fn note(&mut self, summary: &Summary, now: Instant) {
        self.refusals = summary.refusals;
        let why = if summary.is_over() {
            Some(Ended::Lingered)
        } else if summary.refusals >= REFUSALS_MIN {
            Some(Ended::Refused)
        } else if summary.waits_for_input() {
            Some(Ended::NeverBegan)
        } else {
            None
        };
        if self.since.map(|(why, _)| why) != why {
            self.since = why.map(|why| (why, now));
        }
        self.note_retries(summary, now);
    }

    /// A row is at its end of patience only while it grows: an agent that has listed a few such lines and is silent since is at work.
    fn note_retries(&mut self, summary: &Summary, now: Instant) {
        let (row, times) = (summary.asked_again.row(), summary.asked_again.times());
        let before = self.retries.filter(|retries| retries.row == row && retries.times <= times);
        let since = before.map_or(now, |retries| retries.since);
        let has_grown = before.is_none_or(|retries| retries.times < times);
        self.retries = (times > 0).then_some(Retries { row, times, since });
        let lasts = now.duration_since(since);
        let is_enough = times >= RETRIES_MIN && lasts >= REFUSED || times >= RETRIES_MAX && lasts >= RETRIED;
        self.retried = (is_enough && has_grown && !summary.is_over()).then_some(now);
    }

    /// Its provider answers it: what it says of limits is not of its own, until it says something else.
    pub(crate) const fn is_answered(&mut self) {
        self.retries = None;
        self.retried = None;
        if matches!(self.since, Some((Ended::Refused, _))) {
            self.since = None;
        }
    }

    /// When it is waited for no longer, and why; nothing while it gets on.
    pub(crate) fn ends(&self) -> Option<(Instant, Ended)> {
        if let Some(at) = self.retried {
            return Some((at, Ended::Retrying));
        }
        let (why, since) = self.since?;
        let patience = match why {
            Ended::Lingered => LINGER,
            Ended::Refused if self.refusals >= REFUSALS_MAX => Duration::ZERO,
            Ended::Refused | Ended::Retrying => REFUSED,
            Ended::NeverBegan => START,
        };
        Some((since + patience, why))
    }
}

#[cfg(test)]
mod tests {
    use outlast_agent::Event;

    use super::*;

    fn refused(refusals: u32) -> Summary {
        Summary { refusals, ..Summary::default() }
    }

    #[test]
    fn a13_one_that_is_refused_again_and_again_is_ended_and_one_that_gets_on_is_not() {
        let (start, mut patience) = (Instant::now(), Patience::default());
        patience.note(&refused(2), start);
        assert_eq!(patience.ends(), None, "once or twice is nothing");
        patience.note(&refused(3), start);
        patience.note(&refused(9), start + Duration::from_secs(60));
        assert_eq!(patience.ends(), Some((start + REFUSED, Ended::Refused)), "since the first of them");
        patience.note(&refused(30), start + Duration::from_secs(61));
        assert_eq!(patience.ends(), Some((start, Ended::Refused)), "so many at once");
        patience.note(&refused(0), start + Duration::from_secs(62));
        assert_eq!(patience.ends(), None, "something else has happened");
    }

    /// What comes of lines of error output that are read at these seconds: when it is ended, if it is.
    fn retried(lines: impl Iterator<Item = (u64, String)>) -> Option<u64> {
        let (start, mut patience, mut summary) = (Instant::now(), Patience::default(), Summary::default());
        for (second, line) in lines {
            summary.note(&Event::Complaint(line));
            patience.note(&summary, start + Duration::from_secs(second));
            if let Some((at, why)) = patience.ends() {
                assert_eq!(why, Ended::Retrying);
                return Some(at.duration_since(start).as_secs());
            }
        }
        None
    }

    #[test]
    fn a13_one_that_says_again_and_again_that_it_retries_is_ended_once_that_has_lasted() {
        let retry = |number: u64| format!("attempt {number}: 429 Too Many Requests, retrying in 3s");
        assert_eq!(retried((1..200).map(|number| (number, retry(number)))), Some(30), "so many");
        assert_eq!(retried((1..300).map(|number| (number / 10, retry(number)))), Some(20), "not at once");
        assert_eq!(retried((1..20).map(|number| (number * 60, retry(number)))), Some(360), "or for so long");
        assert_eq!(retried((1..200).map(|number| (0, retry(number)))), None, "printed at once");
    }

    #[test]
    fn a13_one_that_prints_of_retries_and_gets_on_is_not_ended() {
        let retry = |number: u64| format!("attempt {number}: 429 Too Many Requests, retrying in 3s");
        let with_others = |every: u64, other: &'static str| {
            (1..2000).map(move |number| (number, if number % every == 0 { other.to_owned() } else { retry(number) }))
        };
        assert_eq!(retried(with_others(25, "test waits_out_a_limit ... ok")), None, "a test of its own");
        assert_eq!(retried(with_others(25, "reading a.py")), None, "it does something else");
        // A list of the agent's, and then a tool of it that runs for long and says nothing.
        let list = (1..10).map(|number| (1, retry(number)));
        assert_eq!(retried(list.chain([(900, "done".to_owned())])), None);
        let prose = |number: u64| format!("I made attempt {number} wait 3s after a 429.");
        assert_eq!(retried((1..400).map(|number| (number, prose(number)))), None);
    }

    #[test]
    fn d02_d03_one_that_never_begins_or_never_leaves_is_ended() {
        let (start, mut patience) = (Instant::now(), Patience::default());
        let mut waits = Summary::default();
        waits.note(&Event::Complaint("Waiting for input on stdin".to_owned()));
        patience.note(&waits, start);
        assert_eq!(patience.ends(), Some((start + START, Ended::NeverBegan)));
        let over = Summary { result: Some((true, "done".to_owned())), ..waits };
        patience.note(&over, start + START / 2);
        assert_eq!(patience.ends(), Some((start + START / 2 + LINGER, Ended::Lingered)));
    }
}
