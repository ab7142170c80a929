//! The clock and the policy become facts: who starts, who is given up, what is over.
//!
//! Called again and again until it has nothing to add; each call looks only at tasks that are in flight or could start.

use crate::class::Class;
use crate::core::{Core, next_epoch};
use crate::ids::AccountId;
use crate::mutant::{Bug, planted};
use crate::record::{EndReason, Fact, Record, RunEnd, Rung, Stream};
use crate::run::{Mode, Run};
use crate::scope::Claims;
use crate::task::{Attempt, Phase, Stage, Task};
use crate::time::Timestamp;
use crate::window::{TRIAL_MAX, Window};

impl Core {
    /// What follows from the time and from what is true.
    pub fn decide(&self, now: Timestamp) -> Vec<Record> {
        let mut records = self.reopen(now);
        if !records.is_empty() {
            // Who may start depends on how many requests may try.
            return records;
        }
        for run in self.runs.values() {
            endings(self, run, now, &mut records);
            if run.mode == Mode::Running {
                self.starts(run, now, &mut records);
            }
            // Also one that is paused or stopped, once what was left of it is given up: there is nothing to go on with.
            if !matches!(run.mode, Mode::Finished(_)) && records.is_empty() && run.is_settled() {
                let fact = Fact::RunFinished { state: verdict(run) };
                records.push(Record { at: now, stream: Stream::Run(run.id.clone()), fact });
            }
        }
        records
    }

    /// Gives up what waits at the gateway, where nobody stays to answer it: each such attempt is parked as for a hold that takes
    /// too long. With `all`, whatever is at work is, since something is in the way of everything: it waits with its next request.
    pub(crate) fn park(&self, all: bool, now: Timestamp) -> Vec<Record> {
        let mut records = Vec::new();
        for run in self.runs.values().filter(|run| run.mode == Mode::Running) {
            for task in run.active() {
                let Phase::Live(attempt) = &task.phase else { continue };
                let reason = match (&attempt.stage, &attempt.held) {
                    (Stage::Working, Some(held)) => EndReason::Limit { class: held.class },
                    (Stage::Working, None) if all => EndReason::Parked,
                    _ => continue,
                };
                let fact = Fact::AttemptEnding { number: attempt.number, reason };
                records.push(Record { at: now, stream: Stream::Task(run.id.clone(), task.id.clone()), fact });
            }
        }
        records
    }

    /// Parks one attempt, as for a hold that takes too long, since memory is short: of those whose request waits, the one that
    /// would wait longest. One at a time, since what one has taken is only free once its processes have ended.
    pub(crate) fn make_room(&self, now: Timestamp) -> Option<Record> {
        let live = || {
            let runs = self.runs.values().flat_map(|run| run.active().map(move |task| (run, task)));
            runs.filter_map(|(run, task)| task.attempt().map(|attempt| (run, task, attempt)))
        };
        if live().any(|(.., attempt)| matches!(attempt.stage, Stage::Exited(_) | Stage::Ending(_))) {
            return None;
        }
        let waiting = live().filter_map(|(run, task, attempt)| {
            let held = attempt.held.as_ref().filter(|_| attempt.stage == Stage::Working)?;
            // What would be back at once makes no room.
            let opens = self.opens(task, now).map(|(until, ..)| until).filter(|_| run.mode == Mode::Running)?;
            let is_for_an_account = held.class != Class::OwnBudget;
            is_for_an_account
                .then(|| (held.until.map_or(opens, |until| until.max(opens)), run, task, attempt, held.class))
        });
        let (_, run, task, attempt, class) = waiting.max_by_key(|(until, ..)| *until)?;
        let fact = Fact::AttemptEnding { number: attempt.number, reason: EndReason::Limit { class } };
        Some(Record { at: now, stream: Stream::Task(run.id.clone(), task.id.clone()), fact })
    }

    /// Whether a request of any attempt waits.
    pub fn is_any_held(&self) -> bool {
        let mut active = self.runs.values().flat_map(Run::active);
        active.any(|task| task.attempt().is_some_and(|attempt| attempt.held.is_some()))
    }

    fn reopen(&self, now: Timestamp) -> Vec<Record> {
        let due = self.accounts.iter().filter(|(_, window)| window.is_due(now));
        due.map(|(account, _)| Record { at: now, stream: Stream::Account(account.clone()), fact: Fact::AccountOpened })
            .collect()
    }

