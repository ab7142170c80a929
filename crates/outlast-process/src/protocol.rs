//! What shim and engine say to each other over the control socket: one JSON object per line, both ways.
//!
//! A connection begins with [`Event::State`], so that whoever connects late misses nothing that matters.

use serde::{Deserialize, Serialize};

use crate::exit::ExitRecord;
use crate::shim_id::ShimFile;

/// Said by the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Everything as it is now: the first line of a connection, and the answer to [`Command::Status`].
    State(Box<ShimState>),
    /// The program has written; a reader that is behind gets the newest totals only.
    Output {
        /// Bytes of stdout so far.
        stdout_bytes: u64,
        /// Bytes of stderr so far.
        stderr_bytes: u64,
    },
    /// The program has sent a request.
    RequestStarted {
        /// The value of its `x-outlast-request` header.
        id: u64,
    },
    /// The upstream's status is there.
    AnswerBegun {
        /// The request.
        id: u64,
    },
    /// An answer kept until whole broke off; the request waits again.
    AnswerLost {
        /// The request.
        id: u64,
    },
    /// The answer is over, or the program hung up.
    RequestEnded {
        /// The request.
        id: u64,
    },
    /// A timeout struck; the kill ladder has begun.
    Timeout {
        /// Which one.
        kind: TimeoutKind,
    },
    /// The tree is empty and how it ended is on disk; the shim leaves after this line.
    Exited(ExitRecord),
}

/// Said to the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// End the tree: TERM, the grace, KILL. A second one changes nothing.
    Kill {
        /// Kept as the detail of the exit record.
        reason: String,
    },
    /// Say [`Event::State`].
    Status,
}

/// A shim and its program at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimState {
    /// What is on file of the shim.
    pub shim: ShimFile,
    /// The program's process, once it is there.
    pub agent_pid: Option<i32>,
    /// Bytes of stdout so far.
    pub stdout_bytes: u64,
    /// Bytes of stderr so far.
    pub stderr_bytes: u64,
    /// Requests without an end.
    pub requests: Vec<OpenRequest>,
    /// Whether the kill ladder has begun.
    pub ending: bool,
}

/// A request that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRequest {
    /// The value of its `x-outlast-request` header.
    pub id: u64,
    /// Whether the upstream's status is there.
    pub answer_begun: bool,
}

/// Which limit struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// `Timeouts::wall`.
    Wall,
    /// `Timeouts::idle`.
    Idle,
    /// `Timeouts::start`.
    Start,
}
