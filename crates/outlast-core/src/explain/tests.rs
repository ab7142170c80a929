//! The reason for every place of a task, as faces read it.

use super::*;
use crate::testing::{core, run};

/// What is said of the last task of the journal's plan at this time, as JSON.
#[track_caller]
fn check(task: &str, journal: &str, now: i64, expected: &str) {
    let why = core(journal).explain(&run(), &task.into(), Timestamp::from_millis(now)).unwrap();
    assert_eq!(serde_json::to_string(&why).unwrap(), expected);
}

#[test]
fn every_place_of_a_task_has_its_reason() {
    check("b", "run\n task a\n task b needs=a,x", 0, r#"{"why":"needs","tasks":["a","x"]}"#);
    check("a", "run\n task a", 0, r#"{"why":"starting"}"#);
    check("b", "run concurrency=1\n task a\n task b\n a start 1", 0, r#"{"why":"no_room","concurrency":1}"#);
    check("b", "run\n task a writes=x/**\n task b writes=x/y\n a start 1", 0, r#"{"why":"scope","task":"a"}"#);
    let closed = "run\n task a quota=max,api\n account max closed billing 9000\n account api closed billing 5000";
    check("a", closed, 0, r#"{"why":"quota","account":"api","until":5000,"class":"billing"}"#);
    check("a", closed, 6000, r#"{"why":"starting"}"#);
    let shut = "run\n task a quota=max,api\n account max shut auth";
    check("a", shut, 0, r#"{"why":"starting"}"#);
    let shut = format!("{shut}\n account api shut billing");
    check("a", &shut, 0, r#"{"why":"person","account":"max","class":"auth"}"#);
    check("a", "run\n task a\n pause", 0, r#"{"why":"paused"}"#);
    check("a", "run\n task a\n budget reached", 0, r#"{"why":"budget"}"#);
    check("a", "run\n task a\n a start 1", 0, r#"{"why":"working"}"#);
    check(
        "a",
        "run\n task a\n a start 1\n @7 a held 1 overload 9",
        7,
        r#"{"why":"held","class":"overload","since":7,"until":9}"#,
    );
    check("a", "run\n task a\n a start 1\n a held 1 overload\n a exit 1 finished", 0, r#"{"why":"working"}"#);
    check("a", "run\n task a\n a start 1\n a ending 1 finished\n a ended 1", 0, r#"{"why":"verifying"}"#);
    check("a", "run\n task a\n a done", 0, r#"{"why":"review"}"#);
    check("a", "run auto\n task a\n a done", 0, r#"{"why":"landing_queue"}"#);
    check(
        "a",
        "run auto\n task a\n a done\n a refused conflict",
        0,
        r#"{"why":"landing_refused","cause":"conflict","detail":"why"}"#,
    );
    check("a", "run\n task a\n a fails crash", 0, r#"{"why":"failed","failure":{"class":"crash","why":"why"}}"#);
    check("b", "run\n task a\n task b needs=a\n a fails crash", 0, r#"{"why":"blocked","by":"a"}"#);
    check("a", "run\n task a\n a done\n a landed c", 0, r#"{"why":"over"}"#);
}

#[test]
fn what_waits_for_a_retry_says_until_when_and_why() {
    let core = core("run\n task a\n @1000 a fails network");
    let why = core.explain(&run(), &"a".into(), Timestamp::from_millis(1000));
    assert!(
        matches!(why, Some(Why::Retry { until, failure: Some(_) }) if until > Timestamp::from_millis(1000)),
        "{why:?}"
    );
    assert_eq!(core.explain(&run(), &"x".into(), Timestamp::EPOCH), None);
}
