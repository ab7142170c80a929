//! The records: everything that ever changes the state, in the past tense, on streams with rising revisions.
//!
//! A record is written before it takes effect and is read for ever, so its shape only grows: a new field needs a
//! default, a changed meaning needs a new fact. [`VERSION`] rises with either. Bodies (goals, answers, outputs) are
//! never in a record.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::{Allowed, Estimate, Reached};
use crate::class::Class;
use crate::ids::{AccountId, AgentName, Epoch, ExchangeId, Oid, RunId, TaskId};
use crate::time::Timestamp;
use crate::usage::Usage;

/// The version that is written with every record of today.
///
/// 2: an exchange has its id, and the ledger a stream.
/// 3: a person can have a task tried again, and have what waits for a limit tried at once, and give
/// a task to another agent; an account may wait for a person.
pub const VERSION: u16 = 3;

/// One fact, when it came to be, and whose history it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When the driver took it in.
    pub at: Timestamp,
    /// Whose history it belongs to.
    pub stream: Stream,
    /// What happened.
    pub fact: Fact,
}

/// Whose history a record belongs to: revisions rise by one within a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// A run as a whole.
    Run(RunId),
    /// One task of a run.
    Task(RunId, TaskId),
    /// An account at a provider, shared by all runs.
    Account(AccountId),
    /// The ledger of exchanges, shared by all runs.
    Ledger,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run/{run}"),
            Self::Task(run, task) => write!(f, "task/{run}/{task}"),
            Self::Account(account) => write!(f, "account/{account}"),
            Self::Ledger => f.write_str("ledger"),
        }
    }
}

impl Stream {
    /// Whether a run concerns itself with it: its own history, its tasks', and every account's.
    pub fn is_of(&self, run: &RunId) -> bool {
        match self {
            Self::Run(of) | Self::Task(of, _) => of == run,
            Self::Account(_) => true,
            Self::Ledger => false,
        }
    }

