//! What of a task was paid for again: what its interruptions cost.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::usage::Usage;

/// A session's cache at the provider is gone after this long without a request, whatever the provider: measured on 162 gaps
/// of more than an hour, 162 were cold.
const COLD_AFTER: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// From so many tokens on a session that is in no cache any more is dearer to go on with than a fresh one: that begins with
/// the prompt and a note of some 12,000 tokens, and what it reads again of the files is seldom ten times as much.
const DEAR_TOKENS: u64 = 150_000;

/// What was paid for again, and what of the conversation would be if it went on now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaidAgain {
    /// Tokens: of answers that broke, all of them; of the first request of each attempt that takes up earlier work, those
    /// that were in no cache.
    tokens: u64,
    /// Whether one of these named no tokens.
    is_unknown: bool,
    /// The latest attempt that was answered.
    answered: Option<u32>,
    /// All tokens of its latest main turn: how long the conversation is.
    conversation: u64,
    /// When that was.
    at: Option<Timestamp>,
}

impl PaidAgain {
    /// Takes note of an exchange.
    pub(crate) fn exchanged(&mut self, number: u32, main: bool, usage: &Usage, at: Timestamp) {
        let is_first = main && self.answered.is_none_or(|latest| latest < number);
        let takes_up = is_first && self.answered.is_some();
        if usage.cut > 0 {
            self.tokens = self.tokens.saturating_add(usage.total_tokens());
        } else if takes_up {
            self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.cache_write);
        }
        self.is_unknown |= (usage.cut > 0 || takes_up) && usage.unmetered > 0;
        if is_first && usage.cut == 0 {
            self.answered = Some(number);
        }
        if main && self.answered == Some(number) {
            self.conversation = usage.total_tokens();
            self.at = Some(at);
        }
    }

    /// The tokens that were paid for again by a task of so many attempts; nothing where a part of that is not known: an answer
    /// named none, or work was taken up again past the gateway.
    pub const fn tokens(&self, attempts: u32) -> Option<u64> {
        let went_past_the_gateway = attempts > 1 && self.answered.is_none();
        if self.is_unknown || went_past_the_gateway { None } else { Some(self.tokens) }
    }

    /// How many tokens its session would be sent and paid for in full, where that is dearer than to begin a fresh one.
    pub fn dear_session(&self, now: Timestamp) -> Option<u64> {
        let is_cold = now.since(self.at?) >= COLD_AFTER;
        (is_cold && self.conversation >= DEAR_TOKENS).then_some(self.conversation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cache_write: u64, cache_read: u64) -> Usage {
        Usage { input, cache_write, cache_read, output: 10, exchanges: 1, ..Usage::default() }
    }

    #[test]
    fn a07_h12_the_first_request_of_work_that_is_taken_up_counts_as_far_as_it_was_in_no_cache() {
        let mut paid = PaidAgain::default();
        let at = Timestamp::EPOCH;
        paid.exchanged(1, true, &usage(100, 50_000, 0), at);
        paid.exchanged(1, true, &usage(100, 124_000, 50_000), at);
        assert_eq!(paid.tokens(1), Some(0), "nothing was interrupted");
        paid.exchanged(2, false, &usage(7, 0, 0), at);
        paid.exchanged(2, true, &usage(0, 174_000, 0), at);
        paid.exchanged(2, true, &usage(300, 0, 174_000), at);
        assert_eq!(paid.tokens(2), Some(174_000), "a cold resume");
        paid.exchanged(3, true, &usage(200, 0, 174_000), at);
        assert_eq!(paid.tokens(3), Some(174_200), "a warm one");
        paid.exchanged(2, true, &usage(900, 0, 0), at);
        assert_eq!(paid.tokens(3), Some(174_200), "a late row of an earlier attempt is none");
    }

    #[test]
    fn an_answer_that_broke_is_paid_for_again_whole() {
        let mut paid = PaidAgain::default();
        paid.exchanged(1, true, &Usage { cut: 1, ..usage(100, 0, 40) }, Timestamp::EPOCH);
        paid.exchanged(1, true, &usage(100, 0, 40), Timestamp::EPOCH);
        assert_eq!(paid.tokens(1), Some(150));
    }

    #[test]
    fn unknown_is_not_zero() {
        assert_eq!(PaidAgain::default().tokens(1), Some(0));
        assert_eq!(PaidAgain::default().tokens(2), None, "it was taken up where nobody could see it");
        let mut paid = PaidAgain::default();
        paid.exchanged(1, true, &usage(1, 0, 0), Timestamp::EPOCH);
        paid.exchanged(2, true, &Usage { unmetered: 1, exchanges: 1, ..Usage::default() }, Timestamp::EPOCH);
        assert_eq!(paid.tokens(2), None);
    }

    #[test]
    fn h13_a_long_session_that_is_cold_is_dearer_than_a_fresh_one() {
        let after = |tokens: u64, minutes: u64| {
            let mut paid = PaidAgain::default();
            paid.exchanged(1, true, &usage(0, 0, tokens), Timestamp::EPOCH);
            paid.dear_session(Timestamp::EPOCH.plus(std::time::Duration::from_secs(minutes * 60)))
        };
        assert_eq!(after(1_200_000, 180), Some(1_200_010));
        assert_eq!(after(1_200_000, 59), None, "it is warm");
        assert_eq!(after(100_000, 180), None, "it is short");
        assert_eq!(PaidAgain::default().dear_session(Timestamp::from_millis(i64::MAX / 2)), None);
    }
}
