//! What a plan says of tasks now, and did not when their run began: a run goes by the copy of its plan to its end, and whoever
//! mends the plan and says `retry` has to be told (`docs/design/0040-retry-keeps-the-plan.md`).

use outlast_config::load::argument;
use outlast_config::read_plan;
use outlast_core::plan::{Plan, Task};
use outlast_core::run::Run;
use outlast_core::{AgentName, TaskId};
use outlast_engine::{RepoHome, load_plan, program_files, run_anew};
use outlast_git::{UserRepo, word};

use crate::base::commit;
use crate::commands::{Given, say};
use crate::landed::names;

/// Says what of these tasks has been changed since their run began, and is not taken up by it; nothing where nothing has, or
/// the plan cannot be read as it is now.
pub(crate) fn tell(given: &Given, home: &RepoHome, run: &Run, tasks: &[TaskId], agent: Option<&str>) {
    let Ok(repository) = given.places.repository_of(home) else { return };
    let Ok(before) = load_plan(home, &run.spec.plan) else { return };
    let Some(now) = now(given, &repository, &before) else { return };
    let changed: Vec<(&TaskId, Vec<String>)> = tasks
        .iter()
        .map(|task| (task, changes(&repository, run, &before, &now, task, agent)))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    let Some((_, first)) = changed.first() else { return };
    let ids: Vec<&TaskId> = changed.iter().map(|(task, _)| *task).collect();
    let only: Vec<String> = ids.iter().map(|task| word(task.as_str())).collect();
    say(&format!(
        "{} goes by its plan as it was when it began; changed since, and not taken up: {} of {}",
        run.id,
        first.join(", "),
        names(&ids)
    ));
    say(&format!(
        "to take it up: {}    # begun anew, in a run of its own",
        run_anew(home, run, &format!("--only {}", only.join(" ")))
    ));
}

/// The plan as its files are now.
fn now(given: &Given, repository: &UserRepo, before: &Plan) -> Option<Plan> {
    let which = argument(repository.root(), &before.run.name)?;
    let files = given.places.plan_files(repository.root(), which.as_deref()).ok()?;
    read_plan(&files, given.places.user_config().ok().as_ref()).plan
}

/// What of a task is another thing now, in words: keys of its own, its agent, what it is started from.
fn changes(
    repository: &UserRepo,
    run: &Run,
    before: &Plan,
    now: &Plan,
    id: &TaskId,
    agent: Option<&str>,
) -> Vec<String> {
    let (Some(old), Some(new)) = (before.task(id), now.task(id)) else { return Vec::new() };
    let mut changes: Vec<String> = keys(old, new).into_iter().map(|key| format!("`{key}`")).collect();
    // One that it is given to by name is meant, whoever the plan names.
    let given = agent.map(AgentName::new).or_else(|| run.task(id).map(|task| task.spec.agent.clone()));
    let given = given.unwrap_or_else(|| old.agent.clone());
    if given == old.agent && old.agent != new.agent {
        changes.push("`agent`".to_owned());
    } else if before.agents.get(&given) != now.agents.get(&given) {
        changes.push(format!("agent `{given}`"));
    }
    if before.run.setup != now.run.setup {
        changes.push("`setup`".to_owned());
    }
    let Ok(start) = commit(now, repository) else { return changes };
    let uncommitted = repository.uncommitted().unwrap_or_default();
    for file in program_files(before, old) {
        if uncommitted.contains(&file) {
            changes.push(format!("{file} (commit it first)"));
        } else if repository.differs(&run.spec.base, &start, &file).unwrap_or(false) {
            changes.push(file);
        }
    }
    changes
}

/// The keys of a task that differ.
fn keys(old: &Task, new: &Task) -> Vec<&'static str> {
    let found = [
        ("goal", old.goal != new.goal),
        ("writes", old.writes != new.writes),
        ("reads", old.reads != new.reads),
        ("needs", old.needs != new.needs),
        ("example", old.example != new.example),
        ("output", old.output != new.output),
        ("verify", old.verify != new.verify),
        ("steps", old.steps != new.steps),
        ("model", old.model != new.model),
        ("timeout", old.timeout != new.timeout),
        ("idle_timeout", old.idle_timeout != new.idle_timeout),
        ("no_progress", old.no_progress != new.no_progress),
        ("retries", old.retries != new.retries),
        ("budget", old.budget != new.budget),
    ];
    found.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
}
