//! A clock that is set back: whatever waits for a time of day would wait longer by as much.
//!
//! Which of the times were counted from the wrong hour, nobody knows. So all that waits is tried now, as at a person's word: an
//! account that is still closed says so to one request.

use std::time::{Duration, Instant};

use outlast_core::admit::Command;
use outlast_core::run::Mode;
use outlast_core::{Core, Timestamp};

/// What a clock that is kept right may be set back by.
const SET_BACK_MIN: Duration = Duration::from_secs(60);

/// What the clock showed, and when that was.
pub(crate) struct Clock {
    showed: Timestamp,
    at: Instant,
}

impl Clock {
    pub(crate) fn showing(now: Timestamp) -> Self {
        Self { showed: now, at: Instant::now() }
    }

    /// Whether the clock, which shows `now`, was set back since this was asked last.
    pub(crate) fn was_set_back(&mut self, now: Timestamp) -> bool {
        let is_back = is_behind(now, self.showed.plus(self.at.elapsed()));
        *self = Self::showing(now);
        is_back
    }
}

/// Whether a clock that shows `now` is behind a time that was there before.
pub(crate) fn is_behind(now: Timestamp, before: Timestamp) -> bool {
    before.since(now) > SET_BACK_MIN
}

/// Has all that waits tried.
pub(crate) fn try_all(core: &Core) -> Vec<Command> {
    let goes_on = core.runs.values().filter(|run| run.mode == Mode::Running);
    goes_on.map(|run| Command::TryNow(run.id.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_clock_that_is_set_back_is_noticed_once_and_one_that_goes_on_is_not() {
        let noon = Timestamp::from_millis(12 * 3_600_000);
        let mut clock = Clock::showing(noon);
        assert!(!clock.was_set_back(noon));
        // A machine that has slept.
        assert!(!clock.was_set_back(noon.plus(HOUR)));
        // What a clock is set right by.
        assert!(!clock.was_set_back(noon.plus(HOUR - SET_BACK_MIN + Duration::from_secs(1))));
        assert!(clock.was_set_back(noon));
        assert!(!clock.was_set_back(noon));
    }
}
