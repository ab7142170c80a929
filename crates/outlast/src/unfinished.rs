//! Tasks of a plan that a second run would pay for twice: a run which is not over has begun them or still has to, or their
//! work is done and waits for a person to land it.

use outlast_api::{Diagnostic, ExitCode};
use outlast_core::plan::{Plan, Task};
use outlast_core::run::{Mode, Run};
use outlast_engine::{earlier, load_plan};
use outlast_git::UserRepo;

use crate::failure::Failure;
use crate::landed::names;
use crate::places::Places;
use crate::selection::Journalled;
use crate::typed::Typed;

/// Refuses to start tasks that a run which is not over goes on with, as they stand in the plan.
///
/// The newest run that holds a task decides: whoever started it once more has given up the one before.
///
/// # Errors
/// `plan/unfinished-run`, with the command that goes on with that run.
pub(crate) fn refuse(
    plan: &Plan,
    whole: &Plan,
    journalled: Option<&Journalled>,
    typed: Typed<'_>,
) -> Result<(), Failure> {
    let Some(journalled) = journalled else { return Ok(()) };
    let runs = journalled.newest_first();
    let Some(oldest) = runs.iter().rposition(|run| !is_over(run)) else { return Ok(()) };
    let mut wanted: Vec<&Task> = plan.tasks.iter().collect();
    for run in &runs[..=oldest] {
        let before = match load_plan(&journalled.home, &run.spec.plan) {
            Ok(before) => before,
            // What its tasks are is not known then: by their names it would do the same.
            Err(damaged) if !is_over(run) && wanted.iter().any(|task| is_named(run, task, is_open)) => {
                return Err(unreadable(run, &damaged, typed));
            }
            Err(_) => continue,
        };
        let earlier = earlier(whole, &before);
        let (same, others): (Vec<&Task>, Vec<&Task>) =
            wanted.into_iter().partition(|task| earlier.contains_key(&task.id));
        let there = |task: &Task| earlier.get(&task.id).and_then(|name| run.task(name));
        let goes_on = |task: &&&Task| there(task).is_some_and(|task| is_open(task.state()));
        let open: Vec<&Task> = same.iter().filter(goes_on).copied().collect();
        if !is_over(run) && !open.is_empty() {
            return Err(refused(run, &open, &others, typed));
        }
        wanted = others;
    }
    Ok(())
}

/// Refuses to start anything beside runs of this repository from before it was moved here, where anything of them is left: their
/// tasks would be paid for twice.
///
/// # Errors
/// `repository/elsewhere`, with the command that puts it back; where a journal cannot be read.
pub(crate) fn refuse_moved(places: &Places, typed: Typed<'_>) -> Result<(), Failure> {
    let is_left =
        |run: &Run| !is_over(run) || run.tasks.iter().any(|task| task.state() == "done" && !task.is_on_target());
    for home in places.of_a_moved_repository() {
        let Some(journalled) = Journalled::load(home)? else { continue };
        if journalled.core.runs.values().any(is_left) {
            let again = again(typed);
            places.repository_of(&journalled.home).map_err(|failure| failure.fix(again))?;
        }
    }
    Ok(())
}

/// Refuses to start tasks whose verified work waits to be landed, as they stand in the plan: of these, what has landed is out
/// already. The newest run that holds a task decides here, too. What was made from another line of history is done on this
/// one as well, and what came to no change has nothing to land.
///
/// # Errors
/// `plan/unlanded-work`, with the command that lands it; where git cannot tell.
pub(crate) fn refuse_unlanded(
    plan: &Plan,
    whole: &Plan,
    journalled: Option<&Journalled>,
    repository: &UserRepo,
    typed: Typed<'_>,
) -> Result<(), Failure> {
    let Some(journalled) = journalled else { return Ok(()) };
    let base = crate::base::commit(plan, repository)?;
    let mut wanted: Vec<&Task> = plan.tasks.iter().collect();
    for run in journalled.newest_first() {
        if wanted.is_empty() {
            break;
        }
        let Ok(before) = load_plan(&journalled.home, &run.spec.plan) else {
            let waiting: Vec<&Task> =
                wanted.iter().filter(|task| is_named(run, task, |s| s == "done")).copied().collect();
            if waiting.is_empty() {
                continue;
            }
            return Err(unlanded(run, &waiting, &[], typed));
        };
        let earlier = earlier(whole, &before);
        let (same, others): (Vec<&Task>, Vec<&Task>) =
            wanted.into_iter().partition(|task| earlier.contains_key(&task.id));
        let there = |task: &Task| earlier.get(&task.id).and_then(|name| run.task(name));
        let waits = |task: &Task| there(task).is_some_and(|task| task.state() == "done" && !task.is_on_target());
        let (waiting, rest): (Vec<&Task>, Vec<&Task>) = same.into_iter().partition(|task| waits(task));
        let is_here =
            || repository.not_in_history(&base, std::slice::from_ref(&run.spec.base)).map(|all| all.is_empty());
        if !waiting.is_empty() && is_here().map_err(outlast_engine::Error::from)? {
            return Err(unlanded(run, &waiting, &[rest, others].concat(), typed));
        }
        wanted = others;
    }
    Ok(())
}

