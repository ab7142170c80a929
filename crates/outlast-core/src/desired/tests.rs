//! What is asked for in each phase, and that a restart asks for the same.

use super::*;
use crate::testing::core;

fn shown(core: &Core) -> String {
    let step = |(key, operation): (&OperationKey, &Operation)| {
        let detail = match operation {
            Operation::Attempt { needs, shim, .. } => {
                let needs: Vec<_> = needs.iter().map(Oid::as_str).collect();
                format!(" needs={} shim={}", needs.join(","), shim.as_ref().map_or(0, |shim| shim.pid))
            }
            Operation::End { shim, .. } => format!(" shim={}", shim.as_ref().map_or(0, |shim| shim.pid)),
            Operation::Verify { base, .. } => format!(" base={}", base.as_ref().map_or("", Oid::as_str)),
            Operation::Candidate { result, .. } => format!(" {result}"),
            Operation::Move { old, new, .. } => format!(" {}->{new}", old.as_ref().map_or("", Oid::as_str)),
            Operation::Discard => String::new(),
        };
        format!("{} {:?}{detail}", key.task, key.step)
    };
    core.desired().iter().map(step).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(journal: &str, expected: &str) {
    let core = core(journal);
    assert_eq!(shown(&core), expected);
    // A restart from a snapshot asks for the same.
    let text = serde_json::to_string(&core).unwrap();
    let again: Core = serde_json::from_str(&text).unwrap();
    assert_eq!(again, core);
    assert_eq!(again.desired(), core.desired());
}

#[test]
fn each_phase_of_a_task_asks_for_one_operation() {
    check("run\n task a", "");
    check("run\n task a\n a start 1", "a Attempt(1) needs= shim=0");
    check("run\n task a\n a start 1\n a spawned 1", "a Attempt(1) needs= shim=1");
    check("run\n task a\n a start 1\n a spawned 1\n a exit 1 finished", "");
    check("run\n task a\n a start 1\n a spawned 1\n a ending 1 finished", "a End(1) shim=1");
    check("run\n task a\n a start 1\n a workspace 1 b\n a ending 1 finished\n a ended 1", "a Verify(1) base=b");
    check("run\n task a\n a done", "");
    check("run\n task a\n a done\n a want", "a Candidate result-a");
    check("run\n task a\n a done\n a want\n a landing c", "a Move ->c");
    check("run\n task a\n a done\n a want\n a landing c\n a landed c", "");
    check("run\n task a\n a done\n a discard", "a Discard");
    check("run\n task a\n a done\n a discard\n a discarded", "");
}

#[test]
fn an_attempt_starts_from_the_results_that_it_needs() {
    check(
        "run\n task a\n task b\n task c needs=a,b\n a done\n b done\n c start 1",
        "c Attempt(1) needs=result-a,result-b shim=0",
    );
}

#[test]
fn one_result_lands_at_a_time_in_the_order_of_results_and_after_its_needs() {
    let plan = "run auto\n task a\n task b\n task c needs=b";
    check(&format!("{plan}\n b done\n a done"), "b Candidate result-b");
    check(&format!("{plan}\n b done\n a done\n b landing x"), "b Move ->x");
    check(&format!("{plan}\n b done\n c done\n a done\n b refused conflict"), "a Candidate result-a");
    check(&format!("{plan}\n b done\n c done\n a done\n b landing x\n b landed x"), "c Candidate result-c");
    check(&format!("{plan}\n b done\n c done\n b refused empty"), "c Candidate result-c");
    check(&format!("{plan}\n a done\n a landing x\n a refused target_moved"), "a Candidate result-a");
}

#[test]
fn what_a_person_asks_for_lands_in_the_order_in_which_it_is_asked_for() {
    let plan = "run\n task a\n task b\n task c\n a done\n b done\n c done";
    check(&format!("{plan}\n c want\n a want\n b want"), "c Candidate result-c");
    check(&format!("{plan}\n c want\n a want\n b want\n c landing x\n c landed x"), "a Candidate result-a");
    check(&format!("{plan}\n c want\n a want\n c refused conflict\n c want"), "a Candidate result-a");
}

#[test]
fn a_stopped_run_checks_nothing_until_it_goes_on() {
    let checked = "run\n task a\n a start 1\n a workspace 1 b\n a ending 1 finished\n a ended 1";
    check(&format!("{checked}\n pause"), "a Verify(1) base=b");
    check(&format!("{checked}\n stop"), "");
    check(&format!("{checked}\n stop\n resume"), "a Verify(1) base=b");
}

#[test]
fn a_paused_stopped_or_finished_run_lands_what_is_wanted() {
    check("run auto\n task a\n a done\n pause", "a Candidate result-a");
    check("run auto\n task a\n a done\n a landing x\n pause", "a Move ->x");
    check("run auto\n task a\n a done\n stop", "a Candidate result-a");
    check("run\n task a\n a done\n finished done\n a want", "a Candidate result-a");
}
