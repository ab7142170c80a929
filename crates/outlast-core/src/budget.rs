//! What a run may spend, what it has spent, and what is reserved for requests that are on their way.
//!
//! A request goes out only where it fits: what is spent, what is reserved and what the request may cost together stay
//! within what is allowed. A run can therefore be billed more than it is allowed only by what requests in flight cost
//! beyond their reservations. Money is in whole billionths of a US dollar; a price that is not known is never zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::admit::Rejection;
use crate::core::Core;
use crate::ids::RunId;
use crate::mutant::{Bug, planted};
use crate::record::{Fact, Record, Stream};
use crate::run::Mode;
use crate::time::Timestamp;
use crate::usage::Usage;

/// How many tokens read from a cache weigh as much as one token that is not: what providers charge for them is about a
/// tenth, and a conversation reads all of itself at every turn.
pub const CACHED_PER_TOKEN: u64 = 10;

/// What the user allows a run to spend; an absent part is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// Billionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_nanos: Option<u64>,
    /// Tokens as [`counted_tokens`] counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl Allowed {
    /// Whether it limits nothing.
    pub const fn is_unlimited(&self) -> bool {
        self.usd_nanos.is_none() && self.tokens.is_none()
    }

    /// This, with the parts that `by` names in place of its own.
    #[must_use]
    pub fn changed(self, by: Self) -> Self {
        Self { usd_nanos: by.usd_nanos.or(self.usd_nanos), tokens: by.tokens.or(self.tokens) }
    }
}

/// What a request may cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Billionths of a US dollar; absent where the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_nanos: Option<u64>,
    /// Tokens as [`counted_tokens`] counts them.
    pub tokens: u64,
}

impl Estimate {
    /// The parts that count for an exchange that came to this: all where its answer broke off, since more may be billed than
    /// it had counted, and else what is not known of it.
    #[must_use]
    pub fn where_unknown(self, usage: &Usage) -> Self {
        if usage.cut > 0 {
            return self;
        }
        Self {
            usd_nanos: self.usd_nanos.filter(|_| usage.unpriced > 0),
            tokens: if usage.unmetered > 0 { self.tokens } else { 0 },
        }
    }
}

/// Money and tokens, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Billionths of a US dollar, of everything that has a price.
    pub usd_nanos: u64,
    /// Tokens as [`counted_tokens`] counts them.
    pub tokens: u64,
}

impl Sum {
    const fn add(&mut self, other: Self) {
        self.usd_nanos = self.usd_nanos.saturating_add(other.usd_nanos);
        self.tokens = self.tokens.saturating_add(other.tokens);
    }

    const fn take(&mut self, other: Self) {
        self.usd_nanos = self.usd_nanos.saturating_sub(other.usd_nanos);
        self.tokens = self.tokens.saturating_sub(other.tokens);
    }

    fn raise_to(&mut self, other: Self) {
        self.usd_nanos = self.usd_nanos.max(other.usd_nanos);
        self.tokens = self.tokens.max(other.tokens);
    }
}

impl From<Estimate> for Sum {
    fn from(estimate: Estimate) -> Self {
        Self { usd_nanos: estimate.usd_nanos.unwrap_or(0), tokens: estimate.tokens }
    }
}

/// Tokens by what they weigh in a budget: those read from a cache count a tenth.
pub const fn counted_tokens(usage: &Usage) -> u64 {
    let cached = usage.cache_read.div_ceil(CACHED_PER_TOKEN);
    usage.input.saturating_add(usage.cache_write).saturating_add(usage.output).saturating_add(cached)
}

/// What keeps a request from fitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The money that is left.
    Usd,
    /// The tokens that are left.
    Tokens,
    /// A price: a budget in money cannot be kept without one, and no tokens are allowed in its place.
    Price,
}

/// Whether a request may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It fits.
    Fits,
    /// It may, once what is on its way has come in at less than was reserved for it.
    Later,
    /// It does not, and nothing is on its way.
    Gone(Lack),
}

/// The request that did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// What there was too little of.
    pub lack: Lack,
    /// What it may have cost.
    pub wants: Estimate,
}

/// A run's budget and what has become of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purse {
    /// What the user allows.
    pub allowed: Allowed,
    /// What is spent, with what was reserved in place of what never became known.
    pub spent: Sum,
    /// The most that one exchange has cost so far.
    pub dearest: Sum,
    /// Set while nothing more goes out, until the budget is changed.
    pub reached: Option<Reached>,
}

impl Purse {
    /// A purse of which nothing is spent.
    pub const fn new(allowed: Allowed) -> Self {
        let nothing = Sum { usd_nanos: 0, tokens: 0 };
        Self { allowed, spent: nothing, dearest: nothing, reached: None }
    }

