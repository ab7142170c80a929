//! Tasks of a plan that have landed already as they stand in it: what was done and paid for is not done again.

use std::collections::{BTreeMap, BTreeSet};

use outlast_api::{Diagnostic, ExitCode};
use outlast_core::plan::{Plan, Task};
use outlast_core::run::Run;
use outlast_core::task::{self, Phase};
use outlast_core::{Oid, RunId, TaskId};
use outlast_engine::{earlier, load_plan};
use outlast_git::{UserRepo, word};

use crate::commands::say;
use crate::failure::Failure;
use crate::selection::Journalled;
use crate::typed::Typed;

/// How many tasks are named before the rest is summed up.
const NAMED_MAX: usize = 8;

/// Where a task of the plan has landed.
#[derive(Debug, Clone)]
struct Place {
    run: RunId,
    /// Its name there.
    name: TaskId,
    /// The branch, where the run would not start from what it holds.
    apart: Option<String>,
}

/// Takes the tasks out of a plan that have landed, and says so; the newest run in which one did, where there is any.
///
/// # Errors
/// Where what is left needs one of them, and it is not in what the run would start from.
pub(crate) fn leave_out(
    plan: &mut Plan,
    whole: &Plan,
    journalled: Option<&Journalled>,
    repository: &UserRepo,
    typed: Typed<'_>,
) -> Result<Option<RunId>, Failure> {
    let Some(journalled) = journalled else { return Ok(None) };
    let landed = find(plan, whole, journalled, repository)?;
    for task in plan.tasks.iter().filter(|task| !landed.contains_key(&task.id)) {
        for need in &task.needs {
            if let Some(Place { run, apart: Some(branch), .. }) = landed.get(need) {
                let there = journalled.core.run(run).and_then(|run| run.task(&task.id));
                return Err(apart(&task.id, need, run, branch, there.map(task::Task::state), typed));
            }
        }
    }
    plan.tasks.retain(|task| !landed.contains_key(&task.id));
    for task in &mut plan.tasks {
        task.needs.retain(|need| !landed.contains_key(need));
    }
    let mut by_run: BTreeMap<&RunId, Vec<TaskId>> = BTreeMap::new();
    for (task, place) in &landed {
        let renamed = (place.name != *task).then(|| TaskId::new(format!("{task} (as {})", place.name)));
        by_run.entry(&place.run).or_default().push(renamed.unwrap_or_else(|| task.clone()));
    }
    for (run, tasks) in &by_run {
        let apart = landed.values().find(|place| place.run == **run).and_then(|place| place.apart.as_ref());
        let apart = apart.map(|branch| format!(" (on {branch}, which is not merged here)")).unwrap_or_default();
        say(&format!(
            "landed already in run {run}{apart}: {}; not started again, `--again` does",
            names(&tasks.iter().collect::<Vec<_>>())
        ));
    }
    let started = |run: &&&RunId| journalled.core.run(run).map(|run| run.started_at);
    Ok(by_run.keys().max_by_key(started).map(|run| (*run).clone()))
}

