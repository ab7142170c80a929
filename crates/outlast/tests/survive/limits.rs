//! The cases of group A: limits that kill agents elsewhere, and what is left of their work here.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_testkit::fixture::Repo;
use outlast_testkit::provider::{Closing, Fault, RefusalKind, Rule, Says, Script, When};
use serde_json::Value;

use crate::world::{Plan, World, text};

const RESUMES: [&str; 4] = ["--retries", "0", "--resume", "{resume}"];

fn rule(step: usize, fault: Fault, times: Option<u64>) -> Rule {
    Rule { when: When { step: Some(step), ..When::default() }, fault, times }
}

/// How often each fact is in a task's log.
fn facts(world: &World, task: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for line in world.run(&["log", task, "--json"]).ends(0).stdout.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        *found.entry(text(&record["event"])).or_default() += 1;
    }
    found
}

/// Configures a second account beside the first, of the same provider and with a key of its own.
fn two_accounts(world: &World) {
    std::fs::write(world.env.root().join("key-2"), "sk-other\n").unwrap();
    let account = |name: &str, key: &str| {
        let key = world.env.root().join(key).display().to_string();
        let url = world.provider.url();
        format!("[account.{name}]\nprovider = \"anthropic\"\nbase_url = {url:?}\nkey_file = {key:?}\n")
    };
    world.env.write_config(&format!("{}{}", account("main", "key"), account("second", "key-2"))).unwrap();
}

/// The session of each conversation is the same before and after the limit: nothing is read anew.
#[test]
fn a01_a_billing_cycle_that_ends_in_the_midst_of_edits_parks_them_and_breaks_nobody_elses_build() {
    let refuse = Fault::Refuse { reason: RefusalKind::BillingCycle, seconds: Some(8) };
    // All four meet it, and so does the first request that tries whether it is over: on a busy machine that may come before the last
    // of the others has landed.
    let mut closed = rule(3, refuse, Some(5));
    closed.when.key = Some("sk-real".to_owned());
    let world = World::with_script(Script::default().with_fault(closed));
    two_accounts(&world);
    let program = env!("CARGO_BIN_EXE_outlast");
    let other = format!(
        "concurrency = 6\nland = \"auto\"\nhold = \"1s\"\n\n[agent.other]\nkind = \"command\"\n\
         accounts = [\"second\"]\ncommand = [{program:?}, \"__agent\", \"{{goal_file}}\"]"
    );
    let mut plan = Plan::new(&other).agent_arguments(&RESUMES);
    for id in ["a", "b", "c", "d"] {
        // What it has written when the limit comes does not pass the project's check.
        let script = format!(
            "write parts/{id}.txt \"half\"\nread README.md\nwrite parts/{id}.txt \"part {id}\\n\"\nread parts/{id}.txt"
        );
        plan = plan.task(id, &script, &format!("writes = [\"parts/{id}.txt\"]\nretries = 0"));
    }
    // The checks of one of them last until all the others wait.
    for (id, verify) in [("e", "verify = [\"sleep 1 && sh check.sh\"]"), ("f", "")] {
        let script = format!("write parts/{id}.txt \"part {id}\\n\"");
        let keys = format!("writes = [\"parts/{id}.txt\"]\nagent = \"other\"\nretries = 0\n{verify}");
        plan = plan.task(id, &script, &keys);
    }
    world.plan(&plan);
    let base = world.repo.commit_id("HEAD").unwrap();
    world.run(&["run", "--yes", "--no-wait"]).ends(6).says("is being parked until an account opens");

    let store = Repo::at(world.homes()[0].join("store.git"));
    for id in ["e", "f"] {
        assert_eq!(world.task(id)["state"], "landed", "nobody leaves while something has to land");
    }
    for id in ["a", "b", "c", "d"] {
        let task = world.task(id);
        assert!(matches!(task["state"].as_str(), Some("parked" | "held" | "waiting")), "{task:#}");
        let half = format!("{}:parts/{id}.txt", text(&task["checkpoint"]));
        assert_eq!(store.text(&["show", &half]).unwrap(), "half", "its work is kept");
    }
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    for id in ["a", "b", "c", "d"] {
        let task = world.task(id);
        assert!(task["attempts"] == 1 || task["resumed_by"] == "session", "{task:#}");
    }
    // Each turn was paid for once: five of each that met the limit, two of the others.
    let bill = world.provider.bill();
    assert_eq!(bill.total.requests - bill.total.refused, 4 * 5 + 2 * 2, "{bill:#?}");
    world.every_commit_passes(&world.target(), &base);
    world.nothing_is_left();
}

