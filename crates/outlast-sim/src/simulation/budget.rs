//! Budgets: agents of a run that has one ask for room before each exchange, wait where there is none, and a person raises
//! it now and then.
//!
//! What is reserved dies with the orchestrator, as in the engine: whoever had leave to go out asks the next one again.

use outlast_core::admit::{AttemptNews, Command};
use outlast_core::budget::{Allowed, Estimate, Reached, Reservations, Room};
use outlast_core::class::Class;
use outlast_core::driver::Driver;

use super::people::Act;
use super::{Event, Simulation};
use crate::invariant::{Invariant, Violation};
use crate::ledger::PRICE_MIN;
use crate::scenario::Spot;
use crate::world::agent::AgentStep;

/// What is known of an exchange beforehand: some cost up to a third more.
const QUOTE: Estimate = Estimate { usd_nanos: Some(PRICE_MIN * 3 / 2), tokens: 1_100 };
/// How long a request without room waits before it is looked at again, in milliseconds.
const AGAIN: u64 = 4_000;
/// How long an answer takes.
const ANSWER: u64 = 9_000;
/// More than everything costs.
pub(super) const PLENTY: u64 = u64::MAX / 4;

/// What is on its way, and what came in dearer than it was reserved for.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    reserved: Reservations,
    grants: u64,
    /// Exchanges whose news is in the inbox, with what they cost.
    told: Vec<(usize, String, u64)>,
    /// By run: what answers cost beyond their reservations.
    beyond: Vec<u64>,
    /// By run: the most that was ever allowed.
    allowed: Vec<u64>,
}

impl Budgets {
    /// The orchestrator is gone, and with it what it had reserved. What it had not put on record is in the ledger all
    /// the same, and may have cost more than its reservation.
    pub(super) fn forget(&mut self) {
        self.settle();
        self.reserved = Reservations::default();
    }

    /// What was in the inbox is on record.
    pub(super) fn settle(&mut self) {
        for (run, grant, cost) in std::mem::take(&mut self.told) {
            let reserved = self.reserved.take(&grant).and_then(|estimate| estimate.usd_nanos).unwrap_or(0);
            if self.beyond.len() <= run {
                self.beyond.resize(run + 1, 0);
            }
            self.beyond[run] += cost.saturating_sub(reserved);
        }
    }

    fn allows(&mut self, run: usize, usd_nanos: u64) {
        if self.allowed.len() <= run {
            self.allowed.resize(run + 1, 0);
        }
        self.allowed[run] = self.allowed[run].max(usd_nanos);
    }
}

impl Simulation<'_> {
    /// Draws when budgets are raised, without drawing anything of the rest of the history anew.
    pub(super) fn plan_raises(&mut self) {
        for run in 0..self.scenario.runs.len() {
            let spec = &self.scenario.runs[run].spec;
            let Some(usd) = spec.budget.usd_nanos else { continue };
            let at = self.profile.faults_end / 8 + spec.seed % (self.profile.faults_end / 4);
            self.budgets.allows(run, usd);
            self.agenda.at(at, Event::Act(Act::Raise(run, usd * 2)));
            self.agenda.at(self.profile.faults_end + 1, Event::Act(Act::Raise(run, PLENTY)));
        }
    }

    /// The command of a person who raises a budget.
    pub(super) fn raise(&mut self, run: usize, usd_nanos: u64) -> Command {
        self.budgets.allows(run, usd_nanos);
        let allowed = Allowed { usd_nanos: Some(usd_nanos), tokens: None };
        Command::ChangeBudget { run: self.run_id(run), allowed }
    }

    /// The same for a run that waits for nothing else.
    pub(super) fn run_without_budget(&self) -> Option<Act> {
        let core = self.driver.as_ref()?.core();
        let waits =
            |plan: &crate::scenario::RunPlan| core.run(&plan.id).is_some_and(outlast_core::run::Run::waits_for_budget);
        self.scenario.runs.iter().position(waits).map(|run| Act::Raise(run, PLENTY))
    }

    pub(super) fn has_budget(&self, spot: Spot) -> bool {
        self.scenario.runs[spot.run].spec.budget.usd_nanos.is_some()
    }

    /// An agent wants to ask its model something: it goes out where there is room, else it waits.
    pub(super) fn ask_for_room(&mut self, spot: Spot, number: u32, main: bool) {
        let id = self.run_id(spot.run);
        let room = self.driver.as_ref().map(Driver::core).and_then(|core| core.run(&id)).map(|run| {
            let wants = run.purse.estimate(QUOTE);
            (run.purse.room(self.budgets.reserved.of(&id), wants), wants, run.purse.reached.is_some())
        });
        let next = match room {
            Some((Room::Fits, wants, _)) => {
                self.budgets.grants += 1;
                let grant = format!("g{}", self.budgets.grants);
                self.budgets.reserved.add(grant.clone(), id, wants);
                (ANSWER, AgentStep::Answer { main, grant })
            }
            Some((Room::Gone(lack), wants, false)) => {
                self.tell_command(Command::ReachBudget { run: id, reached: Reached { lack, wants } });
                (AGAIN, AgentStep::Exchange { main })
            }
            _ => (AGAIN, AgentStep::Exchange { main }),
        };
        let waits = room.is_some() && matches!(next.1, AgentStep::Exchange { .. });
        let Some(tree) = self.world.tree(spot, number) else { return };
        tree.script.push_front(next);
        let held = waits.then_some((Class::OwnBudget, None));
        if tree.held != held && room.is_some() {
            tree.held = held;
            let news = held.map_or(AttemptNews::Released, |(class, until)| AttemptNews::Held { class, until });
            self.tell_watchers(spot, number, &news);
        }
    }

    /// The answer to a request that had leave to go out; one whose leave is gone asks again.
    pub(super) fn answer_comes(&mut self, spot: Spot, number: u32, main: bool, grant: String) {
        let alive = self.driver.is_some() && self.budgets.reserved.has(&grant);
        if alive {
            let cost = self.exchange(spot, number, main);
            self.budgets.told.push((spot.run, grant, cost));
        } else if let Some(tree) = self.world.tree(spot, number) {
            tree.script.push_front((AGAIN, AgentStep::Exchange { main }));
        }
    }

    /// Checks that no run was billed more than it was ever allowed and what answers cost beyond their reservations.
    pub(super) fn judge_budgets(&self) -> Result<(), Violation> {
        for (run, plan) in
            self.scenario.runs.iter().enumerate().filter(|(_, plan)| plan.spec.budget.usd_nanos.is_some())
        {
            let (billed, allowed) = (self.ledger.billed(run), self.budgets.allowed.get(run).copied().unwrap_or(0));
            let beyond = self.budgets.beyond.get(run).copied().unwrap_or(0);
            // What is in the inbox still has its reservation, and may be dearer than that.
            let on_the_way = self.budgets.told.iter().filter(|(of, ..)| *of == run).map(|(.., cost)| cost).sum::<u64>();
            Invariant::BudgetKept.holds(billed <= allowed.saturating_add(beyond).saturating_add(on_the_way), || {
                format!("{}: billed {billed}, allowed {allowed}, {beyond} beyond what was reserved", plan.id)
            })?;
        }
        Ok(())
    }
}
