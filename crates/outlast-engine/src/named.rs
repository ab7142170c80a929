//! The command that does something of a run anew: in a run of its own, of the plan that this one was of.

use outlast_config::load::argument;
use outlast_core::run::Run;
use outlast_git::word;

use crate::context::load_plan;
use crate::home::RepoHome;
use crate::obstacle::checkout;

/// `outlast run` of the plan that a run was of, with further words; `PLAN` stands for one that cannot be named.
pub fn run_anew(home: &RepoHome, run: &Run, more: &str) -> String {
    let plain = format!("outlast run {more}");
    let root = home.lender().and_then(|common_dir| checkout(&common_dir).canonicalize().ok());
    let (Some(root), Ok(plan)) = (root, load_plan(home, &run.spec.plan)) else { return plain };
    match argument(&root, &plan.run.name) {
        Some(None) => plain,
        Some(Some(plan)) => format!("outlast run {} {more}", word(&plan)),
        None => format!("outlast run PLAN {more}"),
    }
}
