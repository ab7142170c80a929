//! The clock of an attempt: what has passed that counts, and which limit strikes next.
//!
//! Pure: every method is handed the monotonic time. Time in which a request waits for its answer to begin does not count.

use std::time::{Duration, Instant};

use crate::protocol::TimeoutKind;
use crate::spec::Timeouts;

/// The three limits of one launch and the time that counts towards them.
#[derive(Debug)]
pub(crate) struct Deadlines {
    limits: Timeouts,
    started: Instant,
    /// Since when time does not count, if it does not.
    held_since: Option<Instant>,
    /// What did not count before that.
    held: Duration,
    /// Counted time at the last output or traffic.
    last_activity: Duration,
    any_activity: bool,
    /// Nothing was seen at all, not even a complaint.
    silent: bool,
}

impl Deadlines {
    /// Starts the clock.
    pub(crate) fn new(limits: Timeouts, now: Instant) -> Self {
        let (held, last_activity) = (Duration::ZERO, Duration::ZERO);
        Self { limits, started: now, held_since: None, held, last_activity, any_activity: false, silent: true }
    }

    /// Output or traffic was seen.
    pub(crate) fn note_activity(&mut self, now: Instant) {
        (self.any_activity, self.silent) = (true, false);
        self.last_activity = self.counted(now);
    }

    /// Something was said on standard error: a sign of life, and of a start only where the launch says so.
    pub(crate) fn note_complaint(&mut self, now: Instant) {
        self.any_activity |= self.limits.stderr_is_a_start;
        self.silent = false;
        self.last_activity = self.counted(now);
    }

    /// Stops or starts the clock; saying the same twice changes nothing.
    pub(crate) fn set_held(&mut self, held: bool, now: Instant) {
        match (held, self.held_since) {
            (true, None) => self.held_since = Some(now),
            (false, Some(since)) => {
                self.held += now.saturating_duration_since(since);
                self.held_since = None;
            }
            _ => {}
        }
    }

    /// When to look again; `None` while no limit can strike by itself.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        let left = self.limits().map(|(limit, _)| limit.saturating_sub(self.counted(now))).min()?;
        now.checked_add(left)
    }

    /// The limit that has struck, the earliest first.
    pub(crate) fn struck(&self, now: Instant) -> Option<TimeoutKind> {
        let counted = self.counted(now);
        self.limits().filter(|(limit, _)| *limit <= counted).min_by_key(|(limit, _)| *limit).map(|(_, kind)| kind)
    }

    /// The limits in force, in counted time since the start.
    fn limits(&self) -> impl Iterator<Item = (Duration, TimeoutKind)> {
        let running = self.held_since.is_none();
        let start = self.limits.start.filter(|_| !self.any_activity).map(|limit| (limit, TimeoutKind::Start));
        let wall = self.limits.wall.map(|limit| (limit, TimeoutKind::Wall));
        // What was never heard of is not idle, however short a silence is allowed.
        let silence = if self.limits.start.is_some() && self.silent { TimeoutKind::Start } else { TimeoutKind::Idle };
        let idle = self.limits.idle.map(|limit| (self.last_activity.saturating_add(limit), silence));
        [start, wall, idle].into_iter().flatten().filter(move |_| running)
    }

    fn counted(&self, now: Instant) -> Duration {
        let until = self.held_since.unwrap_or(now);
        until.saturating_duration_since(self.started).saturating_sub(self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(wall: u64, idle: u64, start: u64) -> Timeouts {
        let seconds = |n| Some(Duration::from_secs(n));
        Timeouts { wall: seconds(wall), idle: seconds(idle), start: seconds(start), stderr_is_a_start: false }
    }

    #[test]
    fn d05_silence_from_the_start_is_a_start_timeout_and_later_silence_is_idle() {
        let zero = Instant::now();
        let at = |s| zero + Duration::from_secs(s);
        let mut clock = Deadlines::new(limits(100, 30, 10), zero);
        assert_eq!(clock.next(at(1)), Some(at(10)));
        assert_eq!(clock.struck(at(10)), Some(TimeoutKind::Start));
        clock.note_activity(at(9));
        assert_eq!((clock.struck(at(10)), clock.next(at(10))), (None, Some(at(39))));
        assert_eq!(clock.struck(at(39)), Some(TimeoutKind::Idle));
        clock.note_activity(at(90));
        assert_eq!(clock.struck(at(100)), Some(TimeoutKind::Wall));
        // However short a silence is allowed; where nothing is said of a start, there is none to miss.
        let short = Deadlines::new(limits(100, 2, 10), zero);
        assert_eq!(short.struck(at(2)), Some(TimeoutKind::Start));
        let plain = Deadlines::new(Timeouts { start: None, ..limits(100, 2, 10) }, zero);
        assert_eq!(plain.struck(at(2)), Some(TimeoutKind::Idle));
    }

    #[test]
    fn d02_a_complaint_is_no_start_and_breaks_a_silence() {
        let zero = Instant::now();
        let at = |s| zero + Duration::from_secs(s);
        let mut clock = Deadlines::new(limits(100, 30, 10), zero);
        clock.note_complaint(at(1));
        assert_eq!(clock.struck(at(10)), Some(TimeoutKind::Start));
        clock.note_activity(at(2));
        clock.note_complaint(at(25));
        assert_eq!((clock.struck(at(54)), clock.struck(at(55))), (None, Some(TimeoutKind::Idle)));
        let mut speaks = Deadlines::new(Timeouts { stderr_is_a_start: true, ..limits(100, 30, 10) }, zero);
        speaks.note_complaint(at(1));
        assert_eq!(speaks.struck(at(10)), None);
        let mut short = Deadlines::new(limits(100, 2, 10), zero);
        short.note_complaint(at(1));
        assert_eq!(short.struck(at(3)), Some(TimeoutKind::Idle));
    }

    #[test]
    fn a_held_hour_counts_for_nothing() {
        let zero = Instant::now();
        let at = |s| zero + Duration::from_secs(s);
        let mut clock = Deadlines::new(limits(100, 30, 10), zero);
        clock.note_activity(at(5));
        clock.set_held(true, at(20));
        assert_eq!((clock.next(at(3_000)), clock.struck(at(3_000))), (None, None));
        clock.set_held(false, at(3_620));
        assert_eq!(clock.next(at(3_620)), Some(at(3_635)));
        clock.note_activity(at(3_620));
        assert_eq!(clock.struck(at(3_649)), None);
        assert_eq!(clock.struck(at(3_650)), Some(TimeoutKind::Idle));
    }
}