#[test]
fn a05_of_22_tasks_15_die_and_every_start_has_one_terminal_record_also_after_a_crash() {
    let world = World::new();
    let mut plan = Plan::new("concurrency = 4\nland = \"auto\"");
    let ids: Vec<String> = (1..=22).map(|number| format!("t{number}")).collect();
    for (at, id) in ids.iter().enumerate() {
        plan = match at % 3 == 0 && at < 21 {
            true => plan.part(id),
            false => plan.task(id, "die 1", "retries = 0"),
        };
    }
    world.plan(&plan);
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["t5 ", "crash"]);
    assert!(run.kill_9().was_killed());
    world.run(&["resume"]).ends(5);
    let states = world.states();
    let count = |wanted: &str| states.iter().filter(|(_, state)| state == wanted).count();
    assert_eq!((count("landed"), count("failed")), (7, 15), "{states:?}");
    assert_eq!(world.status()["state"], "degraded");
    for id in &ids {
        let facts = facts(&world, id);
        assert_eq!(facts.get("attempt_started"), facts.get("attempt_ended"), "{id}: {facts:?}");
        assert!(facts.contains_key("attempt_started"), "{id}: {facts:?}");
    }
    world.nothing_is_left();
}

#[test]
fn a09_a_stream_that_breaks_is_no_fault_of_the_task_and_goes_on_in_its_session() {
    let cut = Fault::Cut { after_frames: 3, and_bytes: 0 };
    let world = World::with_script(Script::default().with_fault(rule(2, cut, Some(1))));
    let script = "write parts/a.txt \"part a\\n\"\nwrite parts/b.txt \"part b\\n\"";
    let plan = Plan::new("land = \"auto\"").agent_arguments(&RESUMES);
    world.plan(&plan.task("work", script, "writes = [\"parts/**\"]\nretries = 0"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let task = world.task("work");
    assert!(task["attempts"] == 1 || task["resumed_by"] == "session", "{task:#}");
    let facts = facts(&world, "work");
    assert_eq!(facts.get("attempt_started"), facts.get("attempt_ended"), "{facts:?}");
    world.nothing_is_left();
}

#[test]
fn a12_a19_the_cause_is_what_the_provider_said_and_nothing_is_tried_again() {
    // Not a window that comes back: a person has to pay. It comes as 400, as a broken request does.
    let refuse = Fault::Refuse { reason: RefusalKind::InsufficientFunds, seconds: None };
    let world = World::with_script(Script::default().with_fault(rule(1, refuse, None)));
    world.plan(&Plan::new("land = \"auto\"").agent_arguments(&["--retries", "0"]).part("one"));
    world.run(&["run", "--yes"]).says("credit balance is too low");
    let task = world.task("one");
    assert_eq!((&task["cause"], &task["attempts"]), (&"billing".into(), &1.into()), "{task:#}");
    assert_eq!(world.provider.bill().total.requests, 1);
    world.nothing_is_left();
}

/// An agent whose CLI asks five times over, whatever it is told, and then says that all is well.
fn stubborn(run: &str, accounts: &str) -> String {
    let program = env!("CARGO_BIN_EXE_outlast");
    let script = format!("for n in 1 2 3 4 5; do '{program}' __agent --retries 0 \\\"$0\\\" && break; done; exit 0");
    format!(
        "{run}\n\n[agent.stubborn]\nkind = \"command\"\naccounts = {accounts}\n\
         command = [\"sh\", \"-c\", \"{script}\", \"{{goal_file}}\"]"
    )
}

#[test]
fn a19_after_a_refusal_that_no_waiting_mends_nothing_goes_upstream_until_a_person_says_so() {
    for (reason, cause) in [(RefusalKind::Auth, "auth"), (RefusalKind::InsufficientFunds, "billing")] {
        let refuse = Fault::Refuse { reason, seconds: None };
        let world = World::with_script(Script::default().with_fault(rule(1, refuse, Some(1))));
        let mut plan = Plan::new(&stubborn("concurrency = 1\nland = \"auto\"", "[\"main\"]"));
        for id in ["one", "two"] {
            let keys = format!("writes = [\"parts/{id}.txt\"]\nagent = \"stubborn\"\nretries = 0");
            plan = plan.task(id, &format!("write parts/{id}.txt \"part {id}\\n\""), &keys);
        }
        world.plan(&plan);
        // The second is not even begun: it would be told the same, and fail for nothing.
        let code = if cause == "auth" { "account/refused" } else { "account/unpaid" };
        let ended = world.run(&["run", "--yes"]).ends(11);
        let ended = ended.says("until you say so").says(&format!("error[{code}]")).says("account `main`");
        ended.says("outlast retry --run").says("state:failed").says("outlast doctor");
        let goes_on = format!("outlast resume {}", text(&world.status()["run"]));
        for (id, state, attempts) in [("one", "failed", 1), ("two", "ready", 0)] {
            let task = world.task(id);
            assert_eq!((&task["state"], &task["cause"]), (&state.into(), &cause.into()), "{task:#}");
            assert_eq!(task["attempts"], attempts, "{task:#}");
        }
        assert_eq!(world.task("two")["fix"], serde_json::json!([goes_on]));
        world.run(&["status"]).ends(0).says(&goes_on);
        // Once, whoever asks and however often: the provider would have answered the second.
        assert_eq!(world.provider.bill().total.requests, 1, "{cause}");
        let status = world.status();
        let account = &status["accounts"][0]["windows"][0];
        assert_eq!((&account["state"], &account["kind"]), (&"closed".into(), &cause.into()), "{status:#}");

        // Who starts the next engine has seen to it.
        world.run(&["resume"]).ends(11);
        assert_eq!((&world.task("one")["state"], &world.task("two")["state"]), (&"failed".into(), &"landed".into()));
        world.run(&["retry", "one"]).ends(0);
        world.all_are("landed");
        world.nothing_is_left();
    }
}

#[test]
fn a_provider_that_nobody_reaches_is_told_as_that_to_who_need_not_wait() {
    let world = World::new();
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let config = std::fs::read_to_string(world.env.config_file()).unwrap();
    // Nobody listens there: the listener that had the port is gone.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.env.write_config(&config.replace(&world.provider.url(), &format!("http://{nobody}"))).unwrap();
    let ended = world.run(&["run", "--yes", "--no-wait"]).ends(11);
    ended.says("error[provider/unreachable]").says("outlast doctor").says("outlast resume ");
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"parked".into(), &"network".into()), "{task:#}");
    world.env.write_config(&config).unwrap();
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn a_key_that_is_not_there_is_a_refused_key_and_nobodys_overload() {
    let world = World::new();
    world.plan(&Plan::new("land = \"auto\"").part("one").part("two"));
    let key = world.env.root().join("key");
    let held = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let ended = world.run(&["run", "--yes"]).ends(11).says("error[account/refused]").says("outlast doctor");
    ended.says(&key.display().to_string());
    let causes: Vec<Value> = ["one", "two"].map(|id| world.task(id)["cause"].clone()).into();
    assert_eq!(causes, ["auth", "auth"]);
    assert_eq!(world.provider.bill().total.requests, 0);
    std::fs::write(&key, held).unwrap();
    // What had failed by it is named, and not as if it were so still.
    let run = text(&world.status()["run"]);
    world.run(&["retry", "--run", &run, "state:failed"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

/// What waits for an account that is shut goes on at a person's word, while the run is at work elsewhere.
#[test]
fn what_waits_for_a_person_goes_on_at_their_word_beside_the_engine() {
    let refuse = Fault::Refuse { reason: RefusalKind::Auth, seconds: None };
    let mut refused = rule(1, refuse, Some(1));
    refused.when.key = Some("sk-real".to_owned());
    let world = World::with_script(Script::default().with_fault(refused));
    two_accounts(&world);
    let other = format!(
        "[agent.other]\nkind = \"command\"\naccounts = [\"second\"]\ncommand = [{:?}, \"__agent\", \"{{goal_file}}\"]",
        env!("CARGO_BIN_EXE_outlast")
    );
    let stubborn = stubborn("concurrency = 2\nland = \"auto\"", "[\"main\"]");
    let mut plan = Plan::new(&format!("{stubborn}\n\n{other}"));
    // At work for as long as it takes, with the other account.
    let held = "run \"until [ -e $HOME/go ]; do sleep 0.05; done\"\nwrite parts/far.txt \"part far\\n\"";
    plan = plan.task("far", held, "writes = [\"parts/far.txt\"]\nagent = \"other\"\nretries = 0");
    for id in ["one", "two", "three"] {
        let keys = format!("writes = [\"parts/{id}.txt\"]\nagent = \"stubborn\"\nretries = 0");
        plan = plan.task(id, &format!("write parts/{id}.txt \"part {id}\\n\""), &keys);
    }
    world.plan(&plan);
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["one ", "auth"]);
    for id in ["two", "three"] {
        assert_eq!((&world.task(id)["cause"], &world.task(id)["attempts"]), (&"auth".into(), &0.into()), "{id}");
    }
    world.run(&["resume"]).ends(0);
    run.until(&["three ", "landed"]);
    let run_id = text(&world.status()["run"]);
    std::fs::write(world.homes().remove(0).join("homes").join(run_id).join("far/other/go"), "").unwrap();
    run.end().ends(11);
    let states: Vec<String> = world.states().into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["landed", "failed", "landed", "landed"]);
    world.nothing_is_left();
}

#[test]
fn an_account_that_is_refused_for_good_leaves_the_work_to_the_next_one() {
    let mut refused = rule(2, Fault::Refuse { reason: RefusalKind::Auth, seconds: None }, None);
    refused.when.key = Some("sk-real".to_owned());
    let world = World::with_script(Script::default().with_fault(refused));
    two_accounts(&world);
    let keys = "writes = [\"parts/one.txt\"]\nagent = \"stubborn\"\nretries = 0";
    let plan = Plan::new(&stubborn("land = \"auto\"", "[\"main\", \"second\"]"));
    world.plan(&plan.task("one", "write parts/one.txt \"part one\\n\"", keys));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let asked: Vec<_> = world.provider.model_requests().iter().map(|entry| (entry.key.clone(), entry.status)).collect();
    let expected = [("sk-real", 200), ("sk-real", 401), ("sk-other", 200)];
    assert_eq!(asked, expected.map(|(key, status)| (key.to_owned(), status)), "its agent noticed nothing");
    world.nothing_is_left();
}

#[test]
fn a20_success_after_a_refusal_and_without_a_change_is_none() {
    let refuse = Fault::Refuse { reason: RefusalKind::Auth, seconds: None };
    let world = World::with_script(Script::default().with_fault(rule(1, refuse, None)));
    let program = env!("CARGO_BIN_EXE_outlast");
    let script = format!("'{program}' __agent \\\"$0\\\"; exit 0");
    let liar = format!(
        "land = \"auto\"\n\n[agent.liar]\nkind = \"command\"\naccounts = [\"main\"]\n\
         command = [\"sh\", \"-c\", \"{script}\", \"{{goal_file}}\"]"
    );
    let keys = "writes = [\"parts/one.txt\"]\nagent = \"liar\"\nretries = 0";
    world.plan(&Plan::new(&liar).task("one", "write parts/one.txt \"part one\\n\"", keys));
    world.run(&["run", "--yes"]).ends(11);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"auth".into()), "{task:#}");
    world.nothing_is_left();
}

