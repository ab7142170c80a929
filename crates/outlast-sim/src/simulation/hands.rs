//! Hands: the operations under way, which act on the world in stages and report as they go.
//!
//! A hand may be doubled, may go on after it was cancelled, and its reports may be lost, doubled or late. What it does
//! to the world in each stage happens at one instant, as an atomic effect does.

use outlast_core::Oid;
use outlast_core::admit::{AttemptNews, Command, LandingNews};
use outlast_core::class::Class;
use outlast_core::desired::{Operation, OperationKey};
use outlast_core::record::{LandingCause, Verdict};

use super::{Event, Simulation};
use crate::agenda::Instant;
use crate::invariant::{Invariant, Violation};
use crate::scenario::Spot;
use crate::world::Launch;
use crate::world::agent::{self, failed};
use crate::world::target::Moved;

/// Names a hand for good.
pub(super) type HandId = u64;

/// An operation under way.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) key: OperationKey,
    pub(super) operation: Operation,
    pub(super) spot: Spot,
    pub(super) stage: Stage,
    /// Whether anybody listens to it.
    pub(super) is_heard: bool,
    pub(super) last_report_at: Instant,
}

/// How far a hand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    First,
    Second,
    /// It watches an agent.
    Watching,
}

/// How long a stage takes, in milliseconds.
const STAGE: (u64, u64) = (1, 4_000);
impl Simulation<'_> {
    /// The driver starts an operation.
    pub(super) fn begin(&mut self, key: OperationKey, operation: Operation) -> Result<(), Violation> {
        let unknown = || Invariant::RecordBeforeEffect.broken(format!("{key:?} is of no task"));
        let spot = self.scenario.spot(&key.run, &key.task).ok_or_else(unknown)?;
        Invariant::InFlightIsDesired
            .holds(!self.in_hand.contains_key(&key), || format!("{key:?} is started while it is in flight"))?;
        if let Operation::Attempt { number, needs, .. } = &operation {
            Invariant::RecordBeforeEffect.holds(!self.is_judged || self.referee.is_live(spot, *number), || {
                format!("{spot:?}: attempt {number} is launched and not on record")
            })?;
            let is_whole = needs.len() == self.scenario.task(spot).needs.len() || self.referee.is_spoilt(spot);
            Invariant::NeedsFirst.holds(!self.is_judged || is_whole, || format!("{spot:?} starts from {needs:?}"))?;
        }
        if matches!(operation, Operation::Move { .. }) {
            Invariant::RecordBeforeEffect.holds(!self.is_judged || self.referee.is_landing(spot), || {
                format!("{spot:?}: the target is moved and no landing is on record")
            })?;
        }
        let id = self.add_hand(key.clone(), operation.clone(), spot);
        self.in_hand.insert(key.clone(), id);
        if self.rng.chance(self.faults().executed_twice) {
            self.add_hand(key, operation, spot);
        }
        Ok(())
    }

    fn add_hand(&mut self, key: OperationKey, operation: Operation, spot: Spot) -> HandId {
        self.next_hand += 1;
        let hand =
            Hand { key, operation, spot, stage: Stage::First, is_heard: true, last_report_at: self.agenda.now() };
        self.hands.insert(self.next_hand, hand);
        self.work_after(self.next_hand);
        self.next_hand
    }

    fn work_after(&mut self, id: HandId) {
        let delay = self.rng.between(STAGE);
        self.agenda.after(delay, Event::Work(id));
    }

    /// The driver cancels an operation. Its hand may go on for a while, unheard or heard too late.
    pub(super) fn stop(&mut self, key: &OperationKey) -> Result<(), Violation> {
        let id = self.in_hand.remove(key);
        Invariant::InFlightIsDesired.holds(id.is_some(), || format!("{key:?} is cancelled and is not in flight"))?;
        let ignored = self.faults().cancel_ignored;
        let mut gone = Vec::new();
        for (&id, hand) in &self.hands {
            if hand.key == *key && !self.rng.chance(ignored) {
                gone.push(id);
            }
        }
        for id in gone {
            self.hands.remove(&id);
        }
        Ok(())
    }

    /// The next stage of a hand.
    pub(super) fn work(&mut self, id: HandId) -> Result<(), Violation> {
        let Some(hand) = self.hands.get(&id) else {
            return Ok(());
        };
        let (spot, stage) = (hand.spot, hand.stage);
        match hand.operation.clone() {
            Operation::Attempt { number, needs, .. } => match stage {
                Stage::First => {
                    let base = self.world.prepare(spot, || base_of(&needs));
                    self.attempt_news(id, number, AttemptNews::WorkspaceReady(base), false);
                    self.next_stage(id);
                }
                Stage::Second => self.launch(id, spot, number)?,
                Stage::Watching => {}
            },
            Operation::End { number, .. } => match stage {
                Stage::First => {
                    self.world.end(spot, number);
                    self.next_stage(id);
                }
                _ => self.attempt_news(id, number, AttemptNews::Ended, true),
            },
            Operation::Verify { number, .. } => match stage {
                Stage::First => self.next_stage(id),
                _ => self.verify(id, spot, number)?,
            },
            Operation::Candidate { .. } => self.candidate(id, spot),
            Operation::Move { old, new, .. } => match stage {
                Stage::First => match self.world.targets[spot.run].advance(old.as_ref(), &new) {
                    Moved::Holds => self.next_stage(id),
                    Moved::Elsewhere => self.refuse(id, LandingCause::TargetMoved),
                    Moved::Unsafe => self.refuse(id, LandingCause::TargetCheckedOut),
                },
                _ => self.landing_news(id, LandingNews::Landed(new)),
            },
            Operation::Discard => match stage {
                Stage::First => {
                    self.world.archive(spot)?;
                    self.next_stage(id);
                }
                _ => {
                    let (run, task) = self.names(spot);
                    self.report(id, Command::Discarded { run, task }, true);
                }
            },
        }
        Ok(())
    }

    fn next_stage(&mut self, id: HandId) {
        if let Some(hand) = self.hands.get_mut(&id) {
            hand.stage = Stage::Second;
        }
        self.work_after(id);
    }

    /// Launches an agent, or finds the one that was launched, and watches it.
    fn launch(&mut self, id: HandId, spot: Spot, number: u32) -> Result<(), Violation> {
        let needs_quota = self.scenario.task(spot).spec.needs_quota;
        if self.world.tree(spot, number).is_none() && self.rng.chance(self.faults().agent_fails / 4) {
            let outcome = failed(Class::Startup, "it never got going");
            self.attempt_news(id, number, AttemptNews::Exited(outcome), true);
            return Ok(());
        }
        let faults = self.faults().clone();
        let rng = &mut self.rng;
        let script = || agent::draw(rng, &faults, needs_quota);
        match self.world.launch(spot, number, script)? {
            Launch::Started => self.agent_later(spot, number),
            Launch::Found => {}
            Launch::Fenced => {
                self.hands.remove(&id);
                return Ok(());
            }
        }
        self.watch(id, spot, number);
        Ok(())
    }

    /// Tells what is found of an agent, and all that happens to it from now on.
    fn watch(&mut self, id: HandId, spot: Spot, number: u32) {
        let Some(tree) = self.world.tree(spot, number) else {
            return;
        };
        let mut news = vec![AttemptNews::Spawned(tree.shim.clone())];
        news.extend(tree.session.clone().map(AttemptNews::SessionSeen));
        news.extend(tree.checkpoint.clone().map(AttemptNews::Checkpointed));
        news.push(match tree.held {
            Some((class, until)) => AttemptNews::Held { class, until },
            None => AttemptNews::Released,
        });
        let outcome = tree.outcome();
        for news in news {
            self.attempt_news(id, number, news, false);
        }
        if let Some(outcome) = outcome {
            self.attempt_news(id, number, AttemptNews::Exited(outcome), true);
        } else if let Some(hand) = self.hands.get_mut(&id) {
            hand.stage = Stage::Watching;
        }
    }

    fn verify(&mut self, id: HandId, spot: Spot, number: u32) -> Result<(), Violation> {
        // A check that nobody waits for any more may be late; its verdict is refused.
        if self.hands.get(&id).is_some_and(|hand| self.in_hand.get(&hand.key) == Some(&id)) {
            self.world.at_rest(spot, "its work is checked")?;
        }
        let verdict = if self.rng.chance(self.faults().verify_fails) {
            Verdict::Failed { class: self.rng.pick(&[Class::Verify, Class::Scope, Class::GaveUp]), why: "red".into() }
        } else {
            Verdict::Passed { result: oid("result", spot, number) }
        };
        let (run, task) = self.names(spot);
        let command = Command::Verified { run, task, number, checkpoint: Some(oid("tree", spot, number)), verdict };
        self.report(id, command, true);
        Ok(())
    }

    /// Makes a commit that can land, unless it is on the target or cannot be made.
    fn candidate(&mut self, id: HandId, spot: Spot) {
        let refused = self.rng.chance(self.faults().landing_fails);
        let target = &mut self.world.targets[spot.run];
        if let Some(commit) = target.landed(spot.task) {
            return self.landing_news(id, LandingNews::Landed(commit));
        }
        if target.checked_out {
            return self.refuse(id, LandingCause::TargetCheckedOut);
        }
        if refused {
            let causes = [LandingCause::Conflict, LandingCause::Verify, LandingCause::Empty];
            let cause = self.rng.pick(&causes);
            if cause == LandingCause::Empty {
                self.world.targets[spot.run].mark_empty(spot.task);
            }
            return self.refuse(id, cause);
        }
        let (old, new) = target.candidate(spot.task);
        self.landing_news(id, LandingNews::Candidate { old, new });
    }

    fn refuse(&mut self, id: HandId, cause: LandingCause) {
        let (commit, refusals) = match self.hands.get(&id).map(|hand| &hand.operation) {
            Some(Operation::Candidate { refusals, .. }) => (None, *refusals),
            Some(Operation::Move { new, refusals, .. }) => (Some(new.clone()), *refusals),
            _ => return,
        };
        let detail = cause.name().to_owned();
        self.landing_news(id, LandingNews::Refused { commit, refusals, cause, detail });
    }

    fn landing_news(&mut self, id: HandId, news: LandingNews) {
        let Some(hand) = self.hands.get(&id) else {
            return;
        };
        let (run, task) = self.names(hand.spot);
        self.report(id, Command::Landing { run, task, news }, true);
    }

    pub(super) fn attempt_news(&mut self, id: HandId, number: u32, news: AttemptNews, last: bool) {
        let Some(hand) = self.hands.get(&id) else {
            return;
        };
        let (Operation::Attempt { epoch, .. } | Operation::End { epoch, .. }) = hand.operation else {
            return;
        };
        let (run, task) = self.names(hand.spot);
        let command = Command::Attempt { run, task, number, epoch, news };
        self.report(id, command, last);
    }

    fn names(&self, spot: Spot) -> (outlast_core::RunId, outlast_core::TaskId) {
        let run = &self.scenario.runs[spot.run];
        (run.id.clone(), run.tasks[spot.task].id.clone())
    }
}

/// The commit that a task starts from: the run's base with the results that it needs.
fn base_of(needs: &[Oid]) -> Oid {
    let needs: Vec<&str> = needs.iter().map(Oid::as_str).collect();
    Oid::new(format!("base[{}]", needs.join(",")))
}

fn oid(what: &str, spot: Spot, number: u32) -> Oid {
    Oid::new(format!("{what}-{}-{}-{number}", spot.run, spot.task))
}
