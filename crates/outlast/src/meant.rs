//! A name of another kind than a command takes: a task where a run is asked for, a run where a task is, either where a plan is.

use outlast_api::Diagnostic;
use outlast_config::{UserConfig, read_plan};
use outlast_core::run::Run;
use outlast_core::{RunId, TaskId};
use outlast_git::{UserRepo, word};

use crate::failure::Failure;
use crate::places::Places;
use crate::selection::Journalled;
use crate::typed::{as_given_with, verb};

/// The newest run that has a task of exactly this name.
pub(crate) fn run_of_task<'a>(all: &'a [Journalled], name: &str) -> Option<&'a Run> {
    let name = TaskId::new(name);
    let runs = all.iter().flat_map(|journalled| journalled.core.runs.values());
    runs.filter(|run| run.task(&name).is_some()).max_by_key(|run| run.started_at)
}

/// Says of a name for which there is no run that it is a task's.
pub(crate) fn a_task(told: Diagnostic, name: &str, run: &RunId) -> Diagnostic {
    let told = told.because(format!("`{name}` is a task of run `{run}`"));
    told.fix(as_given_with(name, run.as_str())).fix(format!("outlast log --run {run} {}", word(name)))
}

/// Says of a name for which there is no task that it is a run's. `all_of` is the command that was given, without it and for that run.
pub(crate) fn a_run(told: Diagnostic, run: &RunId, all_of: &str) -> Diagnostic {
    let told = told.because(format!("`{run}` is a run, and no task of one"));
    // Nobody gives up all of a run by such a mistake.
    let whom = match verb().as_deref() {
        Some("log" | "diff") => "--all",
        Some("land") => "state:done",
        Some("retry") => "state:failed",
        _ => return told.fix(format!("outlast status {run}    # names its tasks")),
    };
    told.fix(format!("{all_of} {whom}")).fix(format!("outlast status {run}    # names its tasks"))
}

/// Says of a name for which there is no plan that it is a task's or a run's.
pub(crate) fn no_plan(
    failure: Failure,
    places: &Places,
    user: &UserConfig,
    repository: &UserRepo,
    name: Option<&str>,
) -> Failure {
    let Some(name) = name else { return failure };
    let planned = places.plan_files(repository.root(), None).ok().and_then(|files| read_plan(&files, Some(user)).plan);
    let task = TaskId::new(name);
    let is_planned = planned.is_some_and(|plan| plan.task(&task).is_some());
    let journalled = Journalled::load(places.home.repository(repository.common_dir())).ok().flatten();
    let run = journalled.as_ref().and_then(|journalled| journalled.core.run(&RunId::new(name)));
    let has_run = journalled.as_ref().and_then(|all| run_of_task(std::slice::from_ref(all), name));
    let mut failure = failure;
    if is_planned {
        failure = failure.because(format!("`{name}` is a task of `outlast.toml`"));
        failure = failure.fix(format!("outlast run --only {}", word(name)));
    }
    if let Some(of) = has_run {
        failure = failure.because(format!("run `{}` has a task `{name}`", of.id));
        failure = failure.fix(format!("outlast retry --run {} {}", of.id, word(name)));
    }
    if let Some(run) = run {
        failure = failure.because(format!("`{name}` is a run"));
        failure = failure.fix(format!("outlast resume {}", run.id)).fix(format!("outlast status {}", run.id));
    }
    failure
}
