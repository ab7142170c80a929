//! One task of a run: which phase it is in, and what that phase knows.
//!
//! ```text
//! Pending ─▶ Ready ─▶ Live ─▶ Verifying ─▶ Done ─▶ Landing ─▶ Landed
//!    │        ▲  ▲     │          │          │
//!    ▼        │  └─ Waiting ◀─────┘          ├─▶ Stale
//! Blocked   Parked ◀───┤                     └─▶ Discarding ─▶ Discarded
//!                      └─▶ Failed
//! ```
//!
//! Each phase carries exactly the data that it has, so that a state that cannot be is not written.

use serde::{Deserialize, Serialize};

use crate::again_paid::PaidAgain;
use crate::class::Class;
use crate::ids::{AccountId, Epoch, Oid, TaskId};
use crate::mutant::{Bug, planted};
use crate::record::{EndReason, LandingCause, Outcome, Rung, ShimRef, TaskSpec};
use crate::time::Timestamp;
use crate::usage::Usage;

/// A task and its history as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id in the plan.
    pub id: TaskId,
    /// What the plan says of it.
    pub spec: TaskSpec,
    /// Where it stands.
    pub phase: Phase,
    /// How many attempts were started.
    pub attempts: u32,
    /// How many of them count against `retries`.
    pub tries_used: u32,
    /// How many attempts in a row ended by no fault of the task.
    pub free_retries: u32,
    /// How many of them, the last ones, made no headway before: what its next start waits by.
    #[serde(default)]
    pub waits: u32,
    /// How many attempts in a row were lost (`vanished`) before they had changed anything.
    #[serde(default)]
    pub losses: u32,
    /// How many attempts in a row ended by a session that could not be gone on with (`corrupt_session`).
    #[serde(default)]
    pub broken: u32,
    /// How many attempts in a row never began (`startup`).
    #[serde(default)]
    pub startups: u32,
    /// How many results in a row were empty: their agents took the work for done and had changed nothing.
    #[serde(default)]
    pub empties: u32,
    /// The commit its change is measured against, once a workspace exists.
    pub base: Option<Oid>,
    /// The CLI's session that a next attempt can continue.
    pub session: Option<String>,
    /// The newest tree kept in the store.
    pub checkpoint: Option<Oid>,
    /// How the last attempt took up the work.
    pub resumed_by: Option<Rung>,
    /// Why the last attempt or check failed, for people.
    pub last_failure: Option<Failure>,
    /// The limit that its last attempt was parked for, or that its agent reported, until the next one begins.
    #[serde(default)]
    pub parked_for: Option<Class>,
    /// When what it was parked for was said to end.
    #[serde(default)]
    pub parked_until: Option<Timestamp>,
    /// Main turns so far.
    pub turns: u32,
    /// What it consumed so far.
    pub usage: Usage,
    /// What of that was paid for again.
    #[serde(default)]
    pub paid_again: PaidAgain,
    /// A need of it was discarded after its base was made.
    pub stale: bool,
    /// How many of its needs have no verified result yet.
    pub needs_open: u32,
}

/// What went wrong last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its class.
    pub class: Class,
    /// For people, one line.
    pub why: String,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A need has no verified result yet.
    Pending,
    /// It can start when there is room.
    Ready,
    /// It starts again at a known time.
    Waiting {
        /// When.
        until: Timestamp,
    },
    /// It was stopped with its work kept, and starts again when the run is resumed.
    Parked,
    /// An agent works on it.
    Live(Attempt),
    /// Its work is being checked.
    Verifying {
        /// Whose work.
        number: u32,
    },
    /// Its work is verified and has not landed.
    Done(Finished),
    /// The target is being moved to its commit.
    Landing {
        /// What lands.
        finished: Finished,
        /// The target's tip before.
        old: Option<Oid>,
        /// The commit that lands.
        new: Oid,
    },
    /// The target holds its commit.
    Landed {
        /// The verified result.
        result: Oid,
        /// The commit on the target.
        commit: Oid,
        /// Whether that was made for something else, and held its change already.
        #[serde(default)]
        was_there: bool,
    },
    /// Its work is being archived.
    Discarding,
    /// Its work is archived and its workspace is gone.
    Discarded,
    /// It was begun or verified on top of work that is discarded since.
    Stale,
    /// Its tries are used up, or no try would help.
    Failed,
    /// A task that it needs will not come to a result.
    Blocked {
        /// Which.
        by: TaskId,
    },
}

/// Verified work that waits to land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The commit in `store.git`.
    pub result: Oid,
    /// Its place in the order in which the run's results land: that in which they were verified, and from then on that in
    /// which a person has asked for them.
    pub order: u64,
    /// Whether it is to land.
    pub wanted: bool,
    /// Why the last landing did not happen.
    pub refused: Option<Refused>,
    /// How many landings of it did not happen: what a refusal is told from a late one of an earlier landing by.
    #[serde(default)]
    pub refusals: u32,
}

/// A landing that did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why.
    pub cause: LandingCause,
    /// For people: names and commands.
    pub detail: String,
}

