//! The whole state, and the one way it changes: [`Core::apply`].
//!
//! Live and replay are the same path. `apply` never fails and never decides: what is illegal was refused by
//! [`admit`](crate::admit) before it became a record, and a record is true for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::again;
use crate::assign::assigned;
use crate::class::{Class, Remedy};
use crate::give_up::{give_up, give_up_dependants};
use crate::ids::{AccountId, Epoch, RunId, TaskId};
use crate::ledger::Counted;
use crate::mutant::{Bug, planted};
use crate::pace::Recent;
use crate::record::{EndReason, Fact, LandingCause, Outcome, Record, Rung, Stream, Verdict};
use crate::retry;
use crate::run::{Index, Mode, Run};
use crate::task::{Attempt, Failure, Finished, Held, Phase, Refused, Stage};
use crate::time::Timestamp;
use crate::usage::Usage;
use crate::window::Window;

/// Everything that is true, as a fold of the records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Every run, in the order of their ids.
    pub runs: BTreeMap<RunId, Run>,
    /// Accounts that are not plainly open.
    pub accounts: BTreeMap<AccountId, Window>,
    /// What was exchanged with each account in the last minute in which anything was.
    pub recent: BTreeMap<AccountId, Recent>,
    /// How many records each stream has.
    revisions: BTreeMap<String, u64>,
    /// Which exchanges are on record.
    pub(crate) ledger: Counted,
}

impl Core {
    /// The revision that the next record of `stream` has, counted from 1.
    pub fn next_revision(&self, stream: &Stream) -> u64 {
        self.revisions.get(&stream.to_string()).copied().unwrap_or(0) + 1
    }

    /// The run of this id.
    pub fn run(&self, id: &RunId) -> Option<&Run> {
        self.runs.get(id)
    }

    /// When the account takes requests again, or nothing where it does now.
    pub fn closed_until(&self, account: &AccountId, now: Timestamp) -> Option<(Timestamp, Class)> {
        match self.accounts.get(account) {
            Some(Window::Closed { class, until, .. }) if *until > now => Some((*until, *class)),
            _ => None,
        }
    }

    /// Takes a fact in.
    pub fn apply(&mut self, record: &Record) {
        *self.revisions.entry(record.stream.to_string()).or_default() += 1;
        match &record.stream {
            Stream::Account(account) => self.apply_account(account, record.at, &record.fact),
            Stream::Run(id) => {
                if let Fact::RunStarted(spec) = &record.fact {
                    self.runs.insert(id.clone(), Run::new(id.clone(), spec.clone(), record.at));
                } else if let Some(run) = self.runs.get_mut(id) {
                    apply_run(run, &record.fact);
                }
            }
            Stream::Ledger => {
                if let Fact::LedgerCounted { row } = &record.fact {
                    self.ledger.up_to(*row);
                }
            }
            Stream::Task(id, task) => {
                if !self.ledger.takes(&record.fact) {
                    return;
                }
                if let Fact::Exchanged { account, usage, .. } = &record.fact {
                    self.recent.entry(account.clone()).or_default().add(record.at, usage.total_tokens());
                }
                if let Some(run) = self.runs.get_mut(id) {
                    apply_task(run, task, record.at, &record.fact);
                }
            }
        }
    }

    fn apply_account(&mut self, account: &AccountId, at: Timestamp, fact: &Fact) {
        match fact {
            Fact::AccountClosed { class, until, guessed } => {
                let before = self.window(account);
                // The end of a closing may become known later than the closing itself.
                let again = u32::from(!matches!(before, Window::Closed { .. }));
                let strikes = before.strikes().saturating_add(again);
                let closed = Window::Closed { class: *class, until: *until, guessed: *guessed, strikes };
                self.accounts.insert(account.clone(), closed);
            }
            Fact::AccountShut { class } => {
                self.accounts.insert(account.clone(), Window::Shut { class: *class });
            }
            Fact::AccountOpened => {
                let opened = self.window(account).opened(at);
                self.accounts.insert(account.clone(), opened);
            }
            Fact::AccountAnswered => {
                let window = self.window(account).took_one();
                self.accounts.insert(account.clone(), window);
            }
            _ => {}
        }
    }

    /// Whether an account takes requests.
    pub fn window(&self, account: &AccountId) -> Window {
        self.accounts.get(account).cloned().unwrap_or(Window::Open)
    }
}

