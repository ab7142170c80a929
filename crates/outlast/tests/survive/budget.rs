//! What the user allows is kept: budgets in money and in tokens, known limits and hours of an account.

use std::fs;
use std::time::Instant;

use outlast_core::pace::MINUTE;
use outlast_testkit::provider::{Fault, Rule, Script, When};
use serde_json::Value;

use crate::world::{Plan, World};

/// USD a million tokens: in, written into and read from the cache, out; as the price table has it for the model.
const MODEL: &str = "claude-opus-4-8";
const NANOS: [u64; 4] = [5_000, 6_250, 500, 25_000];

/// A plan whose every task costs about five cents, four of them in its first turn.
fn plan(run: &str, tasks: usize, model: &str) -> Plan {
    let mut plan = Plan::new(run).agent_arguments(&["--model", model, "--retries", "0"]);
    for number in 1..=tasks {
        let id = format!("t{number}");
        let script = format!("usage in=1000 out=1500 cache_write=0\nwrite parts/{id}.txt \"part {id}\\n\"");
        plan = plan.task(&id, &script, &format!("writes = [\"parts/{id}.txt\"]\nretries = 0"));
    }
    plan
}

/// What the provider bills, in billionths of a dollar.
fn billed(world: &World) -> u64 {
    let tokens = world.provider.bill().total.tokens;
    let parts = [tokens.input, tokens.cache_write, tokens.cache_read, tokens.output];
    parts.iter().zip(NANOS).map(|(tokens, nanos)| tokens * nanos).sum()
}

fn usd(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no sum: {value}"))
}

#[test]
fn twelve_tasks_at_once_never_spend_more_than_is_allowed_and_go_on_when_it_is_raised() {
    let world = World::new();
    world.plan(&plan("land = \"auto\"\nconcurrency = 12\nbudget = { usd = 0.30 }", 12, MODEL));
    world.run(&["run", "--yes"]).ends(7).says("the budget is reached").says("outlast budget ");
    assert!(billed(&world) <= 300_000_000, "{:#?}", world.provider.bill());
    let status = world.status();
    let budget = &status["budget"];
    assert_eq!((&status["state"], &budget["reached"]["lack"]), (&"parked".into(), &"usd".into()), "{status:#}");
    let (used, left) = (usd(&budget["usd_used"]), usd(&budget["usd_left"]));
    assert!((used * 1e9 - billed(&world) as f64).abs() < 1.0, "the bill says {}: {budget:#}", billed(&world));
    assert!((used + left - 0.3).abs() < 1e-9 && left < usd(&budget["reached"]["next_usd"]), "{budget:#}");
    let states = world.states();
    assert!(states.iter().all(|(_, state)| matches!(state.as_str(), "landed" | "parked" | "ready")), "{states:?}");
    assert!(states.iter().any(|(_, state)| state == "parked"), "{states:?}");
    world.nothing_is_left();

    // Nothing goes out while it is not raised, however often somebody asks.
    let asked = world.provider.bill().total.requests;
    world.run(&["resume"]).ends(7).says("the budget is reached");
    world.run(&["resume", "--no-wait"]).ends(7);
    assert_eq!(world.provider.bill().total.requests, asked);

    world.run(&["budget", "--usd", "5"]).ends(0).says("outlast resume");
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    assert_eq!(usd(&world.status()["budget"]["usd_limit"]), 5.0);
    world.nothing_is_left();
}

