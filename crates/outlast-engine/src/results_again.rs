//! Commits of ours that the store has lost in a crash of the machine, made anew from what they were made from: what a task
//! began on, and its verified result. The same work makes the same commit, and is not paid for again.

use outlast_core::run::Run;
use outlast_core::task::Task;
use outlast_core::{Core, Oid};
use outlast_git::Workspace;

use crate::error::Error;
use crate::repositories::{Base, Repositories};

/// Makes those anew that can be. What comes to nothing is told by whoever needs it.
pub(crate) fn mend(git: &Repositories, core: &Core) {
    if !git.store().has_lost() {
        return;
    }
    for run in core.runs.values() {
        // Each may be what another one waits for: a task has two of them.
        for _ in 0..2 * run.tasks.len() {
            let made = run.tasks.iter().map(|task| is_made(git, run, task));
            if !made.fold(false, |any, made| any | made) {
                break;
            }
        }
    }
}

/// Whether something of a task was lost and is there again.
fn is_made(git: &Repositories, run: &Run, task: &Task) -> bool {
    let Some(base) = &task.base else { return false };
    let made = if git.store().diff(&run.spec.base, base).is_err() {
        base_again(git, run, task, base)
    } else {
        let Some(result) = task.result().filter(|result| git.store().diff(base, result).is_err()) else { return false };
        again(git, run, task, base, result)
    };
    tracing::info!(run = %run.id, task = %task.id, ?made, "what the store has lost of a task is made anew");
    made.unwrap_or(false)
}

/// Whether what a task began on is there again: the results that it needs make it. Its workspace can be read again then.
fn base_again(git: &Repositories, run: &Run, task: &Task, base: &Oid) -> Result<bool, Error> {
    let needs: Vec<Oid> = task.spec.needs.iter().filter_map(|need| run.task(need)?.result().cloned()).collect();
    match git.base(&run.spec.base, &needs)? {
        Base::Commit(made) if made == *base => {
            if let Ok(workspace) = Workspace::open(git.store(), &run.id, &task.id) {
                workspace.give_back_lost(git.store(), git.user())?;
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Whether the result is there again: from the checkpoint that was verified, or from the workspace, where that is lost too.
fn again(git: &Repositories, run: &Run, task: &Task, base: &Oid, result: &Oid) -> Result<bool, Error> {
    if let Some(end) = &task.checkpoint
        && let Ok(true) = of_tree(git, run, task, [base, end, result])
    {
        return Ok(true);
    }
    let now = Workspace::open(git.store(), &run.id, &task.id)?.tree_now(git.store(), git.user())?;
    of_tree(git, run, task, [base, &now, result])
}

fn of_tree(git: &Repositories, run: &Run, task: &Task, [base, end, result]: [&Oid; 3]) -> Result<bool, Error> {
    let tree = git.in_scope_tree(base, &git.split(base, end, &task.spec.writes)?)?;
    let author = git.user().user_identity()?;
    Ok(git.store().make_result(&run.id, &task.id, base, &tree, &author, run.started_at)? == *result)
}
