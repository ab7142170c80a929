//! When a task is tried again: at once and then soon for its own faults, ever later for the world's, with a jitter that
//! spreads starts.

use std::time::Duration;

use crate::class::{Class, Remedy};
use crate::hash::fnv1a;
use crate::record::Rung;
use crate::task::{Attempt, Phase, Task};

/// How many attempts in a row may end by no fault of the task before it fails all the same: with the delays below this
/// is more than a day of a world that does not work, and it ends a loop that no person sees.
pub const FREE_RETRIES_MAX: u32 = 100;

/// How many attempts in a row may be lost before they have changed anything, at no cost. What is lost more often than
/// that is most likely killed for what it does, as by a host that runs out of memory: from there on each uses a try.
pub const LOSSES_FREE_MAX: u32 = 3;

/// How many sessions in a row may break at no cost. One breaks when its agent is killed at the wrong instant; whose sessions
/// break one after the other has an agent and a provider that do not understand each other, and pays for each new beginning:
/// from there on each uses a try.
pub const BROKEN_FREE_MAX: u32 = 3;

/// The first delay after a fault of the world.
const LATER_FIRST: Duration = Duration::from_secs(2);
/// The first delay after a fault of a task that asked nobody for anything, from its second on: whoever fails within a second is
/// not tried twenty times in two.
const AGAIN_FIRST: Duration = Duration::from_secs(1);
/// The longest delay after a fault of the task.
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// The longest delay after a fault of the world: short enough that a reset is not missed by much.
const LATER_MAX: Duration = Duration::from_secs(15 * 60);

/// Whether an attempt that ends with this class was lost for nothing: its agent lived, is gone, and has changed nothing.
pub(crate) fn is_loss(task: &Task, class: Class) -> bool {
    let was_for_nothing = |attempt: &Attempt| attempt.shim.is_some() && !attempt.made_headway;
    class == Class::Vanished && task.attempt().is_some_and(was_for_nothing)
}

/// Whether the session that an attempt went on with is dead: its agent ended by itself before it had asked anything, and
/// would do so each time. Not every CLI says so in words that are known.
pub(crate) fn is_dead_session(task: &Task, class: Class) -> bool {
    let died_at_once = |attempt: &Attempt| matches!(attempt.rung, Rung::Session(_)) && !attempt.has_asked;
    let is_its_own = matches!(class, Class::Startup | Class::Crash | Class::Unknown | Class::GaveUp);
    is_its_own && task.attempt().is_some_and(died_at_once)
}

/// Whether a check found that an agent which took its work for done has changed nothing.
pub(crate) fn is_empty(task: &Task, class: Class) -> bool {
    class == Class::GaveUp && matches!(task.phase, Phase::Verifying { .. })
}

/// What is said of a task whose agents change nothing again and again.
pub(crate) fn empty_too_often(why: &str, empties: u32) -> String {
    format!("{why}; {empties} attempts in a row ended so, and the next would be told the same")
}

/// What is said of a task that is lost again and again.
pub(crate) fn lost_too_often(why: &str, losses: u32) -> String {
    format!("{why}; {losses} attempts in a row ended so, before they had changed anything")
}

/// What is said of a task whose sessions break again and again.
pub(crate) fn broken_too_often(why: &str, broken: u32) -> String {
    format!("{why}; {broken} sessions in a row ended so")
}

/// How long to wait before the next attempt. Jitter only ever lengthens it.
pub fn delay(seed: u64, task: &Task, class: Class) -> Duration {
    let plain = match class.remedy() {
        // Nobody is at fault, and nothing is to be waited for.
        _ if class == Class::ContextNearFull => return Duration::ZERO,
        // A process that vanished has nobody to be gentle with, and what takes the place of a session is at hand.
        _ if matches!(class, Class::Vanished | Class::CorruptSession) && task.waits <= 1 => {
            return Duration::ZERO;
        }
        _ if is_dead_session(task, class) => return Duration::ZERO,
        Remedy::Later => {
            let doublings = task.waits.saturating_sub(1).min(16);
            LATER_FIRST.saturating_mul(1 << doublings).min(LATER_MAX)
        }
        // The first time, nothing is to be waited for, and whoever has asked was slowed down by the answers.
        Remedy::Retry => match task.tries_used.checked_sub(2) {
            Some(doublings) if !task.attempt().is_some_and(|attempt| attempt.has_asked) => {
                AGAIN_FIRST.saturating_mul(1 << doublings.min(16)).min(AGAIN_MAX)
            }
            _ => return Duration::ZERO,
        },
        Remedy::Person => return Duration::ZERO,
    };
    let mut key = task.id.as_str().as_bytes().to_vec();
    key.extend_from_slice(&seed.to_le_bytes());
    key.extend_from_slice(&task.attempts.to_le_bytes());
    let share = u32::try_from(fnv1a(&key) % 256).unwrap_or(0);
    plain + plain.saturating_mul(share) / 1024
}

#[cfg(test)]
mod tests;
