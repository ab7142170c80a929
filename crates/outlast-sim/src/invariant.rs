//! What must be true at every step of every simulation, by name.

use std::fmt;

/// A property that no seed may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The state that lives equals the one that is replayed from what is durable.
    LiveEqualsReplay,
    /// A snapshot and the records after it give the same state as all records.
    SnapshotEqualsReplay,
    /// A record is the same after it was written and read.
    RecordsSurviveEncoding,
    /// Revisions rise by one within a stream.
    RevisionsRiseByOne,
    /// A task has one attempt at a time, numbered without a gap, each with a higher epoch.
    OneAttemptAtATime,
    /// Only the living attempt makes news, and only news that fit how far it is.
    NewsOfTheLivingOnly,
    /// What the state says of an attempt is what the records say.
    StateSaysWhatRecordsSay,
    /// Nothing of an older attempt lives when another is launched, and nobody writes while work is checked.
    OneProcessPerTask,
    /// An attempt is over only once nothing of it lives, and nothing of it can be launched any more.
    EndProven,
    /// Whatever is launched was on record before.
    RecordBeforeEffect,
    /// No more tasks are worked on than the run allows.
    ConcurrencyKept,
    /// No two tasks are worked on whose declared scopes meet.
    ScopesKept,
    /// Nothing that needs quota starts while all its accounts are closed.
    ClosedAccountsRespected,
    /// A task whose agent reported a limit does not start before the stated end of it.
    StatedEndsKept,
    /// A task starts only when everything that it needs has a verified result that stands.
    NeedsFirst,
    /// A run that is paused, stopped or finished starts nothing.
    PausedRunsRest,
    /// A task has at most one try more than its retries, and fails only when they are used up or none would help.
    TriesKept,
    /// A run is billed no more than it is allowed and what answers cost beyond their reservations; once its budget is
    /// reached, nothing starts.
    BudgetKept,
    /// One landing at a time, each task at most once.
    LandsOnce,
    /// A task lands only after everything that it needs.
    LandsAfterNeeds,
    /// The target only moves forward, and what people put there stays.
    TargetOnlyForward,
    /// What is in flight is what is desired: nothing twice, nothing too long.
    InFlightIsDesired,
    /// After a step nothing is left to decide, and nothing would be before the time that the driver is told to look again.
    WakeInTime,
    /// The same seed gives the same records.
    SameSeedSameRecords,
    /// Every exchange of the ledger is billed, once.
    BilledOnce,
    /// Once the faults stop, everything comes to an end.
    Settles,
    /// The end is what the tasks came to.
    EndState,
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// Names and numbers.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.detail)
    }
}

impl Invariant {
    /// This invariant, broken in the way that `detail` tells.
    pub(crate) fn broken(self, detail: impl Into<String>) -> Violation {
        Violation { invariant: self, detail: detail.into() }
    }

    /// Nothing where it holds, else the violation.
    pub(crate) fn holds(self, holds: bool, detail: impl FnOnce() -> String) -> Result<(), Violation> {
        if holds { Ok(()) } else { Err(self.broken(detail())) }
    }
}