/// Fifteen agents that would die of a refusal, at once.
fn fifteen(script: impl Fn(&str) -> String) -> Plan {
    let plan = Plan::new("land = \"auto\"\nconcurrency = 15").agent_arguments(&["--retries", "0"]);
    (1..=15)
        .map(|number| format!("t{number}"))
        .fold(plan, |plan, id| plan.task(&id, &script(&id), &format!("writes = [\"parts/{id}.txt\"]\nretries = 0")))
}

#[track_caller]
fn nobody_noticed(world: &World) {
    world.all_are("landed");
    let status = world.status();
    for task in status["tasks"].as_array().unwrap() {
        assert_eq!(task["attempts"], 1, "{task:#}");
    }
    world.nothing_is_left();
}

/// Checks the times of requests that a provider does not take: whoever was on the way comes beside the first, and from then on
/// it is one try after a second, one two seconds after that, then four, and so on until the provider is back.
#[track_caller]
fn are_ever_rarer(refused: &[u64], at_once: usize, back_after: Duration) {
    let first = refused[0];
    let (beside, later): (Vec<u64>, Vec<u64>) = refused.iter().partition(|at| **at < first + 1000);
    assert!(beside.len() <= at_once, "{refused:?}");
    for (place, pair) in [&[first], &later[..]].concat().windows(2).enumerate() {
        assert!(pair[1] - pair[0] >= 1000 << place, "{refused:?}");
    }
    // As many as there is room for, and no fewer than one: each waits twice as long as the one before.
    let room = (back_after.as_secs() + 1).ilog2() as usize;
    assert!((1..=room).contains(&later.len()), "{refused:?}");
}

