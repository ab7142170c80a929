//! What commands become, and which are refused.

use super::*;
use crate::record::LandingCause;
use crate::testing::{core, run, shim, show, task_spec};

const NOW: Timestamp = Timestamp::from_millis(1000);

/// What becomes of a command: the records that it makes, or why it is refused.
fn became(journal: &str, command: Command) -> String {
    match core(journal).admit(NOW, command) {
        Ok(records) => show(&records).join("; "),
        Err(rejection) => format!("refused: {rejection}"),
    }
}

#[track_caller]
fn check(journal: &str, command: Command, expected: &str) {
    assert_eq!(became(journal, command), expected);
}

fn news(number: u32, news: AttemptNews) -> Command {
    Command::Attempt { run: run(), task: "a".into(), number, epoch: Epoch(number), news }
}

fn exited(number: u32) -> Command {
    news(number, AttemptNews::Exited(Outcome::Finished))
}

fn landing(news: LandingNews) -> Command {
    Command::Landing { run: run(), task: "a".into(), news }
}

fn land(task: &str) -> Command {
    Command::Land { run: run(), task: task.into() }
}

fn discard(task: &str) -> Command {
    Command::Discard { run: run(), task: task.into() }
}

fn candidate() -> Command {
    landing(LandingNews::Candidate { old: None, new: Oid::new("c") })
}

fn refused(commit: Option<&str>, refusals: u32, cause: LandingCause) -> Command {
    landing(LandingNews::Refused { commit: commit.map(Oid::new), refusals, cause, detail: "why".into() })
}

#[test]
fn news_of_an_older_attempt_or_epoch_is_refused() {
    let second = "run\n task a retries=1\n a fails crash\n a start 2";
    check(second, exited(2), "a exit 2 finished");
    check(second, exited(1), "refused: attempt 1 of task `a` was given up");
    let older = Command::Attempt {
        run: run(),
        task: "a".into(),
        number: 2,
        epoch: Epoch(1),
        news: AttemptNews::Exited(Outcome::Finished),
    };
    check(second, older, "refused: attempt 2 of task `a` was given up");
    check("run\n task a\n a done", exited(1), "refused: attempt 1 of task `a` was given up");
}

#[test]
fn an_attempt_that_is_ending_says_only_that_it_has_ended_and_what_was_kept() {
    let ending = "run\n task a\n a start 1\n a held 1 overload\n a ending 1 parked";
    check(ending, news(1, AttemptNews::Ended), "a ended 1");
    check(ending, news(1, AttemptNews::Checkpointed(Oid::new("t"))), "a checkpointed 1 t");
    let replayed = || news(1, AttemptNews::Replayed(ExchangeId::new("x")));
    check("run\n task a\n a start 1", replayed(), "a replayed 1 x");
    check(ending, replayed(), "refused: attempt 1 of task `a` was given up");
    for late in [AttemptNews::Released, AttemptNews::Spawned(shim(1)), AttemptNews::Exited(Outcome::Finished)] {
        check(ending, news(1, late), "refused: attempt 1 of task `a` was given up");
    }
    // The reason must be on record before anything has ended.
    let living = "run\n task a\n a start 1\n a exit 1 finished";
    check(living, news(1, AttemptNews::Ended), "refused: attempt 1 of task `a` was given up");
}

#[test]
fn what_is_known_makes_no_record() {
    let known = "run\n task a\n a start 1\n a workspace 1 b\n a spawned 1\n a session 1 s\n a held 1 overload 5";
    check(known, news(1, AttemptNews::WorkspaceReady(Oid::new("b"))), "");
    check(known, news(1, AttemptNews::Spawned(shim(1))), "");
    check(known, news(1, AttemptNews::SessionSeen("s".into())), "");
    let held = |until| AttemptNews::Held { class: Class::Overload, until: Some(Timestamp::from_millis(until)) };
    check(known, news(1, held(5)), "");
    check(known, news(1, held(6)), "a held 1 overload");
    check("run\n task a\n a start 1", news(1, AttemptNews::Released), "");
    check("run\n task a\n a start 1\n a exit 1 crash", exited(1), "");
    check("run\n pause", Command::PauseRun(run()), "");
    check("run\n pause", Command::StopRun(run()), "stop");
    check("run\n finished done", Command::ResumeRun(run()), "");
    check("run\n task a\n a done\n a landing c\n a landed c", landing(LandingNews::Landed(Oid::new("c"))), "");
    check("run\n task a\n a done\n a discard", discard("a"), "");
    check("run\n task a\n a done\n a want", land("a"), "");
}