    /// Reads what [`fmt::Display`] wrote; nothing where the text is no stream.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "ledger" {
            return Some(Self::Ledger);
        }
        let (kind, rest) = text.split_once('/')?;
        match kind {
            "run" => Some(Self::Run(RunId::new(rest))),
            // A run id holds no slash, a task id may.
            "task" => rest.split_once('/').map(|(run, task)| Self::Task(RunId::new(run), TaskId::new(task))),
            "account" => Some(Self::Account(AccountId::new(rest))),
            _ => None,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// A plan began to be executed.
    RunStarted(RunSpec),
    /// No further starts, and living attempts are parked, until the run is resumed.
    RunPaused,
    /// The run ends with its living attempts parked; it can be resumed.
    RunStopped,
    /// A paused or stopped run goes on.
    RunResumed,
    /// A request does not fit into what is left of the run's budget: nothing more goes out until it is changed.
    BudgetReached(Reached),
    /// What the run may spend from now on, as a whole.
    BudgetChanged(Allowed),
    /// A person knows that a limit is over: tasks that wait for one by themselves wait no longer.
    TriedNow,
    /// Nothing is left to do.
    RunFinished {
        /// How it ended.
        state: RunEnd,
    },

    /// A task of the plan entered the run.
    TaskAdded(TaskSpec),
    /// A try began; nothing has been launched yet.
    AttemptStarted {
        /// Which try, counted from 1.
        number: u32,
        /// The fence its outcomes carry.
        epoch: Epoch,
        /// How the agent takes up the work.
        rung: Rung,
    },
    /// The workspace holds the attempt's base.
    WorkspaceReady {
        /// Which try.
        number: u32,
        /// The commit the task's change is measured against.
        base: Oid,
    },
    /// The shim that owns the agent lives.
    Spawned {
        /// Which try.
        number: u32,
        /// The process that can be re-adopted.
        shim: ShimRef,
    },
    /// The CLI named its own session.
    SessionSeen {
        /// Which try.
        number: u32,
        /// The CLI's name for it.
        session: String,
    },
    /// A request of the attempt waits for a provider.
    Held {
        /// Which try.
        number: u32,
        /// What it waits for.
        class: Class,
        /// When it goes on, where that is known.
        until: Option<Timestamp>,
    },
    /// No request of the attempt waits any more.
    Released {
        /// Which try.
        number: u32,
    },
    /// A request was answered and metered.
    Exchanged {
        /// Which try.
        number: u32,
        /// Who billed it.
        account: AccountId,
        /// Whether it was a main turn of the conversation.
        main: bool,
        /// What it consumed.
        usage: Usage,
        /// What was reserved for it, where what it consumed is not certain: the least that it counts in a budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Estimate>,
        /// Which row of the ledger it is; absent in records of version 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exchange: Option<ExchangeId>,
    },
    /// A request got an answer out of the ledger: it was paid for before, and had reached nobody.
    Replayed {
        /// Which try.
        number: u32,
        /// What was paid for.
        exchange: ExchangeId,
    },
    /// The tree of the workspace is kept in the store.
    Checkpointed {
        /// Which try.
        number: u32,
        /// The commit in `store.git`.
        commit: Oid,
    },
    /// The agent's process ended, was seen to be gone, or gets nowhere and is to be ended.
    AttemptExited {
        /// Which try.
        number: u32,
        /// What its output and status amount to.
        outcome: Outcome,
    },
    /// The attempt is given up: its key is void from here on.
    AttemptEnding {
        /// Which try.
        number: u32,
        /// Why.
        reason: EndReason,
    },
    /// No process of the attempt lives: the terminal record of every start.
    AttemptEnded {
        /// Which try.
        number: u32,
    },
    /// The work of an attempt was checked.
    Verified {
        /// Which try.
        number: u32,
        /// What came of it.
        verdict: Verdict,
    },
    /// A person gave the task to another agent.
    Assigned(Assigned),
    /// A person asked for this task to land.
    LandRequested,
    /// The target is about to move.
    LandingStarted {
        /// The target's tip before, or nothing where it is new.
        old: Option<Oid>,
        /// The commit that lands.
        new: Oid,
    },
    /// The target holds the task's commit.
    Landed {
        /// The commit on the target.
        commit: Oid,
        /// Whether the target held the change already, by a commit that was made for something else.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        was_there: bool,
    },
    /// The landing did not happen; the work is as it was.
    LandingRefused {
        /// Why.
        cause: LandingCause,
        /// For people: names and commands.
        detail: String,
    },
    /// A person asked for this task to be tried again, with its work as it is and all its tries.
    RetryRequested,
    /// A person asked for this task's work to be archived and given up.
    DiscardRequested,
    /// The work is archived and the workspace is gone.
    Discarded,

    /// An account takes no requests.
    AccountClosed {
        /// Why.
        class: Class,
        /// When it opens again.
        until: Timestamp,
        /// Whether that is a guess of ours: the provider named no end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        guessed: bool,
    },
    /// An account takes no requests until a person has done something about it.
    AccountShut {
        /// Why.
        class: Class,
    },
    /// An account is due: it is tried out, or it takes requests again.
    AccountOpened,
    /// An account that is tried out took a request.
    AccountAnswered,

    /// Every exchange of the ledger up to a row is on record.
    LedgerCounted {
        /// The row, counted from 1.
        row: u64,
    },
}

/// What the core needs to know of a run; the whole plan is kept beside the journal under `plan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The content hash of the plan.
    pub plan: String,
    /// The commit that tasks start from.
    pub base: Oid,
    /// The branch that results land on.
    pub target: String,
    /// How many tasks are worked on at once.
    pub concurrency: u32,
    /// Whether verified results land by themselves.
    pub auto_land: bool,
    /// What jitter and session ids are derived from.
    pub seed: u64,
    /// What it may spend.
    #[serde(default, skip_serializing_if = "Allowed::is_unlimited")]
    pub budget: Allowed,
    /// How long a request may be held before its attempt is parked, in milliseconds; absent for the usual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_max_ms: Option<u64>,
}