    /// Takes an exchange in. `reserved` comes with one whose count is not certain, and then is the least that it counts;
    /// without it, an unknown part counts as the dearest exchange so far.
    pub fn settle(&mut self, usage: &Usage, reserved: Option<Estimate>) {
        let mut sum = Sum { usd_nanos: u64::try_from(usage.usd_nanos).unwrap_or(0), tokens: counted_tokens(usage) };
        let known = Sum {
            usd_nanos: if usage.unpriced == 0 { sum.usd_nanos } else { 0 },
            tokens: if usage.unmetered == 0 { sum.tokens } else { 0 },
        };
        match reserved {
            Some(reserved) => sum.raise_to(reserved.into()),
            None => sum.raise_to(Sum {
                usd_nanos: if usage.unpriced == 0 { 0 } else { self.dearest.usd_nanos },
                tokens: if usage.unmetered == 0 { 0 } else { self.dearest.tokens },
            }),
        }
        self.dearest.raise_to(known);
        self.spent.add(sum);
    }

    /// What is reserved for a request of which this much is known beforehand: no less than the dearest so far cost. A
    /// price that is not known stays so.
    #[must_use]
    pub fn estimate(&self, quote: Estimate) -> Estimate {
        Estimate {
            usd_nanos: quote.usd_nanos.map(|quoted| quoted.max(self.dearest.usd_nanos)),
            tokens: quote.tokens.max(self.dearest.tokens),
        }
    }

    /// Whether a request fits beside what is spent and what is on its way.
    pub fn room(&self, in_flight: Sum, wants: Estimate) -> Room {
        if let Some(reached) = self.reached {
            return Room::Gone(reached.lack);
        }
        match self.lack(in_flight, wants) {
            None => Room::Fits,
            Some(_) if planted(Bug::BudgetIgnored) => Room::Fits,
            Some(Lack::Price) => Room::Gone(Lack::Price),
            Some(_) if in_flight != Sum::default() => Room::Later,
            Some(lack) => Room::Gone(lack),
        }
    }

    fn lack(&self, in_flight: Sum, wants: Estimate) -> Option<Lack> {
        let above = |limit: Option<u64>, parts: [u64; 3]| {
            limit.is_some_and(|limit| parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part)) > limit)
        };
        if above(self.allowed.tokens, [self.spent.tokens, in_flight.tokens, wants.tokens]) {
            return Some(Lack::Tokens);
        }
        match wants.usd_nanos {
            Some(usd) if above(self.allowed.usd_nanos, [self.spent.usd_nanos, in_flight.usd_nanos, usd]) => {
                Some(Lack::Usd)
            }
            None if self.allowed.usd_nanos.is_some() && self.allowed.tokens.is_none() => Some(Lack::Price),
            _ => None,
        }
    }
}

/// What is reserved for requests that are on their way. It ends with whoever sent them.
#[derive(Debug, Clone, Default)]
pub struct Reservations {
    by_exchange: BTreeMap<String, (RunId, Estimate)>,
    sums: BTreeMap<RunId, Sum>,
}

impl Reservations {
    /// Reserves for an exchange.
    pub fn add(&mut self, exchange: String, run: RunId, estimate: Estimate) {
        self.take(&exchange);
        self.sums.entry(run.clone()).or_default().add(estimate.into());
        self.by_exchange.insert(exchange, (run, estimate));
    }

    /// Gives back what was reserved for an exchange, and says what that was.
    pub fn take(&mut self, exchange: &str) -> Option<Estimate> {
        let (run, estimate) = self.by_exchange.remove(exchange)?;
        if let Some(sum) = self.sums.get_mut(&run) {
            sum.take(estimate.into());
            if *sum == Sum::default() {
                self.sums.remove(&run);
            }
        }
        Some(estimate)
    }

    /// Whether anything is reserved for an exchange.
    pub fn has(&self, exchange: &str) -> bool {
        self.by_exchange.contains_key(exchange)
    }

    /// What is reserved for a run.
    pub fn of(&self, run: &RunId) -> Sum {
        self.sums.get(run).copied().unwrap_or_default()
    }
}

impl Core {
    /// A budget is reached once, until it is changed.
    pub(crate) fn admit_reached(&self, now: Timestamp, run: RunId, reached: Reached) -> Result<Vec<Record>, Rejection> {
        let found = self.runs.get(&run).ok_or_else(|| Rejection::NoRun(run.clone()))?;
        let known = found.purse.reached.is_some() || matches!(found.mode, Mode::Finished(_));
        let fact = Fact::BudgetReached(reached);
        Ok(if known { Vec::new() } else { vec![Record { at: now, stream: Stream::Run(run), fact }] })
    }

    /// The budget of a run that is over stays what it was.
    pub(crate) fn admit_budget(&self, now: Timestamp, run: RunId, by: Allowed) -> Result<Vec<Record>, Rejection> {
        let found = self.runs.get(&run).ok_or_else(|| Rejection::NoRun(run.clone()))?;
        let allowed = found.purse.allowed.changed(by);
        let same = allowed == found.purse.allowed || matches!(found.mode, Mode::Finished(_));
        let fact = Fact::BudgetChanged(allowed);
        Ok(if same { Vec::new() } else { vec![Record { at: now, stream: Stream::Run(run), fact }] })
    }
}

#[cfg(test)]
mod tests;
