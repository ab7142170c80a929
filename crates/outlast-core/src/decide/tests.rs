//! Who starts, who is given up, what is over, and what it does to others.

use crate::testing::{core, records, show};
use crate::{Core, Fact, Record, Stream, Timestamp};

fn decided(core: &Core, now: i64) -> String {
    show(&core.decide(Timestamp::from_millis(now))).join("; ")
}

#[track_caller]
fn check(journal: &str, now: i64, expected: &str) {
    assert_eq!(decided(&core(journal), now), expected);
}

#[test]
fn once_the_budget_is_reached_nothing_starts_and_whoever_waits_for_it_is_parked() {
    let plan = "run usd=500\n task a\n task b\n task c";
    let held = "a start 1\n b start 1\n a held 1 own_budget\n b held 1 overload";
    check(&format!("{plan}\n {held}"), 0, "c start 1 fresh");
    check(&format!("{plan}\n {held}\n budget reached"), 0, "a ending 1 parked");
    // An answer that is on its way, or a tool at work, is not cut off.
    check(&format!("{plan}\n a start 1\n budget reached"), 0, "");
    let parked = format!("{plan}\n {held}\n budget reached\n a ending 1 parked\n a ended 1");
    check(&parked, 0, "");
    check(&format!("{parked}\n budget 900"), 0, "a start 2 handover; c start 1 fresh");
    check(&format!("{parked}\n pause\n budget 900"), 0, "b ending 1 parked");
}

#[test]
fn a_budget_that_is_raised_while_an_attempt_is_being_parked_lets_it_start_again() {
    let ending = "run usd=500\n task a\n a start 1\n a held 1 own_budget\n budget reached\n a ending 1 parked";
    check(&format!("{ending}\n budget 900\n a ended 1"), 0, "a start 2 handover");
    check(&format!("{ending}\n a ended 1"), 0, "");
    check(&format!("{ending}\n a ended 1\n resume"), 0, "");
}

#[test]
fn begun_tasks_start_first_then_the_plans_order_while_there_is_room() {
    check("run concurrency=2\n task a\n task b\n task c", 0, "a start 1 fresh; b start 1 fresh");
    check(
        "run concurrency=2\n task a\n task b retries=1\n task c\n b session 1 s\n b fails crash",
        0,
        "b start 2 session s; a start 1 fresh",
    );
    check("run concurrency=1\n task a\n task b\n a start 1", 0, "");
    check("run concurrency=1\n task a\n task b\n a start 1\n a ending 1 finished\n a ended 1", 0, "");
}

#[test]
fn a_session_that_is_corrupt_or_no_longer_fits_is_not_continued() {
    for class in ["corrupt_session", "context_overflow"] {
        let failed = format!("run\n task a retries=1\n a start 1\n a session 1 s\n a ending 1 {class}\n a ended 1");
        check(&failed, 0, "a start 2 handover");
    }
}

#[test]
fn a_session_whose_agent_dies_before_it_asks_anything_is_not_continued_again() {
    let first = "run\n task a retries=2\n a start 1\n a session 1 s\n a ending 1 crash\n a ended 1";
    let again = format!("{first}\n a start 2 session s\n a session 2 s");
    for class in ["crash", "startup", "unknown", "gave_up"] {
        check(&format!("{again}\n a ending 2 {class}\n a ended 2"), 0, "a start 3 handover");
    }
    // One that asked something, or was ended by others, has a session that lives.
    check(&format!("{again}\n a held 2 network\n a ending 2 crash\n a ended 2"), 0, "a start 3 session s");
    check(&format!("{again}\n a ending 2 vanished\n a ended 2"), 0, "a start 3 session s");
}

