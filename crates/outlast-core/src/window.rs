//! Whether an account takes requests: it does, it does not until a known time, or it is being tried out again.
//!
//! When a closed account is due, one request goes out to see. Each request that the provider takes lets one more go out
//! untaken, so that 1, 2, 4, 8 of them are on trial; a refusal closes the account again. A crowd that waited for the
//! same reset never runs into the same wall together.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::admit::Rejection;
use crate::class::Class;
use crate::core::Core;
use crate::hash::fnv1a;
use crate::ids::{AccountId, RunId};
use crate::record::{Fact, Outcome, Record, Stream};
use crate::task::{Phase, Task};
use crate::time::Timestamp;

/// How many requests must have been taken before an account counts as open again: more than agents are at work.
const TAKEN_UNTIL_OPEN: u32 = 63;

/// How long everybody else waits for one that tries an account out: a request that gets no answer, or an agent that does
/// not ask, must not keep all others waiting for as long as it lasts.
pub const TRIAL_MAX: Duration = Duration::from_secs(60);

/// The first pause after a refusal that names no end.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest: an outage of hours costs a dozen probes, and its end is missed by no more than this.
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);
/// The longest with its jitter.
const GUESS_MAX: Duration = Duration::from_secs(15 * 60 * 5 / 4);

/// For how long what an agent says closes an account at first, where it says so: what runs inside an agent can print anything.
/// Then one request is let out to see. Twice as long each time that nothing was taken in between.
const CLAIM_FIRST: Duration = Duration::from_secs(60 * 60);
/// How often in a row what a task's agents say closes an account for the others: after that, they find out by themselves.
const CLAIMS_MAX: u32 = 3;

/// Whether an account takes requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// It does.
    Open,
    /// It does not.
    Closed {
        /// Why.
        class: Class,
        /// When one request is to try.
        until: Timestamp,
        /// Whether that is a guess of ours: the provider named no end.
        #[serde(default)]
        guessed: bool,
        /// How often in a row it was closed without taking a request in between.
        #[serde(default)]
        strikes: u32,
    },
    /// It does not, until a person has paid or logged in: no waiting mends it.
    Shut {
        /// Why.
        class: Class,
    },
    /// It was closed, and requests are on trial.
    Probing {
        /// Why it was closed.
        class: Class,
        /// Since when.
        since: Timestamp,
        /// How many requests it has taken since.
        taken: u32,
        /// As in [`Window::Closed`]; 0 once it has taken one.
        strikes: u32,
    },
}

impl Window {
    /// How many requests may be on their way without the provider having begun to answer; nothing where it is not
    /// limited.
    pub const fn on_trial_max(&self) -> Option<u32> {
        match self {
            Self::Open => None,
            Self::Closed { .. } | Self::Shut { .. } => Some(0),
            Self::Probing { taken, .. } => Some(taken.saturating_add(1)),
        }
    }

    /// How often in a row it was closed without taking a request in between.
    pub(crate) const fn strikes(&self) -> u32 {
        match self {
            Self::Open | Self::Shut { .. } => 0,
            Self::Closed { strikes, .. } | Self::Probing { strikes, .. } => *strikes,
        }
    }

    /// Whether one request is to try now. A guess that lies further ahead than any guess was made by a clock that has
    /// been set back since.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Closed { until, guessed, .. } => *until <= now || *guessed && until.since(now) > GUESS_MAX,
            Self::Open | Self::Shut { .. } | Self::Probing { .. } => false,
        }
    }

    /// Since when it is tried out without having taken a request.
    pub(crate) const fn untried_since(&self) -> Option<Timestamp> {
        match self {
            Self::Probing { taken: 0, since, .. } => Some(*since),
            _ => None,
        }
    }

    /// What it is once it is due.
    pub(crate) const fn opened(&self, now: Timestamp) -> Self {
        match self {
            Self::Closed { class, strikes, .. } => {
                Self::Probing { class: *class, since: now, taken: 0, strikes: *strikes }
            }
            // Whoever has seen to it may be mistaken: one finds out, and not all.
            Self::Shut { class } => Self::Probing { class: *class, since: now, taken: 0, strikes: 0 },
            Self::Open | Self::Probing { .. } => Self::Open,
        }
    }

    /// What it is after the provider has begun to answer a request.
    pub(crate) fn took_one(&self) -> Self {
        match self {
            Self::Probing { taken: TAKEN_UNTIL_OPEN.., .. } | Self::Open => Self::Open,
            Self::Probing { class, since, taken, .. } => {
                Self::Probing { class: *class, since: *since, taken: *taken + 1, strikes: 0 }
            }
            Self::Closed { .. } | Self::Shut { .. } => self.clone(),
        }
    }
}

