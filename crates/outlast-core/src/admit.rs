//! The outside world becomes facts: a command is checked against what is true, and becomes records or is refused.
//!
//! An outcome that carries an older attempt or epoch than the living one is stale and is refused: whoever sent it was
//! given up. A command that has already had its effect yields no record, so that repeating it is harmless.

mod rejection;

pub use rejection::Rejection;

use crate::budget::{Allowed, Estimate, Reached};
use crate::class::Class;
use crate::core::Core;
use crate::ids::{AccountId, Epoch, ExchangeId, Oid, RunId, TaskId};
use crate::mutant::{Bug, planted};
use crate::record::{Assigned, Fact, LandingCause, Outcome, Record, RunSpec, ShimRef, Stream, TaskSpec, Verdict};
use crate::run::{Mode, Run};
use crate::task::{Phase, Stage, Task};
use crate::time::Timestamp;
use crate::usage::Usage;

/// Something that the outside world says or wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Execute a plan.
    StartRun {
        /// A new id.
        run: RunId,
        /// What the core needs of the plan.
        spec: RunSpec,
        /// Its tasks in the plan's order.
        tasks: Vec<(TaskId, TaskSpec)>,
    },
    /// Park what is alive and start nothing.
    PauseRun(RunId),
    /// Park what is alive and leave.
    StopRun(RunId),
    /// Go on.
    ResumeRun(RunId),
    /// A request does not fit into what is left of a run's budget, and nothing is on its way.
    ReachBudget {
        /// Which run.
        run: RunId,
        /// The request that does not fit.
        reached: Reached,
    },
    /// A person changes what a run may spend; parts that are not named stay as they are.
    ChangeBudget {
        /// Which run.
        run: RunId,
        /// The parts that change.
        allowed: Allowed,
    },
    /// News of a living attempt.
    Attempt {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
        /// Which try.
        number: u32,
        /// The fence it was started with.
        epoch: Epoch,
        /// What is new.
        news: AttemptNews,
    },
    /// A provider answered and billed: true whether or not the attempt still lives.
    Exchanged {
        /// The run that is billed.
        run: RunId,
        /// The task that is billed.
        task: TaskId,
        /// The attempt that asked.
        number: u32,
        /// Who bills.
        account: AccountId,
        /// Whether it was a main turn.
        main: bool,
        /// What it consumed.
        usage: Usage,
        /// What was reserved for it, where what it consumed is not certain.
        reserved: Option<Estimate>,
        /// Which row of the ledger it is.
        exchange: ExchangeId,
    },
    /// A person gives a task to another agent.
    Assign {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
        /// To whom.
        assigned: Assigned,
    },
    /// Every exchange of the ledger up to a row is on record.
    LedgerCounted {
        /// The row, counted from 1.
        row: u64,
    },
    /// The work of an attempt was checked.
    Verified {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
        /// Whose work.
        number: u32,
        /// The tree that was checked, kept in the store.
        checkpoint: Option<Oid>,
        /// What came of it.
        verdict: Verdict,
    },
    /// A person wants a verified result to land.
    Land {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
    },
    /// News of a landing.
    Landing {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
        /// What is new.
        news: LandingNews,
    },
    /// A person gives a task's work up.
    Discard {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
    },
    /// A person wants a task tried again that was given up.
    Retry {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
    },
    /// The work is archived.
    Discarded {
        /// Its run.
        run: RunId,
        /// Its task.
        task: TaskId,
    },
    /// A provider refused with a stated end.
    CloseAccount {
        /// Which account.
        account: AccountId,
        /// Why.
        class: Class,
        /// Until when, where the provider says so.
        until: Option<Timestamp>,
    },
    /// A provider refused what only a person can mend.
    ShutAccount {
        /// Which account.
        account: AccountId,
        /// Why.
        class: Class,
    },
    /// A provider has begun to answer a request.
    AccountAnswered(AccountId),
    /// The user lets an account be used again that was closed for its hours, or that waits for a person.
    OpenAccount(AccountId),
    /// A person knows that a limit is over: what a run waits for is tried at once.
    TryNow(RunId),
    /// The machine is short of memory.
    MakeRoom,
}