#[test]
fn scopes_that_meet_are_not_worked_on_at_once() {
    let tasks = "task a writes=src/a/**\n task b writes=src/*/x.rs\n task c writes=docs/**\n task d";
    check(&format!("run\n {tasks}"), 0, "a start 1 fresh; c start 1 fresh; d start 1 fresh");
    check(&format!("run\n {tasks}\n a start 1\n c start 1\n d start 1"), 0, "");
    check(&format!("run\n {tasks}\n a done\n c start 1\n d start 1"), 0, "b start 1 fresh");
    // What is no glob may be anything.
    check("run\n task a writes=src/{\n task b writes=docs", 0, "a start 1 fresh");
}

#[test]
fn a_task_whose_accounts_are_all_closed_waits_and_others_do_not() {
    let plan = "run\n task a quota=max\n task b quota=max,api\n task c\n account max closed window_quota 5000";
    check(plan, 4999, "b start 1 fresh; c start 1 fresh");
    check(plan, 5000, "account max opened");
    check("run\n task a quota=max\n account max closed billing 5000\n account max opened", 0, "a start 1 fresh");
}

#[test]
fn an_account_that_is_due_is_tried_by_one_agent_before_others_start() {
    let due = "run\n task a quota=max\n task b quota=max\n task c\n account max closed window_quota 5\n \
               @5 account max opened";
    check(due, 6, "a start 1 fresh; c start 1 fresh");
    check(&format!("{due}\n @6 a start 1"), 7, "c start 1 fresh");
    check(&format!("{due}\n @6 a start 1\n account max answered"), 7, "b start 1 fresh; c start 1 fresh");
    // An agent that does not ask keeps nobody waiting for long.
    check(&format!("{due}\n @6 a start 1"), 60_005, "c start 1 fresh");
    check(&format!("{due}\n @6 a start 1"), 60_006, "b start 1 fresh; c start 1 fresh");
    let waits = due.replace("task b quota=max", "task b quota=max\n @1 a start 1");
    // Who has been at work since before may not ask for long; who waits asks at once.
    check(&waits, 6, "b start 1 fresh; c start 1 fresh");
    check(&format!("{waits}\n a held 1 window_quota"), 6, "c start 1 fresh");
}

#[test]
fn what_the_world_spoilt_is_tried_later_and_costs_no_try() {
    let core = core("run\n task a\n @1000 a fails network");
    assert_eq!(decided(&core, 1000), "");
    assert_eq!(decided(&core, 1000 + 2500), "a start 2 handover");
    assert_eq!(core.run(&"r".into()).map(|run| run.tasks[0].tries_used), Some(0));
}

#[test]
fn an_agent_that_is_gone_is_ended_for_what_it_left() {
    check("run\n task a\n a start 1\n a exit 1 finished", 0, "a ending 1 finished");
    check("run\n task a\n a start 1\n a exit 1 crash\n pause", 0, "a ending 1 crash");
    check("run\n task a\n a start 1\n a exit 1 crash\n a ending 1 crash", 0, "");
}

#[test]
fn a_paused_run_parks_and_starts_nothing_and_a_resumed_one_goes_on() {
    let paused = "run\n task a\n task b\n a start 1\n pause";
    check(paused, 0, "a ending 1 parked");
    check(&format!("{paused}\n a ending 1 parked\n a ended 1"), 0, "");
    check(&format!("{paused}\n a ending 1 parked\n a ended 1\n resume"), 0, "a start 2 handover; b start 1 fresh");
    // Resumed before the end of what was being parked.
    check(&format!("{paused}\n a ending 1 parked\n resume\n a ended 1"), 0, "a start 2 handover; b start 1 fresh");
    check("run\n task a\n stop", 0, "");
}

#[test]
fn a_run_is_finished_when_nothing_can_go_on() {
    check("run\n task a\n a done", 0, "finished done");
    check("run auto\n task a\n a done", 0, "");
    check("run auto\n task a\n a done\n a landing c", 0, "");
    check("run auto\n task a\n a done\n a landing c\n a landed c", 0, "finished done");
    check("run auto\n task a\n a done\n a refused conflict", 0, "finished degraded");
    check("run auto\n task a\n a done\n a refused target_moved", 0, "");
    check("run auto\n task a\n a done\n a refused empty", 0, "finished done");
    check("run\n task a\n task b\n a done\n b fails crash", 0, "finished degraded");
    check("run\n task a\n a fails crash", 0, "finished failed");
    check("run\n task a\n a done\n a discard", 0, "");
    check("run\n task a\n a done\n a discard\n a discarded", 0, "finished failed");
}

