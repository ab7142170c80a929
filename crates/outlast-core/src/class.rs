//! Why something went wrong, as one word with one remedy.
//!
//! The names are part of the command line's contract (`status --json`, `report --json`, `classify`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The class of a failure: each calls for its own remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A provider's limit per minute or on concurrency.
    MinuteLimit,
    /// A provider's window (5 hours, week, day, month) is used up.
    WindowQuota,
    /// The account must be paid for before anything goes on.
    Billing,
    /// A key or login was refused.
    Auth,
    /// The conversation no longer fits the model.
    ContextOverflow,
    /// The CLI's own session can no longer be continued.
    CorruptSession,
    /// The provider has no capacity at the moment.
    Overload,
    /// No connection, or one that broke.
    Network,
    /// The user's own budget is reached.
    OwnBudget,
    /// The user lets the account be used at other hours only.
    Hours,
    /// Something that looks like a failure and is none.
    NotAnError,
    /// No evidence that fits another class.
    Unknown,
    /// The plan's `setup` commands failed.
    Setup,
    /// The agent never got going.
    Startup,
    /// A wall, idle or no-progress timeout.
    Timeout,
    /// The agent ended with a failure of its own.
    Crash,
    /// The agent's process is gone and left no exit status.
    Vanished,
    /// The change leaves the task's scope.
    Scope,
    /// The change does not merge with what is there.
    Conflict,
    /// The task's verify commands do not pass.
    Verify,
    /// A command of the plan names a program that is not there, and that no agent can put there.
    NoProgram,
    /// The agent asks a person something.
    Question,
    /// The agent lacks something that it cannot get by itself.
    MissingDependency,
    /// The agent ended without a result.
    GaveUp,
    /// The agent did the same over and over, and changed nothing.
    NoProgress,
    /// The conversation is about to fill the model's window: a fresh session goes on with the work.
    ContextNearFull,
}

/// What is done about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The task is at fault: try again, and count it.
    Retry,
    /// The world is at fault: try again later, and do not count it.
    Later,
    /// Only a person can help: trying again would change nothing.
    Person,
}

impl Class {
    /// What is done about an attempt that ended with this class.
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::MinuteLimit
            | Self::WindowQuota
            | Self::Overload
            | Self::Network
            | Self::Vanished
            | Self::CorruptSession
            | Self::OwnBudget
            | Self::ContextNearFull
            | Self::Hours => Remedy::Later,
            Self::Billing | Self::Auth | Self::Setup | Self::NoProgram | Self::Question | Self::MissingDependency => {
                Remedy::Person
            }
            Self::ContextOverflow
            | Self::NotAnError
            | Self::Unknown
            | Self::Startup
            | Self::Timeout
            | Self::Crash
            | Self::Scope
            | Self::Conflict
            | Self::Verify
            | Self::GaveUp
            | Self::NoProgress => Remedy::Retry,
        }
    }

    /// Whether it is a limit of a provider that ends by itself: a task that meets one is parked, and not failed.
    pub const fn is_limit(self) -> bool {
        matches!(self, Self::MinuteLimit | Self::WindowQuota)
    }

    /// The class's name in the contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MinuteLimit => "minute_limit",
            Self::WindowQuota => "window_quota",
            Self::Billing => "billing",
            Self::Auth => "auth",
            Self::ContextOverflow => "context_overflow",
            Self::CorruptSession => "corrupt_session",
            Self::Overload => "overload",
            Self::Network => "network",
            Self::OwnBudget => "own_budget",
            Self::Hours => "hours",
            Self::NotAnError => "not_an_error",
            Self::Unknown => "unknown",
            Self::Setup => "setup",
            Self::Startup => "startup",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
            Self::Vanished => "vanished",
            Self::Scope => "scope",
            Self::Conflict => "conflict",
            Self::Verify => "verify",
            Self::NoProgram => "no_program",
            Self::Question => "question",
            Self::MissingDependency => "missing_dependency",
            Self::GaveUp => "gave_up",
            Self::NoProgress => "no_progress",
            Self::ContextNearFull => "context_near_full",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
