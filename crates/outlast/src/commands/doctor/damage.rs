//! What of our own state is damaged, and what was set aside for that. Whoever looks here changes nothing.

use std::path::{Path, PathBuf};

use outlast_core::run::{Mode, Run};
use outlast_core::task::{Phase, Task};
use outlast_core::{RunId, TaskId};
use outlast_engine::{load_plan, needed, over, store_damaged};
use outlast_git::{SetAside, quoted, word};

use super::found::Found;
use crate::selection::Journalled;
use crate::text::count;

/// Records of workspaces, copies of plans, and what was set aside, of one repository.
pub(super) fn look(journalled: &Journalled) -> Vec<Found> {
    let mut found = plans(journalled);
    found.extend(store(journalled));
    found.extend(records(journalled));
    found.extend(set_aside(journalled));
    found
}

/// Runs that are not over and cannot go on without the copy of their plan.
fn plans(journalled: &Journalled) -> Vec<Found> {
    let runs = journalled.core.runs.values().filter(|run| !matches!(run.mode, Mode::Finished(_)));
    let damaged = runs.filter_map(|run| Some((run, load_plan(&journalled.home, &run.spec.plan).err()?)));
    let told = |(run, error): (&Run, outlast_engine::Error)| {
        Found::failed(format!("plan of {}", run.id), &error.into()).fix(format!(
            "outlast resume {}    # makes it anew where the plan is still the same, or says what helps",
            run.id
        ))
    };
    damaged.map(told).collect()
}

/// Objects and refs of our store that hold no byte or garbage, and objects that are gone: all of it is read.
fn store(journalled: &Journalled) -> Option<Found> {
    const NAME: &str = "store";
    let core = &journalled.core;
    match outlast_git::damaged(&journalled.home.store(), &needed(core), &over(core)) {
        Err(error) => Some(Found::warning(NAME, error.to_string())),
        Ok(files) if files.is_empty() => None,
        Ok(files) => Some(Found::failed(NAME, &store_damaged(&files).into())),
    }
}

/// Workspaces whose records cannot be read.
fn records(journalled: &Journalled) -> Vec<Found> {
    const NAME: &str = "workspaces";
    let damaged = match outlast_git::damaged_records(&journalled.home.store()) {
        Ok(damaged) => damaged,
        Err(error) => return vec![Found::warning(NAME, error.to_string())],
    };
    let told = |(run, slug, record): &(RunId, TaskId, PathBuf)| {
        let found = journalled.core.run(run);
        let task = found.and_then(|run| run.tasks.iter().find(|task| task.id.slug() == slug.as_str()));
        let detail = format!("the record of {run}/{slug} is damaged: {}", record.join("workspace.json").display());
        Found::warning(NAME, detail).fix(match task {
            Some(task) if !is_over(task) => format!(
                "outlast resume {run}    # sets it aside and goes on from what was kept; `outlast discard --run {run} {}` gives it up",
                word(task.id.as_str())
            ),
            _ => {
                let tree = journalled.home.workspaces().join(run.as_str()).join(slug.as_str());
                let place = |path: &Path| quoted(&path.display().to_string());
                format!("look into {tree}, then: rm -rf {tree} {}", place(record), tree = place(&tree))
            }
        })
    };
    damaged.iter().map(told).collect()
}

const fn is_over(task: &Task) -> bool {
    matches!(task.phase, Phase::Landed { .. } | Phase::Discarded)
}

/// Damaged workspaces that were set aside.
fn set_aside(journalled: &Journalled) -> Option<Found> {
    const NAME: &str = "set aside";
    let asides = match outlast_git::set_aside(&journalled.home.store(), &journalled.home.workspaces()) {
        Ok(asides) => asides,
        Err(error) => return Some(Found::warning(NAME, error.to_string())),
    };
    let first = asides.iter().find_map(SetAside::place)?;
    let detail = format!("{} of damaged workspaces: {}", count(asides.len(), "rest"), first.display());
    Some(Found::warning(NAME, detail).fix("outlast clean    # removes what is kept elsewhere, and names what is not"))
}