impl Core {
    /// A stated end is never shortened: with several windows rejected, the latest reset wins. One that is not stated
    /// says nothing new of an account that is closed already.
    pub(crate) fn admit_closing(
        &self,
        now: Timestamp,
        account: AccountId,
        class: Class,
        stated: Option<Timestamp>,
    ) -> Vec<Record> {
        if self.is_shut(&account) {
            return Vec::new();
        }
        let known = self.closed_until(&account, now).map(|(known, _)| known);
        let (until, guessed) = match stated {
            Some(until) => (until, false),
            None if known.is_some() => return Vec::new(),
            None => (guess(&account, self.window(&account).strikes(), now), true),
        };
        if known.is_some_and(|known| known >= until) || until <= now {
            return Vec::new();
        }
        vec![Record { at: now, stream: Stream::Account(account), fact: Fact::AccountClosed { class, until, guessed } }]
    }

    /// Only an account that is tried out has to be told of.
    pub(crate) fn admit_answered(&self, now: Timestamp, account: AccountId) -> Vec<Record> {
        match self.accounts.get(&account) {
            Some(Window::Probing { .. }) => {
                vec![Record { at: now, stream: Stream::Account(account), fact: Fact::AccountAnswered }]
            }
            _ => Vec::new(),
        }
    }

    /// The provider refuses an account for what only a person can mend. A second word on it says nothing new.
    pub(crate) fn admit_shutting(&self, now: Timestamp, account: AccountId, class: Class) -> Vec<Record> {
        if self.is_shut(&account) {
            return Vec::new();
        }
        vec![Record { at: now, stream: Stream::Account(account), fact: Fact::AccountShut { class } }]
    }

    /// Whether an account waits for a person.
    pub fn is_shut(&self, account: &AccountId) -> bool {
        matches!(self.accounts.get(account), Some(Window::Shut { .. }))
    }

    /// An agent's CLI has reported a limit: the account that it met it on takes no more requests of anybody, until somebody
    /// tries whether it is true. The task itself waits as long as its agent says.
    pub(crate) fn closing_by(&self, now: Timestamp, task: &Task, fact: &Fact) -> Vec<Record> {
        let Fact::AttemptExited { outcome: Outcome::Failed { class, until, .. }, .. } = fact else { return Vec::new() };
        if !class.is_limit() || task.free_retries >= CLAIMS_MAX {
            return Vec::new();
        }
        let billed = task.attempt().and_then(|attempt| attempt.account.as_ref());
        // One that has not been answered yet has met it on the only account there is; of several nobody knows.
        let only = match &*task.spec.accounts {
            [only] if task.spec.needs_quota => Some(only),
            _ => None,
        };
        let Some(account) = billed.or(only) else { return Vec::new() };
        let longest = now.plus(CLAIM_FIRST.saturating_mul(1 << self.window(account).strikes().min(8)));
        let until = until.filter(|until| *until > now).map(|until| until.min(longest));
        self.admit_closing(now, account.clone(), *class, until)
    }

