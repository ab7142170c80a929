//! What records make true; that any sequence of them is taken; that a snapshot loses nothing.

use proptest::prelude::*;

use super::*;
use crate::admit::{AttemptNews, Command};
use crate::budget::{Allowed, Estimate, Lack, Reached};
use crate::ids::{ExchangeId, Oid};
use crate::record::{RunEnd, RunSpec, Rung, ShimRef, TaskSpec};
use crate::testing::{core, run};
use crate::usage::Usage;

#[test]
fn usage_turns_and_checkpoints_add_up_after_an_attempt_is_over_too() {
    let mut core = core("run\n task a\n a fails crash");
    let usage = Usage { input: 5, output: 7, exchanges: 1, ..Usage::default() };
    for main in [true, false] {
        let fact = Fact::Exchanged { number: 1, account: "max".into(), main, usage, reserved: None, exchange: None };
        core.apply(&Record { at: Timestamp::EPOCH, stream: Stream::Task(run(), "a".into()), fact });
    }
    let task = &core.runs[&run()].tasks[0];
    assert_eq!((task.turns, task.usage.input, task.usage.output, task.usage.exchanges), (1, 10, 14, 2));
    assert_eq!(total(&core.runs[&run()]), task.usage);
}

#[test]
fn what_an_attempt_was_held_for_is_over_when_its_agent_is() {
    for end in ["a exit 1 finished", "a ending 1 parked", "a released 1"] {
        let core = core(&format!("run\n task a\n a start 1\n a held 1 overload\n {end}"));
        assert_eq!(core.runs[&run()].tasks[0].attempt().unwrap().held, None, "{end}");
    }
}

#[test]
fn a_hold_that_is_prolonged_began_when_it_began() {
    let core = core("run\n task a\n @5 a start 1\n @6 a held 1 overload\n @9 a held 1 minute_limit 50");
    let held = core.runs[&run()].tasks[0].attempt().unwrap().held.clone().unwrap();
    assert_eq!((held.since, held.class), (Timestamp::from_millis(6), Class::MinuteLimit));
}

#[test]
fn a_check_that_cannot_be_run_ends_its_task_and_uses_no_try() {
    let done = "a start 1\n a spawned 1\n a exit 1 finished\n a ending 1 finished\n a ended 1\n a fail 1 no_program";
    let core = core(&format!("run\n task a retries=3\n task b needs=a\n {done}"));
    let tasks = &core.runs[&run()].tasks;
    assert_eq!((tasks[0].state(), tasks[0].tries_used, tasks[0].attempts), ("failed", 0, 1));
    assert_eq!(tasks[1].state(), "blocked");
}

/// Attempt `number` of task `a`, launched, and lost after what the lines say.
fn lost(number: u32, meanwhile: &str) -> String {
    format!(
        "\n a start {number}\n a checkpointed {number} x{number}\n a spawned {number}\n {meanwhile}\n a ending {number} vanished\n a ended {number}"
    )
}

#[test]
fn what_is_lost_again_and_again_before_it_changes_anything_uses_up_its_tries() {
    let task = |journal: &str| core(journal).runs[&run()].tasks[0].clone();
    let mut journal = "run\n task a retries=1".to_owned();
    for number in 1..=3 {
        journal += &lost(number, "");
        assert_eq!(task(&journal).tries_used, 0, "{number}");
    }
    let over = [lost(4, ""), lost(5, "")].concat();
    assert_eq!(
        (task(&(journal.clone() + &lost(4, ""))).tries_used, task(&(journal.clone() + &over)).tries_used),
        (1, 2)
    );
    let failed = task(&(journal.clone() + &over));
    assert_eq!((failed.phase, failed.losses), (Phase::Failed, 5));
    assert!(failed.last_failure.unwrap().why.contains("5 attempts in a row"));

    // One that got somewhere, or that never lived, or that ended otherwise, begins a new row.
    for other in [
        lost(4, "a checkpointed 4 y"),
        "\n a fails crash".to_owned(),
        "\n a start 4\n a ending 4 vanished\n a ended 4".to_owned(),
    ] {
        let task = task(&format!("{journal}{other}{}", lost(5, "")));
        assert_eq!(task.losses, 1, "{other}");
        assert!(matches!(task.phase, Phase::Waiting { .. }), "{other}");
    }
    // What is kept of it once it is being ended is no headway: it has not got there by a turn.
    let late = lost(4, "").replace("vanished\n", "vanished\n a checkpointed 4 y\n");
    assert_eq!(task(&(journal + &late)).losses, 4);
}