#[test]
fn a_halted_run_of_which_all_is_given_up_is_over() {
    for halt in ["pause", "stop"] {
        let parked = format!("run\n task a\n task b\n a done\n b start 1\n {halt}\n b ending 1 parked\n b ended 1");
        check(&parked, 0, "");
        check(&format!("{parked}\n b discard"), 0, "");
        check(&format!("{parked}\n b discard\n b discarded"), 0, "finished degraded");
        check(&format!("{parked}\n a discard\n a discarded"), 0, "");
        let both = "a discard\n a discarded\n b discard\n b discarded";
        check(&format!("{parked}\n {both}"), 0, "finished failed");
    }
}

#[test]
fn j01_a_failure_blocks_everything_behind_it_and_the_run_ends() {
    let plan = "run\n task a\n task b needs=a\n task c needs=a\n task d needs=b,c\n task e\n a fails gave_up\n e done";
    check(plan, 0, "finished degraded");
    let core = core(plan);
    let states: Vec<_> = core.run(&"r".into()).unwrap().tasks.iter().map(|task| task.state()).collect();
    assert_eq!(states, ["failed", "blocked", "blocked", "blocked", "done"]);
}

#[test]
fn j01_dependants_of_a_parked_task_wait() {
    let plan = "run\n task a\n task b needs=a\n a start 1\n pause\n a ending 1 parked\n a ended 1";
    check(plan, 0, "");
    let core = core(plan);
    let states: Vec<_> = core.run(&"r".into()).unwrap().tasks.iter().map(|task| task.state()).collect();
    assert_eq!(states, ["parked", "pending"]);
}

#[test]
fn tries_are_one_more_than_retries() {
    let two = "run\n task a retries=1\n a fails crash";
    check(two, 0, "a start 2 handover");
    check(&format!("{two}\n a fails crash"), 0, "finished failed");
    check(&format!("{two}\n a start 2\n a ending 2 finished\n a ended 2\n a fail 2 verify"), 0, "finished failed");
    check("run\n task a retries=5\n a fails question", 0, "finished failed");
}

#[test]
fn what_rests_on_discarded_work_is_given_up_at_once() {
    let plan = "run concurrency=1\n task a\n task b needs=a\n task c needs=b\n a done";
    let states = |journal: &str| {
        let core = core(&format!("{plan}\n {journal}"));
        let states: Vec<_> = core.run(&"r".into()).unwrap().tasks.iter().map(|task| task.state()).collect();
        states.join(" ")
    };
    assert_eq!(states("a discard"), "running blocked blocked");
    assert_eq!(states("b done\n c done\n a discard"), "running stale stale");
    assert_eq!(states("b start 1\n a discard"), "running running pending");
    assert_eq!(states("b start 1\n a discard\n b ending 1 finished\n b ended 1\n b pass 1"), "running stale blocked");
    assert_eq!(states("b start 1\n a discard\n b ending 1 network\n b ended 1"), "running stale blocked");
    assert_eq!(states("b start 1\n a discard\n pause\n b ending 1 parked\n b ended 1"), "running stale blocked");
}