/// One try of a task while it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Which try, counted from 1.
    pub number: u32,
    /// The fence its outcomes carry.
    pub epoch: Epoch,
    /// How the agent takes up the work.
    pub rung: Rung,
    /// When it started.
    pub started_at: Timestamp,
    /// The process that owns the agent, once it lives.
    pub shim: Option<ShimRef>,
    /// What its request waits for, while one waits.
    pub held: Option<Held>,
    /// Whether its tree was another one at one of its turns than at its start.
    #[serde(default)]
    pub made_headway: bool,
    /// Whether its agent has asked its model anything.
    #[serde(default)]
    pub has_asked: bool,
    /// Whether the last answer to it broke before its end.
    #[serde(default)]
    pub answer_broke: bool,
    /// The account that was billed last for it.
    #[serde(default)]
    pub account: Option<AccountId>,
    /// How far it is.
    pub stage: Stage,
}

impl Attempt {
    /// One that has just started.
    pub(crate) const fn started(number: u32, epoch: Epoch, rung: Rung, started_at: Timestamp) -> Self {
        Self {
            number,
            epoch,
            rung,
            started_at,
            shim: None,
            held: None,
            made_headway: false,
            has_asked: false,
            answer_broke: false,
            account: None,
            stage: Stage::Working,
        }
    }
}

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What it waits for.
    pub class: Class,
    /// Since when.
    pub since: Timestamp,
    /// When it goes on, where that is known.
    pub until: Option<Timestamp>,
}

/// How far a living attempt is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is prepared, launched or at work.
    Working,
    /// Its agent is gone; what becomes of it is not decided yet.
    Exited(Outcome),
    /// Its key is void and its processes are being ended.
    Ending(EndReason),
}

/// Every state that a task can be told to be in, in the order of its life; `asking` is for what a person has to answer.
pub const STATES: [&str; 14] = [
    "pending",
    "ready",
    "running",
    "held",
    "parked",
    "asking",
    "verifying",
    "done",
    "landing",
    "landed",
    "discarded",
    "stale",
    "failed",
    "blocked",
];

impl Task {
    /// A task as it enters a run.
    pub fn new(id: TaskId, spec: TaskSpec, needs_open: u32) -> Self {
        let phase = if needs_open == 0 { Phase::Ready } else { Phase::Pending };
        Self {
            id,
            spec,
            phase,
            attempts: 0,
            tries_used: 0,
            free_retries: 0,
            waits: 0,
            losses: 0,
            broken: 0,
            startups: 0,
            empties: 0,
            base: None,
            session: None,
            checkpoint: None,
            resumed_by: None,
            last_failure: None,
            parked_for: None,
            parked_until: None,
            turns: 0,
            usage: Usage::default(),
            paid_again: PaidAgain::default(),
            stale: false,
            needs_open,
        }
    }

    /// The living attempt.
    pub const fn attempt(&self) -> Option<&Attempt> {
        match &self.phase {
            Phase::Live(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Whether its agent has reported when a limit ends, and its attempt is not over yet.
    pub(crate) const fn reports_an_end(&self) -> bool {
        matches!(
            &self.phase,
            Phase::Live(Attempt {
                stage: Stage::Exited(Outcome::Failed { until: Some(_), .. })
                    | Stage::Ending(EndReason::Failed { until: Some(_), .. }),
                ..
            })
        )
    }

    /// Forgets when the limit ends that its agent has reported.
    pub(crate) fn forget_reported_end(&mut self) {
        let Phase::Live(attempt) = &mut self.phase else { return };
        if let Stage::Exited(Outcome::Failed { until, .. }) | Stage::Ending(EndReason::Failed { until, .. }) =
            &mut attempt.stage
        {
            *until = None;
        }
    }

    /// The verified result that dependants start from.
    pub const fn result(&self) -> Option<&Oid> {
        match &self.phase {
            Phase::Done(finished) | Phase::Landing { finished, .. } => Some(&finished.result),
            Phase::Landed { result, .. } => Some(result),
            _ => None,
        }
    }

    /// The commit by which it has landed.
    pub const fn landed_as(&self) -> Option<&Oid> {
        match &self.phase {
            Phase::Landed { commit, .. } => Some(commit),
            _ => None,
        }
    }

    /// Whether the target holds its change: by a commit of its own, or because it was there already.
    pub fn is_on_target(&self) -> bool {
        match &self.phase {
            Phase::Landed { .. } => true,
            Phase::Done(finished) => {
                finished.refused.as_ref().is_some_and(|r| r.cause == LandingCause::Empty && !planted(Bug::EmptyBlocks))
            }
            _ => false,
        }
    }

    /// Its place in the order in which verified results land; nothing where it has none.
    pub const fn landing_order(&self) -> Option<u64> {
        match &self.phase {
            Phase::Done(finished) | Phase::Landing { finished, .. } => Some(finished.order),
            _ => None,
        }
    }

    /// The name of its state in the contract of the command line.
    pub fn state(&self) -> &'static str {
        match &self.phase {
            Phase::Pending => "pending",
            Phase::Ready | Phase::Waiting { .. } if self.parked_for.is_some() => "parked",
            Phase::Ready | Phase::Waiting { .. } => "ready",
            Phase::Parked => "parked",
            Phase::Live(attempt) if attempt.held.is_some() && attempt.stage == Stage::Working => "held",
            Phase::Live(_) | Phase::Discarding => "running",
            Phase::Verifying { .. } => "verifying",
            Phase::Done(_) => "done",
            Phase::Landing { .. } => "landing",
            Phase::Landed { .. } => "landed",
            Phase::Discarded => "discarded",
            Phase::Stale => "stale",
            Phase::Failed => "failed",
            Phase::Blocked { .. } => "blocked",
        }
    }

    /// Whether something of it is in flight: it holds a slot and its scope.
    pub const fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Live(_) | Phase::Verifying { .. })
    }
}
