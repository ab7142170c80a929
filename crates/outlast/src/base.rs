//! The commit that a run of a plan would start from, and what has to be there for it to work.

use outlast_api::{Diagnostic, ExitCode};
use outlast_config::{Code, UserConfig};
use outlast_core::plan::Plan;
use outlast_core::{AgentName, Oid, RunId, TaskId};
use outlast_engine::{AbsentProgram, Starts, Toolchain, absent_programs, unable_agents};
use outlast_git::UserRepo;

use crate::commands::Given;
use crate::failure::Failure;
use crate::session::accounts;

/// The programs of a plan's agents that a run would not find; of `agent` alone.
pub(crate) fn refuse_absent(
    plan: &Plan,
    agent: &AgentName,
    given: &Given,
    repository: &UserRepo,
    base: &Oid,
) -> Result<(), Failure> {
    let toolchain = Toolchain::of_this_process(given.places.home.root());
    let absent = absent_programs(plan, repository, base, &toolchain)?;
    refuse(absent.iter().filter(|absent| absent.starts == Starts::Agent(agent.clone())).map(unfound).collect())
}

/// The tip of the plan's target where there is such a branch, else what is checked out.
pub(crate) fn commit(plan: &Plan, repository: &UserRepo) -> Result<Oid, Failure> {
    let refused = |error| Failure::from(outlast_engine::Error::from(error));
    let tip = plan.run.target.as_ref().map(|target| repository.branch_tip(target)).transpose().map_err(refused)?;
    match tip.flatten() {
        Some(tip) => Ok(tip),
        None => Ok(repository.head().map_err(refused)?.commit),
    }
}

/// Something that a plan starts, or asks for, and that cannot work.
pub(crate) struct Hindrance {
    /// The first task that it keeps back; none where it keeps back all.
    pub(crate) task: Option<TaskId>,
    /// Its kind, as a finding.
    pub(crate) code: Code,
    /// What it is told by.
    pub(crate) told: Diagnostic,
}

/// Everything about a plan that could not work here and can be seen without running any of it: programs that are not where
/// they are looked for, agents that nobody would answer. A target that can be no branch here is refused at once, as by the run.
pub(crate) fn hindrances(
    plan: &Plan,
    given: &Given,
    user: &UserConfig,
    repository: &UserRepo,
) -> Result<Vec<Hindrance>, Failure> {
    if plan.tasks.is_empty() {
        return Ok(Vec::new());
    }
    // Of the run's name only the end is not known yet, which collides with nothing.
    let run = RunId::new(format!("{}-", TaskId::new(&plan.run.name).slug()));
    repository.resolve_target(&plan.run.target_of(&run)).map_err(outlast_engine::Error::from)?;
    let toolchain = Toolchain::of_this_process(given.places.home.root());
    let absent = absent_programs(plan, repository, &commit(plan, repository)?, &toolchain)?;
    let unable = unable_agents(plan, &accounts(user)?, &toolchain);
    let unable = unable.into_iter().map(|(task, error)| Hindrance {
        task: Some(task),
        code: code_of(&error),
        told: outlast_engine::diagnostic(&error),
    });
    let mut found: Vec<Hindrance> = absent.iter().map(unfound).chain(unable).collect();
    found.sort_by_key(|found| found.told.exit != ExitCode::Plan);
    Ok(found)
}

/// A program that is not where it is looked for.
fn unfound(absent: &AbsentProgram) -> Hindrance {
    let is_command = matches!(absent.starts, Starts::Command { .. });
    let (code, exit) = match (is_command, absent.lack.is_of_the_host()) {
        (false, _) => (Code::AgentProgram, ExitCode::Plan),
        (true, false) => (Code::CommandProgram, ExitCode::Plan),
        (true, true) => (Code::ProgramMissing, ExitCode::Host),
    };
    let told = Diagnostic::error(code.as_str(), exit, absent.to_string()).because(absent.why()).fix(absent.fix());
    Hindrance { task: absent.task.clone(), code, told }
}

fn code_of(error: &outlast_engine::Error) -> Code {
    match error {
        outlast_engine::Error::ModelMissing { .. } => Code::NoModel,
        outlast_engine::Error::ModelNotAllowed { .. } => Code::ModelNotAllowed,
        outlast_engine::Error::NoAccount { .. } => Code::NoAccount,
        _ => Code::AgentMissing,
    }
}

/// Refuses what cannot work: each try of a task would be used up by that, and each agent paid for nothing. The first is the
/// reason, the others are told beside it.
pub(crate) fn refuse(hindrances: Vec<Hindrance>) -> Result<(), Failure> {
    let mut all = hindrances.into_iter().map(|hindrance| hindrance.told);
    match all.next() {
        Some(first) => Err(Failure::of_several(first, all.collect())),
        None => Ok(()),
    }
}
