//! What the referee says of attempts: who may start, and who may make which news.

use outlast_core::Timestamp;
use outlast_core::record::{EndReason, Fact};

use super::{Live, Referee, TaskView};
use crate::invariant::{Invariant, Violation};
use crate::scenario::{Scenario, Spot};

impl Referee {
    /// Whether a task may start at this time.
    pub(super) fn may_start(&self, scenario: &Scenario, spot: Spot, at: Timestamp) -> Result<(), Violation> {
        let (run, plan) = (&self.runs[spot.run], scenario.task(spot));
        let view = self.view(spot);
        Invariant::PausedRunsRest.holds(run.goes_on, || format!("{spot:?} starts"))?;
        Invariant::BudgetKept.holds(!run.reached, || format!("{spot:?} starts while the budget is reached"))?;
        Invariant::OneAttemptAtATime.holds(!view.is_busy(), || format!("{spot:?} starts beside {view:?}"))?;
        Invariant::TriesKept.holds(!view.is_spent(&plan.spec), || format!("{spot:?} is tried again after {view:?}"))?;
        let closed = |account: &usize| self.shut[*account] || self.closed[*account].is_some_and(|until| until > at);
        let (accounts, needs_quota) = match &view.accounts {
            Some(given) => (given, true),
            None => (&plan.accounts, plan.spec.needs_quota),
        };
        let pointless = needs_quota && accounts.iter().all(closed);
        Invariant::ClosedAccountsRespected
            .holds(!pointless, || format!("{spot:?} starts at {at:?}, accounts: {:?} {:?}", self.closed, self.shut))?;
        // One that has other accounts may go on with one of them.
        let elsewhere = needs_quota && accounts.len() > 1;
        Invariant::StatedEndsKept.holds(elsewhere || view.not_before.is_none_or(|end| end <= at), || {
            format!("{spot:?} starts at {at:?} and not at {:?}", view.not_before)
        })?;
        let missing = plan.needs.iter().find(|&&need| {
            let need = &run.tasks[need];
            !need.has_result()
        });
        Invariant::NeedsFirst
            .holds(missing.is_none(), || format!("{spot:?} starts without the result of {missing:?}"))?;
        let busy = || (run.tasks.iter().enumerate()).filter(|(_, view)| view.is_busy());
        let limit = scenario.runs[spot.run].spec.concurrency as usize;
        Invariant::ConcurrencyKept
            .holds(busy().count() < limit, || format!("{spot:?} starts beside {limit} others"))?;
        let clash = busy().find(|(other, _)| {
            let other = &scenario.runs[spot.run].tasks[*other];
            other.scope & plan.scope != 0
        });
        Invariant::ScopesKept.holds(clash.is_none(), || format!("{spot:?} starts beside t{:?}", clash.map(|(i, _)| i)))
    }

    /// A start.
    pub(super) fn started(&mut self, spot: Spot, number: u32, epoch: u32) -> Result<(), Violation> {
        let view = self.view_mut(spot);
        view.not_before = None;
        Invariant::OneAttemptAtATime
            .holds(number == view.started + 1 && epoch > view.epoch && view.started == view.ended, || {
                format!("{spot:?}: attempt {number}, epoch {epoch} after {view:?}")
            })?;
        view.started = number;
        view.epoch = epoch;
        view.live = Some(Live { number, held: false, exited: false, spawned: false, advanced: false, ending: None });
        Ok(())
    }

    /// News of an attempt.
    pub(super) fn on_attempt(&mut self, spot: Spot, fact: &Fact) -> Result<(), Violation> {
        let view = self.view_mut(spot);
        if let (Fact::Checkpointed { number, .. }, Some(live)) = (fact, &mut view.live) {
            live.advanced |= live.number == *number && live.spawned && !live.exited && live.ending.is_none();
        }
        let (number, allowed): (&u32, fn(&Live) -> bool) = match fact {
            Fact::WorkspaceReady { number, .. }
            | Fact::Spawned { number, .. }
            | Fact::SessionSeen { number, .. }
            | Fact::Held { number, .. } => (number, |live| live.ending.is_none()),
            Fact::Released { number } => (number, |live| live.held && live.ending.is_none()),
            Fact::AttemptExited { number, .. } => (number, |live| !live.exited && live.ending.is_none()),
            Fact::AttemptEnding { number, .. } => (number, |live| live.ending.is_none()),
            Fact::AttemptEnded { number } => (number, |live| live.ending.is_some()),
            _ => return Ok(()),
        };
        let fits = (view.live.as_ref()).is_some_and(|live| live.number == *number && allowed(live));
        Invariant::NewsOfTheLivingOnly.holds(fits, || format!("{spot:?}: {fact:?} while {view:?}"))?;
        if let Some(live) = &mut view.live {
            match fact {
                Fact::Spawned { .. } => live.spawned = true,
                Fact::Held { .. } => live.held = true,
                Fact::Released { .. } => live.held = false,
                Fact::AttemptExited { .. } => {
                    live.exited = true;
                    live.held = false;
                }
                Fact::AttemptEnding { reason, .. } => {
                    live.ending = Some(reason.clone());
                    live.held = false;
                }
                _ => {}
            }
        }
        if let Fact::AttemptEnded { number } = fact {
            view.ended(*number);
        }
        Ok(())
    }
}

impl TaskView {
    /// A person wants it tried now, whatever was stated: also where its attempt is just being ended for that.
    pub(super) fn tried_now(&mut self) {
        self.not_before = None;
        let ending = self.live.as_mut().and_then(|live| live.ending.as_mut());
        if let Some(EndReason::Failed { until, .. }) = ending {
            *until = None;
        }
    }

    /// The end of the living attempt, for the reason that was recorded.
    fn ended(&mut self, number: u32) {
        self.ended += 1;
        let Some(mut live) = self.live.take() else { return };
        match live.ending.take() {
            Some(EndReason::Finished) => self.verifying = Some(number),
            Some(EndReason::Failed { class, until, .. }) => {
                self.failed(class, Some(&live));
                self.not_before = until;
            }
            _ => {}
        }
    }
}
