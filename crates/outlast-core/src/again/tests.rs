//! What a person may have tried again, what follows from it, and what is refused.

use crate::admit::{Command, Rejection};
use crate::ids::TaskId;
use crate::run::Mode;
use crate::task::Phase;
use crate::testing::{core, run, show};
use crate::{Core, Timestamp};

fn retry(core: &mut Core, task: &str) -> Result<Vec<String>, Rejection> {
    let command = Command::Retry { run: run(), task: task.into() };
    let records = core.admit(Timestamp::EPOCH, command)?;
    for record in &records {
        core.apply(record);
    }
    Ok(show(&records))
}

fn state(core: &Core, task: &str) -> &'static str {
    core.run(&run()).unwrap().task(&task.into()).unwrap().state()
}

#[test]
fn h09_one_of_many_failed_and_exactly_that_one_is_run_again() {
    let names: Vec<String> = (1..=102).map(|number| format!("t{number}")).collect();
    let mut journal = "run auto concurrency=200".to_owned();
    for name in &names {
        journal += &format!("\n task {name} retries=0");
    }
    for name in &names {
        let line =
            if name == "t4" { format!("\n {name} fails gave_up") } else { format!("\n {name} done\n {name} landed c") };
        journal += &line;
    }
    let mut core = core(&(journal + "\n finished degraded"));
    assert_eq!(retry(&mut core, "t4"), Ok(vec!["resume".to_owned(), "t4 retry".to_owned()]));
    assert_eq!(core.run(&run()).unwrap().mode, Mode::Running);
    assert_eq!(show(&core.decide(Timestamp::EPOCH)), ["t4 start 2 handover"]);
    // Said twice, it is done once.
    assert_eq!(retry(&mut core, "t4"), Ok(Vec::new()));
}

#[test]
fn its_work_and_its_session_are_gone_on_with_and_all_its_tries_are_its_own_again() {
    let mut core = core(
        "run\n task a retries=1\n a start 1\n a session 1 s\n a checkpointed 1 x\n a ending 1 crash\n a ended 1\n a fails crash\n finished failed",
    );
    let task = |core: &Core| core.run(&run()).unwrap().task(&"a".into()).unwrap().clone();
    assert_eq!((task(&core).phase, task(&core).tries_used), (Phase::Failed, 2));
    retry(&mut core, "a").unwrap();
    let again = task(&core);
    assert_eq!((again.tries_used, again.attempts, again.phase), (0, 2, Phase::Ready));
    assert!(again.checkpoint.is_some() && again.last_failure.is_some(), "whoever goes on is told why");
    assert_eq!(show(&core.decide(Timestamp::EPOCH)), ["a start 3 session s"]);
}

#[test]
fn what_waited_in_vain_waits_again_and_nothing_that_another_blocks() {
    let plan = "run\n task a\n task x\n task b needs=a\n task c needs=b\n task d needs=c,x\n task e needs=a";
    let mut core = core(&format!("{plan}\n a fails crash\n x fails crash\n e discard\n e discarded\n finished failed"));
    retry(&mut core, "a").unwrap();
    let states = ["a", "b", "c", "d", "e", "x"].map(|task| state(&core, task));
    assert_eq!(states, ["ready", "pending", "pending", "blocked", "discarded", "failed"]);
    let d = core.run(&run()).unwrap().task(&"d".into()).unwrap().phase.clone();
    assert_eq!(d, Phase::Blocked { by: "x".into() }, "it is told what it still waits for");
    retry(&mut core, "x").unwrap();
    assert_eq!(["d", "x"].map(|task| state(&core, task)), ["pending", "ready"]);
    for line in ["a", "b", "c", "x", "d"] {
        for record in crate::testing::records(&core, &format!("{line} done")) {
            core.apply(&record);
        }
    }
    assert_eq!(state(&core, "d"), "done", "its needs are counted right");
}

#[test]
fn what_needs_a_result_that_there_is_not_is_refused_and_the_last_cause_named() {
    let mut core = core("run\n task a\n task b needs=a\n task c needs=b\n a fails crash\n finished failed");
    let refused = retry(&mut core, "c").unwrap_err();
    assert_eq!(refused, Rejection::NeedWithoutResult { task: "c".into(), need: TaskId::from("a") });
    let done = "run\n task a\n a done\n finished done";
    for (journal, state) in [(done, "done"), ("run\n task a\n a fails crash\n a discard\n a discarded", "discarded")] {
        let refused = retry(&mut crate::testing::core(journal), "a").unwrap_err();
        assert!(matches!(refused, Rejection::Illegal { state: found, .. } if found == state), "{refused:?}");
    }
}

#[test]
fn what_is_to_be_tried_later_is_tried_now() {
    let mut core = core("run\n task a\n a fails overload");
    assert!(matches!(core.run(&run()).unwrap().tasks[0].phase, Phase::Waiting { .. }));
    assert_eq!(retry(&mut core, "a"), Ok(vec!["a retry".to_owned()]));
    assert_eq!(show(&core.decide(Timestamp::EPOCH)), ["a start 2 handover"]);
}