#[test]
fn h01_sessions_that_break_again_and_again_use_up_the_tries() {
    let task = |journal: &str| core(journal).runs[&run()].tasks[0].clone();
    let broken = |number: u32| {
        format!(
            "\n a start {number}\n a checkpointed {number} x{number}\n a spawned {number}\n a checkpointed {number} y{number}\
             \n a ending {number} corrupt_session\n a ended {number}"
        )
    };
    let journal = |count: u32| format!("run\n task a retries=1{}", (1..=count).map(broken).collect::<String>());
    for (count, tries) in [(1, 0), (3, 0), (4, 1), (5, 2)] {
        assert_eq!(task(&journal(count)).tries_used, tries, "{count}");
    }
    let failed = task(&journal(5));
    assert_eq!(failed.phase, Phase::Failed);
    assert!(failed.last_failure.unwrap().why.contains("5 sessions in a row"));
    // One that ended otherwise begins a new row.
    assert_eq!(task(&format!("{}\n a start 4\n a ending 4 network\n a ended 4{}", journal(3), broken(5))).broken, 1);
}

#[test]
fn d05_what_never_begins_is_tried_once_more_however_many_tries_there_are() {
    let task = |journal: &str| core(journal).runs[&run()].tasks[0].clone();
    let never = |number: u32| format!("\n a start {number}\n a ending {number} startup\n a ended {number}");
    let other = |number: u32| format!("\n a start {number}\n a ending {number} crash\n a ended {number}");
    let once = format!("run\n task a retries=5 startups=1{}", never(1));
    assert!(matches!(task(&once).phase, Phase::Waiting { .. }));
    let failed = task(&(once.clone() + &never(2)));
    assert_eq!((failed.phase, failed.tries_used, failed.startups), (Phase::Failed, 2, 2));
    // One that began in between begins a new row, and so does a person's word.
    let apart = task(&(once.clone() + &other(2) + &never(3)));
    assert_eq!((apart.startups, matches!(apart.phase, Phase::Waiting { .. })), (1, true));
    let again = task(&(once.clone() + &never(2) + "\n a retry" + &never(3)));
    assert_eq!((again.startups, matches!(again.phase, Phase::Waiting { .. })), (1, true));
    // A journal that does not know of it is read as it was written.
    let old = task(&(once.replace(" startups=1", "") + &never(2) + &never(3)));
    assert_eq!((old.attempts, matches!(old.phase, Phase::Waiting { .. })), (3, true));
}

#[test]
fn a_task_whose_agents_change_nothing_twice_in_a_row_is_given_up_with_tries_to_spare() {
    let task = |journal: &str| core(journal).runs[&run()].tasks[0].clone();
    let ends = |number: u32, class: &str| {
        format!(
            "\n a start {number}\n a exit {number} finished\n a ending {number} finished\n a ended {number}\n a fail {number} {class}"
        )
    };
    let never = |number: u32| format!("\n a start {number}\n a ending {number} gave_up\n a ended {number}");
    let once = format!("run\n task a retries=5 empties=1{}", ends(1, "gave_up"));
    assert!(matches!(task(&once).phase, Phase::Waiting { .. }), "it is told so, and may do better");
    let failed = task(&(once.clone() + &ends(2, "gave_up")));
    assert_eq!((&failed.phase, failed.tries_used, failed.empties), (&Phase::Failed, 2, 2));
    assert!(failed.last_failure.unwrap().why.contains("2 attempts in a row ended so"));
    // Whoever ends otherwise in between begins a new row, and so does a person's word.
    for between in [ends(2, "verify"), never(2)] {
        let apart = task(&(once.clone() + &between + &ends(3, "gave_up")));
        assert_eq!((apart.empties, matches!(apart.phase, Phase::Waiting { .. })), (1, true));
    }
    let again = task(&(once.clone() + &ends(2, "gave_up") + "\n a retry" + &ends(3, "gave_up")));
    assert_eq!((again.empties, matches!(again.phase, Phase::Waiting { .. })), (1, true));
    // A journal that does not know of it is read as it was written.
    let old = task(&(once.replace(" empties=1", "") + &ends(2, "gave_up") + &ends(3, "gave_up")));
    assert_eq!((old.attempts, matches!(old.phase, Phase::Waiting { .. })), (3, true));
}

