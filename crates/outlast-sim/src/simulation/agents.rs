//! Agents at work: they live in the world, whether or not an orchestrator does, and whoever watches them tells.

use std::time::Duration;

use outlast_core::admit::{AttemptNews, Command};
use outlast_core::desired::Operation;
use outlast_core::driver::Driver;
use outlast_core::record::Outcome;
use outlast_core::{AccountId, AttemptId, Class, Oid, Timestamp};

use super::hands::{HandId, Stage};
use super::{Event, Simulation};
use crate::scenario::Spot;
use crate::world::Tree;
use crate::world::agent::{AgentStep, failed};

impl Simulation<'_> {
    /// The next step of an agent, and the news of it.
    pub(super) fn agent_goes_on(&mut self, spot: Spot, number: u32) {
        let now = self.now();
        let Some(tree) = self.world.tree(spot, number).filter(|tree| tree.agent_lives()) else {
            return;
        };
        let Some((_, step)) = tree.script.pop_front() else {
            return;
        };
        match step {
            AgentStep::Exchange { .. } if self.is_refused(spot) => {
                if let Some(tree) = self.world.tree(spot, number) {
                    let told = AgentStep::Exit(failed(Class::Auth, "its accounts are refused"));
                    tree.script = [(1, told)].into();
                }
                return self.agent_later(spot, number);
            }
            AgentStep::Exchange { main } if self.has_budget(spot) => {
                self.ask_for_room(spot, number, main);
                return self.agent_later(spot, number);
            }
            AgentStep::Answer { main, grant } => {
                self.answer_comes(spot, number, main, grant);
                return self.agent_later(spot, number);
            }
            _ => {}
        }
        let Some(tree) = self.world.tree(spot, number) else { return };
        let news = take_step(tree, &step, spot, number, now);
        self.gateway_sees(&step, spot, number, now);
        if let Some(news) = news {
            self.tell_watchers(spot, number, &news);
        }
        self.agent_later(spot, number);
    }

    /// What the gateway tells of an agent's step: it lives and dies with the orchestrator.
    fn gateway_sees(&mut self, step: &AgentStep, spot: Spot, number: u32, now: Timestamp) {
        if self.driver.is_none() {
            return;
        }
        let account = self.billed_by(spot);
        match *step {
            AgentStep::Exchange { main } => {
                self.exchange(spot, number, main);
            }
            AgentStep::Hold { class, lasts: Some(lasts), closes: true } => {
                let until = now.plus(Duration::from_millis(lasts));
                self.tell_command(Command::CloseAccount { account, class, until: Some(until) });
            }
            _ => {}
        }
    }

    /// Whether a request of a task is told at once that its accounts are refused, all of them.
    fn is_refused(&self, spot: Spot) -> bool {
        let Some(core) = self.driver.as_ref().map(Driver::core) else { return false };
        let task = core.run(&self.run_id(spot.run)).and_then(|run| run.task(&self.scenario.task(spot).id));
        task.is_some_and(|task| {
            let accounts = &task.spec.accounts;
            !accounts.is_empty() && accounts.iter().all(|account| core.is_shut(account))
        })
    }

    /// The account that a request of a task goes out on: the first of those that it has now which takes requests, as far as the
    /// gateway knows. One that has gone out goes on, whatever becomes of its account.
    fn billed_by(&self, spot: Spot) -> AccountId {
        let plan = self.scenario.task(spot);
        let first = || self.scenario.accounts[plan.accounts[0]].clone();
        let core = self.driver.as_ref().map(Driver::core);
        let found = core.and_then(|core| Some((core, core.run(&self.run_id(spot.run))?.task(&plan.id)?)));
        let Some((core, task)) = found else { return first() };
        let takes = |account: &&AccountId| core.window(account).on_trial_max() != Some(0);
        let accounts = &task.spec.accounts;
        accounts.iter().find(takes).or(accounts.first()).cloned().unwrap_or_else(first)
    }

    /// A request was answered; what it cost, in billionths of a dollar.
    pub(super) fn exchange(&mut self, spot: Spot, number: u32, main: bool) -> u64 {
        let plan = self.scenario.task(spot);
        let account = self.billed_by(spot);
        let attempt = AttemptId { run: self.run_id(spot.run), task: plan.id.clone(), number };
        self.tell_command(Command::AccountAnswered(account.clone()));
        // The ledger has it before anyone is told, and keeps it whatever becomes of who is told.
        let row = self.ledger.write(spot, attempt, account, main);
        for _ in 0..row.times_told() {
            self.tell_command(row.told());
        }
        row.cost()
    }

    /// Sets the time of an agent's next step.
    pub(super) fn agent_later(&mut self, spot: Spot, number: u32) {
        let next = self.world.tree(spot, number).and_then(|tree| tree.script.front().map(|(pause, _)| *pause));
        if let Some(pause) = next {
            self.agenda.after(pause, Event::Agent(spot, number));
        }
    }

    /// Tells every hand that watches this attempt.
    pub(super) fn tell_watchers(&mut self, spot: Spot, number: u32, news: &AttemptNews) {
        let watchers: Vec<HandId> = self
            .hands
            .iter()
            .filter(|(_, hand)| hand.spot == spot && hand.stage == Stage::Watching)
            .filter(|(_, hand)| matches!(hand.operation, Operation::Attempt { number: n, .. } if n == number))
            .map(|(&id, _)| id)
            .collect();
        let last = matches!(news, AttemptNews::Exited(_));
        for id in watchers {
            self.attempt_news(id, number, news.clone(), last);
        }
    }
}

/// What a step does to an agent and its files, and what a watcher sees of it.
fn take_step(tree: &mut Tree, step: &AgentStep, spot: Spot, number: u32, now: Timestamp) -> Option<AttemptNews> {
    Some(match step {
        AgentStep::Session => {
            let session = format!("session-{}-{}", spot.run, spot.task);
            tree.session = Some(session.clone());
            AttemptNews::SessionSeen(session)
        }
        &AgentStep::Hold { class, lasts, .. } => {
            let until = lasts.map(|lasts| now.plus(Duration::from_millis(lasts)));
            tree.held = Some((class, until));
            AttemptNews::Held { class, until }
        }
        AgentStep::Release => {
            tree.held = None;
            AttemptNews::Released
        }
        AgentStep::Checkpoint => {
            let left = tree.script.len();
            let commit = Oid::new(format!("tree-{}-{}-{number}-{left}", spot.run, spot.task));
            tree.checkpoint = Some(commit.clone());
            AttemptNews::Checkpointed(commit)
        }
        AgentStep::Exit(outcome) => {
            tree.exit(outcome.clone());
            AttemptNews::Exited(outcome.clone())
        }
        &AgentStep::Limit { class, lasts } => {
            let until = Some(now.plus(Duration::from_millis(lasts)));
            let outcome = Outcome::Failed { class, why: "a limit".into(), until };
            tree.exit(outcome.clone());
            AttemptNews::Exited(outcome)
        }
        AgentStep::Vanish => {
            tree.vanish();
            AttemptNews::Exited(tree.outcome()?)
        }
        AgentStep::Fork => {
            tree.fork();
            return None;
        }
        AgentStep::Exchange { .. } | AgentStep::Answer { .. } => return None,
    })
}
