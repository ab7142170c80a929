//! `outlast check --json`: what a plan holds, what is found in it, and how its tasks hang together.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Severity;

/// A plan and what there is to say about it: `outlast/check/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckView {
    /// `outlast/check/v1`.
    pub schema: String,
    /// The plan's name.
    pub plan: String,
    /// Whether it would run: no finding is an error.
    pub runnable: bool,
    /// What its commands are approved by; absent while it would not run.
    pub approval: Option<String>,
    /// What the plan would have this machine run, each command once; a person approves it before any of it runs.
    pub commands: Vec<String>,
    /// Whether that was approved for this repository already.
    pub approved: bool,
    /// Errors first, then warnings, then hints.
    pub findings: Vec<FindingView>,
    /// Which task goes before which, and why.
    pub edges: Vec<EdgeView>,
    /// Tasks that can run at once, wave by wave.
    pub waves: Vec<Vec<String>>,
    /// The longest chain of tasks that wait for each other.
    pub critical_path: Vec<String>,
    /// What it will take; absent while nothing is known to estimate from.
    pub estimate: Option<EstimateView>,
}

/// What a run would do, which was not begun: `outlast/dry_run/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    /// `outlast/dry_run/v1`.
    pub schema: String,
    /// The plan's name.
    pub plan: String,
    /// Tasks that would be worked on at once, wave by wave; what has landed already is left out.
    pub waves: Vec<Vec<String>>,
    /// Which task goes before which, and why.
    pub edges: Vec<EdgeView>,
    /// The longest chain of tasks that wait for each other.
    pub critical_path: Vec<String>,
}

/// One thing found in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingView {
    /// Its kind, as `plan/unknown-need`.
    pub code: String,
    /// How grave it is.
    pub severity: Severity,
    /// The task it is about.
    pub task: Option<String>,
    /// The file it stands in.
    pub file: Option<String>,
    /// Its line, counted from 1.
    pub line: Option<u32>,
    /// Its column in characters, counted from 1.
    pub column: Option<u32>,
    /// What was found.
    pub message: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub fix: Option<String>,
}

/// One task goes before another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeView {
    /// The earlier one.
    pub from: String,
    /// The later one.
    pub to: String,
    /// `needs`, `scope`, `hot_file` or `reads`.
    pub reason: String,
    /// The globs that meet, or the hot file; absent for `needs`.
    pub detail: Option<String>,
}

/// What a plan will take; each part is absent where nothing is known to estimate it from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimateView {
    /// Tokens of all kinds.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub usd_micros: Option<u64>,
    /// Wall-clock minutes.
    pub minutes: Option<u32>,
}