#[test]
fn a_verdict_is_taken_for_the_attempt_that_is_checked_alone() {
    let verified = |number| Command::Verified {
        run: run(),
        task: "a".into(),
        number,
        checkpoint: Some(Oid::new("t")),
        verdict: Verdict::Passed { result: Oid::new("x") },
    };
    let checked = "run\n task a retries=1\n a fails crash\n a start 2\n a ending 2 finished\n a ended 2";
    check(checked, verified(2), "a checkpointed 2 t; a pass 2");
    check(checked, verified(1), "refused: attempt 1 of task `a` was given up");
    check(&format!("{checked}\n a pass 2"), verified(2), "refused: attempt 2 of task `a` was given up");
}

#[test]
fn an_exchange_is_billed_whether_or_not_its_attempt_lives() {
    let exchanged = |task: &str| Command::Exchanged {
        run: run(),
        task: task.into(),
        number: 1,
        account: "max".into(),
        main: true,
        usage: Usage::default(),
        reserved: None,
        exchange: "x".into(),
    };
    check("run\n task a\n a fails crash", exchanged("a"), "a exchanged 1");
    check("run\n task a", exchanged("b"), "refused: no task `b` in run `r`");
    check("", exchanged("a"), "refused: no run `r`");
}

#[test]
fn a_result_is_asked_to_land_after_what_it_needs() {
    let plan = "run\n task a\n task b needs=a\n a done\n b done";
    check(plan, land("a"), "a want");
    check(plan, land("b"), "refused: task `b` starts from `a`, which has not landed");
    check(&format!("{plan}\n a want"), land("b"), "b want");
    check(&format!("{plan}\n a refused empty"), land("b"), "b want");
    check(&format!("{plan}\n a refused conflict"), land("a"), "a want");
    // What is on the target has nothing to land, and what lands behind it must not lose its footing.
    check(&format!("{plan}\n a refused empty"), land("a"), "");
    check("run\n task a\n a start 1", land("a"), "refused: task `a` is running: cannot land");
}

#[test]
fn a_candidate_lands_only_when_it_is_wanted_and_nothing_else_lands() {
    let plan = "run auto\n task b\n task a needs=b\n task c\n b done\n a done\n c done";
    check(plan, candidate(), "refused: task `a` is done: cannot land");
    let behind = format!("{plan}\n b landing x\n b landed x");
    check(&behind, candidate(), "a landing c");
    check(&format!("{behind}\n c landing y"), candidate(), "refused: task `a` is done: cannot land");
    check(&format!("{behind}\n pause"), candidate(), "a landing c");
    check(&format!("{behind}\n a refused conflict"), candidate(), "refused: task `a` is done: cannot land");
    check(&format!("{behind}\n stop"), candidate(), "a landing c");
    check(&format!("{behind}\n a landing x"), candidate(), "refused: task `a` is landing: cannot land");
}