#[test]
fn a_killed_engine_forgets_nothing_of_what_is_spent() {
    let world = World::new();
    world.plan(&plan("land = \"auto\"\nconcurrency = 2\nbudget = { usd = 0.30 }", 12, MODEL));
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["has landed"]);
    assert!(run.kill_9().was_killed());
    world.run(&["resume"]).ends(7);
    // Two answers may have been on their way when the engine died, each of no more than six cents.
    assert!(billed(&world) <= 420_000_000, "{:#?}", world.provider.bill());
    world.run(&["resume", "--budget", "5"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn i10_money_cannot_be_kept_without_a_price_and_says_so() {
    let world = World::new();
    world.plan(&plan("land = \"auto\"\nbudget = { usd = 100 }", 2, "a-model-nobody-knows"));
    let told = world.run(&["run", "--yes"]).ends(7).says("the price of the model is not known");
    assert!(told.stdout.contains("--tokens"), "{}", told.stdout);
    assert_eq!(world.provider.bill().total.requests, 0);
    let budget = &world.status()["budget"];
    assert_eq!((&budget["reached"]["lack"], &budget["reached"]["next_usd"]), (&"price".into(), &Value::Null));
    world.run(&["budget", "--tokens", "1000000"]).ends(0);
    world.run(&["resume"]).ends(0);
    let budget = &world.status()["budget"];
    assert_eq!(budget["usd_used"], Value::Null, "unknown is not zero: {budget:#}");
    assert!(budget["unpriced"].as_u64() > Some(0) && budget["tokens_left"].as_u64() < Some(1_000_000), "{budget:#}");
    // Its tokens are known, and those that were reserved for it are none that it took.
    assert_eq!(budget["unmetered"], 0, "{budget:#}");
    assert!(budget["tokens_counted"].as_u64() <= budget["tokens_used"].as_u64(), "{budget:#}");
    world.all_are("landed");
}

#[test]
fn tokens_are_kept_too_and_whoever_has_an_answer_ends_its_turn() {
    let world = World::new();
    world.plan(&plan("land = \"auto\"\nconcurrency = 4\nbudget = { tokens = 6_000 }", 8, "a-model-nobody-knows"));
    world.run(&["run", "--yes"]).ends(7).says("tokens are used");
    let budget = &world.status()["budget"];
    assert!(budget["tokens_counted"].as_u64() <= Some(6_000), "{budget:#}");
    assert_eq!(budget["reached"]["lack"], "tokens");
    world.run(&["budget", "--json", "--tokens", "10000000"]).ends(0);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
}

#[test]
fn a_budget_that_is_raised_in_time_lets_the_living_run_go_on() {
    // The second request to arrive stays with the provider until it is let go, so that the run cannot end before.
    let hold =
        Rule { when: When { nth: Some(2), ..When::default() }, fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(hold));
    world.plan(&plan("land = \"auto\"\nconcurrency = 2", 2, MODEL));
    let mut run = world.start(&["run", "--yes", "--budget", "0.12"]);
    run.until(&["is held: own_budget"]);
    world.run(&["budget", "--usd", "3"]).ends(0);
    run.until(&["the budget is 3.00 USD"]);
    run.until(&["goes on"]);
    run.until(&["has landed"]);
    world.run(&["stop"]).ends(0);
    run.end().ends(0);
}

#[test]
fn nobody_spends_above_the_ceiling_of_the_user() {
    let world = World::new();
    let config = fs::read_to_string(world.env.config_file()).unwrap();
    world.env.write_config(&format!("{config}\n[ceiling]\nbudget = {{ usd = 0.20 }}\n")).unwrap();
    world.plan(&plan("land = \"auto\"\nconcurrency = 4\nbudget = { usd = 40 }", 8, MODEL));
    world.run(&["run", "--yes", "--budget", "30"]).ends(7).says("that is your ceiling");
    assert!(billed(&world) <= 200_000_000, "{:#?}", world.provider.bill());
    world.run(&["budget", "--usd", "1"]).ends(3).says("your ceiling is 0.20 USD");
    world.run(&["resume", "--budget", "1"]).ends(3);
    for wrong in ["0", "-1", "NaN", "inf"] {
        world.run(&["budget", &format!("--usd={wrong}")]).ends(2);
    }
    assert_eq!(usd(&world.status()["budget"]["usd_limit"]), 0.2);
}

/// Adds lines to the only account of the user's configuration.
fn account(world: &World, lines: &str) -> String {
    let config = fs::read_to_string(world.env.config_file()).unwrap();
    world.env.write_config(&format!("{config}{lines}\n")).unwrap();
    config
}

#[test]
fn outside_its_hours_an_account_is_asked_nothing() {
    let world = World::new();
    // In Zulu time of day, twelve hours from now: neither hour of it can begin while the test runs.
    let hour = (jiff::Timestamp::now().as_second() / 3600 + 12) % 24;
    let before = account(&world, &format!("hours = \"{hour:02}:00-{hour:02}:59\""));
    world.plan(&plan("land = \"auto\"", 1, MODEL));
    let in_utc = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("TZ", "UTC0");
        crate::running::Running::of(command).end()
    };
    in_utc(&["run", "--yes", "--no-wait"]).ends(6);
    let task = world.task("t1");
    assert_eq!((&task["state"], &task["cause"]), (&"ready".into(), &"hours".into()), "{task:#}");
    let opens: jiff::Timestamp = task["reset_at"].as_str().unwrap().parse().unwrap();
    assert_eq!((opens.as_second() % 86_400, opens > jiff::Timestamp::now()), (hour * 3600, true), "{task:#}");
    assert_eq!(world.provider.bill().total.requests, 0);
    // Hours that are taken away no longer hold.
    world.env.write_config(&before).unwrap();
    in_utc(&["resume"]).ends(0);
    world.all_are("landed");
}

#[test]
fn known_limits_are_kept_before_the_provider_has_to_refuse() {
    let world = World::new();
    account(&world, "limits = { requests_per_minute = 3 }");
    world.plan(&plan("land = \"auto\"\nconcurrency = 4", 4, MODEL));
    let began = Instant::now();
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    assert_eq!(world.provider.bill().total.requests, 3);
    let states = world.states();
    let parked = states.iter().find(|(_, state)| state == "parked").unwrap_or_else(|| panic!("{states:?}"));
    let task = world.task(&parked.0);
    assert!(task["cause"] == "minute_limit" && task["reset_at"].is_string(), "{task:#}");
    // The minute is the account's, not the engine's. On a machine that is very slow it may be over by now.
    let resumed = world.run(&["resume", "--no-wait"]);
    if began.elapsed() < MINUTE {
        resumed.ends(6);
        assert_eq!(world.provider.bill().total.requests, 3);
    }
    world.run(&["stop"]).ends(0);
    world.nothing_is_left();
}

#[test]
fn so_many_at_once_and_no_more() {
    let world = World::new();
    account(&world, "limits = { concurrent = 1 }");
    world.plan(&plan("land = \"auto\"\nconcurrency = 3", 3, MODEL));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.provider.bill().total.requests, 6);
}
