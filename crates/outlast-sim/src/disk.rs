//! What is durable in a simulated world: the journal, which outlives every crash, and crashes on cue around an append.
//!
//! Records are kept as they read back from their written form, so that a field that is not written is missed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use outlast_core::driver::Store;
use outlast_core::hash::fnv1a;
use outlast_core::{Core, Record};

use crate::invariant::{Invariant, Violation};

/// More records than any sound simulation writes: the mark of one that decides in circles.
const RECORDS_MAX: usize = 40_000;

/// At which side of an append the orchestrator crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing of the batch is durable.
    BeforeAppend,
    /// The batch is durable, and the orchestrator never learns it.
    AfterAppend,
}

/// The journal, shared between the simulation and whatever orchestrator lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Rc<RefCell<Journal>>);

#[derive(Debug, Default)]
struct Journal {
    records: Vec<Record>,
    revisions: BTreeMap<String, u64>,
    hash: u64,
    /// Crash at the n-th append from now.
    fault: Option<(Fault, u32)>,
    /// Length of the last batch that was written.
    last_batch: usize,
    violation: Option<Violation>,
}

/// The orchestrator crashed around an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crashed {
    /// As planned.
    OnCue(Fault),
    /// It was stopped because the journal is broken or too long.
    Broken,
}

impl Disk {
    /// Makes the n-th append from now crash, counted from 0.
    pub(crate) fn arm(&self, fault: Fault, appends: u32) {
        self.0.borrow_mut().fault = Some((fault, appends));
    }

    /// Whether a crash is still to come.
    pub(crate) fn is_armed(&self) -> bool {
        self.0.borrow().fault.is_some()
    }

    /// Takes back a crash that is still to come; false where none is.
    pub(crate) fn disarm(&self) -> bool {
        self.0.borrow_mut().fault.take().is_some()
    }

    /// How many records are durable.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().records.len()
    }

    /// A hash over everything that was ever written, in order.
    pub(crate) fn hash(&self) -> u64 {
        self.0.borrow().hash
    }

    /// How many records the last append wrote.
    pub(crate) fn last_batch(&self) -> usize {
        self.0.borrow().last_batch
    }

    /// The records from the n-th on.
    pub(crate) fn since(&self, from: usize) -> Vec<Record> {
        self.0.borrow().records[from..].to_vec()
    }

    /// What is wrong with what was written, if anything is.
    pub(crate) fn violation(&self) -> Option<Violation> {
        self.0.borrow().violation.clone()
    }

    /// Takes in the records from the n-th on.
    pub(crate) fn replay(&self, core: &mut Core, from: usize) {
        for record in &self.0.borrow().records[from..] {
            core.apply(record);
        }
    }
}

impl Store for Disk {
    type Error = Crashed;

    fn append(&mut self, batch: &[(u64, Record)]) -> Result<(), Crashed> {
        let mut journal = self.0.borrow_mut();
        let due = match &mut journal.fault {
            Some((fault, 0)) => Some(*fault),
            Some((_, appends)) => {
                *appends -= 1;
                None
            }
            None => None,
        };
        if due.is_some() {
            journal.fault = None;
        }
        if due == Some(Fault::BeforeAppend) {
            return Err(Crashed::OnCue(Fault::BeforeAppend));
        }
        let written = batch.iter().try_for_each(|(revision, record)| journal.write(*revision, record));
        journal.last_batch = batch.len();
        if let Err(violation) = written {
            journal.violation = Some(violation);
            return Err(Crashed::Broken);
        }
        due.map_or(Ok(()), |fault| Err(Crashed::OnCue(fault)))
    }
}

impl Journal {
    fn write(&mut self, revision: u64, record: &Record) -> Result<(), Violation> {
        let known = self.revisions.entry(record.stream.to_string()).or_default();
        *known += 1;
        Invariant::RevisionsRiseByOne
            .holds(*known == revision, || format!("{} has {known}, got {revision}", record.stream))?;
        Invariant::Settles.holds(self.records.len() < RECORDS_MAX, || format!("more than {RECORDS_MAX} records"))?;
        let lossy = |why: String| Invariant::RecordsSurviveEncoding.broken(why);
        let text = serde_json::to_vec(record).map_err(|e| lossy(e.to_string()))?;
        let back: Record = serde_json::from_slice(&text).map_err(|e| lossy(e.to_string()))?;
        Invariant::RecordsSurviveEncoding.holds(back == *record, || format!("{record:?} reads as {back:?}"))?;
        self.hash = fnv1a(&[&self.hash.to_le_bytes()[..], &text].concat());
        self.records.push(back);
        Ok(())
    }
}