fn apply_run(run: &mut Run, fact: &Fact) {
    match fact {
        Fact::RunPaused => run.mode = Mode::Paused,
        Fact::RunStopped => run.mode = Mode::Stopped,
        Fact::RunResumed if planted(Bug::ParkedStay) => run.mode = Mode::Running,
        Fact::RunResumed => {
            run.mode = Mode::Running;
            unpark(run);
        }
        Fact::RunFinished { state } => run.mode = Mode::Finished(*state),
        Fact::BudgetReached(reached) => run.purse.reached = Some(*reached),
        Fact::TriedNow => {
            for index in run.waiting_for_the_world() {
                run.set_phase(index, Phase::Ready);
            }
            // Whose attempt is just being ended will wait no longer than for any refusal without an end.
            for index in run.active.clone() {
                run.tasks[index as usize].forget_reported_end();
            }
        }
        Fact::BudgetChanged(allowed) => {
            run.purse.allowed = *allowed;
            run.purse.reached = None;
            if run.mode == Mode::Running {
                unpark(run);
            }
        }
        _ => {}
    }
}

/// Lets everything start again that was parked.
fn unpark(run: &mut Run) {
    for index in run.parked.clone() {
        run.set_phase(index, Phase::Ready);
    }
}

fn apply_task(run: &mut Run, id: &TaskId, at: Timestamp, fact: &Fact) {
    if let Fact::TaskAdded(spec) = fact {
        run.add(id.clone(), spec.clone());
        return;
    }
    let Some(index) = run.index(id) else { return };
    match fact {
        Fact::Assigned(to) => assigned(run, index, to),
        Fact::AttemptEnded { number } => attempt_ended(run, index, *number, at),
        Fact::Verified { verdict, .. } => verified(run, index, verdict, at),
        Fact::RetryRequested => again::retried(run, index),
        Fact::LandRequested
        | Fact::LandingStarted { .. }
        | Fact::Landed { .. }
        | Fact::LandingRefused { .. }
        | Fact::DiscardRequested
        | Fact::Discarded => apply_landing(run, index, fact),
        _ => apply_attempt(run, index, at, fact),
    }
}

/// Facts that change a living attempt or what is known of the task, and no index.
fn apply_attempt(run: &mut Run, index: Index, at: Timestamp, fact: &Fact) {
    if let Fact::AttemptStarted { number, epoch, rung } = fact {
        run.set_phase(index, Phase::Live(Attempt::started(*number, *epoch, rung.clone(), at)));
        let task = &mut run.tasks[index as usize];
        task.attempts = *number;
        (task.parked_for, task.parked_until) = (None, None);
        task.resumed_by = Some(rung.clone());
        if *rung == Rung::HandOver {
            // It is not gone back to.
            task.session = None;
        }
        return;
    }
    if let Fact::Exchanged { usage, reserved, .. } = fact {
        run.purse.settle(usage, *reserved);
    }
    let task = &mut run.tasks[index as usize];
    match fact {
        Fact::WorkspaceReady { base, .. } => task.base = Some(base.clone()),
        Fact::SessionSeen { session, .. } => task.session = Some(session.clone()),
        Fact::Checkpointed { commit, .. } => task.checkpoint = Some(commit.clone()),
        Fact::Exchanged { number, main, usage, .. } => {
            task.turns = task.turns.saturating_add(u32::from(*main));
            task.usage.add(usage);
            task.paid_again.exchanged(*number, *main, usage, at);
        }
        _ => {}
    }
    let Phase::Live(attempt) = &mut task.phase else {
        return;
    };
    match fact {
        Fact::Spawned { shim, .. } => attempt.shim = Some(shim.clone()),
        Fact::Held { class, until, .. } => {
            let since = attempt.held.as_ref().map_or(at, |held| held.since);
            attempt.held = Some(Held { class: *class, since, until: *until });
            attempt.has_asked = true;
        }
        Fact::Exchanged { number, account, usage, .. } if *number == attempt.number => {
            attempt.has_asked = true;
            attempt.answer_broke = usage.cut > 0;
            attempt.account = Some(account.clone());
        }
        Fact::Replayed { number, .. } if *number == attempt.number => {
            attempt.has_asked = true;
            attempt.answer_broke = false;
        }
        Fact::Released { .. } => attempt.held = None,
        // What is kept before the launch is the tree as the attempt found it, and what is kept at a turn has changed.
        Fact::Checkpointed { .. } if attempt.shim.is_some() && attempt.stage == Stage::Working => {
            attempt.made_headway = true;
        }
        Fact::AttemptExited { outcome, .. } => {
            attempt.stage = Stage::Exited(outcome.clone());
            attempt.held = None;
        }
        Fact::AttemptEnding { reason, .. } => {
            let held = attempt.held.take().filter(|_| matches!(reason, EndReason::Limit { .. }));
            task.parked_until = held.and_then(|held| held.until);
            attempt.stage = Stage::Ending(reason.clone());
        }
        _ => {}
    }
}

