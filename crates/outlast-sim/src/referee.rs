//! A second, naive reading of the records that judges whether the core's decisions are allowed.
//!
//! It knows the scenario, it reads records as they become durable, and it shares no rule with the core: what it says
//! is wrong, is wrong. It never looks at the core's state but in [`Referee::compare`].

mod attempt;
mod end;
mod landing;

use outlast_core::class::{Class, Remedy};
use outlast_core::record::{EndReason, Fact, LandingCause, TaskSpec, Verdict};
use outlast_core::retry::{BROKEN_FREE_MAX, FREE_RETRIES_MAX, LOSSES_FREE_MAX};
use outlast_core::{Core, Record, Stream, Timestamp};

use crate::invariant::{Invariant, Violation};
use crate::scenario::{Scenario, Spot};

/// What the records say so far.
#[derive(Debug)]
pub(crate) struct Referee {
    runs: Vec<RunView>,
    /// Until when each account is closed.
    closed: Vec<Option<Timestamp>>,
    /// Which of them wait for a person.
    shut: Vec<bool>,
}

#[derive(Debug)]
struct RunView {
    goes_on: bool,
    /// Its budget is reached.
    reached: bool,
    tasks: Vec<TaskView>,
}

/// A task as the records tell it.
#[derive(Debug, Default)]
struct TaskView {
    /// How many attempts started.
    started: u32,
    /// How many of them ended.
    ended: u32,
    epoch: u32,
    live: Option<Live>,
    /// The attempt whose work is to be checked.
    verifying: Option<u32>,
    /// Failures that count against the task's retries.
    tries: u32,
    /// Failures in a row that do not.
    free: u32,
    /// They were too many, and the last was no limit, which ends by itself.
    is_lost: bool,
    /// The stated end of a limit that its agent reported.
    not_before: Option<Timestamp>,
    losses: u32,
    /// Attempts in a row that ended by a broken session.
    broken: u32,
    /// Attempts in a row that never began.
    startups: u32,
    /// Checks in a row that found that nothing was changed.
    empties: u32,
    /// Only a person can help.
    needs_person: bool,
    verified: bool,
    landing: bool,
    landed: bool,
    refused: Option<LandingCause>,
    /// The accounts that it may use now, where it was given to another agent.
    accounts: Option<Vec<usize>>,
    /// A person gave it up.
    discarded: bool,
    /// It was started or verified, and a need of it was given up since.
    spoilt: bool,
}

#[derive(Debug)]
struct Live {
    number: u32,
    held: bool,
    exited: bool,
    spawned: bool,
    /// Its tree changed at one of its turns.
    advanced: bool,
    ending: Option<EndReason>,
}

impl TaskView {
    const fn is_busy(&self) -> bool {
        self.live.is_some() || self.verifying.is_some()
    }

    /// Whether dependants may start from its result.
    const fn has_result(&self) -> bool {
        self.verified && !self.discarded && !self.spoilt
    }

    /// Whether its change is on the target, by its own commit or as it was.
    fn is_on_target(&self) -> bool {
        self.landed || self.refused == Some(LandingCause::Empty)
    }

    /// Whether no further try is allowed or of use.
    fn is_spent(&self, spec: &TaskSpec) -> bool {
        let never_begins = spec.startup_retries.is_some_and(|most| self.startups > most);
        let does_nothing = spec.empty_retries.is_some_and(|most| self.empties > most);
        self.needs_person || self.tries > spec.retries || self.is_lost || never_begins || does_nothing
    }

    /// An attempt failed, or the check of its work; `living` is the attempt.
    fn failed(&mut self, class: Class, living: Option<&Live>) {
        let is_loss = class == Class::Vanished && living.is_some_and(|live| live.spawned && !live.advanced);
        self.losses = if is_loss { self.losses + 1 } else { 0 };
        self.broken = if class == Class::CorruptSession { self.broken + 1 } else { 0 };
        self.startups = if class == Class::Startup { self.startups + 1 } else { 0 };
        // A check has no living attempt.
        self.empties = if class == Class::GaveUp && living.is_none() { self.empties + 1 } else { 0 };
        match class.remedy() {
            Remedy::Later if self.losses > LOSSES_FREE_MAX || self.broken > BROKEN_FREE_MAX => self.tries += 1,
            Remedy::Retry => {
                self.tries += 1;
                self.free = 0;
            }
            Remedy::Later => self.free += 1,
            Remedy::Person => self.needs_person = true,
        }
        self.is_lost = self.free > FREE_RETRIES_MAX && !class.is_limit();
    }
}