/// The first task after these lines: what it is called, until when it waits, and how many of its tries are used.
fn waits(journal: &str) -> (&'static str, Option<i64>, u32) {
    let task = &core(journal).runs[&run()].tasks[0];
    let until = match task.phase {
        Phase::Waiting { until } => Some(until.as_millis()),
        _ => None,
    };
    (task.state(), until, task.tries_used)
}

#[test]
fn a_limit_that_an_agent_reports_parks_its_task_until_the_time_that_was_stated() {
    let end = "a ending 1 window_quota 900000\n a ended 1";
    let one = format!("run\n task a quota=max\n @5 a start 1\n {end}");
    assert_eq!(waits(&one), ("parked", Some(900_000), 0));
    assert_eq!(waits(&one.replace("quota=max", "")), ("parked", Some(900_000), 0), "a command with a login of its own");
    assert_eq!(waits(&format!("{one}\n tried now")), ("parked", None, 0), "a person knows better");
    assert_eq!(waits(&format!("{one}\n @900000 a start 2")), ("running", None, 0));
    // Elsewhere it may go on at once: whether an account is closed decides.
    let (two, billed) = (one.replace("quota=max", "quota=max,api"), "a exchanged 1 max\n a ending");
    let (state, until, _) = waits(&two.replace("a ending", billed));
    assert_eq!(state, "parked");
    assert!(until < Some(4000), "{until:?}");
    assert_eq!(waits(&two), ("parked", Some(900_000), 0), "nobody knows which of them it was");
}

#[test]
fn a_limit_without_an_end_is_tried_ever_later_and_never_fails_its_task() {
    let mut journal = "run\n task a".to_owned();
    let mut pauses = Vec::new();
    for number in 1..=150 {
        journal += &format!("\n @0 a start {number}\n a ending {number} minute_limit\n a ended {number}");
        if number % 10 == 0 || number < 12 {
            let (state, until, tries) = waits(&journal);
            assert_eq!((state, tries), ("parked", 0), "{number}");
            pauses.push(until.unwrap());
        }
    }
    assert!(pauses[0] >= 2000 && pauses.is_sorted_by(|a, b| b >= a || *b >= 900_000), "{pauses:?}");
    assert!(pauses.last().is_some_and(|last| (900_000..=1_125_000).contains(last)), "{pauses:?}");
}

#[test]
fn revisions_count_the_records_of_each_stream() {
    let core = core("run\n task a\n task b\n a start 1");
    assert_eq!(core.next_revision(&Stream::Run(run())), 2);
    assert_eq!(core.next_revision(&Stream::Task(run(), "a".into())), 3);
    assert_eq!(core.next_revision(&Stream::Task(run(), "b".into())), 2);
    assert_eq!(core.next_revision(&Stream::Account("max".into())), 1);
}

#[test]
fn a_chain_of_many_tasks_is_blocked_without_recursion() {
    let mut journal = String::from("run\n task t0\n");
    for i in 1..20_000 {
        journal.push_str(&format!("task t{i} needs=t{}\n", i - 1));
    }
    let core = core(&format!("{journal} t0 fails crash"));
    let blocked = core.runs[&run()].tasks.iter().filter(|task| matches!(task.phase, Phase::Blocked { .. }));
    assert_eq!(blocked.count(), 19_999);
}

fn task_id() -> impl Strategy<Value = TaskId> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(TaskId::from)
}

fn number() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 1, 1, 1, 2, 2, u32::MAX])
}

fn class() -> impl Strategy<Value = Class> {
    prop::sample::select(vec![Class::Crash, Class::Network, Class::Vanished, Class::Auth, Class::CorruptSession])
}

fn time() -> impl Strategy<Value = Timestamp> {
    prop::sample::select(vec![i64::MIN, 0, 1, 5000, i64::MAX]).prop_map(Timestamp::from_millis)
}

fn oid() -> impl Strategy<Value = Oid> {
    prop::sample::select(vec!["x", "y"]).prop_map(Oid::new)
}