#[test]
fn a16_a_provider_that_is_away_is_asked_by_one_request_and_not_by_all() {
    const AWAY: Duration = Duration::from_secs(10);
    let when = When { before_seconds: Some(AWAY.as_secs_f64()), ..When::default() };
    let away = Rule { when, fault: Fault::Drop, times: None };
    let world = World::with_script(Script::default().with_fault(away));
    world.plan(&fifteen(|id| format!("write parts/{id}.txt \"part {id}\\n\"")));
    world.run(&["run", "--yes"]).ends(0);
    nobody_noticed(&world);
    let log = world.provider.log();
    let dropped = log.iter().filter(|entry| entry.fault.as_deref() == Some("drop"));
    let dropped: Vec<u64> = dropped.map(|entry| entry.arrived_at_ms).collect();
    are_ever_rarer(&dropped, 15, AWAY);
}

#[test]
fn a16_a_provider_that_goes_away_under_fifteen_agents_and_comes_back_meets_them_one_by_one() {
    const THINKS_MS: u64 = 400;
    const AWAY: Duration = Duration::from_secs(12);
    let closing = Closing {
        name: "away".to_owned(),
        // Two turns of each, so that all are in the midst of their work.
        after_requests: 30,
        seconds: AWAY.as_secs_f64(),
        reason: RefusalKind::Overload,
        says: Says::Nothing,
    };
    let world = World::with_script(Script { latency_ms: THINKS_MS, closing: vec![closing], ..Script::default() });
    world.plan(&fifteen(|id| format!("{}write parts/{id}.txt \"part {id}\\n\"", "run \"true\"\n".repeat(4))));
    world.run(&["run", "--yes"]).ends(0);
    nobody_noticed(&world);

    let requests = world.provider.model_requests();
    let (refused, taken): (Vec<_>, Vec<_>) = requests.iter().partition(|entry| entry.window.is_some());
    let refused: Vec<u64> = refused.iter().map(|entry| entry.arrived_at_ms).collect();
    are_ever_rarer(&refused, 15, AWAY);
    // It is back: one, then two more than have been answered, then four.
    let ends = world.provider.bill().closings[0].ends_at_ms;
    let mut back: Vec<u64> = taken.iter().map(|entry| entry.arrived_at_ms).filter(|at| *at >= ends).collect();
    back.sort_unstable();
    assert!(back[1] - back[0] >= THINKS_MS && back[3] - back[0] >= 2 * THINKS_MS, "{back:?}");
    assert!(back[7] - back[0] >= 3 * THINKS_MS, "{back:?}");
}

