//! What one task takes when nothing is in its way: the measure that a batch is held against.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::agents::Cli;
use super::bare::{Begin, jobs};
use super::options::{Options, Runner};
use super::ours;
use super::world::World;

/// One agent alone, with nothing in its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alone {
    pub(crate) cli: Cli,
    /// From its start to its end, started by hand, without the time that the model thought.
    pub(crate) own: Duration,
    /// What it and all that it started computed.
    pub(crate) cpu: Duration,
    /// What it was billed, started by hand.
    tokens_by_hand: u64,
    /// What it was billed below outlast, whose prompts say more.
    tokens_below_outlast: u64,
}

/// Each agent of a batch alone.
#[derive(Debug)]
pub(crate) struct Yardstick {
    pub(crate) alone: Vec<Alone>,
}

impl Yardstick {
    /// Runs each agent alone. The second of two tasks by hand is what counts: the first one warms caches.
    pub(crate) fn measure(options: &Options) -> Self {
        let mut clis: Vec<Cli> = Vec::new();
        for cli in &options.agents {
            if !clis.contains(cli) {
                clis.push(*cli);
            }
        }
        Self { alone: clis.into_iter().map(|cli| alone(options, cli)).collect() }
    }

    /// What one agent takes.
    pub(crate) fn of(&self, cli: Cli) -> &Alone {
        self.alone.iter().find(|alone| alone.cli == cli).expect("every agent of the batch was measured")
    }

    /// What a whole batch must be billed.
    pub(crate) fn tokens_needed(&self, cast: &[Cli], runner: Runner) -> u64 {
        cast.iter().map(|cli| self.of(*cli).tokens(runner)).sum()
    }
}

impl Alone {
    /// What one task must be billed.
    pub(crate) const fn tokens(&self, runner: Runner) -> u64 {
        match runner {
            Runner::Outlast => self.tokens_below_outlast,
            Runner::Naive | Runner::Savvy => self.tokens_by_hand,
        }
    }
}

fn alone(options: &Options, cli: Cli) -> Alone {
    let world = World::new(vec![cli; 2], &[], options.latency_ms);
    let timeout = Duration::from_secs(options.timeout_seconds);
    let [mut first, mut second]: [_; 2] = jobs(&world).try_into().ok().expect("two tasks");
    first.attempt(&world, Begin::Anew, timeout);
    let (tokens, cpu, began) = (billed(&world), children_cpu(), Instant::now());
    second.attempt(&world, Begin::Anew, timeout);
    let (own, cpu, tokens_by_hand) =
        (began.elapsed().saturating_sub(world.thinks(1)), children_cpu() - cpu, billed(&world) - tokens);
    assert!(first.done && second.done, "{} alone does its task", cli.name());
    let tokens_below_outlast = ours::alone(&World::new(vec![cli], &[], 0));
    Alone { cli, own, cpu, tokens_by_hand, tokens_below_outlast }
}

fn billed(world: &World) -> u64 {
    world.provider.bill().total.tokens.total()
}

/// What our children that have ended computed, with all that they waited for.
fn children_cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap())
}
