//! What a simulated agent does with its time: drawn when it is launched, acted out step by step.

use std::collections::VecDeque;

use outlast_core::class::Class;
use outlast_core::record::Outcome;

use crate::profile::Faults;
use crate::rng::Rng;

/// Steps to come, each with the milliseconds that it takes.
pub(crate) type Script = VecDeque<(u64, AgentStep)>;

/// Something that an agent does or that happens to it.
#[derive(Debug, Clone)]
pub(crate) enum AgentStep {
    /// It names its session.
    Session,
    /// A request of it is answered.
    Exchange {
        /// Whether it is a main turn.
        main: bool,
    },
    /// A request that had leave to go out is answered.
    Answer {
        /// Whether it is a main turn.
        main: bool,
        /// The leave.
        grant: String,
    },
    /// A request of it is refused and waits for so many milliseconds, where that is known.
    Hold {
        /// What it waits for.
        class: Class,
        /// How long.
        lasts: Option<u64>,
        /// Whether the refusal closes the account.
        closes: bool,
    },
    /// The request that waits is answered.
    Release,
    /// Its tree is kept.
    Checkpoint,
    /// It starts a process that does not end with it.
    Fork,
    /// It ends.
    Exit(Outcome),
    /// It ends by a limit that it reports, which lasts for so many milliseconds more.
    Limit {
        /// What it says of it.
        class: Class,
        /// How long.
        lasts: u64,
    },
    /// It is gone without a trace.
    Vanish,
}

/// A shim's wall timeout.
const TIMEOUT: u64 = 20 * 60_000;
/// Shortest and longest time between two things that an agent does.
const PAUSE: (u64, u64) = (500, 40_000);

/// Draws what an agent will do. Without quota it makes no request.
pub(crate) fn draw(rng: &mut Rng, faults: &Faults, needs_quota: bool) -> Script {
    let mut script = Script::new();
    let mut then = |rng: &mut Rng, step| script.push_back((rng.between(PAUSE), step));
    if needs_quota {
        then(rng, AgentStep::Session);
    }
    for _ in 0..rng.between((1, 4)) {
        if needs_quota && rng.chance(faults.request_held) {
            let lasts = rng.chance(700).then(|| rng.between((1_000, 900_000)));
            let (class, closes) = (
                rng.pick(&[Class::MinuteLimit, Class::WindowQuota, Class::Overload]),
                rng.chance(faults.account_closes),
            );
            then(rng, AgentStep::Hold { class, lasts, closes });
            then(rng, AgentStep::Release);
        }
        if needs_quota {
            let main = rng.chance(800);
            then(rng, AgentStep::Exchange { main });
        }
        then(rng, AgentStep::Checkpoint);
        if rng.chance(50) {
            then(rng, AgentStep::Fork);
        }
    }
    if rng.chance(faults.agent_hangs) {
        let outcome = failed(Class::Timeout, "wall timeout");
        script.push_back((TIMEOUT, AgentStep::Exit(outcome)));
    } else {
        let end = draw_end(rng, faults);
        then(rng, end);
    }
    script
}

fn draw_end(rng: &mut Rng, faults: &Faults) -> AgentStep {
    if rng.chance(faults.agent_vanishes) {
        AgentStep::Vanish
    } else if rng.chance(faults.agent_fails) {
        let class =
            rng.pick(&[Class::Crash, Class::GaveUp, Class::ContextOverflow, Class::CorruptSession, Class::Unknown]);
        AgentStep::Exit(failed(class, "by its own fault"))
    } else if rng.chance(faults.world_fails) {
        let class = rng.pick(&[Class::Network, Class::Overload, Class::WindowQuota, Class::MinuteLimit]);
        if class.is_limit() && rng.chance(500) {
            return AgentStep::Limit { class, lasts: rng.between((1_000, 3_600_000)) };
        }
        AgentStep::Exit(failed(class, "by no fault of its own"))
    } else if rng.chance(faults.agent_asks) {
        let class = rng.pick(&[Class::Question, Class::MissingDependency, Class::Auth]);
        AgentStep::Exit(failed(class, "needs a person"))
    } else {
        AgentStep::Exit(Outcome::Finished)
    }
}

/// A failed outcome.
pub(crate) fn failed(class: Class, why: &str) -> Outcome {
    Outcome::Failed { class, why: why.into(), until: None }
}