#[test]
fn a15_in_flight_requests_whose_account_runs_out_do_not_run_into_the_next_together() {
    const THINKS_MS: u64 = 400;
    let refuse = Fault::Refuse { reason: RefusalKind::WindowQuota, seconds: Some(3600) };
    let mut refused = rule(2, refuse, None);
    refused.when.key = Some("sk-real".to_owned());
    let script = Script { latency_ms: THINKS_MS, ..Script::default() };
    let world = World::with_script(script.with_fault(refused));
    two_accounts(&world);
    let agent = stubborn("concurrency = 8\nland = \"auto\"", "[\"main\", \"second\"]");
    let plan = (1..=8).fold(Plan::new(&agent), |plan, n| {
        let keys = format!("writes = [\"parts/t{n}.txt\"]\nagent = \"stubborn\"\nretries = 0");
        plan.task(&format!("t{n}"), &format!("write parts/t{n}.txt \"part t{n}\\n\""), &keys)
    });
    world.plan(&plan);
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let requests = world.provider.model_requests();
    let mut moved: Vec<u64> =
        requests.iter().filter(|entry| entry.key == "sk-other").map(|entry| entry.arrived_at_ms).collect();
    moved.sort_unstable();
    assert_eq!(moved.len(), 8, "{requests:#?}");
    // One, then two more than have been answered, then four.
    assert!(moved[1] - moved[0] >= THINKS_MS && moved[3] - moved[0] >= 2 * THINKS_MS, "{moved:?}");
    assert!(moved[7] - moved[0] >= 3 * THINKS_MS, "{moved:?}");
    world.nothing_is_left();
}

