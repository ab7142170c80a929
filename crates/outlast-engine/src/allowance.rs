//! What the user allows beside what providers do: the budgets of runs, and the known limits and hours of accounts.
//!
//! Every request that asks a model for something is reserved here before it goes out, at what it may cost, and given
//! back when it is over. What this knows is of this engine alone, and small: budgets and what they have been spent on
//! are on record.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use outlast_config::Hours;
use outlast_core::admit::Command;
use outlast_core::budget::{Estimate, Reservations, Room};
use outlast_core::pace::{Limits, Pace, Wait};
use outlast_core::run::Run;
use outlast_core::{AccountId, Class, Core, RunId, Timestamp};
use outlast_gateway::{Ask, Rate, Tariff};

/// Bytes of a request that make a token: English and code have about four, other scripts and JSON fewer.
const BYTES_PER_TOKEN: u64 = 3;
/// The most that a request is taken to be read as: the window of most models. Larger bodies hold pictures.
const REQUEST_TOKENS_MAX: u64 = 200_000;
/// Tokens of an answer about which nothing is known yet: a long tool call.
const ANSWER_TOKENS: u64 = 2_000;

/// What the user says of an account.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// What it charges.
    pub(crate) tariff: Tariff,
    /// What may be asked of it.
    pub(crate) limits: Limits,
    /// When it may be used; always where this is absent.
    pub(crate) hours: Option<Hours>,
}

/// A model of an account; what the agent named, if anything.
type ModelOf = (AccountId, Option<String>);

/// Budgets, limits and hours, on the loop's thread.
#[derive(Debug)]
pub(crate) struct Allowance {
    terms: BTreeMap<AccountId, Terms>,
    zone: TimeZone,
    paces: BTreeMap<AccountId, Pace>,
    reserved: Reservations,
    /// Prices that were looked up before.
    rates: RefCell<BTreeMap<ModelOf, Option<Rate>>>,
}

impl Allowance {
    /// After what is on record of the minute before.
    pub(crate) fn new(terms: BTreeMap<AccountId, Terms>, zone: TimeZone, core: &Core) -> Self {
        let limited = terms.iter().filter(|(_, terms)| terms.limits != Limits::default());
        let paces =
            limited.map(|(account, terms)| (account.clone(), Pace::new(terms.limits, core.recent.get(account))));
        Self { paces: paces.collect(), terms, zone, reserved: Reservations::default(), rates: RefCell::default() }
    }

    /// Tells it what time it is.
    pub(crate) fn at(&mut self, now: Timestamp) {
        for pace in self.paces.values_mut() {
            pace.at(now);
        }
    }

    /// What follows from the hours of accounts: closed outside of them, open again where the user has changed them.
    pub(crate) fn hours_news(&self, core: &Core, now: Timestamp) -> Vec<Command> {
        let news = self.terms.iter().filter_map(|(account, terms)| {
            let closed = core.closed_until(account, now);
            let until = terms.hours.and_then(|hours| closed_until(hours, now, &self.zone));
            match (until, closed) {
                (Some(until), Some((known, _))) if known >= until => None,
                (Some(until), _) => {
                    let (account, class) = (account.clone(), Class::Hours);
                    Some(Command::CloseAccount { account, class, until: Some(until) })
                }
                (None, Some((_, Class::Hours))) => Some(Command::OpenAccount(account.clone())),
                (None, _) => None,
            }
        });
        news.collect()
    }

    /// Why a request has to wait for an account's known limits, and until when where that is known.
    pub(crate) fn waits_for(&self, account: &AccountId, ask: &Ask) -> Option<(Class, Option<Timestamp>)> {
        let wait = self.paces.get(account)?.wait(quoted_tokens(ask))?;
        let until = match wait {
            Wait::Until(until) => Some(until),
            Wait::Turn => None,
        };
        Some((Class::MinuteLimit, until))
    }

    /// What is reserved for a request that goes out on an account.
    pub(crate) fn estimate(&self, run: Option<&Run>, ask: &Ask, account: &AccountId) -> Estimate {
        let tokens = quoted_tokens(ask);
        let Some(run) = run else { return Estimate { usd_nanos: None, tokens } };
        // A price is looked up only where it matters.
        let rate = run.purse.allowed.usd_nanos.and_then(|_| self.rate(account, ask.model.as_deref()));
        let usd_nanos = rate.map(|rate| {
            let read = tokens.saturating_sub(ANSWER_TOKENS).saturating_mul(rate.input_nanos);
            read.saturating_add(ANSWER_TOKENS.saturating_mul(rate.output_nanos))
        });
        run.purse.estimate(Estimate { usd_nanos, tokens })
    }

    fn rate(&self, account: &AccountId, model: Option<&str>) -> Option<Rate> {
        let key = (account.clone(), model.map(str::to_owned));
        let look_up = || self.terms.get(account).and_then(|terms| terms.tariff.rate(model));
        *self.rates.borrow_mut().entry(key).or_insert_with(look_up)
    }

    /// Whether a request fits into a run's budget.
    pub(crate) fn room(&self, run: &Run, wants: Estimate) -> Room {
        run.purse.room(self.reserved.of(&run.id), wants)
    }

    /// Takes note that a request goes out.
    pub(crate) fn granted(
        &mut self,
        exchange: &str,
        run: Option<RunId>,
        account: &AccountId,
        estimate: Estimate,
        now: Timestamp,
    ) {
        if let Some(pace) = self.paces.get_mut(account) {
            pace.grant(now, exchange.to_owned(), estimate.tokens);
        }
        if let Some(run) = run {
            self.reserved.add(exchange.to_owned(), run, estimate);
        }
    }

    /// Takes note that a request is over, with the tokens that it took where they are known; what was reserved for it.
    pub(crate) fn settled(&mut self, exchange: &str, account: &AccountId, tokens: Option<u64>) -> Option<Estimate> {
        if let Some(pace) = self.paces.get_mut(account) {
            pace.settle(exchange, tokens);
        }
        self.reserved.take(exchange)
    }
}

/// What a request may take, by its size alone.
fn quoted_tokens(ask: &Ask) -> u64 {
    ask.request_bytes.div_ceil(BYTES_PER_TOKEN).min(REQUEST_TOKENS_MAX) + ANSWER_TOKENS
}

/// When the next of these hours begin by the clock of a place; nothing where they have begun.
fn closed_until(hours: Hours, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let instant = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?;
    let local = instant.to_zoned_datetime(zone.clone());
    let minute = u16::try_from(local.hour()).ok()? * 60 + u16::try_from(local.minute()).ok()?;
    if hours.has(minute) {
        return None;
    }
    let (hour, minute) = (i8::try_from(hours.from_minute / 60).ok()?, i8::try_from(hours.from_minute % 60).ok()?);
    let opens = Time::new(hour, minute, 0, 0).ok()?;
    let mut date = local.date();
    loop {
        // Where a clock is put forward over that time, the hours begin when it is.
        let at = date.to_datetime(opens).to_zoned_datetime(zone.clone()).ok()?.timestamp();
        if at > instant {
            return Some(Timestamp::from_millis(at.as_millisecond()));
        }
        date = date.tomorrow().ok()?;
    }
}

#[cfg(test)]
mod tests;