fn unlanded(run: &Run, waiting: &[&Task], others: &[&Task], typed: Typed<'_>) -> Failure {
    let id = &run.id;
    let what = format!("run `{id}` holds verified work that waits to be landed: {}", ids(waiting));
    let mut told = Diagnostic::error("plan/unlanded-work", ExitCode::Plan, what)
        .because("a second run would do the same tasks anew, and what is done would be paid for twice")
        .about(id.to_string());
    if !is_over(run) {
        told = told.fix(format!("outlast resume {id}    # goes on where it was"));
    }
    let land = format!("outlast land --run {id} state:done    # then `{}` starts what is left", typed.run(""));
    told = told.fix(land);
    if !others.is_empty() {
        told = told
            .because(format!("{} would be started as well", ids(others)))
            .fix(format!("{}    # starts another one now, and what it needs", typed.run("--only TASK")));
    }
    told.fix(again(typed)).into()
}

/// The command that does everything anew.
fn again(typed: Typed<'_>) -> String {
    format!("{}    # starts every task anew, also what has landed", typed.run("--again"))
}

fn ids(tasks: &[&Task]) -> String {
    names(&tasks.iter().map(|task| &task.id).collect::<Vec<_>>())
}

/// Whether a run has a task of this name in such a state, and it is not on the target.
fn is_named(run: &Run, task: &Task, is_so: impl Fn(&str) -> bool) -> bool {
    run.task(&task.id).is_some_and(|task| is_so(task.state()) && !task.is_on_target())
}

/// A run that is not over, and nobody can tell of what.
fn unreadable(run: &Run, damaged: &outlast_engine::Error, typed: Typed<'_>) -> Failure {
    let told = outlast_engine::diagnostic(damaged).about(run.id.to_string());
    let told = told.because(format!("run `{}` is not finished, and has tasks of these names still to do", run.id));
    let told = Diagnostic { fix: Vec::new(), ..told };
    told.fix(format!("outlast resume {}    # makes it anew where the plan is still the same", run.id))
        .fix(again(typed))
        .into()
}

const fn is_over(run: &Run) -> bool {
    matches!(run.mode, Mode::Finished(_))
}

/// Whether its run goes on with a task by itself: what has failed or waits for a person it does not.
fn is_open(state: &str) -> bool {
    !matches!(state, "done" | "landed" | "discarded" | "stale" | "failed" | "blocked")
}

fn refused(run: &Run, open: &[&Task], others: &[&Task], typed: Typed<'_>) -> Failure {
    let id = &run.id;
    let what = format!("run `{id}` is not finished and still has to do: {}", ids(open));
    let mut told = Diagnostic::error("plan/unfinished-run", ExitCode::Plan, what)
        .because("a second run would begin the same tasks anew, and what was begun would be paid for twice")
        .about(id.to_string());
    if !others.is_empty() {
        let plural = if others.len() == 1 { "is" } else { "are" };
        told = told.because(format!(
            "{} {plural} not in that run as the plan has it now: `{}` starts that when the run is over",
            ids(others),
            typed.run("")
        ));
    }
    told.fix(format!("outlast resume {id}    # goes on where it was")).fix(again(typed)).into()
}