#[test]
fn a_landing_comes_to_one_end() {
    let moving = "run auto\n task a\n a done\n a landing c";
    check(moving, landing(LandingNews::Landed(Oid::new("c"))), "a landed c");
    check(moving, landing(LandingNews::WasThere(Oid::new("d"))), "a was there d");
    check(moving, refused(Some("c"), 0, LandingCause::TargetCheckedOut), "a refused target_checked_out");
    let again = format!("{moving}\n a refused target_moved\n a landing c");
    let late = "refused: task `a` is landing: cannot land";
    check(&again, refused(Some("c"), 0, LandingCause::TargetMoved), late);
    check(&again, refused(None, 1, LandingCause::Conflict), late);
    check(&again, refused(Some("b"), 1, LandingCause::TargetMoved), late);
    check(&again, refused(Some("c"), 1, LandingCause::TargetMoved), "a refused target_moved");
    let waiting = format!("{again}\n a refused target_moved");
    check(&waiting, refused(None, 2, LandingCause::Conflict), "a refused conflict");
    let late = "refused: task `a` is done: cannot land";
    check(&waiting, refused(Some("c"), 1, LandingCause::TargetMoved), late);
    check(&waiting, refused(None, 1, LandingCause::Conflict), late);
    let landed = format!("{moving}\n a landed c");
    check(&landed, refused(Some("c"), 0, LandingCause::TargetMoved), "refused: task `a` is landed: cannot land");
    check(&landed, landing(LandingNews::Landed(Oid::new("d"))), "refused: task `a` is landed: cannot land");
}

#[test]
fn only_work_that_rests_and_is_not_on_the_target_is_discarded() {
    check("run\n task a", discard("a"), "a discard");
    check("run\n task a\n a done", discard("a"), "a discard");
    check("run\n task a\n a fails crash", discard("a"), "a discard");
    let live = "refused: task `a` is running: cannot be discarded while it is worked on: pause it first";
    check("run\n task a\n a start 1", discard("a"), live);
    let landing = "run\n task a\n a done\n a landing c";
    check(landing, discard("a"), "refused: task `a` is landing: cannot be discarded while it lands");
    let there = "cannot be discarded: its change is on the target";
    check(&format!("{landing}\n a landed c"), discard("a"), &format!("refused: task `a` is landed: {there}"));
    check("run\n task a\n a done\n a refused empty", discard("a"), &format!("refused: task `a` is done: {there}"));
}

#[test]
fn a_stated_end_of_a_closed_account_is_never_shortened() {
    let close = |until| Command::CloseAccount {
        account: "max".into(),
        class: Class::WindowQuota,
        until: Some(Timestamp::from_millis(until)),
    };
    check("", close(5000), "account max closed window_quota 5000");
    check("account max closed billing 6000", close(5000), "");
    check("account max closed billing 4000", close(5000), "account max closed window_quota 5000");
    check("", close(1000), "");
}

#[test]
fn a_budget_is_reached_once_and_changed_part_by_part() {
    let reach = || Command::ReachBudget { run: run(), reached: crate::testing::reached() };
    let change = |usd_nanos| Command::ChangeBudget { run: run(), allowed: Allowed { usd_nanos, tokens: None } };
    check("run usd=500", reach(), "budget reached");
    check("run usd=500\n budget reached", reach(), "");
    check("run usd=500\n budget reached\n budget 900", reach(), "budget reached");
    check("run usd=500\n finished done", reach(), "");
    check("run usd=500", change(Some(900)), "budget 900");
    check("run usd=500", change(Some(500)), "");
    check("run usd=500", change(None), "");
    check("run usd=500\n finished done", change(Some(900)), "");
    check("", change(Some(900)), "refused: no run `r`");
}

#[test]
fn the_users_hours_open_what_they_closed_and_nothing_else() {
    let open = || Command::OpenAccount("max".into());
    check("account max closed hours 5000", open(), "account max opened");
    check("account max closed window_quota 5000", open(), "");
    check("", open(), "");
}

#[test]
fn a_person_has_tried_at_once_what_a_run_waits_for_and_nothing_else() {
    let now = || Command::TryNow(run());
    let of_max = "run\n task a quota=max";
    check(&format!("{of_max}\naccount max closed window_quota 5000"), now(), "account max opened");
    check(&format!("{of_max}\naccount max closed hours 5000"), now(), "");
    check(&format!("{of_max}\naccount other closed window_quota 5000"), now(), "");
    check(of_max, now(), "");
    check("", now(), "refused: no run `r`");
}