/// The terminal record of a start: the reason that was recorded before decides what follows.
fn attempt_ended(run: &mut Run, index: Index, number: u32, at: Timestamp) {
    let task = &run.tasks[index as usize];
    let Phase::Live(Attempt { stage: Stage::Ending(reason), .. }) = &task.phase else {
        return;
    };
    match reason.clone() {
        EndReason::Finished => run.set_phase(index, Phase::Verifying { number }),
        EndReason::Failed { class, why, until } => failed(run, index, Failure { class, why }, until, at),
        EndReason::Parked | EndReason::Limit { .. } if task.stale => give_up(run, index, Phase::Stale),
        // A run may have been resumed, or its budget raised, while its attempts were still being parked.
        EndReason::Parked if run.mode == Mode::Running && run.purse.reached.is_none() => {
            run.set_phase(index, Phase::Ready);
        }
        EndReason::Limit { class } => {
            run.tasks[index as usize].parked_for = Some(class);
            run.set_phase(index, if run.mode == Mode::Running { Phase::Ready } else { Phase::Parked });
        }
        EndReason::Parked => run.set_phase(index, Phase::Parked),
        EndReason::Discarded => run.set_phase(index, Phase::Discarding),
    }
}

fn verified(run: &mut Run, index: Index, verdict: &Verdict, at: Timestamp) {
    let task = &mut run.tasks[index as usize];
    if !matches!(task.phase, Phase::Verifying { .. }) {
        return;
    }
    match verdict {
        Verdict::Failed { class, why } => failed(run, index, Failure { class: *class, why: why.clone() }, None, at),
        Verdict::Passed { .. } if task.stale => give_up(run, index, Phase::Stale),
        Verdict::Passed { result } => {
            task.last_failure = None;
            run.results += 1;
            let (result, order, wanted) = (result.clone(), run.results, run.spec.auto_land);
            let finished = Finished { result, order, wanted, refused: None, refusals: 0 };
            run.set_phase(index, Phase::Done(finished));
            for dependant in run.dependants(index) {
                let task = &mut run.tasks[dependant as usize];
                task.needs_open = task.needs_open.saturating_sub(1);
                if task.needs_open == 0 && task.phase == Phase::Pending {
                    run.set_phase(dependant, Phase::Ready);
                }
            }
        }
    }
}