    /// Starts tasks while there is room, begun ones first, then in the plan's order.
    fn starts(&self, run: &Run, now: Timestamp, records: &mut Vec<Record>) {
        if run.purse.reached.is_some() && !planted(Bug::ReachedIgnored) {
            return;
        }
        let mut room = run.spec.concurrency.saturating_sub(run.busy) + u32::from(planted(Bug::OneTooMany));
        if room == 0 {
            return;
        }
        let due = run.waiting.iter().take_while(|(until, _)| *until <= now).map(|&(_, index)| index);
        let mut claims = Claims::of(run);
        let (mut closed, mut taken) = (run.same_accounts.nothing_refused(), run.same_scope.nothing_refused());
        for index in due.chain(run.ready.iter().map(|&(_, index)| index)) {
            if room == 0 {
                break;
            }
            if closed.covers(index) || taken.covers(index) {
                continue;
            }
            let task = &run.tasks[index as usize];
            let untried = self.untried(task, now);
            let is_tried = untried.is_some_and(|(account, since)| self.is_tried(account, since, now));
            if is_tried || self.quota_until(task, now).is_some() || self.waits_for_a_person(task).is_some() {
                closed.add(index);
                continue;
            }
            if claims.add(task).is_err() {
                taken.add(index);
                continue;
            }
            if untried.is_some() {
                // Its first request tries the account out for all others.
                closed.add(index);
            }
            records.push(start(run, task, now));
            room -= 1;
        }
    }

    /// The account that the task's first request would try out, and since when that is due; nothing where one of its
    /// accounts is known to take requests, or all are closed.
    fn untried<'a>(&self, task: &'a Task, now: Timestamp) -> Option<(&'a AccountId, Timestamp)> {
        if !task.spec.needs_quota {
            return None;
        }
        let mut found = None;
        for account in &task.spec.accounts {
            match self.accounts.get(account).and_then(Window::untried_since) {
                Some(since) => found = found.or(Some((account, since))),
                None if self.closed_until(account, now).is_some() || self.is_shut(account) => {}
                None => return None,
            }
        }
        found
    }

    /// Whether somebody tries this account out: their request waits for it, or they were started for that a short while
    /// ago. Who has not asked by then works on something else.
    fn is_tried(&self, account: &AccountId, since: Timestamp, now: Timestamp) -> bool {
        let tries = |task: &Task| {
            let may_ask = |attempt: &&Attempt| attempt.trial_ends(since).is_some_and(|end| end > now);
            let attempt = task.attempt().filter(|attempt| attempt.held.is_some() || may_ask(attempt));
            attempt.is_some() && task.spec.accounts.contains(account)
        };
        self.runs.values().flat_map(Run::active).any(tries)
    }

    /// When the first of the task's accounts opens, where it is pointless to start before.
    pub(crate) fn quota_until(&self, task: &Task, now: Timestamp) -> Option<(Timestamp, AccountId, Class)> {
        if planted(Bug::QuotaIgnored) { None } else { self.opens(task, now) }
    }

    /// The first of the task's accounts and what keeps it shut, where all of them wait for a person: an agent that is started
    /// would be told so at once, and fail.
    pub fn waits_for_a_person(&self, task: &Task) -> Option<(AccountId, Class)> {
        if !task.spec.needs_quota || planted(Bug::ShutIgnored) {
            return None;
        }
        let mut first = None;
        for account in &task.spec.accounts {
            let Some(Window::Shut { class }) = self.accounts.get(account) else { return None };
            first = first.or(Some((account.clone(), *class)));
        }
        first
    }

    /// Whether only a person lets a run go on, who pays or logs in: nothing is in flight, and all that could start waits for
    /// accounts that are shut.
    pub fn only_a_person_helps(&self, run: &Run) -> bool {
        let left = run.ready.iter().map(|&(_, index)| index).chain(run.waiting.iter().map(|&(_, index)| index));
        let mut left = left.map(|index| &run.tasks[index as usize]).peekable();
        run.mode == Mode::Running
            && run.active.is_empty()
            && left.peek().is_some()
            && left.all(|task| self.waits_for_a_person(task).is_some())
    }

    /// When the first of the task's accounts opens; nothing where one is open, or it needs none.
    fn opens(&self, task: &Task, now: Timestamp) -> Option<(Timestamp, AccountId, Class)> {
        if !task.spec.needs_quota {
            return None;
        }
        let closed =
            |account: &AccountId| self.closed_until(account, now).map(|(until, class)| (until, account.clone(), class));
        let mut earliest = None;
        for account in task.spec.accounts.iter().filter(|account| !self.is_shut(account)) {
            let until = closed(account)?;
            if earliest.as_ref().is_none_or(|known| until < *known) {
                earliest = Some(until);
            }
        }
        earliest
    }
}