fn attempt_fact() -> impl Strategy<Value = Fact> {
    let outcome = || {
        let failed = class().prop_map(|class| Outcome::Failed { class, why: String::new(), until: None });
        prop_oneof![Just(Outcome::Finished), failed]
    };
    let reason = prop_oneof![
        outcome().prop_map(|outcome| EndReason::from(&outcome)),
        Just(EndReason::Parked),
        Just(EndReason::Discarded)
    ];
    let verdict = prop_oneof![
        3 => oid().prop_map(|result| Verdict::Passed { result }),
        1 => class().prop_map(|class| Verdict::Failed { class, why: String::new() })
    ];
    let shim = ShimRef { pid: 1, start_time: 1, boot_id: "b".into() };
    let huge = Usage { input: u64::MAX, usd_nanos: i64::MIN, exchanges: u32::MAX, ..Usage::default() };
    prop_oneof![
        4 => number().prop_map(|number| Fact::AttemptStarted { number, epoch: Epoch(number), rung: Rung::Fresh }),
        2 => (number(), outcome()).prop_map(|(number, outcome)| Fact::AttemptExited { number, outcome }),
        4 => (number(), reason).prop_map(|(number, reason)| Fact::AttemptEnding { number, reason }),
        4 => number().prop_map(|number| Fact::AttemptEnded { number }),
        4 => (number(), verdict).prop_map(|(number, verdict)| Fact::Verified { number, verdict }),
        1 => number().prop_map(move |number| Fact::Spawned { number, shim: shim.clone() }),
        1 => (number(), class(), time()).prop_map(|(number, class, at)| Fact::Held { number, class, until: Some(at) }),
        1 => number().prop_map(|number| Fact::Released { number }),
        1 => number().prop_map(|number| Fact::SessionSeen { number, session: "s".into() }),
        1 => (number(), oid()).prop_map(|(number, base)| Fact::WorkspaceReady { number, base }),
        1 => (number(), prop::option::of("[ab]")).prop_map(move |(number, exchange)| {
            let exchange = exchange.map(ExchangeId::new);
            Fact::Exchanged { number, account: "m".into(), main: true, usage: huge, reserved: None, exchange }
        }),
    ]
}

fn landing_fact() -> impl Strategy<Value = Fact> {
    let causes = vec![LandingCause::TargetMoved, LandingCause::Empty, LandingCause::Conflict];
    let cause = prop::sample::select(causes);
    prop_oneof![
        Just(Fact::LandRequested),
        oid().prop_map(|new| Fact::LandingStarted { old: None, new }),
        (oid(), any::<bool>()).prop_map(|(commit, was_there)| Fact::Landed { commit, was_there }),
        cause.prop_map(|cause| Fact::LandingRefused { cause, detail: String::new() }),
        Just(Fact::RetryRequested),
        Just(Fact::DiscardRequested),
        Just(Fact::Discarded),
    ]
}

fn added() -> impl Strategy<Value = Fact> {
    (prop::collection::vec(task_id(), 0..3), any::<bool>()).prop_map(|(needs, needs_quota)| {
        Fact::TaskAdded(TaskSpec {
            needs,
            writes: vec!["src/**".into()],
            agent: "x".into(),
            accounts: vec!["m".into()],
            retries: 1,
            needs_quota,
            startup_retries: None,
            empty_retries: None,
        })
    })
}

fn run_fact() -> impl Strategy<Value = Fact> {
    let started = (0..3_u32, any::<bool>()).prop_map(|(concurrency, auto_land)| {
        Fact::RunStarted(RunSpec {
            plan: String::new(),
            base: Oid::new("b"),
            target: "t".into(),
            concurrency,
            auto_land,
            seed: 1,
            budget: Allowed::default(),
            hold_max_ms: None,
        })
    });
    prop_oneof![
        3 => started,
        1 => Just(Fact::RunPaused),
        1 => Just(Fact::RunStopped),
        2 => Just(Fact::RunResumed),
        1 => Just(Fact::RunFinished { state: RunEnd::Done }),
        1 => Just(Fact::BudgetReached(Reached { lack: Lack::Usd, wants: Estimate { usd_nanos: Some(9), tokens: 1 } })),
        1 => Just(Fact::BudgetChanged(Allowed { usd_nanos: Some(u64::MAX), tokens: None })),
    ]
}

