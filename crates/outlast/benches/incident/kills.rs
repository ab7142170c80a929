//! SIGKILL to agents and to outlast itself, at moments spread evenly over the work.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::options::{Options, Runner};
use super::world::World;

/// In the environment of everything that an agent starts, and of the agent itself.
pub(crate) const MARKER: &str = "OUTLAST_ATTEMPT";

/// How often the work is looked at while a kill is to come.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// The kills of one batch.
pub(crate) struct Kills {
    /// After how many answered turns, the next one last.
    agents: Vec<u64>,
    orchestrator: Vec<u64>,
    dice: Dice,
    /// How many agents were killed.
    pub(crate) agents_killed: u32,
    /// How often outlast was killed.
    pub(crate) orchestrator_killed: u32,
    /// How many answers were on their way when outlast was killed, all kills together.
    pub(crate) cut_off: u64,
}

impl Kills {
    pub(crate) fn new(options: &Options, runner: Runner) -> Self {
        let agents = u64::from(options.kill_agents);
        let of_outlast = if runner == Runner::Outlast { u64::from(options.kill_orchestrator) } else { 0 };
        let turns = options.turns();
        Self {
            agents: (1..=agents).rev().map(|kill| turns * (2 * kill - 1) / (2 * agents)).collect(),
            // Where that is the beginning of a closing, everybody is held.
            orchestrator: (1..=of_outlast).rev().map(|kill| turns * kill / (of_outlast + 1)).collect(),
            dice: Dice(options.seed),
            agents_killed: 0,
            orchestrator_killed: 0,
            cut_off: 0,
        }
    }

    /// Whether any is still to come.
    pub(crate) fn are_to_come(&self) -> bool {
        !self.agents.is_empty() || !self.orchestrator.is_empty()
    }

    /// Kills the agents whose turn it is.
    pub(crate) fn agents(&mut self, world: &World) {
        let answered = world.answered();
        while self.agents.last().is_some_and(|moment| *moment <= answered) {
            let victims = victims(world);
            let Some(victim) = self.dice.pick(&victims) else { return };
            // It may have ended by itself just before.
            if kill(Pid::from_raw(*victim), Signal::SIGKILL).is_ok() {
                self.agents_killed += 1;
            }
            self.agents.pop();
        }
    }

    /// Whether it is outlast's turn to be killed.
    pub(crate) fn orchestrator_is_due(&mut self, world: &World) -> bool {
        let is_due = self.orchestrator.last().is_some_and(|moment| *moment <= world.answered());
        if is_due {
            self.orchestrator.pop();
        }
        is_due
    }

    /// Kills agents while something else is done.
    pub(crate) fn meanwhile(&mut self, world: &World, work: impl FnOnce()) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while self.are_to_come() && !over.load(Ordering::Relaxed) {
                    self.agents(world);
                    sleep(LOOK);
                }
            });
            work();
            over.store(true, Ordering::Relaxed);
        });
    }
}

/// The agents that are at work: what carries the mark while its parent does not.
fn victims(world: &World) -> Vec<i32> {
    let is_marked = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(MARKER.as_bytes()))
    };
    let parent = |pid: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything; the state and the parent follow it.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let mut pids = world.env.processes();
    pids.retain(|pid| is_marked(*pid) && parent(*pid).is_some_and(|parent| !is_marked(parent)));
    pids.sort_unstable();
    pids
}

/// Numbers that can be had again by their seed.
struct Dice(u64);

impl Dice {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        // The constants of Knuth's MMIX generator.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from.get(usize::try_from((self.0 >> 33) % (from.len().max(1) as u64)).unwrap())
    }
}
