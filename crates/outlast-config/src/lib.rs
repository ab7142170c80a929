//! Plan, project and user configuration: text in, the core's model or findings out.
//!
//! [`read_plan`] and [`read_user`] are functions of text; only [`load`] opens files. A plan comes with a repository and
//! is not trusted: it cannot name a credential, a provider's address or a ceiling, and what it would run is bound to an
//! [`approval_hash`]. Nothing here runs a command, reads a credential, or guesses what a broken file may have meant.

mod analysis;
mod approval;
mod check;
mod document;
mod finding;
mod given;
mod graph;
mod keys;
mod layer;
mod lint;
pub mod load;
mod markdown;
mod paths;
mod plan;
mod reader;
mod reference;
mod refname;
mod shell;
mod source;
mod starter;
mod suggest;
mod units;
mod user;

/// Most tasks that may be worked on at once.
pub const CONCURRENCY_MAX: u32 = 1000;

pub use analysis::{Analysis, Edge, Reason, analyse};
pub use approval::{approval_hash, content_hash};
pub use finding::{Code, Finding, Severity};
pub use plan::{Batch, Checked, PlanFiles, read_plan};
pub use reference::{COMMAND_VARIABLES, VARIABLES, reference};
pub use shell::simple_commands;
pub use source::Source;
pub use starter::{Facts, starter};
pub use suggest::nearest;
pub use units::{Hours, usd_micros};
pub use user::{
    Account, Ceiling, KeyCommand, KeySource, Limits, Login, Provider, UserChecked, UserConfig, is_for_model,
    may_be_for_model, read_user,
};