    /// A person knows more than the provider said: each account that the run's tasks could use is tried out as if its end
    /// had come, with one request first. What the user's own hours close stays closed.
    pub(crate) fn admit_trying(&self, now: Timestamp, run: &RunId) -> Result<Vec<Record>, Rejection> {
        let found = self.runs.get(run).ok_or_else(|| Rejection::NoRun(run.clone()))?;
        let unfinished = found.tasks.iter().filter(|task| may_ask(&task.phase));
        let accounts: BTreeSet<&AccountId> = unfinished.flat_map(|task| &task.spec.accounts).collect();
        let closed = accounts
            .into_iter()
            .filter(|account| self.closed_until(account, now).is_some_and(|(_, class)| class != Class::Hours));
        // What failed for want of a person's doing counts, too.
        let all: BTreeSet<&AccountId> = found.tasks.iter().flat_map(|task| &task.spec.accounts).collect();
        let closed = closed.chain(all.into_iter().filter(|account| self.is_shut(account)));
        let opened = |account: &AccountId| Stream::Account(account.clone());
        let opened = closed.map(|id| Record { at: now, stream: opened(id), fact: Fact::AccountOpened });
        let waits = !found.waiting_for_the_world().is_empty() || found.active().any(Task::reports_an_end);
        let tried = waits.then(|| Record { at: now, stream: Stream::Run(run.clone()), fact: Fact::TriedNow });
        Ok(opened.chain(tried).collect())
    }
}

/// Whether an agent may still ask anything for a task in this phase.
const fn may_ask(phase: &Phase) -> bool {
    matches!(phase, Phase::Pending | Phase::Ready | Phase::Waiting { .. } | Phase::Parked | Phase::Live(_))
}

/// When to try an account again that was refused and told no end: ever later, with a jitter that only lengthens.
pub(crate) fn guess(account: &AccountId, strikes: u32, now: Timestamp) -> Timestamp {
    let plain = PAUSE_FIRST.saturating_mul(1 << strikes.min(16)).min(PAUSE_MAX);
    let mut key = account.as_str().as_bytes().to_vec();
    key.extend_from_slice(&now.as_millis().to_le_bytes());
    let share = u32::try_from(fnv1a(&key) % 256).unwrap_or(0);
    now.plus(plain + plain.saturating_mul(share) / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: Window =
        Window::Closed { class: Class::Overload, until: Timestamp::EPOCH, guessed: true, strikes: 3 };

    #[test]
    fn one_request_tries_and_each_that_is_taken_lets_twice_as_many_go() {
        let mut window = CLOSED.opened(Timestamp::EPOCH);
        let mut on_trial = Vec::new();
        // Every request of a round is taken before the next round begins.
        while let Some(round) = window.on_trial_max() {
            on_trial.push(round);
            for _ in 0..round {
                window = window.took_one();
            }
        }
        assert_eq!(on_trial, [1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn pauses_double_and_stay_below_twenty_minutes() {
        let account = AccountId::new("a");
        let pause = |strikes| guess(&account, strikes, Timestamp::EPOCH).since(Timestamp::EPOCH);
        for strikes in 0..9 {
            let plain = Duration::from_secs(1 << strikes);
            assert!(pause(strikes) >= plain && pause(strikes) <= plain * 5 / 4, "{strikes}: {:?}", pause(strikes));
        }
        assert!((PAUSE_MAX..PAUSE_MAX * 5 / 4).contains(&pause(u32::MAX)));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_lengthen_a_pause_that_was_guessed() {
        let hours = |hours: u64| Timestamp::EPOCH.plus(Duration::from_secs(hours * 3600));
        let account = AccountId::new("a");
        let closed = |until, guessed| Window::Closed { class: Class::Overload, until, guessed, strikes: 20 };
        let guessed = guess(&account, 20, hours(10));
        assert!(!closed(guessed, true).is_due(hours(10)));
        assert!(closed(guessed, true).is_due(hours(1)), "nine hours back");
        assert!(!closed(guessed, false).is_due(hours(1)), "what the provider said is what it said");
    }

    #[test]
    fn a_request_that_is_taken_forgives_every_refusal_before_it() {
        assert_eq!(CLOSED.strikes(), 3);
        assert_eq!(CLOSED.opened(Timestamp::EPOCH).strikes(), 3);
        assert_eq!(CLOSED.opened(Timestamp::EPOCH).took_one().strikes(), 0);
        assert_eq!(CLOSED.took_one(), CLOSED, "an answer to what was sent before it closed says nothing");
    }
}