/// An attempt, or the check of its work, failed: again now, again later, or not again. `stated` is when the limit ends
/// that its agent reported.
fn failed(run: &mut Run, index: Index, failure: Failure, stated: Option<Timestamp>, at: Timestamp) {
    let Failure { class, why } = failure;
    let seed = run.spec.seed;
    let task = &mut run.tasks[index as usize];
    task.losses = if retry::is_loss(task, class) { task.losses.saturating_add(1) } else { 0 };
    task.startups = if class == Class::Startup { task.startups.saturating_add(1) } else { 0 };
    task.empties = if retry::is_empty(task, class) { task.empties.saturating_add(1) } else { 0 };
    task.broken = if class == Class::CorruptSession { task.broken.saturating_add(1) } else { 0 };
    let is_lost_too_often = task.losses > retry::LOSSES_FREE_MAX;
    let breaks_too_often = task.broken > retry::BROKEN_FREE_MAX;
    let is_empty_too_often = task.spec.empty_retries.is_some_and(|most| task.empties > most);
    let why = match (is_lost_too_often, breaks_too_often) {
        (true, _) => retry::lost_too_often(&why, task.losses),
        (_, true) => retry::broken_too_often(&why, task.broken),
        _ if is_empty_too_often && task.empties > 1 => retry::empty_too_often(&why, task.empties),
        _ => why,
    };
    task.last_failure = Some(Failure { class, why });
    // What no longer fits the model, or cannot be continued, would end the next attempt in the same way.
    if matches!(class, Class::CorruptSession | Class::ContextOverflow | Class::ContextNearFull | Class::NoProgress)
        || retry::is_dead_session(task, class)
    {
        task.session = None;
    }
    match class.remedy() {
        Remedy::Retry => {
            task.tries_used += 1;
            (task.free_retries, task.waits) = (0, 0);
        }
        Remedy::Later if is_lost_too_often || breaks_too_often => task.tries_used += 1,
        Remedy::Later if planted(Bug::WorldsFaultCounts) => task.tries_used += 1,
        Remedy::Later => {
            // Who got on is tried again as soon as if nothing had happened before: it is not the one that gets nowhere.
            let made_headway = task.attempt().is_some_and(|attempt| attempt.made_headway);
            task.waits = if made_headway { 1 } else { task.waits.saturating_add(1) };
            task.free_retries += 1;
        }
        Remedy::Person => {}
    }
    // A limit ends by itself, however often it is met. Where it is that of one account among others, whether that is closed
    // decides.
    let is_limit = class.is_limit();
    let account = task.attempt().and_then(|attempt| attempt.account.as_ref());
    let may_go_elsewhere = task.spec.needs_quota && task.spec.accounts.len() > 1 && account.is_some();
    let stated = stated.filter(|_| !may_go_elsewhere && !planted(Bug::StatedIgnored)).unwrap_or(at);
    let again = class.remedy() != Remedy::Person
        && task.tries_used <= task.spec.retries
        && (task.spec.startup_retries.is_none_or(|most| task.startups <= most))
        && (!is_empty_too_often || planted(Bug::EmptyAgain))
        && (is_limit || task.free_retries <= retry::FREE_RETRIES_MAX);
    task.parked_for = (is_limit && again).then_some(class);
    if task.stale {
        give_up(run, index, Phase::Stale);
    } else if again {
        // Never before the time that was stated, and never at once.
        let until = at.plus(retry::delay(seed, task, class)).max(stated);
        run.set_phase(index, Phase::Waiting { until });
    } else {
        give_up(run, index, Phase::Failed);
    }
}

fn apply_landing(run: &mut Run, index: Index, fact: &Fact) {
    let phase = run.tasks[index as usize].phase.clone();
    match (fact, phase) {
        (Fact::LandRequested, Phase::Done(finished)) => {
            // In the order in which they are asked for.
            run.results += 1;
            let order = run.results;
            run.set_phase(index, Phase::Done(Finished { wanted: true, refused: None, order, ..finished }));
        }
        (Fact::LandingStarted { old, new }, Phase::Done(finished)) => {
            run.set_phase(index, Phase::Landing { finished, old: old.clone(), new: new.clone() });
        }
        (Fact::Landed { commit, was_there }, Phase::Landing { finished, .. } | Phase::Done(finished)) => {
            let (result, commit) = (finished.result, commit.clone());
            run.set_phase(index, Phase::Landed { result, commit, was_there: *was_there });
        }
        (Fact::LandingRefused { cause, detail }, Phase::Landing { finished, .. } | Phase::Done(finished)) => {
            let wanted = *cause == LandingCause::TargetMoved;
            let refused = Some(Refused { cause: *cause, detail: detail.clone() });
            let refusals = finished.refusals.saturating_add(1);
            run.set_phase(index, Phase::Done(Finished { wanted, refused, refusals, ..finished }));
        }
        (Fact::DiscardRequested, _) => {
            run.set_phase(index, Phase::Discarding);
            // At once, not when the archive is made: nothing may start from what is given up.
            if !planted(Bug::DiscardIgnored) {
                give_up_dependants(run, index);
            }
        }
        (Fact::Discarded, _) => run.set_phase(index, Phase::Discarded),
        _ => {}
    }
}

/// The fence of the next attempt of a task.
pub(crate) const fn next_epoch(attempts: u32) -> Epoch {
    Epoch(attempts.saturating_add(1))
}

/// A sum over all tasks of a run.
pub fn total(run: &Run) -> Usage {
    let mut sum = Usage::default();
    for task in &run.tasks {
        sum.add(&task.usage);
    }
    sum
}

impl From<&Outcome> for EndReason {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Finished => Self::Finished,
            Outcome::Failed { class, why, until } => Self::Failed { class: *class, why: why.clone(), until: *until },
        }
    }
}

#[cfg(test)]
mod tests;