/// What is given up: agents that are gone, and living ones whose run no longer goes on.
fn endings(core: &Core, run: &Run, now: Timestamp, records: &mut Vec<Record>) {
    for &index in &run.active {
        let task = &run.tasks[index as usize];
        let Phase::Live(attempt) = &task.phase else {
            continue;
        };
        let stream = || Stream::Task(run.id.clone(), task.id.clone());
        if matches!(attempt.stage, Stage::Ending(_)) && planted(Bug::EndsUnproven) {
            records.push(Record { at: now, stream: stream(), fact: Fact::AttemptEnded { number: attempt.number } });
        }
        let reason = match (&attempt.stage, run.mode) {
            (Stage::Exited(outcome), _) => EndReason::from(outcome),
            (Stage::Working, Mode::Paused | Mode::Stopped) => EndReason::Parked,
            // Whoever has an answer or a tool under way goes on until its next request.
            (Stage::Working, _) if run.purse.reached.is_some() && waits_for_budget(attempt) => EndReason::Parked,
            (Stage::Working, _) => match held_too_long(core, run, task, attempt, now) {
                Some(class) => EndReason::Limit { class },
                None => continue,
            },
            _ => continue,
        };
        let fact = Fact::AttemptEnding { number: attempt.number, reason };
        records.push(Record { at: now, stream: stream(), fact });
    }
}

/// What a request waits for longer than it is held, or will: its agent costs memory and a slot for nothing meanwhile.
fn held_too_long(core: &Core, run: &Run, task: &Task, attempt: &Attempt, now: Timestamp) -> Option<Class> {
    // A task that starts whatever is closed, or has an open account that this request cannot use, would be back at once.
    core.opens(task, now)?;
    let held = attempt.held.as_ref().filter(|held| held.class != Class::OwnBudget)?;
    let end = held.until.map_or(now, |until| until.max(now));
    (end.since(held.since) > run.spec.hold_max()).then_some(held.class)
}

impl Attempt {
    /// Until when it counts as one that was started to try an account out that is untried since then; nothing where it
    /// was not.
    pub(crate) fn trial_ends(&self, untried_since: Timestamp) -> Option<Timestamp> {
        (self.started_at >= untried_since).then(|| self.started_at.plus(TRIAL_MAX))
    }
}

fn waits_for_budget(attempt: &Attempt) -> bool {
    attempt.held.as_ref().is_some_and(|held| held.class == Class::OwnBudget)
}

fn start(run: &Run, task: &Task, now: Timestamp) -> Record {
    let rung = match (&task.session, task.attempts) {
        (_, 0) => Rung::Fresh,
        (Some(session), _) if task.paid_again.dear_session(now).is_none() => Rung::Session(session.clone()),
        (_, _) => Rung::HandOver,
    };
    let fact = Fact::AttemptStarted { number: task.attempts.saturating_add(1), epoch: next_epoch(task.attempts), rung };
    Record { at: now, stream: Stream::Task(run.id.clone(), task.id.clone()), fact }
}

/// How a run in which nothing is left to do has ended.
fn verdict(run: &Run) -> RunEnd {
    let wanted = |task: &Task| match &task.phase {
        Phase::Landed { .. } => true,
        Phase::Done(_) => !run.spec.auto_land || task.is_on_target(),
        _ => false,
    };
    let good = run.tasks.iter().filter(|task| wanted(task)).count();
    if good == run.tasks.len() {
        RunEnd::Done
    } else if good == 0 && !run.tasks.iter().any(|task| task.result().is_some()) {
        RunEnd::Failed
    } else {
        RunEnd::Degraded
    }
}

#[cfg(test)]
mod tests;
