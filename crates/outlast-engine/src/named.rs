//! The command that does something of a run anew: in a run of its own, of the plan that this one was of.

use outlast_config::load::argument;
use outlast_core::plan::Plan;
use outlast_core::run::Run;
use outlast_core::task::Phase;
use outlast_core::{Core, TaskId};
use outlast_git::word;

use crate::home::RepoHome;
use crate::obstacle::checkout;
use crate::plans::load_plan;
use crate::same::earlier;

/// `outlast run` of tasks of the plan that a run was of, as that is now where it has been read; `PLAN` stands for one that cannot
/// be named.
///
/// With `--again` where one of them has landed in another run, whose work would be taken for what is asked for here.
pub fn run_anew(core: &Core, home: &RepoHome, run: &Run, now: Option<&Plan>, tasks: &[&TaskId]) -> String {
    let before = load_plan(home, &run.spec.plan).ok();
    let again = now.or(before.as_ref()).is_some_and(|plan| has_landed_elsewhere(core, home, run, plan, tasks));
    command(home, before.as_ref(), tasks, again)
}

/// The same for a task that has landed in that very run.
pub(crate) fn run_again(home: &RepoHome, run: &Run, task: &TaskId) -> String {
    command(home, load_plan(home, &run.spec.plan).ok().as_ref(), &[task], true)
}

fn command(home: &RepoHome, plan: Option<&Plan>, tasks: &[&TaskId], again: bool) -> String {
    let tasks: Vec<String> = tasks.iter().map(|task| word(task.as_str())).collect();
    let more = format!("--only {}{}", tasks.join(" "), if again { " --again" } else { "" });
    let plain = format!("outlast run {more}");
    let root = home.lender().and_then(|common_dir| checkout(&common_dir).canonicalize().ok());
    let (Some(root), Some(plan)) = (root, plan) else { return plain };
    match argument(&root, &plan.run.name) {
        Some(None) => plain,
        Some(Some(plan)) => format!("outlast run {} {more}", word(&plan)),
        None => format!("outlast run PLAN {more}"),
    }
}

/// Whether the work of one of these tasks has landed in another run, under whatever name.
fn has_landed_elsewhere(core: &Core, home: &RepoHome, run: &Run, plan: &Plan, tasks: &[&TaskId]) -> bool {
    let has_landed =
        |other: &Run, task: &TaskId| other.task(task).is_some_and(|task| matches!(task.phase, Phase::Landed { .. }));
    let others = core.runs.values().filter(|other| other.id != run.id);
    let mut others = others.filter(|other| other.tasks.iter().any(|task| has_landed(other, &task.id)));
    others.any(|other| {
        // A plan that is gone tells nothing: `run` takes nothing of it for done.
        let Ok(before) = load_plan(home, &other.spec.plan) else { return false };
        let earlier = earlier(plan, &before);
        tasks.iter().any(|task| earlier.get(task).is_some_and(|name| has_landed(other, name)))
    })
}