#[test]
fn a_run_is_started_once_with_all_its_tasks() {
    let spec = core("run concurrency=3").runs[&run()].spec.clone();
    let start = Command::StartRun { run: run(), spec, tasks: vec![("a".into(), task_spec(&["retries=1"]))] };
    check("", start.clone(), "run; a task");
    check("run", start, "refused: run `r` exists already");
}

#[test]
fn an_end_that_is_not_stated_is_guessed_once_and_ever_later() {
    let close = || Command::CloseAccount { account: "max".into(), class: Class::Overload, until: None };
    let pause = |history: &str| {
        let told = became(history, close());
        let until = told.strip_prefix("account max closed overload ").and_then(|rest| rest.strip_suffix(" guessed"));
        until.unwrap_or_else(|| panic!("{told}")).parse::<u64>().unwrap() - 1000
    };
    let close_and_open = "account max closed overload 900\n account max opened\n ";
    for strikes in 0..6 {
        let plain = 1000 << strikes;
        let pause = pause(&close_and_open.repeat(strikes));
        assert!((plain..=plain * 5 / 4).contains(&pause), "{strikes}: {pause}");
    }
    let forgiven = format!("{}account max answered", close_and_open.repeat(4));
    assert!(pause(&forgiven) <= 1250);
    check("account max closed overload 6000", close(), "");
}

#[test]
fn only_an_account_that_is_tried_out_is_told_of_answers() {
    let answered = || Command::AccountAnswered("max".into());
    check("", answered(), "");
    check("account max closed overload 6000", answered(), "");
    check("account max closed overload 900\n account max opened", answered(), "account max answered");
}

#[test]
fn a_limit_that_an_agent_reports_closes_the_account_that_it_met_it_on() {
    let limit = |until: Option<i64>| {
        let until = until.map(Timestamp::from_millis);
        news(1, AttemptNews::Exited(Outcome::Failed { class: Class::WindowQuota, why: "why".into(), until }))
    };
    let one = "run\n task a quota=max\n a start 1";
    check(one, limit(Some(9000)), "account max closed window_quota 9000; a exit 1 window_quota");
    let closed = "account max closed overload 99000";
    check(&format!("{one}\n {closed}"), limit(Some(9000)), "a exit 1 window_quota");
    let two = "run\n task a quota=max,api\n a start 1";
    check(two, limit(Some(9000)), "a exit 1 window_quota");
    let billed = format!("{two}\n a exchanged 1 api");
    check(&billed, limit(Some(9000)), "account api closed window_quota 9000; a exit 1 window_quota");
    // Without an end, the account's own pause counts.
    assert!(became(&billed, limit(None)).starts_with("account api closed window_quota"));
    let other = AttemptNews::Exited(Outcome::Failed { class: Class::Crash, why: "why".into(), until: None });
    check(&billed, news(1, other), "a exit 1 crash");
}

#[test]
fn what_an_agent_claims_closes_its_account_for_an_hour_at_first_and_three_times_in_a_row_at_most() {
    const HOUR: i64 = 3_600_000;
    let limit = |number| {
        let until = Some(Timestamp::from_millis(300 * 24 * HOUR));
        news(number, AttemptNews::Exited(Outcome::Failed { class: Class::WindowQuota, why: "why".into(), until }))
    };
    let one = "run\n task a quota=max\n a start 1";
    let until = NOW.as_millis() + HOUR;
    check(one, limit(1), &format!("account max closed window_quota {until}; a exit 1 window_quota"));
    // Whoever tried it was told the same, and nothing was taken in between.
    let until = NOW.as_millis() + 2 * HOUR;
    let again = "run\n task a quota=max\n account max closed window_quota 5\n account max opened\n a start 1";
    check(again, limit(1), &format!("account max closed window_quota {until}; a exit 1 window_quota"));
    // What the provider itself said is neither shortened nor made longer than that.
    check(&format!("{one}\n account max closed window_quota {}", 90 * HOUR), limit(1), "a exit 1 window_quota");
    // Then it is nobody's business but its own.
    let ended = |n| format!("a start {n}\n a ending {n} window_quota\n a ended {n}");
    let often = format!("run\n task a quota=max\n {}\n {}\n {}\n a start 4", ended(1), ended(2), ended(3));
    check(&often, limit(4), "a exit 4 window_quota");
    let forgiven = format!("{often}\n a ending 4 crash\n a ended 4\n a start 5");
    assert!(became(&forgiven, limit(5)).starts_with("account max closed"), "another end came in between");
}

