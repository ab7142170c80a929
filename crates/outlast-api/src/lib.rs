//! The JSON views and commands that faces and scripts see.
//!
//! Plain data with stable names: every object that `--json` prints carries its schema. What is not known is absent,
//! never zero.

pub mod acts;
pub mod check;
pub mod diagnostic;
pub mod exit;
pub mod status;
pub mod time;

pub use acts::{Act, Acted, ActedTask, Check, Clean, CleanItem, Dependant, Diff, Doctor, FileChange, LogLine, Noted};
pub use check::{CheckView, DryRun, EdgeView, EstimateView, FindingView};
pub use diagnostic::{Diagnostic, Failure, Severity};
pub use exit::ExitCode;
pub use status::{
    AccountView, BudgetView, EngineView, LeftOut, PutAway, ReachedView, RunLine, Runs, Status, TaskView, TokensView,
    WindowView, group_of,
};
pub use time::rfc3339;

/// The schema name of a view: `outlast/<name>/v1`.
pub fn schema(name: &str) -> String {
    format!("outlast/{name}/v1")
}
