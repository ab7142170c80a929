//! What is checked after every step, and at the end.

use std::time::Duration;

use outlast_core::Timestamp;
use outlast_core::driver::Driver;
use outlast_core::record::Fact;
use outlast_core::task::Phase;

use super::Simulation;
use crate::invariant::{Invariant, Violation};

/// How many of a thousand steps are followed by a snapshot.
const SNAPSHOTS: u32 = 15;
/// How many of a thousand steps are followed by a look at what is in flight: whatever hangs there, stays.
const LOOKS: u32 = 400;
/// Far enough ahead for everything that waits.
const FAR: Duration = Duration::from_secs(400 * 24 * 3600);

impl Simulation<'_> {
    /// Checks the state after a step.
    pub(super) fn check(&mut self) -> Result<(), Violation> {
        let (looks, keeps) = (self.rng.chance(LOOKS), self.rng.chance(SNAPSHOTS));
        let now = self.now();
        let Some(driver) = self.driver.as_ref().filter(|_| self.is_judged) else {
            return Ok(());
        };
        let core = driver.core();
        Invariant::LiveEqualsReplay.holds(*core == self.shadow, || "the state is not what is durable".into())?;
        if looks {
            self.ledger.judge(&self.scenario, core, false)?;
            self.judge_budgets()?;
            let desired = core.desired();
            Invariant::InFlightIsDesired.holds(desired.keys().eq(self.in_hand.keys()), || {
                format!("desired: {:?}, in flight: {:?}", desired.keys(), self.in_hand.keys())
            })?;
        }
        // Until the wake-up nothing may come due: the last instant before it is the strictest question.
        let before = match core.wake_at(now) {
            Some((at, reason)) => {
                Invariant::WakeInTime.holds(at > now, || format!("woken at {at:?} for {reason:?}, now {now:?}"))?;
                Timestamp::from_millis(at.as_millis() - 1)
            }
            None => now.plus(FAR),
        };
        let mut missed = core.decide(before);
        // Whoever parks starts nothing meanwhile.
        missed.retain(|record| !driver.is_parking() || !matches!(record.fact, Fact::AttemptStarted { .. }));
        Invariant::WakeInTime.holds(missed.is_empty(), || format!("at {before:?} it would be decided: {missed:?}"))?;
        self.referee.compare(&self.scenario, core)?;
        if keeps {
            let lossy = |e: serde_json::Error| Invariant::SnapshotEqualsReplay.broken(e.to_string());
            let text = serde_json::to_vec(core).map_err(lossy)?;
            self.snapshot = Some((self.disk.len(), text));
        }
        for (run, target) in self.world.targets.iter_mut().enumerate() {
            let plan = &self.scenario.runs[run];
            target.check(|task| &plan.tasks[task].needs)?;
        }
        Ok(())
    }

    /// Checks what is left when nothing happens any more.
    pub(super) fn judge_end(&mut self) -> Result<(), Violation> {
        let Some(driver) = &self.driver else {
            return Err(Invariant::Settles.broken("the orchestrator is gone"));
        };
        Invariant::Settles.holds(driver.in_flight() == 0, || format!("{} operations hang", driver.in_flight()))?;
        let core = driver.core();
        for spot in self.scenario.spots() {
            self.world.at_rest(spot, "everything is over")?;
        }
        self.judge_targets()?;
        self.ledger.judge(&self.scenario, core, true)?;
        if self.is_judged { self.referee.settled(&self.scenario, core) } else { Ok(()) }
    }

    /// Checks that the records know of every commit on a target, and of no other.
    pub(super) fn judge_targets(&self) -> Result<(), Violation> {
        let Some(core) = self.driver.as_ref().map(Driver::core) else {
            return Ok(());
        };
        for spot in self.scenario.spots() {
            let run = core.run(&self.scenario.runs[spot.run].id);
            let on_target = self.world.targets[spot.run].landed(spot.task);
            let said = run.and_then(|run| match &run.tasks[spot.task].phase {
                Phase::Landed { commit, .. } => Some(commit.clone()),
                _ => None,
            });
            Invariant::LandsOnce.holds(on_target == said, || {
                format!("{spot:?}: the target holds {on_target:?}, the records say {said:?}")
            })?;
        }
        Ok(())
    }
}
