//! The provider's memory: counts, windows, bill and log. Pure: the clock is handed in and nothing is written here.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::arrival::{Arrival, Ruling, Settlement};
use super::closing::{Closings, Moment};
use super::fault::{Fault, RuleState, Subject};
use super::file::Script;
use super::log::{Bill, Ended, LogEntry, Tally};
use super::refusal::Refusal;
use super::window::WindowState;

/// Everything the provider remembers.
#[derive(Debug)]
pub(super) struct Books {
    rules: Vec<RuleState>,
    windows: Vec<WindowState>,
    closings: Closings,
    /// How often each fault of a script has struck, by conversation, turn and place.
    struck: BTreeMap<(String, usize, usize), u64>,
    log: Vec<LogEntry>,
    bodies: Option<Vec<Bytes>>,
    bill: Bill,
}

impl Books {
    pub(super) fn new(script: &Script) -> Self {
        Self {
            rules: script.fault.iter().cloned().map(RuleState::new).collect(),
            windows: script.window.iter().cloned().map(WindowState::new).collect(),
            closings: Closings::new(&script.closing),
            struck: BTreeMap::new(),
            log: Vec::new(),
            bodies: script.keep_bodies.then(Vec::new),
            bill: Bill::default(),
        }
    }

    /// Logs a request that no rule concerns (another path, a wrong key, a body that cannot be read).
    pub(super) fn note(&mut self, entry: LogEntry, body: Bytes) -> u64 {
        self.enter(entry, body)
    }

    /// Decides about a model request. `now` is the time since the provider's start, `unix` Unix seconds.
    pub(super) fn rule(&mut self, arrival: Arrival, now: Duration, unix: u64) -> Ruling {
        let Arrival { entry, dialect, conversation, faults, body } = arrival;
        let key = entry.key.clone();
        let step = entry.step.map(|step| step - 1);
        let number = self.enter(entry, body);
        self.tally(number, |tally| tally.requests += 1);
        let at = Moment { since_start: now, unix, unix_ms: self.entry(number).arrived_at_ms };
        if let Some(shut) = self.closings.check(dialect, at) {
            self.bill.requests_into_closed_window += u64::from(shut.known);
            let entry = self.entry(number);
            entry.window = Some(shut.name);
            entry.into_closed_window = shut.known;
            return self.refuse(number, shut.refusal);
        }
        let closed = self.windows.iter_mut().find_map(|window| window.check(&key, dialect, now, unix));
        if let Some(closed) = closed {
            self.bill.requests_into_closed_window += u64::from(closed.known);
            let entry = self.entry(number);
            entry.window = Some(closed.window);
            entry.into_closed_window = closed.known;
            return self.refuse(number, closed.refusal);
        }
        let scenario = self.entry(number).scenario.clone();
        let subject = Subject { scenario: scenario.as_deref(), step, key: &key, dialect, since_start: now };
        // Every rule counts every request it concerns, also behind a rule that strikes first.
        let strikes: Vec<Fault> = self.rules.iter_mut().filter_map(|rule| rule.strike(&subject)).collect();
        let inline = step.and_then(|step| self.strike_inline(&conversation, step, &faults));
        let fault = strikes.into_iter().next().or(inline);
        self.entry(number).fault = fault.as_ref().map(|fault| fault.name().to_owned());
        match fault {
            Some(Fault::Refuse { reason, seconds }) => self.refuse(number, Refusal::of(reason, dialect, seconds, unix)),
            fault => {
                if !fault.as_ref().is_some_and(Fault::turns_away) {
                    self.windows.iter_mut().for_each(|window| window.admit(&key, now));
                }
                let headroom =
                    self.windows.iter().flat_map(|window| window.headroom(&key, dialect, now, unix)).collect();
                self.closings.take(at);
                Ruling::Answer { number, fault, headroom }
            }
        }
    }

    /// Books the end of a request that was to be answered.
    pub(super) fn settle(&mut self, settlement: &Settlement) {
        let entry = self.entry(settlement.number);
        let admitted = entry.fault.as_deref().is_none_or(|fault| !matches!(fault, "status" | "drop"));
        entry.status = settlement.status;
        entry.ended = settlement.ended;
        entry.billed = settlement.billed;
        let key = entry.key.clone();
        self.closings.settle();
        if admitted {
            let tokens = settlement.billed.map_or(0, |usage| usage.total());
            self.windows.iter_mut().for_each(|window| window.settle(&key, tokens));
        }
        self.tally(settlement.number, |tally| {
            if let Some(usage) = settlement.billed {
                tally.answered += 1;
                tally.tokens += usage;
            }
            tally.refused += u64::from(settlement.ended == Ended::Refused);
        });
    }

    pub(super) fn bill(&self) -> Bill {
        let (closings, in_flight) = (self.closings.tallies(), self.closings.in_flight());
        Bill { closings, in_flight, ..self.bill.clone() }
    }

    pub(super) fn log(&self) -> Vec<LogEntry> {
        self.log.clone()
    }

    /// The number of the newest request.
    pub(super) fn log_len(&self) -> u64 {
        self.log.len() as u64
    }

    /// The entry of a request.
    pub(super) fn find(&self, number: u64) -> Option<&LogEntry> {
        self.log.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    pub(super) fn body(&self, number: u64) -> Option<Bytes> {
        self.bodies.as_ref()?.get(usize::try_from(number.checked_sub(1)?).ok()?).cloned()
    }

    fn enter(&mut self, mut entry: LogEntry, body: Bytes) -> u64 {
        let number = self.log.len() as u64 + 1;
        entry.number = number;
        self.log.push(entry);
        if let Some(bodies) = &mut self.bodies {
            bodies.push(body);
        }
        number
    }

    fn entry(&mut self, number: u64) -> &mut LogEntry {
        &mut self.log[number as usize - 1]
    }

    fn refuse(&mut self, number: u64, refusal: Refusal) -> Ruling {
        let entry = self.entry(number);
        entry.status = refusal.status;
        entry.ended = Ended::Refused;
        self.tally(number, |tally| tally.refused += 1);
        Ruling::Refuse { refusal }
    }

    fn strike_inline(&mut self, conversation: &str, step: usize, faults: &[super::InlineFault]) -> Option<Fault> {
        faults.iter().enumerate().find_map(|(place, inline)| {
            let struck = self.struck.entry((conversation.to_owned(), step, place)).or_default();
            if *struck >= inline.times {
                return None;
            }
            *struck += 1;
            Some(inline.fault.clone())
        })
    }

    fn tally(&mut self, number: u64, change: impl Fn(&mut Tally)) {
        let entry = &self.log[number as usize - 1];
        let scenario = match (&entry.scenario, entry.background) {
            (Some(name), false) => name.clone(),
            _ => "background".to_owned(),
        };
        change(&mut self.bill.total);
        change(self.bill.keys.entry(entry.key.clone()).or_default());
        change(self.bill.scenarios.entry(scenario).or_default());
    }
}