#[test]
fn a_request_that_waits_longer_than_it_is_held_parks_its_attempt_and_the_slot_is_free() {
    let held = |until: &str| {
        format!(
            "run concurrency=1 hold=1000\n task a quota=max\n task b\n a start 1\n a session 1 s\n \
             account max closed window_quota 9000\n @100 a held 1 window_quota {until}"
        )
    };
    // A reset that is known to be too far away is not waited for.
    check(&held("9000"), 100, "a ending 1 limit window_quota");
    check(&held("1100"), 100, "");
    // One that is not known is waited for as long as any.
    check(&held(""), 1100, "");
    check(&held(""), 1101, "a ending 1 limit window_quota");
    let parked = format!("{}\n a ending 1 limit window_quota\n a ended 1", held("9000"));
    check(&parked, 100, "b start 1 fresh");
    assert_eq!(core(&parked).runs[&"r".into()].tasks[0].state(), "parked");
    // At the reset it tries the account out, in the session that it had.
    check(&format!("{parked}\n b start 1\n b exit 1 finished\n b ending 1 finished"), 8999, "");
    let due = format!("{parked}\n @9000 account max opened");
    check(&due, 9000, "a start 2 session s");
}

#[test]
fn a_request_that_no_open_account_can_take_stays_held_where_its_task_would_be_back_at_once() {
    // Of two accounts, say, one speaks another format than this request.
    let held = "run concurrency=1 hold=1000\n task a quota=max,api\n a start 1\n account max closed window_quota 9000\n \
                @100 a held 1 window_quota 9000";
    check(held, 5000, "");
    check(&format!("{held}\n account api closed window_quota 8000"), 5000, "a ending 1 limit window_quota");
}

#[test]
fn a_task_whose_accounts_all_wait_for_a_person_is_not_started_and_any_other_account_is_enough() {
    let shut = "account max shut auth";
    // It would be told so at once, and fail.
    let only = format!("run\n task a quota=max\n {shut}");
    check(&only, 0, "");
    check(&format!("{only}\n account max opened"), 0, "a start 1 fresh");
    check(&format!("run\n task a quota=max,api\n {shut}\n account api shut billing"), 0, "");
    check(&format!("run\n task a quota=max\n task b\n {shut}"), 0, "b start 1 fresh");
    let rests = |journal: &str| {
        let core = core(journal);
        core.only_a_person_helps(&core.runs[&"r".into()])
    };
    assert!(rests(&only) && !rests("run\n task a quota=max"));
    assert!(rests(&format!("{only}\n task b needs=a")), "what needs it waits for the same");
    assert!(!rests(&format!("{only}\n task b")) && !rests(&format!("{only}\n pause")));
    assert!(!rests(&format!("{only}\n task b\n b start 1")), "something is at work");
    check(&format!("run\n task a quota=max,api\n {shut}\n account api closed overload 5000"), 0, "");
    check(&format!("run\n task a quota=max,api\n {shut}"), 0, "a start 1 fresh");
}

#[test]
fn h13_after_a_long_pause_a_long_session_is_left_for_a_fresh_one_and_a_short_one_is_gone_on_with() {
    const HOUR: i64 = 3_600_000;
    let after = |tokens: u64, pause: i64| {
        let mut core = core("run\n task a\n a start 1\n a session 1 s");
        let usage = crate::Usage { cache_read: tokens, exchanges: 1, ..crate::Usage::default() };
        let stream = Stream::Task("r".into(), "a".into());
        let fact =
            Fact::Exchanged { number: 1, account: "m".into(), main: true, usage, reserved: None, exchange: None };
        core.apply(&Record { at: Timestamp::EPOCH, stream, fact });
        for line in ["pause", "a ending 1 parked", "a ended 1", "resume"] {
            for record in records(&core, line) {
                core.apply(&record);
            }
        }
        let started = core.decide(Timestamp::from_millis(pause));
        for record in &started {
            core.apply(record);
        }
        (show(&started).join(" "), core.runs[&"r".into()].tasks[0].session.is_some())
    };
    assert_eq!(after(1_200_000, 3 * HOUR), ("a start 2 handover".to_owned(), false));
    assert_eq!(after(1_200_000, HOUR - 1), ("a start 2 session s".to_owned(), true));
    assert_eq!(after(60_000, 3 * HOUR), ("a start 2 session s".to_owned(), true));
}
