//! Closings: for a while the provider takes nothing from anybody, whatever the key. Pure counting over a clock that is
//! handed in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, RefusalKind};
use super::window::Says;
use crate::wire::Dialect;

#[cfg(test)]
mod tests;

/// A time in which every model request is refused. It begins by work done, so that whoever is faster meets it at the
/// same place, and ends by the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// A name for the log and the bill.
    pub name: String,
    /// It begins with the first model request that arrives when this many have been taken.
    pub after_requests: u64,
    /// How long it lasts.
    pub seconds: f64,
    /// The refusal it gives.
    pub reason: RefusalKind,
    /// What its refusals state: the seconds that are left, or nothing.
    #[serde(default)]
    pub says: Says,
}

/// What came of a closing that has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosingTally {
    /// Its name.
    pub name: String,
    /// Unix time of the request it began with, in milliseconds.
    pub began_at_ms: u64,
    /// Unix time of its end, in milliseconds.
    pub ends_at_ms: u64,
    /// How many requests were being answered when it began; they are answered to their end.
    pub in_flight: u64,
    /// How many requests it refused.
    pub refused: u64,
    /// Unix time of the last request that it refused, in milliseconds.
    pub last_refused_at_ms: u64,
    /// Unix time of the first request that was taken afterwards, in milliseconds.
    pub taken_again_at_ms: Option<u64>,
}

/// The moment of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Since the provider's start.
    pub since_start: Duration,
    /// Unix seconds.
    pub unix: u64,
    /// Unix milliseconds.
    pub unix_ms: u64,
}

/// A refusal by a closing.
#[derive(Debug)]
pub(super) struct Shut {
    pub name: String,
    /// An earlier refusal had already told that it is closed.
    pub known: bool,
    pub refusal: Refusal,
}

/// Every closing of a script, and how much was taken.
#[derive(Debug)]
pub(super) struct Closings {
    /// By the count at which they begin.
    to_come: Vec<Closing>,
    now: Option<(Closing, Duration)>,
    tallies: Vec<ClosingTally>,
    taken: u64,
    in_flight: u64,
}

impl Closings {
    pub(super) fn new(closings: &[Closing]) -> Self {
        let mut to_come = closings.to_vec();
        to_come.sort_by_key(|closing| std::cmp::Reverse(closing.after_requests));
        Self { to_come, now: None, tallies: Vec::new(), taken: 0, in_flight: 0 }
    }

    /// Refuses while closed.
    pub(super) fn check(&mut self, dialect: Dialect, at: Moment) -> Option<Shut> {
        if self.now.as_ref().is_some_and(|(_, end)| *end <= at.since_start) {
            self.now = None;
        }
        if self.now.is_none() && self.to_come.last().is_some_and(|next| next.after_requests <= self.taken) {
            self.now = self.to_come.pop().map(|closing| self.begin(closing, at));
        }
        let (closing, end) = self.now.as_ref()?;
        let tally = self.tallies.last_mut()?;
        let known = tally.refused > 0;
        tally.refused += 1;
        tally.last_refused_at_ms = at.unix_ms;
        let left = (*end - at.since_start).as_secs_f64().ceil() as u64;
        let stated = (closing.says == Says::Reset).then_some(left.max(1));
        let refusal = Refusal::of(closing.reason, dialect, stated, at.unix);
        Some(Shut { name: closing.name.clone(), known, refusal })
    }

    fn begin(&mut self, closing: Closing, at: Moment) -> (Closing, Duration) {
        let length = Duration::from_secs_f64(closing.seconds);
        self.tallies.push(ClosingTally {
            name: closing.name.clone(),
            began_at_ms: at.unix_ms,
            ends_at_ms: at.unix_ms.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)),
            in_flight: self.in_flight,
            ..ClosingTally::default()
        });
        (closing, at.since_start + length)
    }

    /// Counts a request that is taken.
    pub(super) fn take(&mut self, at: Moment) {
        self.taken += 1;
        self.in_flight += 1;
        if let Some(tally) = self.tallies.last_mut() {
            tally.taken_again_at_ms.get_or_insert(at.unix_ms);
        }
    }

    /// Counts the end of a request that was taken.
    pub(super) fn settle(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The closings that have begun.
    pub(super) fn tallies(&self) -> Vec<ClosingTally> {
        self.tallies.clone()
    }

    /// How many requests are being answered.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }
}
