//! Steps whose commands show that they are done: asked in the workspace before a task is gone on with, and when an agent
//! has run out of time. What is shown to be done is not done again.

use std::sync::Arc;

use outlast_core::{AttemptId, Class, plan};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::ops::attempt::Fault;
use crate::ops::commands::{self, Place, Unpassed};

/// What of a task's steps is done.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    /// For each step in order, what its command says; nothing for one that has none, or comes after one that is not done.
    holds: Vec<Option<bool>>,
}

impl Shown {
    /// The names of the steps that are done: by their commands, or noted by the agent where they have none.
    pub(crate) fn done(&self, steps: &[plan::Step], noted: &[String]) -> Vec<String> {
        let is_done = |(step, holds): &(&plan::Step, Option<bool>)| match holds {
            Some(holds) => *holds,
            None => step.command.is_none() && noted.contains(&step.name),
        };
        let asked = self.holds.iter().copied().chain(std::iter::repeat(None));
        steps.iter().zip(asked).filter(is_done).map(|(step, _)| step.name.clone()).collect()
    }

    /// Whether there are steps, and the commands of all show that they are done.
    pub(crate) fn is_all(&self) -> bool {
        !self.holds.is_empty() && self.holds.iter().all(|holds| *holds == Some(true))
    }
}

/// Runs the commands of a task's steps in order, until one shows that its step is not done.
///
/// # Errors
/// As [`commands::run`]; where a command names a program that is not there, and that no agent can put there.
pub(crate) async fn shown(
    context: &Arc<Context>,
    id: &AttemptId,
    task: &plan::Task,
    token: &CancellationToken,
) -> Result<Shown, Fault> {
    let place = Place::workspace(context, id, task, token);
    let mut shown = Shown::default();
    let mut is_left = false;
    for (number, step) in task.steps.iter().enumerate() {
        let holds = match &step.command {
            Some(command) if !is_left => {
                let purpose = format!("step-{}", number + 1);
                let failed = commands::run(context, &place, &purpose, std::slice::from_ref(command)).await?;
                is_left = failed.is_some();
                if let Some(failed) = failed {
                    runnable(&failed, task, "steps")?;
                }
                Some(!is_left)
            }
            _ => None,
        };
        shown.holds.push(holds);
    }
    Ok(shown)
}

/// Whether a task is done as it stands in its workspace: all its steps are shown to be, and its verify passes. A verify
/// alone shows nothing: it may have passed before anything was done.
///
/// # Errors
/// As [`shown`].
pub(crate) async fn all_done(
    context: &Arc<Context>,
    id: &AttemptId,
    task: &plan::Task,
    shown: &Shown,
    token: &CancellationToken,
) -> Result<bool, Fault> {
    if !shown.is_all() {
        return Ok(false);
    }
    let place = Place::workspace(context, id, task, token);
    passes(context, &place, task).await
}

/// Whether a task's verify passes as it stands in its workspace.
///
/// # Errors
/// As [`shown`].
pub(crate) async fn passes(context: &Arc<Context>, place: &Place, task: &plan::Task) -> Result<bool, Fault> {
    let failed = commands::run(context, place, "verify", &task.verify).await?;
    failed.as_ref().map_or(Ok(()), |failed| runnable(failed, task, "verify"))?;
    Ok(failed.is_none())
}

/// Ends what only a person can help: with a program that is not there, nothing is ever shown, whatever an agent does.
fn runnable(failed: &Unpassed, task: &plan::Task, key: &str) -> Result<(), Fault> {
    match failed.told(task, key) {
        (Class::NoProgram, why) => Err(Fault::new(Class::NoProgram, why)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, command: Option<&str>) -> plan::Step {
        plan::Step { name: name.to_owned(), command: command.map(str::to_owned) }
    }

    #[test]
    fn a_command_outweighs_a_note_and_a_step_without_one_is_done_when_noted() {
        let steps = [step("a", Some("true")), step("b", None), step("c", Some("false")), step("d", Some("true"))];
        let noted = ["b", "c", "d"].map(str::to_owned);
        let shown = Shown { holds: vec![Some(true), None, Some(false), None] };
        assert_eq!(shown.done(&steps, &noted), ["a", "b"]);
        assert!(!shown.is_all());
        assert_eq!(Shown::default().done(&steps, &noted), ["b"], "nothing was asked");
    }

    #[test]
    fn all_is_done_only_where_every_step_has_a_command_that_says_so() {
        assert!(!Shown::default().is_all(), "no steps show nothing");
        assert!(!Shown { holds: vec![Some(true), None] }.is_all());
        assert!(Shown { holds: vec![Some(true), Some(true)] }.is_all());
    }
}