/// Any fact on any stream, sense or not.
fn record() -> impl Strategy<Value = Record> {
    let on_task = |fact| (task_id(), fact).prop_map(|(task, fact)| (Stream::Task(run(), task), fact));
    let closed = (class(), time(), any::<bool>());
    let closed = closed.prop_map(|(class, until, guessed)| Fact::AccountClosed { class, until, guessed });
    let on_account = prop_oneof![closed, Just(Fact::AccountOpened), Just(Fact::AccountAnswered)];
    let pair = prop_oneof![
        2 => run_fact().prop_map(|fact| (Stream::Run(run()), fact)),
        4 => on_task(added().boxed()),
        12 => on_task(attempt_fact().boxed()),
        5 => on_task(landing_fact().boxed()),
        1 => on_account.prop_map(|fact| (Stream::Account("m".into()), fact)),
    ];
    (time(), pair).prop_map(|(at, (stream, fact))| Record { at, stream, fact })
}

fn begun() -> Vec<Record> {
    let start = Fact::RunStarted(RunSpec {
        plan: String::new(),
        base: Oid::new("b"),
        target: "t".into(),
        concurrency: 2,
        auto_land: true,
        seed: 1,
        budget: Allowed::default(),
        hold_max_ms: None,
    });
    vec![Record { at: Timestamp::EPOCH, stream: Stream::Run(run()), fact: start }]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A damaged or future journal may hold anything: it must never bring the core down, nor ask it for the impossible.
    #[test]
    fn any_sequence_of_records_is_taken_and_asked_about_without_a_panic(
        records in prop::collection::vec(record(), 0..60),
        now in time(),
    ) {
        let mut core = Core::default();
        for record in begun().iter().chain(&records) {
            core.apply(record);
        }
        core.decide(now);
        core.desired();
        core.wake_at(now);
        for task in ["a", "b", "c"] {
            core.explain(&run(), &task.into(), now);
            for number in [0, 1, u32::MAX] {
                let news = AttemptNews::Exited(Outcome::Finished);
                let command = Command::Attempt { run: run(), task: task.into(), number, epoch: Epoch(number), news };
                drop(core.admit(now, command));
            }
            drop(core.admit(now, Command::Land { run: run(), task: task.into() }));
            drop(core.admit(now, Command::Retry { run: run(), task: task.into() }));
            drop(core.admit(now, Command::Discard { run: run(), task: task.into() }));
        }
    }

    /// A snapshot at any point and the records after it give the state of all records.
    #[test]
    fn a_snapshot_and_the_rest_give_the_state_of_all_records(
        records in prop::collection::vec(record(), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let records: Vec<Record> = begun().into_iter().chain(records).collect();
        let mut live = Core::default();
        let mut resumed = Core::default();
        for (i, record) in records.iter().enumerate() {
            if i == cut.index(records.len()) {
                resumed = serde_json::from_str(&serde_json::to_string(&live).unwrap()).unwrap();
            }
            live.apply(record);
            if i >= cut.index(records.len()) {
                let text = serde_json::to_string(record).unwrap();
                resumed.apply(&serde_json::from_str(&text).unwrap());
            }
        }
        prop_assert_eq!(live, resumed);
    }
}

#[test]
fn headway_resets_what_the_next_start_waits_by_and_not_how_often_it_may_be_free() {
    let lost = |n: u32, headway: bool| {
        let turn = if headway { format!("a checkpointed {n} c{n}\n ") } else { String::new() };
        format!("a start {n}\n a spawned {n}\n {turn}a ending {n} network\n a ended {n}\n ")
    };
    let after = |headways: &[bool]| {
        let lines: String = headways.iter().zip(1..).map(|(headway, n)| lost(n, *headway)).collect();
        let task = core(&format!("run\n task a\n {lines}")).runs[&run()].tasks[0].clone();
        (task.waits, task.free_retries)
    };
    assert_eq!(after(&[false, false, false]), (3, 3));
    assert_eq!(after(&[false, false, true]), (1, 3));
    assert_eq!(after(&[true, true, true, false]), (2, 4));
}

#[test]
fn an_answer_that_broke_is_forgotten_once_another_came() {
    let mut core = core("run\n task a\n a start 1");
    let broke = |core: &Core| core.runs[&run()].tasks[0].attempt().unwrap().answer_broke;
    for (number, cut, expected) in [(1, 1, true), (2, 0, true), (1, 0, false), (2, 1, false)] {
        let usage = Usage { exchanges: 1, cut, ..Usage::default() };
        let fact = Fact::Exchanged { number, account: "m".into(), main: true, usage, reserved: None, exchange: None };
        core.apply(&Record { at: Timestamp::EPOCH, stream: Stream::Task(run(), "a".into()), fact });
        assert_eq!(broke(&core), expected, "{number} {cut}");
    }
}
