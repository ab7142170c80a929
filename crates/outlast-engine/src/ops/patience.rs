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
/// How long one may wait for input that is at its end.
const START: Duration = Duration::from_secs(120);

/// Why an agent was ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It had said its last word.
    Lingered,
    /// Its provider refused it again and again.
    Refused,
    /// It waited for input.
    NeverBegan,
}

impl Ended {
    /// For people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Lingered => "it lingered after its last word",
            Self::Refused => "its provider refuses it again and again, and it does nothing else",
            Self::NeverBegan => "it waits for its standard input, which is at its end",
        }
    }

    /// What such an end is, where nothing says more.
    pub(crate) const fn class(self) -> Class {
        match self {
            Self::Lingered => Class::Unknown,
            Self::Refused => Class::MinuteLimit,
            Self::NeverBegan => Class::Startup,
        }
    }
}

/// Since when an agent gets nowhere.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    since: Option<(Ended, Instant)>,
    refusals: u32,
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
    }

    /// When it is waited for no longer, and why; nothing while it gets on.
    pub(crate) fn ends(&self) -> Option<(Instant, Ended)> {
        let (why, since) = self.since?;
        let patience = match why {
            Ended::Lingered => LINGER,
            Ended::Refused if self.refusals >= REFUSALS_MAX => Duration::ZERO,
            Ended::Refused => REFUSED,
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