/// Every task that has landed as it stands in the plan, and whose needs have.
fn find(
    plan: &Plan,
    whole: &Plan,
    journalled: &Journalled,
    repository: &UserRepo,
) -> Result<BTreeMap<TaskId, Place>, Failure> {
    let refused = |error| Failure::from(outlast_engine::Error::from(error));
    let base = crate::base::commit(plan, repository)?;
    let mut found: BTreeMap<TaskId, Place> = BTreeMap::new();
    for run in journalled.newest_first() {
        let landed = commits(run);
        let wanted = |task: &&Task| !found.contains_key(&task.id);
        if landed.is_empty() || !plan.tasks.iter().any(|task| wanted(&task)) {
            continue;
        }
        // A plan that is gone tells nothing: then its tasks are done again.
        let Ok(before) = load_plan(&journalled.home, &run.spec.plan) else { continue };
        let earlier = earlier(whole, &before);
        let same: Vec<(&TaskId, &TaskId, &Oid)> = plan
            .tasks
            .iter()
            .filter(wanted)
            .filter_map(|task| {
                let name = *earlier.get(&task.id)?;
                Some((&task.id, name, *landed.get(name)?))
            })
            .collect();
        let all: Vec<Oid> = same.iter().map(|(.., commit)| (*commit).clone()).collect();
        let started = run.spec.base.clone();
        let asked: Vec<Oid> = all.iter().cloned().chain([started.clone()]).collect();
        let mut apart = repository.not_in_history(&base, &asked).map_err(refused)?;
        let elsewhere: BTreeSet<Oid> = all.iter().filter(|commit| apart.contains(commit)).cloned().collect();
        for taken in repository.taken_over(&base, &elsewhere).map_err(refused)? {
            apart.remove(&taken);
        }
        // What a person has brought back or merged in another shape says what it is.
        let named = match apart.contains(&started) || !same.iter().any(|(.., commit)| apart.contains(*commit)) {
            true => BTreeSet::new(),
            false => repository.tasks_in_history(&run.id, &base, &started).map_err(refused)?,
        };
        for (_, name, commit) in &same {
            if named.contains(*name) {
                apart.remove(*commit);
            }
        }
        let lost = match repository.branch_tip(&run.spec.target).map_err(refused)? {
            // What was made for another line of history is not to be merged into this one.
            _ if apart.contains(&started) => apart.clone(),
            Some(tip) if !apart.is_empty() => repository.not_in_history(&tip, &all).map_err(refused)?,
            Some(_) => BTreeSet::new(),
            // Whoever removed the branch gave up what had landed on it, unless it is here.
            None => apart.clone(),
        };
        for (task, name, commit) in same {
            let is_apart = apart.contains(commit);
            if !is_apart || !lost.contains(commit) {
                let apart = is_apart.then(|| run.spec.target.clone());
                found.insert(task.clone(), Place { run: run.id.clone(), name: name.clone(), apart });
            }
        }
    }
    keep_whole(plan, &mut found);
    Ok(found)
}

/// Drops what starts from something that is done again.
fn keep_whole(plan: &Plan, found: &mut BTreeMap<TaskId, Place>) {
    loop {
        let before = found.len();
        for task in &plan.tasks {
            if !task.needs.iter().all(|need| found.contains_key(need)) {
                found.remove(&task.id);
            }
        }
        if found.len() == before {
            return;
        }
    }
}

/// The landed tasks of a run.
fn commits(run: &Run) -> BTreeMap<&TaskId, &Oid> {
    let landed = run.tasks.iter().filter_map(|task| match &task.phase {
        Phase::Landed { commit, .. } => Some((&task.id, commit)),
        _ => None,
    });
    landed.collect()
}

/// Says where work of tasks was begun and given up: here they start from nothing.
pub(crate) fn tell_of_begun(plan: &Plan, journalled: Option<&Journalled>) {
    let newest = journalled.and_then(|journalled| journalled.core.runs.values().max_by_key(|run| run.started_at));
    let Some(run) = newest else { return };
    let there = plan.tasks.iter().filter_map(|task| run.task(&task.id));
    let failed: Vec<&TaskId> = there.filter(|task| task.state() == "failed").map(|task| &task.id).collect();
    if !failed.is_empty() {
        let id = &run.id;
        let retry = format!("outlast retry --run {id} state:failed");
        say(&format!(
            "run {id} holds begun work of {}, gone on with by: {retry}; here it is begun anew",
            names(&failed)
        ));
    }
}

/// Names tasks, and sums up the rest of many.
pub(crate) fn names(tasks: &[&TaskId]) -> String {
    let shown: Vec<&str> = tasks.iter().take(NAMED_MAX).map(|task| task.as_str()).collect();
    match tasks.len().saturating_sub(NAMED_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn apart(task: &TaskId, need: &TaskId, run: &RunId, branch: &str, there: Option<&str>, typed: Typed<'_>) -> Failure {
    let what = format!("task `{task}` needs `{need}`, which landed in run `{run}` on `{branch}`");
    let why = format!("this run would not start from that branch, and `{need}` is not done twice");
    let told = Diagnostic::error("plan/need-apart", ExitCode::Plan, what).because(why);
    let task = word(task.as_str());
    let told = match there {
        Some("done") => {
            told.fix(format!("outlast land --run {run} {task}    # it is verified there, and waits for you"))
        }
        _ => told,
    };
    let told = told.fix(format!("git merge {}", word(branch)));
    let told = match there {
        Some("failed" | "blocked") => told.fix(format!("outlast retry --run {run} {task}    # goes on there")),
        _ => told,
    };
    told.fix(format!("{}    # does all of it again", typed.run("--again"))).into()
}
