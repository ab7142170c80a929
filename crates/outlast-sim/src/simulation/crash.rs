//! Crashes of the orchestrator at named points, and its return from what is durable.

use outlast_core::Core;
use outlast_core::desired::Operation;
use outlast_core::driver::{Driver, Input};

use super::hands::Stage;
use super::people::Act;
use super::{Event, Requests, Simulation};
use crate::disk::{Crashed, Fault};
use crate::invariant::{Invariant, Violation};

/// Where the orchestrator crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crash {
    /// With news in its inbox.
    BeforeStep,
    /// At the n-th append of the step, before anything of it is durable.
    BeforeAppend(u32),
    /// At the n-th append of the step, durable and not applied.
    AfterAppend(u32),
    /// With some effects of a step started and others not.
    AmidStarts,
    /// With everything started and no outcome on record.
    BetweenSteps,
    /// With everything else on the machine.
    Reboot,
}

/// How long nobody starts the orchestrator again, in milliseconds.
const DOWNTIME: (u64, u64) = (10, 120_000);
/// Crashes are spread over this many first records: every sound simulation has more.
const SPREAD: (u64, u64) = (5, 260);
/// How many of a thousand messages of a dead orchestrator arrive all the same.
const STRAY: u32 = 100;
/// How many of a thousand launches that were asked for happen after the orchestrator's death.
const LAUNCHED_ALL_THE_SAME: u32 = 400;

impl Simulation<'_> {
    /// Draws when the orchestrator will crash, and where.
    pub(super) fn plan_crashes(&mut self) {
        let count = self.rng.between(self.profile.crashes);
        let mut crashes: Vec<(usize, Crash)> = (0..count)
            .map(|_| {
                let at = usize::try_from(self.rng.between(SPREAD)).unwrap_or(0);
                let append = u32::try_from(self.rng.below(3)).unwrap_or(0);
                let kind = self.rng.pick(&[
                    Crash::BeforeStep,
                    Crash::BeforeAppend(append),
                    Crash::BeforeAppend(append),
                    Crash::AfterAppend(append),
                    Crash::AfterAppend(append),
                    Crash::AmidStarts,
                    Crash::AmidStarts,
                    Crash::BetweenSteps,
                    Crash::Reboot,
                ]);
                (at, kind)
            })
            .collect();
        crashes.sort_by_key(|(at, _)| *at);
        self.crashes_to_come = crashes.into();
    }

    /// Prepares the crash that is due in the coming step; true where it came before the step.
    pub(super) fn crash_before_step(&mut self) -> Result<bool, Violation> {
        let due = !self.disk.is_armed() && self.crashes_to_come.front().is_some_and(|(at, _)| *at <= self.disk.len());
        let Some((_, crash)) = self.crashes_to_come.pop_front_if(|_| due) else {
            return Ok(false);
        };
        match crash {
            Crash::BeforeStep => {
                self.crash()?;
                return Ok(true);
            }
            Crash::BeforeAppend(n) => self.disk.arm(Fault::BeforeAppend, n),
            Crash::AfterAppend(n) => self.disk.arm(Fault::AfterAppend, n),
            Crash::AmidStarts | Crash::BetweenSteps | Crash::Reboot => {
                self.crash_now = Some(crash);
            }
        }
        Ok(false)
    }

    /// How many of so many requests are served before the crash of this step.
    pub(super) fn requests_served(&mut self, requests: usize) -> usize {
        if self.crash_now == Some(Crash::AmidStarts) {
            return self.rng.index(requests + 1);
        }
        if self.crash_now == Some(Crash::Reboot) {
            self.world.reboot();
        }
        requests
    }

    /// The step ended at an append. What it had applied by then must be exactly what it knew to be durable.
    pub(super) fn crash_in_step(&mut self, crashed: Crashed) -> Result<(), Violation> {
        if let Some(violation) = self.disk.violation() {
            self.fold(self.disk.len())?;
            return Err(violation);
        }
        let unknown = match crashed {
            Crashed::OnCue(Fault::AfterAppend) => self.disk.last_batch(),
            _ => 0,
        };
        self.fold(self.disk.len() - unknown)?;
        let same = !self.is_judged || self.driver.as_ref().is_none_or(|driver| *driver.core() == self.shadow);
        Invariant::LiveEqualsReplay
            .holds(same, || format!("at a crash around an append ({crashed:?}) the state is not what is durable"))?;
        self.fold(self.disk.len())?;
        self.crash_now = None;
        self.crash()
    }

    /// The orchestrator is gone; the world, and what was asked of it, goes on.
    pub(super) fn crash(&mut self) -> Result<(), Violation> {
        self.crashes += 1;
        self.driver = None;
        self.inbox.clear();
        self.budgets.forget();
        self.in_hand.clear();
        self.crash_now = None;
        self.turn_is_due = false;
        let rng = &mut self.rng;
        self.hands.retain(|_, hand| {
            hand.is_heard = false;
            let asked_for_launch = matches!(hand.operation, Operation::Attempt { .. });
            asked_for_launch && hand.stage == Stage::Second && rng.chance(LAUNCHED_ALL_THE_SAME)
        });
        let stray = if self.quiet { 0 } else { STRAY };
        self.agenda.revise(|event| match event {
            Event::Turn => false,
            Event::Deliver(message) => {
                message.hand = None;
                rng.chance(stray)
            }
            _ => true,
        });
        let downtime = self.rng.between(DOWNTIME);
        self.agenda.after(downtime, Event::Recover);
        Ok(())
    }

    /// A new orchestrator, from all records or from a snapshot and the records after it: both must give one state.
    pub(super) fn recover(&mut self) -> Result<(), Violation> {
        let mut replayed = Core::default();
        self.disk.replay(&mut replayed, 0);
        Invariant::LiveEqualsReplay.holds(!self.is_judged || replayed == self.shadow, || {
            "all records give another state than one after the other".into()
        })?;
        if let Some((covers, text)) = &self.snapshot {
            let lossy = |e: serde_json::Error| Invariant::SnapshotEqualsReplay.broken(e.to_string());
            let mut core: Core = serde_json::from_slice(text).map_err(lossy)?;
            self.disk.replay(&mut core, *covers);
            Invariant::SnapshotEqualsReplay.holds(core == replayed, || {
                format!("a snapshot of {covers} records and the rest give another state")
            })?;
            replayed = core;
        }
        self.inbox = self.ledger.recount(&replayed).into_iter().map(Input::from).collect();
        self.driver = Some(Driver::new(replayed, self.disk.clone(), Requests::default()));
        // Whoever started a run and got no answer starts it again.
        for run in 0..self.scenario.runs.len() {
            self.agenda.after(1, Event::Act(Act::Start(run)));
        }
        self.turn()
    }
}
