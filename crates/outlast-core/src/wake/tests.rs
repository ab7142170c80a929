//! When time alone makes a difference.

use super::*;
use crate::testing::core;

#[track_caller]
fn check(journal: &str, now: i64, expected: Option<&(i64, Reason)>) {
    let woken = core(journal).wake_at(Timestamp::from_millis(now));
    assert_eq!(woken.map(|(at, reason)| (at.as_millis(), reason)).as_ref(), expected);
}

#[test]
fn whatever_comes_first_wakes() {
    let max = || Reason::AccountOpens(AccountId::from("max"));
    let retry = || Reason::TaskRetries(TaskId::from("a"));
    check("run\n task a", 0, None);
    check("account max closed billing 5000", 0, Some(&(5000, max())));
    check("account max closed billing 5000\n account max opened", 0, None);
    check("account max closed billing 5000\n account api closed billing 9000", 0, Some(&(5000, max())));
    let failed = "run\n task a\n @1000 a fails network";
    let at = match core(failed).runs[&"r".into()].tasks[0].phase {
        crate::task::Phase::Waiting { until } => until.as_millis(),
        ref other => panic!("{other:?}"),
    };
    check(failed, 1000, Some(&(at, retry())));
    check(&format!("{failed}\n account max closed billing 1500"), 1000, Some(&(1500, max())));
    check(&format!("{failed}\n account max closed billing 99999"), 1000, Some(&(at, retry())));
    // A task that is due waits for room: an event wakes it, not the time.
    check(failed, at, None);
    check(&format!("{failed}\n pause"), 1000, None);
}