impl Command {
    /// The one stream that decides whether it is admitted; nothing where it looks at other tasks as well.
    pub(crate) fn stream(&self) -> Option<Stream> {
        match self {
            Self::StartRun { run, .. }
            | Self::PauseRun(run)
            | Self::StopRun(run)
            | Self::ResumeRun(run)
            | Self::ReachBudget { run, .. }
            | Self::ChangeBudget { run, .. } => Some(Stream::Run(run.clone())),
            // It closes an account, too.
            Self::Attempt { news: AttemptNews::Exited(Outcome::Failed { class, .. }), .. } if class.is_limit() => None,
            Self::Attempt { run, task, .. }
            | Self::Exchanged { run, task, .. }
            | Self::Verified { run, task, .. }
            | Self::Assign { run, task, .. }
            | Self::Discard { run, task }
            | Self::Discarded { run, task } => Some(Stream::Task(run.clone(), task.clone())),
            Self::CloseAccount { account, .. }
            | Self::ShutAccount { account, .. }
            | Self::AccountAnswered(account)
            | Self::OpenAccount(account) => Some(Stream::Account(account.clone())),
            Self::LedgerCounted { .. } => Some(Stream::Ledger),
            Self::Land { .. } | Self::Landing { .. } | Self::Retry { .. } | Self::TryNow(_) | Self::MakeRoom => None,
        }
    }
}

/// News of a living attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptNews {
    /// Its workspace holds its base.
    WorkspaceReady(Oid),
    /// Its shim lives.
    Spawned(ShimRef),
    /// The CLI named its session.
    SessionSeen(String),
    /// A request of it waits.
    Held {
        /// What for.
        class: Class,
        /// Until when, where known.
        until: Option<Timestamp>,
    },
    /// No request of it waits.
    Released,
    /// It got the answer of this exchange out of the ledger.
    Replayed(ExchangeId),
    /// A tree of it is in the store.
    Checkpointed(Oid),
    /// Its agent is gone, or gets nowhere.
    Exited(Outcome),
    /// No process of it lives.
    Ended,
}

/// News of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingNews {
    /// A verified candidate exists.
    Candidate {
        /// The target's tip that it was made for.
        old: Option<Oid>,
        /// The commit.
        new: Oid,
    },
    /// The target holds the commit.
    Landed(Oid),
    /// The target holds the change already, by a commit that was made for something else.
    WasThere(Oid),
    /// It did not happen.
    Refused {
        /// The commit that was to land; none where no candidate came of it.
        commit: Option<Oid>,
        /// How many landings of it were refused before this one: the same commit may be made again.
        refusals: u32,
        /// Why.
        cause: LandingCause,
        /// For people.
        detail: String,
    },
}

impl Core {
    /// Turns a command into the facts that it makes true.
    ///
    /// # Errors
    /// A [`Rejection`] where the command is stale, or cannot be done in the state that things are in.
    pub fn admit(&self, now: Timestamp, command: Command) -> Result<Vec<Record>, Rejection> {
        match command {
            Command::StartRun { run, spec, tasks } => self.admit_start(now, run, spec, tasks),
            Command::PauseRun(run) => self.admit_mode(now, run, Mode::Paused, Fact::RunPaused),
            Command::StopRun(run) => self.admit_mode(now, run, Mode::Stopped, Fact::RunStopped),
            Command::ResumeRun(run) => self.admit_mode(now, run, Mode::Running, Fact::RunResumed),
            Command::Land { run, task } => self.admit_land(now, run, task),
            Command::Discard { run, task } => self.admit_discard(now, run, task),
            Command::Assign { run, task, assigned } => self.admit_assigning(now, run, task, assigned),
            Command::Retry { run, task } => self.admit_retry(now, run, task),
            Command::CloseAccount { account, class, until } => Ok(self.admit_closing(now, account, class, until)),
            Command::ShutAccount { account, class } => Ok(self.admit_shutting(now, account, class)),
            Command::AccountAnswered(account) => Ok(self.admit_answered(now, account)),
            Command::Attempt { run, task, number, epoch, news } => {
                let found = self.find(&run, &task)?;
                let fact = admit_attempt(found, number, epoch, news)?;
                let closing = fact.as_ref().map_or_else(Vec::new, |fact| self.closing_by(now, found, fact));
                Ok(closing.into_iter().chain(fact.map(|fact| on_task(now, run, task, fact))).collect())
            }
            Command::Exchanged { run, task, number, account, main, usage, reserved, exchange } => {
                self.find(&run, &task)?;
                if self.has_counted(&exchange) {
                    return Ok(Vec::new());
                }
                let fact = Fact::Exchanged { number, account, main, usage, reserved, exchange: Some(exchange) };
                Ok(vec![on_task(now, run, task, fact)])
            }
            Command::LedgerCounted { row } => Ok(self.admit_count(now, row)),
            Command::ReachBudget { run, reached } => self.admit_reached(now, run, reached),
            Command::ChangeBudget { run, allowed } => self.admit_budget(now, run, allowed),
            Command::OpenAccount(account) => Ok(self.admit_opening(now, account)),
            Command::TryNow(run) => self.admit_trying(now, &run),
            Command::MakeRoom => Ok(self.make_room(now).into_iter().collect()),
            Command::Verified { run, task, number, checkpoint, verdict } => {
                let facts = admit_verdict(self.find(&run, &task)?, number, checkpoint, verdict)?;
                Ok(facts.into_iter().map(|fact| on_task(now, run.clone(), task.clone(), fact)).collect())
            }
            Command::Landing { run, task, news } => {
                let fact = self.admit_landing(&run, &task, news)?;
                Ok(fact.map(|fact| on_task(now, run, task, fact)).into_iter().collect())
            }
            Command::Discarded { run, task } => {
                let found = self.find(&run, &task)?;
                match found.phase {
                    Phase::Discarding => Ok(vec![on_task(now, run, task, Fact::Discarded)]),
                    Phase::Discarded => Ok(Vec::new()),
                    _ => Err(illegal(found, "be discarded")),
                }
            }
        }
    }

