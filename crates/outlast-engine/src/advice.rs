//! What a person can do about a task that waits for them, as commands that can be pasted.

use outlast_core::record::LandingCause;
use outlast_core::run::{Mode, Run};
use outlast_core::task::{Failure, Phase, Task};
use outlast_core::{Class, Core};
use outlast_git::{quoted, word};

use crate::home::RepoHome;
use crate::named::run_anew;

/// What a person can do about a task that waits for them: go on once they have seen to its account. And about work that does
/// not land: merge the result, which is in our store, by hand (what is left to do then stands beside the command), or give it up.
pub(crate) fn fixes(core: &Core, run: &Run, task: &Task, home: &RepoHome) -> Vec<String> {
    let may_start = run.mode == Mode::Running && matches!(task.phase, Phase::Ready | Phase::Waiting { .. });
    if may_start && core.waits_for_a_person(task).is_some() {
        return vec![format!("outlast resume {}", run.id)];
    }
    let lacks_a_program = |failure: &Failure| failure.class == Class::NoProgram;
    if task.phase == Phase::Failed && task.last_failure.as_ref().is_some_and(lacks_a_program) {
        let (id, task) = (&run.id, word(task.id.as_str()));
        return vec![format!("outlast retry --run {id} {task}    # once that program is there: its work is kept")];
    }
    if task.phase == Phase::Stale {
        let anew = run_anew(core, home, run, None, &[&task.id]);
        let (id, task) = (&run.id, word(task.id.as_str()));
        return vec![
            format!("{anew}    # with what it needs, in a run of its own"),
            format!("outlast discard --run {id} {task}"),
        ];
    }
    let Phase::Done(finished) = &task.phase else { return Vec::new() };
    let Some(refused) = finished.refused.as_ref().filter(|_| !finished.wanted) else { return Vec::new() };
    if !matches!(refused.cause, LandingCause::Conflict | LandingCause::Verify) {
        return Vec::new();
    }
    let (id, task_id) = (&run.id, word(task.id.as_str()));
    let store = quoted(&home.store().display().to_string());
    let result = format!("refs/outlast/{id}/{}/result", task.id.slug());
    let land = format!("outlast land --run {id} {task_id}");
    // A conflict stops git each time; what fails its check merges, and is to be mended before it counts.
    let then = match refused.cause {
        LandingCause::Conflict => {
            "stops at the conflict; mend it, then: git diff --name-only -z --diff-filter=U | git add \
             --pathspec-from-file=- --pathspec-file-nul && git cherry-pick --continue && "
        }
        _ => "then mend what the check says, git commit -a --amend, and: ",
    };
    vec![
        format!("{} && git fetch {store} {result} && git cherry-pick FETCH_HEAD    # {then}{land}", switch(run)),
        format!("outlast discard --run {id} {task_id}"),
    ]
}

/// The command that checks a run's target out; it is made where nothing has landed on it and it is the run's own.
fn switch(run: &Run) -> String {
    let target = word(&run.spec.target);
    let is_there = run.spec.target != format!("outlast/{}", run.id) || run.tasks.iter().any(has_landed);
    if is_there { format!("git switch {target}") } else { format!("git switch -c {target} {}", run.spec.base) }
}

const fn has_landed(task: &Task) -> bool {
    matches!(task.phase, Phase::Landed { .. })
}
