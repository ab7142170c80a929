//! Limits of an account that the user knows beforehand: how many requests and tokens in a minute, how many at once.
//!
//! And its hours: what the user's own hours closed opens at the user's word.
//!
//! A window that slides: in no 60 seconds more is let through than is allowed. A request counts from the moment at
//! which it was let through, with the tokens that were expected of it, and once it is over with those that it took.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::core::Core;
use crate::ids::AccountId;
use crate::record::{Fact, Record, Stream};
use crate::time::Timestamp;

/// What "a minute" is.
pub const MINUTE: Duration = Duration::from_secs(60);

/// Limits of an account; an absent part is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests in a minute.
    pub requests: Option<u64>,
    /// Tokens in a minute.
    pub tokens: Option<u64>,
    /// Requests at once.
    pub concurrent: Option<u32>,
}

/// The exchanges of the last minute, as the records tell them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent(VecDeque<(Timestamp, u64)>);

impl Recent {
    /// Takes an exchange in, and forgets those that are older than a minute.
    pub(crate) fn add(&mut self, at: Timestamp, tokens: u64) {
        while self.0.front().is_some_and(|(then, _)| at.since(*then) >= MINUTE) {
            self.0.pop_front();
        }
        self.0.push_back((at, tokens));
    }
}

/// What an account was asked for lately.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    limits: Limits,
    /// Everything that was let through within the last minute, in order.
    lately: VecDeque<Request>,
    in_flight: u32,
}

#[derive(Debug, Clone)]
struct Request {
    at: Timestamp,
    /// None where it is known from the records alone.
    exchange: Option<String>,
    tokens: u64,
}

/// Why a request has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until then, as far as is known now.
    Until(Timestamp),
    /// Until another is over.
    Turn,
}

impl Pace {
    /// The pace of an account after what the records tell of the minute before.
    pub fn new(limits: Limits, recent: Option<&Recent>) -> Self {
        let recent = recent.iter().flat_map(|recent| &recent.0);
        let lately = recent.map(|&(at, tokens)| Request { at, exchange: None, tokens }).collect();
        Self { limits, lately, in_flight: 0 }
    }

    /// Whether a request that may take so many tokens has to wait, as of the time that was last [told](Self::at).
    pub fn wait(&self, tokens: u64) -> Option<Wait> {
        if self.limits.concurrent.is_some_and(|most| self.in_flight >= most) {
            return Some(Wait::Turn);
        }
        let by_requests = self.limits.requests.and_then(|most| self.until_requests(most));
        let by_tokens = self.limits.tokens.and_then(|most| self.until_tokens(most, tokens));
        by_requests.max(by_tokens).map(Wait::Until)
    }

    /// Lets a request through.
    pub fn grant(&mut self, now: Timestamp, exchange: String, tokens: u64) {
        self.in_flight += 1;
        if self.limits.requests.is_some() || self.limits.tokens.is_some() {
            self.lately.push_back(Request { at: now, exchange: Some(exchange), tokens });
        }
    }

    /// A request is over. Without a known number of tokens the expected one stands.
    pub fn settle(&mut self, exchange: &str, tokens: Option<u64>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let found = self.lately.iter_mut().rev().find(|request| request.exchange.as_deref() == Some(exchange));
        if let (Some(found), Some(tokens)) = (found, tokens) {
            found.tokens = tokens;
        }
    }

    /// Tells it what time it is.
    pub fn at(&mut self, now: Timestamp) {
        while self.lately.front().is_some_and(|request| now.since(request.at) >= MINUTE) {
            self.lately.pop_front();
        }
        // A wall clock that was set back must not close an account for as long.
        for request in self.lately.iter_mut().filter(|request| request.at > now) {
            request.at = now;
        }
    }