impl Referee {
    /// A referee who has read nothing.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let run = |tasks: usize| RunView {
            goes_on: true,
            reached: false,
            tasks: (0..tasks).map(|_| TaskView::default()).collect(),
        };
        Self {
            runs: scenario.runs.iter().map(|r| run(r.tasks.len())).collect(),
            closed: vec![None; scenario.accounts.len()],
            shut: vec![false; scenario.accounts.len()],
        }
    }

    /// Reads a record.
    pub(crate) fn observe(&mut self, scenario: &Scenario, record: &Record) -> Result<(), Violation> {
        match &record.stream {
            Stream::Account(account) => {
                if let Some(i) = scenario.account(account).filter(|i| *i < self.closed.len()) {
                    match &record.fact {
                        Fact::AccountClosed { until, .. } => self.closed[i] = Some(*until),
                        Fact::AccountShut { .. } => self.shut[i] = true,
                        Fact::AccountOpened => (self.closed[i], self.shut[i]) = (None, false),
                        _ => {}
                    }
                }
                Ok(())
            }
            Stream::Ledger => Ok(()),
            Stream::Run(run) => scenario.run(run).map_or(Ok(()), |run| self.on_run(scenario, run, &record.fact)),
            Stream::Task(run, task) => {
                scenario.spot(run, task).map_or(Ok(()), |spot| self.on_task(scenario, spot, record))
            }
        }
    }

    fn on_run(&mut self, scenario: &Scenario, run: usize, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::RunPaused | Fact::RunStopped => self.runs[run].goes_on = false,
            Fact::RunResumed => self.runs[run].goes_on = true,
            Fact::TriedNow => self.runs[run].tasks.iter_mut().for_each(TaskView::tried_now),
            Fact::BudgetReached(_) => self.runs[run].reached = true,
            Fact::BudgetChanged(_) => self.runs[run].reached = false,
            Fact::RunFinished { state } => {
                self.runs[run].goes_on = false;
                return self.finished(scenario, run, *state);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_task(&mut self, scenario: &Scenario, spot: Spot, record: &Record) -> Result<(), Violation> {
        match &record.fact {
            Fact::AttemptStarted { number, epoch, .. } => {
                self.may_start(scenario, spot, record.at)?;
                self.started(spot, *number, epoch.0)
            }
            Fact::Verified { number, verdict } => self.verified(scenario, spot, *number, verdict),
            Fact::RetryRequested => {
                self.view_mut(spot).not_before = None;
                let spec = &scenario.task(spot).spec;
                let view = self.view_mut(spot);
                Invariant::TriesKept.holds(view.is_spent(spec) || view.free + view.tries > 0, || {
                    format!("{spot:?}: again after {view:?}")
                })?;
                (view.tries, view.free, view.losses, view.startups) = (0, 0, 0, 0);
                (view.broken, view.empties, view.needs_person, view.is_lost) = (0, 0, false, false);
                Ok(())
            }
            Fact::Assigned(to) => {
                let accounts = to.accounts.iter().filter_map(|account| scenario.account(account)).collect();
                let view = self.view_mut(spot);
                // What its last agent was told is not what the next one meets.
                (view.accounts, view.not_before) = (Some(accounts), None);
                let fits = view.live.is_none() && view.verifying.is_none() && !view.verified;
                Invariant::NewsOfTheLivingOnly.holds(fits, || format!("{spot:?} is given away while {view:?}"))
            }
            Fact::DiscardRequested => {
                self.view_mut(spot).discarded = true;
                self.spoil_dependants(scenario, spot);
                Ok(())
            }
            Fact::LandingStarted { .. } | Fact::Landed { .. } | Fact::LandingRefused { .. } => {
                self.on_landing(scenario, spot, &record.fact)
            }
            Fact::LandRequested => {
                self.view_mut(spot).refused = None;
                Ok(())
            }
            fact => self.on_attempt(spot, fact),
        }
    }

    fn verified(&mut self, scenario: &Scenario, spot: Spot, number: u32, verdict: &Verdict) -> Result<(), Violation> {
        let view = self.view_mut(spot);
        Invariant::NewsOfTheLivingOnly.holds(view.verifying == Some(number), || {
            format!("{spot:?}: verdict on attempt {number}, awaited: {:?}", view.verifying)
        })?;
        view.verifying = None;
        match verdict {
            Verdict::Failed { class, .. } => view.failed(*class, None),
            Verdict::Passed { .. } => {
                view.verified = true;
                if view.spoilt {
                    self.spoil_dependants(scenario, spot);
                }
            }
        }
        Ok(())
    }

    /// Marks what was built on this task, which is given up.
    fn spoil_dependants(&mut self, scenario: &Scenario, spot: Spot) {
        let plans = scenario.runs[spot.run].tasks.iter().enumerate();
        let dependants: Vec<usize> =
            plans.filter(|(_, plan)| plan.needs.contains(&spot.task)).map(|(task, _)| task).collect();
        for task in dependants {
            let dependant = Spot { task, ..spot };
            let view = self.view_mut(dependant);
            if !view.spoilt && (view.started > 0 || view.verified) {
                view.spoilt = true;
                if view.verified {
                    self.spoil_dependants(scenario, dependant);
                }
            }
        }
    }

    /// Whether an attempt of this number is on record and not over.
    pub(crate) fn is_live(&self, spot: Spot, number: u32) -> bool {
        let live = self.view(spot).live.as_ref();
        live.is_some_and(|live| live.number == number)
    }

    /// Whether a need of a task was given up after it had begun.
    pub(crate) fn is_spoilt(&self, spot: Spot) -> bool {
        self.view(spot).spoilt
    }

    /// Whether a task's landing is under way.
    pub(crate) fn is_landing(&self, spot: Spot) -> bool {
        self.view(spot).landing
    }

    fn view(&self, spot: Spot) -> &TaskView {
        &self.runs[spot.run].tasks[spot.task]
    }

    fn view_mut(&mut self, spot: Spot) -> &mut TaskView {
        &mut self.runs[spot.run].tasks[spot.task]
    }

    /// Compares what the core holds of every task with what the records say.
    pub(crate) fn compare(&self, scenario: &Scenario, core: &Core) -> Result<(), Violation> {
        for (plan, view) in scenario.runs.iter().zip(&self.runs) {
            let Some(run) = core.run(&plan.id) else {
                continue;
            };
            for (task, view) in run.tasks.iter().zip(&view.tasks) {
                let attempt = task.attempt();
                let same = attempt.map(|a| a.number) == view.live.as_ref().map(|l| l.number)
                    && attempt.is_some_and(|a| a.held.is_some()) == view.live.as_ref().is_some_and(|l| l.held)
                    && task.is_busy() == view.is_busy()
                    && task.attempts == view.started;
                Invariant::StateSaysWhatRecordsSay
                    .holds(same, || format!("{}/{}: state {task:?}, records {view:?}", plan.id, task.id))?;
            }
        }
        Ok(())
    }
}
