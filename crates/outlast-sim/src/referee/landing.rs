//! What the referee says of landings: one at a time, in the order of needs, each once.

use outlast_core::record::Fact;

use super::Referee;
use crate::invariant::{Invariant, Violation};
use crate::scenario::{Scenario, Spot};

impl Referee {
    /// News of a landing.
    pub(super) fn on_landing(&mut self, scenario: &Scenario, spot: Spot, fact: &Fact) -> Result<(), Violation> {
        let tasks = &self.runs[spot.run].tasks;
        let view = &tasks[spot.task];
        match fact {
            Fact::LandingStarted { .. } => {
                let other = tasks.iter().position(|task| task.landing);
                Invariant::LandsOnce.holds(other.is_none() && !view.landed, || {
                    format!("{spot:?} lands while t{other:?} does, {view:?}")
                })?;
                Invariant::LandsOnce
                    .holds(view.has_result(), || format!("{spot:?} lands without a result: {view:?}"))?;
                self.needs_landed(scenario, spot)?;
            }
            Fact::Landed { .. } => {
                Invariant::LandsOnce
                    .holds(view.verified && !view.landed, || format!("{spot:?} has landed: {view:?}"))?;
                self.needs_landed(scenario, spot)?;
            }
            _ => {}
        }
        let view = self.view_mut(spot);
        view.landing = matches!(fact, Fact::LandingStarted { .. });
        view.landed |= matches!(fact, Fact::Landed { .. });
        if let Fact::LandingRefused { cause, .. } = fact {
            view.refused = Some(*cause);
        }
        Ok(())
    }

    fn needs_landed(&self, scenario: &Scenario, spot: Spot) -> Result<(), Violation> {
        let mut needs = scenario.task(spot).needs.iter();
        let behind = needs.find(|&&need| !self.runs[spot.run].tasks[need].is_on_target());
        Invariant::LandsAfterNeeds.holds(behind.is_none(), || format!("{spot:?} lands before t{behind:?}"))
    }
}
