//! What happens next, and when: simulated time that never waits.
//!
//! Events happen in the order of a monotonic clock; the wall clock that the core is shown runs beside it and jumps.

use std::collections::BTreeMap;

use outlast_core::Timestamp;

/// The wall clock of a simulation at its start, milliseconds since the Unix epoch.
const WALL_START: i64 = 1_700_000_000_000;

/// A time in milliseconds since the simulation's start, on the monotonic clock.
pub(crate) type Instant = u64;

/// Events to come, in order.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    now: Instant,
    wall_offset: i64,
    sequence: u64,
    events: BTreeMap<(Instant, u64), E>,
}

impl<E> Agenda<E> {
    /// An empty agenda at the start of time.
    pub(crate) const fn new() -> Self {
        Self { now: 0, wall_offset: WALL_START, sequence: 0, events: BTreeMap::new() }
    }

    /// The monotonic clock.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        let now = i64::try_from(self.now).unwrap_or(i64::MAX);
        Timestamp::from_millis(now.saturating_add(self.wall_offset))
    }

    /// Moves the wall clock by so many milliseconds, back where negative.
    pub(crate) const fn jump(&mut self, by: i64) {
        self.wall_offset += by;
    }

    /// When the wall clock will show `wall`; now where it shows that or more.
    pub(crate) fn instant_of(&self, wall: Timestamp) -> Instant {
        let instant = wall.as_millis().saturating_sub(self.wall_offset);
        u64::try_from(instant).unwrap_or(0).max(self.now)
    }

    /// Adds an event that happens `delay` milliseconds from now, after others of the same time.
    pub(crate) fn after(&mut self, delay: u64, event: E) {
        self.at(self.now + delay, event);
    }

    /// Adds an event that happens at this time, or now where that has passed.
    pub(crate) fn at(&mut self, instant: Instant, event: E) {
        self.sequence += 1;
        self.events.insert((instant.max(self.now), self.sequence), event);
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.events.keys().next().map(|&(at, _)| at)
    }

    /// Moves time to the next event and takes it.
    pub(crate) fn pop(&mut self) -> Option<E> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some(event)
    }

    /// Moves time forward to `instant`.
    pub(crate) fn advance(&mut self, instant: Instant) {
        self.now = self.now.max(instant);
    }

    /// Keeps the events that `keep` lets stand, possibly changed.
    pub(crate) fn revise(&mut self, keep: impl FnMut(&mut E) -> bool) {
        let mut keep = keep;
        self.events.retain(|_, event| keep(event));
    }
}