    fn admit_start(
        &self,
        now: Timestamp,
        run: RunId,
        spec: RunSpec,
        tasks: Vec<(TaskId, TaskSpec)>,
    ) -> Result<Vec<Record>, Rejection> {
        if self.runs.contains_key(&run) {
            return Err(Rejection::RunExists(run));
        }
        let started = Record { at: now, stream: Stream::Run(run.clone()), fact: Fact::RunStarted(spec) };
        let added = tasks.into_iter().map(|(id, spec)| on_task(now, run.clone(), id, Fact::TaskAdded(spec)));
        Ok(std::iter::once(started).chain(added).collect())
    }

    fn admit_mode(&self, now: Timestamp, run: RunId, wanted: Mode, fact: Fact) -> Result<Vec<Record>, Rejection> {
        let found = self.runs.get(&run).ok_or_else(|| Rejection::NoRun(run.clone()))?;
        // A finished run has nothing to pause or to stop, and resuming it changes nothing.
        let already = found.mode == wanted || matches!(found.mode, Mode::Finished(_));
        Ok(if already { Vec::new() } else { vec![Record { at: now, stream: Stream::Run(run), fact }] })
    }

    fn admit_land(&self, now: Timestamp, run: RunId, task: TaskId) -> Result<Vec<Record>, Rejection> {
        let found = self.find(&run, &task)?;
        match &found.phase {
            Phase::Landed { .. } | Phase::Landing { .. } => Ok(Vec::new()),
            Phase::Done(finished) if finished.wanted || found.is_on_target() => Ok(Vec::new()),
            Phase::Done(_) => {
                let behind = found.spec.needs.iter().find(|need| !self.lands_before(&run, need));
                match behind {
                    Some(need) => Err(Rejection::NeedNotLanded { task, need: need.clone() }),
                    None => Ok(vec![on_task(now, run, task, Fact::LandRequested)]),
                }
            }
            _ => Err(illegal(found, "land")),
        }
    }

    /// Whether a need is on the target, or is to land first.
    fn lands_before(&self, run: &RunId, need: &TaskId) -> bool {
        let Some(need) = self.runs.get(run).and_then(|run| run.task(need)) else {
            return true;
        };
        match &need.phase {
            Phase::Done(finished) => finished.wanted || need.is_on_target(),
            Phase::Landing { .. } | Phase::Landed { .. } => true,
            _ => false,
        }
    }

    fn admit_landing(&self, run: &RunId, task: &TaskId, news: LandingNews) -> Result<Option<Fact>, Rejection> {
        let found = self.find(run, task)?;
        match (news, &found.phase) {
            // A late candidate must not overtake what is landing, nor land what nobody wants any more.
            (LandingNews::Candidate { old, new }, Phase::Done(_)) if self.may_land_now(run, task) => {
                Ok(Some(Fact::LandingStarted { old, new }))
            }
            (LandingNews::Landed(commit), Phase::Landing { .. } | Phase::Done(_)) => {
                Ok(Some(Fact::Landed { commit, was_there: false }))
            }
            (LandingNews::WasThere(commit), Phase::Landing { .. } | Phase::Done(_)) => {
                Ok(Some(Fact::Landed { commit, was_there: true }))
            }
            // A late refusal of an earlier landing, or of an earlier step of this one, is none of what is going on.
            (LandingNews::Refused { commit, refusals, cause, detail }, Phase::Landing { finished, new, .. })
                if commit.as_ref() == Some(new) && refusals == finished.refusals =>
            {
                Ok(Some(Fact::LandingRefused { cause, detail }))
            }
            (LandingNews::Refused { commit: None, refusals, cause, detail }, Phase::Done(finished))
                if refusals == finished.refusals =>
            {
                Ok(Some(Fact::LandingRefused { cause, detail }))
            }
            (LandingNews::Landed(commit) | LandingNews::WasThere(commit), Phase::Landed { commit: known, .. })
                if commit == *known =>
            {
                Ok(None)
            }
            _ => Err(illegal(found, "land")),
        }
    }