    /// When one request less than allowed is within a minute; nothing where that is so now.
    fn until_requests(&self, most: u64) -> Option<Timestamp> {
        let over = (self.lately.len() as u64).checked_sub(most)?;
        let last_to_leave = self.lately.get(usize::try_from(over).unwrap_or(usize::MAX))?;
        Some(last_to_leave.at.plus(MINUTE))
    }

    /// When so many tokens fit. A request that is larger than the limit goes alone, since no waiting makes it fit.
    fn until_tokens(&self, most: u64, tokens: u64) -> Option<Timestamp> {
        let mut sum = self.lately.iter().fold(tokens, |sum, request| sum.saturating_add(request.tokens));
        let mut until = None;
        for request in &self.lately {
            if sum <= most {
                break;
            }
            sum = sum.saturating_sub(request.tokens);
            until = Some(request.at.plus(MINUTE));
        }
        until
    }
}

impl Core {
    /// Only what the user's own hours closed opens at the user's word, and what waits for a person: a provider's end is the
    /// provider's.
    pub(crate) fn admit_opening(&self, now: Timestamp, account: AccountId) -> Vec<Record> {
        match self.closed_until(&account, now) {
            _ if self.is_shut(&account) => {
                vec![Record { at: now, stream: Stream::Account(account), fact: Fact::AccountOpened }]
            }
            Some((_, Class::Hours)) => {
                vec![Record { at: now, stream: Stream::Account(account), fact: Fact::AccountOpened }]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn pace(requests: Option<u64>, tokens: Option<u64>, concurrent: Option<u32>) -> Pace {
        Pace::new(Limits { requests, tokens, concurrent }, None)
    }

    #[test]
    fn no_minute_holds_more_requests_than_are_allowed() {
        let mut pace = pace(Some(2), None, None);
        let mut granted = Vec::new();
        for second in 0..300 {
            pace.at(at(second));
            if pace.wait(0).is_none() {
                pace.grant(at(second), second.to_string(), 0);
                granted.push(second);
            }
        }
        assert_eq!(granted, [0, 1, 60, 61, 120, 121, 180, 181, 240, 241]);
        assert_eq!(pace.wait(0), Some(Wait::Until(at(300))));
    }

    #[test]
    fn tokens_count_as_expected_until_they_are_known() {
        let mut pace = pace(None, Some(1000), None);
        pace.grant(at(0), "a".into(), 900);
        assert_eq!(pace.wait(200), Some(Wait::Until(at(60))));
        pace.settle("a", Some(100));
        assert_eq!(pace.wait(200), None);
        pace.settle("a", None);
        // Larger than the limit: alone, but not never.
        assert_eq!(pace.wait(5000), Some(Wait::Until(at(60))));
        pace.at(at(60));
        assert_eq!(pace.wait(5000), None);
    }

    #[test]
    fn so_many_at_once_and_then_one_for_each_that_is_over() {
        let mut pace = pace(None, None, Some(2));
        pace.grant(at(0), "a".into(), 0);
        pace.grant(at(0), "b".into(), 0);
        assert_eq!(pace.wait(0), Some(Wait::Turn));
        pace.settle("a", None);
        assert_eq!(pace.wait(0), None);
    }

    #[test]
    fn what_the_records_tell_of_the_last_minute_counts_after_a_restart() {
        let mut recent = Recent::default();
        for second in [0, 50, 65] {
            recent.add(at(second), 10);
        }
        let limits = Limits { requests: Some(2), ..Limits::default() };
        let mut pace = Pace::new(limits, Some(&recent));
        pace.at(at(70));
        assert_eq!(pace.wait(0), Some(Wait::Until(at(110))));
    }

    #[test]
    fn a_clock_that_is_set_back_closes_nothing_for_long() {
        let mut pace = pace(Some(1), None, None);
        pace.grant(at(10_000), "a".into(), 0);
        pace.at(at(100));
        assert_eq!(pace.wait(0), Some(Wait::Until(at(160))));
        pace.at(at(160));
        assert_eq!(pace.wait(0), None);
    }
}
