//! How big and how hostile a simulated world is. Rates are in thousandths, times in milliseconds.

/// The size of a world and the rates of its faults.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name in a bug base and on the command line.
    pub name: &'static str,
    /// How many runs there are, from and to.
    pub runs: (u64, u64),
    /// How many tasks there are in all, from and to.
    pub tasks: (u64, u64),
    /// How many tasks of a run are worked on at once, from and to.
    pub concurrency: (u64, u64),
    /// How often the orchestrator crashes, from and to.
    pub crashes: (u64, u64),
    /// How many commands a person gives, from and to.
    pub commands: (u64, u64),
    /// How many times a person moves or checks out a target, from and to.
    pub meddling: (u64, u64),
    /// How many times the wall clock jumps, from and to.
    pub clock_jumps: (u64, u64),
    /// How long faults go on.
    pub faults_end: u64,
    /// What goes wrong how often.
    pub faults: Faults,
}

/// Rates of faults, in thousandths.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// An agent fails by its own fault.
    pub agent_fails: u32,
    /// An agent fails by no fault of its own.
    pub world_fails: u32,
    /// An agent hangs until its shim's timeout.
    pub agent_hangs: u32,
    /// An agent's process is gone without an exit status.
    pub agent_vanishes: u32,
    /// An agent needs a person.
    pub agent_asks: u32,
    /// A request is refused and waits.
    pub request_held: u32,
    /// The refusal closes the account.
    pub account_closes: u32,
    /// The check of finished work fails.
    pub verify_fails: u32,
    /// A landing does not merge or does not pass.
    pub landing_fails: u32,
    /// The outcome of an operation is lost.
    pub outcome_lost: u32,
    /// It comes twice.
    pub outcome_doubled: u32,
    /// It comes late.
    pub outcome_late: u32,
    /// An operation goes on for a while after it was cancelled.
    pub cancel_ignored: u32,
    /// An operation is executed twice at once.
    pub executed_twice: u32,
}

impl Faults {
    /// A world in which nothing goes wrong.
    pub const NONE: Self = Self {
        agent_fails: 0,
        world_fails: 0,
        agent_hangs: 0,
        agent_vanishes: 0,
        agent_asks: 0,
        request_held: 0,
        account_closes: 0,
        verify_fails: 0,
        landing_fails: 0,
        outcome_lost: 0,
        outcome_doubled: 0,
        outcome_late: 0,
        cancel_ignored: 0,
        executed_twice: 0,
    };
}

const HOUR: u64 = 3_600_000;

impl Profile {
    /// Everything happens, most things often enough to meet.
    pub const DEFAULT: Self = Self {
        name: "default",
        runs: (1, 2),
        tasks: (28, 32),
        concurrency: (1, 7),
        crashes: (5, 10),
        commands: (4, 14),
        meddling: (2, 8),
        clock_jumps: (0, 3),
        faults_end: 2 * HOUR,
        faults: Faults {
            agent_fails: 60,
            world_fails: 60,
            agent_hangs: 20,
            agent_vanishes: 40,
            agent_asks: 8,
            request_held: 120,
            account_closes: 400,
            verify_fails: 80,
            landing_fails: 60,
            outcome_lost: 30,
            outcome_doubled: 60,
            outcome_late: 60,
            cancel_ignored: 300,
            executed_twice: 60,
        },
    };

    /// Hardly anything works: retries, holds and refusals are the rule.
    pub const STORM: Self = Self {
        name: "storm",
        runs: (2, 3),
        tasks: (30, 45),
        concurrency: (2, 10),
        crashes: (8, 20),
        commands: (10, 40),
        meddling: (8, 20),
        clock_jumps: (1, 8),
        faults_end: 6 * HOUR,
        faults: Faults {
            agent_fails: 150,
            world_fails: 250,
            agent_hangs: 60,
            agent_vanishes: 120,
            agent_asks: 15,
            request_held: 300,
            account_closes: 500,
            verify_fails: 200,
            landing_fails: 200,
            outcome_lost: 150,
            outcome_doubled: 250,
            outcome_late: 250,
            cancel_ignored: 600,
            executed_twice: 250,
        },
    };

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::DEFAULT, Self::STORM].into_iter().find(|profile| profile.name == name)
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::DEFAULT
    }
}