/// How long a request is held unless the plan says otherwise: every CLI was seen to bear it.
pub const HOLD_MAX_DEFAULT: Duration = Duration::from_secs(30 * 60);

impl RunSpec {
    /// How long a request may be held before its attempt is parked.
    pub fn hold_max(&self) -> Duration {
        self.hold_max_ms.map_or(HOLD_MAX_DEFAULT, Duration::from_millis)
    }
}

/// What the core needs to know of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Tasks whose verified results this one starts from.
    pub needs: Vec<TaskId>,
    /// What it may change. Empty where the plan does not say.
    pub writes: Vec<String>,
    /// Which agent works on it.
    pub agent: AgentName,
    /// Who may be billed, in order of preference.
    pub accounts: Vec<AccountId>,
    /// How many tries follow the first.
    pub retries: u32,
    /// Whether it is pointless to start it while every account is closed.
    pub needs_quota: bool,
    /// How many tries in a row may follow one that never began (`startup`): the next would wait as long for nothing. Absent
    /// where only `retries` says it, as in journals from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_retries: Option<u32>,
    /// How many tries in a row may follow one whose agent has changed nothing: the next is told the same. Absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_retries: Option<u32>,
}

/// Who works on a task from its next attempt on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// The agent, by its name in the plan.
    pub agent: AgentName,
    /// See [`TaskSpec::accounts`].
    pub accounts: Vec<AccountId>,
    /// See [`TaskSpec::needs_quota`].
    pub needs_quota: bool,
}

/// How an attempt takes up the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// In a clean workspace.
    Fresh,
    /// In the workspace as it stands, continuing the CLI's own session.
    Session(String),
    /// In the workspace as it stands, told what has been done.
    HandOver,
}

/// A process that outlives the engine, named so that a reused pid is not taken for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimRef {
    /// The process id.
    pub pid: u32,
    /// Its start time, in clock ticks since boot.
    pub start_time: u64,
    /// The boot it lives in.
    pub boot_id: String,
}

/// What an agent's output and exit status amount to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ended by itself and thinks that it is done.
    Finished,
    /// It did not get there.
    Failed {
        /// Why.
        class: Class,
        /// For people, one line.
        why: String,
        /// When a limit that its agent reported ends, where that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
}

/// Why an attempt is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The agent ended and its work is to be checked.
    Finished,
    /// The agent failed.
    Failed {
        /// Why.
        class: Class,
        /// For people, one line.
        why: String,
        /// When a limit that its agent reported ends, where that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A person paused or stopped the run.
    Parked,
    /// What its request waits for takes longer than a request is held: it goes on when an account opens.
    Limit {
        /// What it waits for.
        class: Class,
    },
    /// A person discarded the task.
    Discarded,
}

/// What checking the work of an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may land.
    Passed {
        /// The commit in `store.git`: the in-scope change on the attempt's base.
        result: Oid,
    },
    /// It may not.
    Failed {
        /// Why.
        class: Class,
        /// For people, one line.
        why: String,
    },
}

/// Why a landing did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandingCause {
    /// The target moved in between: another candidate is made.
    TargetMoved,
    /// The target is checked out where moving it is not safe.
    TargetCheckedOut,
    /// The change does not merge with the target.
    Conflict,
    /// The merged tree does not pass verify.
    Verify,
    /// The change is in the target already.
    Empty,
    /// What is on the target cannot be told apart from what was meant to land.
    Unclear,
    /// A file of the change goes through a filter (git-crypt, Git LFS) that was not run.
    Filter,
}

impl LandingCause {
    /// The cause's name in the contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TargetMoved => "target_moved",
            Self::TargetCheckedOut => "target_checked_out",
            Self::Conflict => "conflict",
            Self::Verify => "verify",
            Self::Empty => "empty",
            Self::Unclear => "unclear",
            Self::Filter => "filter",
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Every task came to what the plan wants.
    Done,
    /// Some tasks did not.
    Degraded,
    /// No task did.
    Failed,
}
