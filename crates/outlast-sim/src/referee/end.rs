//! What the referee says of the end: a run finishes when nothing can go on, with the name that its tasks deserve.

use outlast_core::Core;
use outlast_core::record::{LandingCause, RunEnd};
use outlast_core::task::Phase;

use super::{Referee, RunView, TaskView};
use crate::invariant::{Invariant, Violation};
use crate::scenario::Scenario;

impl Referee {
    /// A run is said to be finished.
    pub(super) fn finished(&self, scenario: &Scenario, run: usize, end: RunEnd) -> Result<(), Violation> {
        let (plan, view) = (&scenario.runs[run], &self.runs[run]);
        for (i, task) in view.tasks.iter().enumerate() {
            let over = !task.is_busy() && !task.landing && view.is_over(scenario, run, i);
            Invariant::EndState.holds(over, || format!("r{run} is finished while t{i} is not: {task:?}"))?;
            let owed = plan.spec.auto_land && view.could_land(scenario, run, i);
            Invariant::EndState.holds(!owed, || format!("r{run} is finished while t{i} could land: {task:?}"))?;
        }
        let good = |task: &&TaskView| {
            task.landed || task.has_result() && (!plan.spec.auto_land || task.refused == Some(LandingCause::Empty))
        };
        let count = view.tasks.iter().filter(good).count();
        let wanted = if count == view.tasks.len() {
            RunEnd::Done
        } else if view.tasks.iter().any(|task| task.landed || task.has_result()) {
            RunEnd::Degraded
        } else {
            RunEnd::Failed
        };
        Invariant::EndState.holds(end == wanted, || format!("r{run} is {end:?}, deserves {wanted:?}"))
    }

    /// What must be true when nothing happens any more and every result was asked to land.
    pub(crate) fn settled(&self, scenario: &Scenario, core: &Core) -> Result<(), Violation> {
        for (r, (plan, view)) in scenario.runs.iter().zip(&self.runs).enumerate() {
            let run = core.run(&plan.id);
            Invariant::EndState.holds(run.is_some() && !view.goes_on, || format!("r{r} has not finished"))?;
            let tasks = run.into_iter().flat_map(|run| &run.tasks).zip(&view.tasks);
            for (i, (task, view_of_task)) in tasks.enumerate() {
                Invariant::EndState.holds(view_of_task.started == view_of_task.ended, || {
                    format!("r{r}/t{i}: not every start has an end: {view_of_task:?}")
                })?;
                let fits = match &task.phase {
                    Phase::Landed { .. } => view_of_task.landed,
                    Phase::Done(_) => view_of_task.has_result() && !view.could_land(scenario, r, i),
                    Phase::Discarded => view_of_task.discarded,
                    Phase::Stale => view_of_task.spoilt,
                    Phase::Failed => view_of_task.is_spent(&plan.tasks[i].spec) || view_of_task.spoilt,
                    Phase::Blocked { .. } => view.is_blocked(scenario, r, i),
                    _ => false,
                };
                Invariant::EndState.holds(fits, || format!("r{r}/t{i} ends {}: {view_of_task:?}", task.state()))?;
            }
        }
        Ok(())
    }
}

impl RunView {
    /// Whether nothing more is to come of a task, but its landing.
    fn is_over(&self, scenario: &Scenario, run: usize, task: usize) -> bool {
        let view = &self.tasks[task];
        view.verified
            || view.discarded
            || view.is_spent(&scenario.runs[run].tasks[task].spec)
            || self.is_blocked(scenario, run, task)
    }

    /// Whether a need of a task will not come to a result.
    fn is_blocked(&self, scenario: &Scenario, run: usize, task: usize) -> bool {
        let needs = &scenario.runs[run].tasks[task].needs;
        needs.iter().any(|&need| !self.tasks[need].has_result() && self.is_over(scenario, run, need))
    }

    /// Whether a task has a result that nothing keeps from landing.
    fn could_land(&self, scenario: &Scenario, run: usize, task: usize) -> bool {
        let view = &self.tasks[task];
        let needs = &scenario.runs[run].tasks[task].needs;
        view.has_result()
            && !view.landed
            && (view.refused.is_none() || view.refused == Some(LandingCause::TargetMoved))
            && needs.iter().all(|&need| self.tasks[need].is_on_target())
    }
}