#[test]
fn what_waits_for_a_reported_limit_is_tried_at_a_persons_word() {
    let parked = "run\n task a\n a start 1\n a ending 1 window_quota 900000\n a ended 1";
    check(parked, Command::TryNow(run()), "tried now");
    check(&format!("{parked}\n tried now"), Command::TryNow(run()), "");
    // A provider that nobody reached may be back, too; what is a task's own fault is not.
    let unreached = "run\n task a\n a start 1\n a ending 1 network\n a ended 1";
    check(unreached, Command::TryNow(run()), "tried now");
    check(&format!("{unreached}\n tried now"), Command::TryNow(run()), "");
    check(&unreached.replace("network", "crash"), Command::TryNow(run()), "");
    // Also while its attempt is just being ended.
    for ending in ["a exit 1 window_quota 900000", "a ending 1 window_quota 900000"] {
        let ending = format!("run\n task a\n a start 1\n {ending}");
        check(&ending, Command::TryNow(run()), "tried now");
        check(&format!("{ending}\n tried now"), Command::TryNow(run()), "");
        let ended = core(&format!("{ending}\n tried now\n a ending 1 window_quota\n a ended 1"));
        assert_eq!(ended.runs[&run()].tasks[0].state(), "parked");
    }
}

#[test]
fn an_account_that_waits_for_a_person_is_opened_by_one_and_by_nothing_else() {
    let shut = "run\n task a quota=max\n account max shut billing";
    let account = || AccountId::from("max");
    check(shut, Command::ShutAccount { account: account(), class: Class::Auth }, "");
    let until = Some(Timestamp::from_millis(9000));
    check(shut, Command::CloseAccount { account: account(), class: Class::Overload, until }, "");
    check(shut, Command::AccountAnswered(account()), "");
    assert_eq!(core(shut).wake_at(NOW), None);
    check(shut, Command::OpenAccount(account()), "account max opened");
    check(shut, Command::TryNow(run()), "account max opened");
    check(&format!("{shut}\n a fails billing"), Command::TryNow(run()), "account max opened");
    check(&format!("{shut}\n account max opened"), Command::TryNow(run()), "");
    let open = "run\n task a quota=max";
    check(open, Command::ShutAccount { account: account(), class: Class::Auth }, "account max shut auth");
}

#[test]
fn short_of_memory_one_attempt_at_a_time_is_parked_that_waits_longest() {
    let two = "run concurrency=3\n task a quota=max\n task b quota=max\n task c quota=max\n a start 1\n b start 1\n c start 1\n \
               account max closed window_quota 9000";
    // Who works, or waits for something that has room already, is left alone.
    check(two, Command::MakeRoom, "");
    let one = format!("{two}\n a held 1 window_quota 8000");
    check(&one, Command::MakeRoom, "a ending 1 limit window_quota");
    check(&one.replace("9000", "500"), Command::MakeRoom, "");
    check(&format!("{one}\n pause"), Command::MakeRoom, "");
    check(&one.replace("a held 1 window_quota 8000", "a held 1 own_budget"), Command::MakeRoom, "");
    let both = format!("{one}\n b held 1 window_quota 9500");
    check(&both, Command::MakeRoom, "b ending 1 limit window_quota");
    // What it has taken is not free before its processes have ended.
    let ending = format!("{both}\n b ending 1 limit window_quota");
    check(&ending, Command::MakeRoom, "");
    check(&format!("{ending}\n b ended 1"), Command::MakeRoom, "a ending 1 limit window_quota");
}