    fn may_land_now(&self, run: &RunId, task: &TaskId) -> bool {
        self.runs
            .get(run)
            .is_some_and(|run| !run.is_landing() && run.index(task).is_some_and(|index| run.can_land(index)))
    }

    fn admit_discard(&self, now: Timestamp, run: RunId, task: TaskId) -> Result<Vec<Record>, Rejection> {
        let found = self.find(&run, &task)?;
        match &found.phase {
            Phase::Discarding | Phase::Discarded => Ok(Vec::new()),
            Phase::Landing { .. } => Err(illegal(found, "be discarded while it lands")),
            _ if found.is_on_target() => Err(illegal(found, "be discarded: its change is on the target")),
            Phase::Live(_) | Phase::Verifying { .. } => {
                Err(illegal(found, "be discarded while it is worked on: pause it first"))
            }
            _ => Ok(vec![on_task(now, run, task, Fact::DiscardRequested)]),
        }
    }

    pub(crate) fn find(&self, run: &RunId, task: &TaskId) -> Result<&Task, Rejection> {
        let found: &Run = self.runs.get(run).ok_or_else(|| Rejection::NoRun(run.clone()))?;
        found.task(task).ok_or_else(|| Rejection::NoTask(run.clone(), task.clone()))
    }
}

pub(crate) const fn on_task(at: Timestamp, run: RunId, task: TaskId, fact: Fact) -> Record {
    Record { at, stream: Stream::Task(run, task), fact }
}

pub(crate) fn illegal(task: &Task, wish: &'static str) -> Rejection {
    Rejection::Illegal { task: task.id.clone(), state: task.state(), wish }
}

fn admit_verdict(
    task: &Task,
    number: u32,
    checkpoint: Option<Oid>,
    verdict: Verdict,
) -> Result<impl IntoIterator<Item = Fact> + use<>, Rejection> {
    if task.phase != (Phase::Verifying { number }) {
        return Err(Rejection::Stale(task.id.clone(), number));
    }
    let kept = checkpoint.map(|commit| Fact::Checkpointed { number, commit });
    Ok(kept.into_iter().chain([Fact::Verified { number, verdict }]))
}

fn admit_attempt(task: &Task, number: u32, epoch: Epoch, news: AttemptNews) -> Result<Option<Fact>, Rejection> {
    let stale = || Rejection::Stale(task.id.clone(), number);
    let is_end = matches!(news, AttemptNews::Ended);
    let is_taken = planted(Bug::StaleNewsTaken) || is_end && planted(Bug::StaleEndTaken);
    let attempt = task.attempt().filter(|a| a.number == number && a.epoch == epoch || is_taken).ok_or_else(stale)?;
    let ending = matches!(attempt.stage, Stage::Ending(_));
    if is_end {
        // Only what was given up can have ended: the reason is on record before the processes are touched.
        return if ending { Ok(Some(Fact::AttemptEnded { number: attempt.number })) } else { Err(stale()) };
    }
    if let AttemptNews::Checkpointed(commit) = news {
        return Ok((task.checkpoint.as_ref() != Some(&commit)).then_some(Fact::Checkpointed { number, commit }));
    }
    if ending {
        return Err(stale());
    }
    Ok(match news {
        AttemptNews::WorkspaceReady(base) => {
            (task.base.as_ref() != Some(&base)).then_some(Fact::WorkspaceReady { number, base })
        }
        AttemptNews::Spawned(shim) => (attempt.shim.as_ref() != Some(&shim)).then_some(Fact::Spawned { number, shim }),
        AttemptNews::SessionSeen(session) => {
            (task.session.as_ref() != Some(&session)).then_some(Fact::SessionSeen { number, session })
        }
        AttemptNews::Held { class, until } => {
            let known = attempt.held.as_ref().is_some_and(|held| held.class == class && held.until == until);
            (!known).then_some(Fact::Held { number, class, until })
        }
        AttemptNews::Released => attempt.held.is_some().then_some(Fact::Released { number }),
        AttemptNews::Exited(outcome) => {
            (attempt.stage == Stage::Working).then_some(Fact::AttemptExited { number, outcome })
        }
        AttemptNews::Replayed(exchange) => Some(Fact::Replayed { number, exchange }),
        AttemptNews::Checkpointed(_) | AttemptNews::Ended => None,
    })
}

#[cfg(test)]
mod tests;
