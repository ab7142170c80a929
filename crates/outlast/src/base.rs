//! The commit that a run of a plan would start from, and what has to be in it.

use outlast_api::{Diagnostic, ExitCode};
use outlast_core::Oid;
use outlast_core::plan::Plan;
use outlast_engine::{AbsentProgram, absent_programs};
use outlast_git::UserRepo;

use crate::failure::Failure;

/// The tip of the plan's target where there is such a branch, else what is checked out.
pub(crate) fn commit(plan: &Plan, repository: &UserRepo) -> Result<Oid, Failure> {
    let refused = |error| Failure::from(outlast_engine::Error::from(error));
    let tip = plan.run.target.as_ref().map(|target| repository.branch_tip(target)).transpose().map_err(refused)?;
    match tip.flatten() {
        Some(tip) => Ok(tip),
        None => Ok(repository.head().map_err(refused)?.commit),
    }
}

/// The programs of the plan's agents that tasks would not find there.
pub(crate) fn absent(plan: &Plan, repository: &UserRepo) -> Result<Vec<AbsentProgram>, Failure> {
    Ok(absent_programs(plan, repository, &commit(plan, repository)?)?)
}

/// Refuses a plan whose agents could not start: each try of each task would be used up by that.
pub(crate) fn refuse_absent(absent: &[AbsentProgram]) -> Result<(), Failure> {
    let Some(first) = absent.first() else { return Ok(()) };
    let mut told = Diagnostic::error("plan/agent-program", ExitCode::Plan, first.to_string()).because(first.why());
    for other in &absent[1..] {
        told = told.because(format!("{other}: {}", other.why()));
    }
    let mut fixes: Vec<String> = absent.iter().map(AbsentProgram::fix).collect();
    fixes.dedup();
    Err(fixes.into_iter().fold(told, Diagnostic::fix).into())
}
