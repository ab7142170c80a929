//! What it does to other tasks that one of them comes to no result, or that its result is given up.
//!
//! Worked off as a list, not by recursion: a plan may be one chain of many thousand tasks.

use crate::mutant::{Bug, planted};
use crate::run::{Index, Run};
use crate::task::Phase;

/// Ends a task in a phase without a result, and gives up what needs it.
pub(crate) fn give_up(run: &mut Run, index: Index, phase: Phase) {
    run.set_phase(index, phase);
    give_up_dependants(run, index);
}

/// Blocks everything that waits for this task's result, and marks what was built on it.
pub(crate) fn give_up_dependants(run: &mut Run, index: Index) {
    let mut without_result = vec![index];
    while let Some(index) = without_result.pop() {
        let by = run.tasks[index as usize].id.clone();
        for dependant in run.dependants(index) {
            match run.tasks[dependant as usize].phase {
                Phase::Pending | Phase::Ready | Phase::Waiting { .. } | Phase::Parked => {
                    run.set_phase(dependant, Phase::Blocked { by: by.clone() });
                    without_result.extend((!planted(Bug::BlocksOnlyTheNext)).then_some(dependant));
                }
                // Its dependants have no result of it yet; they follow when it ends.
                Phase::Live(_) | Phase::Verifying { .. } => run.tasks[dependant as usize].stale = true,
                Phase::Done(_) => {
                    run.set_phase(dependant, Phase::Stale);
                    without_result.push(dependant);
                }
                _ => {}
            }
        }
    }
}
