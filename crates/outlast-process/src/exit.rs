//! How a launch ended: the last line of its file.
//!
//! Facts of the process alone; whether the work is any good is decided elsewhere.

use serde::{Deserialize, Serialize};

use crate::protocol::TimeoutKind;

/// The end of one launch, written once its process tree is proven empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The program's exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Why it ended.
    pub reason: ExitReason,
    /// The reason in words: of a kill, the one its sender gave; of a failed launch, the error.
    pub detail: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub started_at: i64,
    /// Milliseconds since the Unix epoch, after the tree was empty.
    pub ended_at: i64,
    /// Bytes the program wrote, kept or not.
    pub stdout_bytes: u64,
    /// Bytes the program wrote, kept or not.
    pub stderr_bytes: u64,
    /// Set when output could not be kept because of the file system, not of a limit.
    pub capture_error: Option<String>,
}

/// Why a launch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// The program ended by itself (or by a signal that was not ours).
    Exited,
    /// A `kill` command ended it.
    Killed,
    /// It ran longer than the wall timeout.
    WallTimeout,
    /// It was silent longer than the idle timeout.
    IdleTimeout,
    /// It never said anything.
    StartTimeout,
    /// It never ran: see the detail.
    LaunchFailed,
    /// The listener process died, and with it the way to the gateway.
    ListenerLost,
    /// Somebody sent the shim SIGTERM.
    ShimTerminated,
}

impl From<TimeoutKind> for ExitReason {
    fn from(kind: TimeoutKind) -> Self {
        match kind {
            TimeoutKind::Wall => Self::WallTimeout,
            TimeoutKind::Idle => Self::IdleTimeout,
            TimeoutKind::Start => Self::StartTimeout,
        }
    }
}