#[test]
fn an_account_is_used_for_its_models_alone_and_another_model_is_refused_by_name() {
    let world = World::new();
    two_accounts(&world);
    let accounts = std::fs::read_to_string(world.env.config_file()).unwrap();
    let of = |first: &str, second: &str| {
        let accounts = accounts.replacen("key_file", &format!("models = [{first:?}]\nkey_file"), 1);
        let (main, other) = accounts.split_at(accounts.find("[account.second]").unwrap());
        format!("{main}{}", other.replacen("key_file", &format!("models = [{second:?}]\nkey_file"), 1))
    };
    let program = env!("CARGO_BIN_EXE_outlast");
    let both = format!(
        "land = \"auto\"\n\n[agent.both]\nkind = \"command\"\naccounts = [\"main\", \"second\"]\n\
         command = [{program:?}, \"__agent\", \"--model\", \"claude-sonnet-4-5-20250929\", \"{{goal_file}}\"]"
    );
    let keys = "writes = [\"parts/one.txt\"]\nagent = \"both\"\nretries = 0";
    world.plan(&Plan::new(&both).task("one", "write parts/one.txt \"part one\\n\"", keys));
    world.env.write_config(&of("haiku", "opus")).unwrap();
    world.run(&["run", "--yes"]).ends(5);
    assert!(world.provider.model_requests().is_empty(), "nobody is asked for it");
    world.run(&["log", "one"]).ends(0).says("no account of this agent is for `claude-sonnet-4-5-20250929`");
    world.env.write_config(&of("haiku", "sonnet")).unwrap();
    world.run(&["retry", "one"]).ends(0);
    world.all_are("landed");
    assert!(world.provider.model_requests().iter().all(|entry| entry.key == "sk-other"));
}

#[test]
fn a_run_that_was_left_waits_until_it_is_resumed_also_when_its_time_has_come() {
    let refuse = Fault::Refuse { reason: RefusalKind::MinuteLimit, seconds: Some(1) };
    let rule = Rule { when: When { nth: Some(1), ..When::default() }, fault: refuse, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let task = world.task("one");
    let due: jiff::Timestamp = task["reset_at"].as_str().unwrap().parse().unwrap();
    std::thread::sleep(Duration::try_from(due.duration_since(jiff::Timestamp::now())).unwrap_or_default());
    assert!(jiff::Timestamp::now() >= due);
    // Nothing goes on by itself, and what it waited for is still told.
    assert_eq!((&world.task("one"), &world.status()["state"]), (&task, &"parked".into()));
    assert_eq!((&task["state"], &task["cause"]), (&"parked".into(), &"minute_limit".into()), "{task:#}");
    world.run(&["status"]).ends(0).says("due as soon as it is resumed").says("outlast resume");
    world.run::<&str>(&[]).ends(0).says("parked").says("due as soon as it is resumed");
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
}
