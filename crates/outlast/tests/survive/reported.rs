//! Limits that an agent's CLI reports itself, because they reached it past the gateway: cases A05, A06, A11, A12.

use serde_json::Value;

use crate::world::{Plan, World, text};

/// An agent that says in its own way, in its first attempt at `a` and `b`, that its account is used up for six seconds,
/// having made something before; in each other attempt it does its part.
const REPORTS: &str = r#"mkdir -p parts
resets=$(date -u -d '+6 seconds' '+%Y-%m-%dT%H:%M:%SZ')
case $OUTLAST_ATTEMPT in
  *a.1) echo half > artifact-a.txt; echo "ERROR: You've hit your usage limit or try again at $resets." >&2; exit 1;;
  *b.1) echo "{\"result\":\"You've hit your limit · resets $resets\"}"; exit 1;;
esac
echo "part $OUTLAST_TASK" > parts/$OUTLAST_TASK.txt
"#;

fn plan(run: &str, accounts: &str, tasks: &[&str]) -> Plan {
    let agent = format!(
        "{run}\n\n[agent.reports]\nkind = \"command\"\n{accounts}\ncommand = [\"sh\", \"-c\", '''\n{REPORTS}''']"
    );
    let keys = |id: &str| format!("writes = [\"parts/{id}.txt\"]\nagent = \"reports\"\nretries = 0");
    tasks.iter().fold(Plan::new(&agent), |plan, id| plan.task(id, "say \"it\"", &keys(id)))
}

/// The starts of all tasks and the ends that were stated for the account, as milliseconds, in the order of the log.
fn log(world: &World, event: &str) -> Vec<(String, i64)> {
    let log = world.run(&["log", "--all", "--json"]).ends(0);
    let records = log.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = records.filter(|record| record["event"] == event);
    found
        .map(|record| {
            let at: jiff::Timestamp = text(&record["at"]).parse().unwrap();
            (record["task"].as_str().unwrap_or_default().to_owned(), at.as_millisecond())
        })
        .collect()
}

fn reset_of(world: &World, task: &str) -> i64 {
    let task = world.task(task);
    assert_eq!((&task["state"], &task["cause"]), (&"parked".into(), &"window_quota".into()), "{task:#}");
    text(&task["reset_at"]).parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[test]
fn a06_a11_a12_a_reported_limit_parks_its_task_until_then_and_closes_the_account_for_the_others() {
    let world = World::new();
    world.plan(&plan("concurrency = 2\nland = \"auto\"", "accounts = [\"main\"]", &["a", "b", "c", "d"]));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let status = world.status();
    assert_eq!(status["state"], "parked", "{status:#}");
    let resets = ["a", "b"].map(|id| reset_of(&world, id));
    for id in ["a", "b"] {
        let task = world.task(id);
        assert_eq!(task["attempts"], 1, "{task:#}");
        assert!(text(&task["detail"]).contains("hit your"), "what is shown is the limit: {task:#}");
    }
    let account = &status["accounts"][0]["windows"][0];
    assert_eq!((&account["state"], &account["kind"]), (&"closed".into(), &"window_quota".into()), "{status:#}");
    for id in ["c", "d"] {
        assert_eq!((&world.task(id)["attempts"], &world.task(id)["cause"]), (&0.into(), &"window_quota".into()));
    }

    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    let starts = log(&world, "attempt_started");
    let first = *resets.iter().min().unwrap();
    assert_eq!(starts.len(), 6, "{starts:?}");
    assert!(starts[2..].iter().all(|(_, at)| *at >= first), "nobody starts before {first}: {starts:?}");
    for id in ["a", "b"] {
        let task = world.task(id);
        assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"hand_over".into()), "{task:#}");
    }
    world.nothing_is_left();
}

#[test]
fn a05_of_22_tasks_15_meet_a_limit_and_all_are_done_with_one_terminal_record_for_each_start() {
    let world = World::new();
    let ids: Vec<String> = (1..=22).map(|n| if n <= 15 { format!("t{n}-a") } else { format!("t{n}") }).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    // Each agent has a login of its own that nobody here knows of: there is no account to close.
    world.plan(&plan("concurrency = 8\nland = \"auto\"", "", &ids));
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["t9-a", "window_quota"]);
    assert!(run.kill_9().was_killed());
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    let (starts, ends) = (log(&world, "attempt_started"), log(&world, "attempt_ended"));
    assert_eq!((starts.len(), ends.len()), (22 + 15, 22 + 15), "each that met it was started twice, and no more often");
    for id in &ids[..15] {
        let times: Vec<i64> = starts.iter().filter(|(task, _)| task == id).map(|(_, at)| *at).collect();
        assert!(times[1] - times[0] >= 5000, "{id} waits for the time that it was told: {times:?}");
    }
    world.nothing_is_left();
}

#[test]
fn b06_a_limit_that_is_stated_for_longer_than_its_window_is_waited_for_as_long_as_that_lasts() {
    let world = World::new();
    let mut plan = plan("land = \"auto\"", "", &["a"]);
    let seven =
        REPORTS.replace("+6 seconds", "+7 hours").replace("usage limit or try again at", "session limit · resets");
    plan.run = plan.run.replace(REPORTS, &seven);
    world.plan(&plan);
    // In whole seconds, as a time is told.
    let before = jiff::Timestamp::now().as_second() * 1_000;
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let hours = 5 * 3_600_000;
    let now = jiff::Timestamp::now().as_millisecond();
    let resets = reset_of(&world, "a");
    assert!((before + hours..=now + hours).contains(&resets), "{resets}, and not {before}..={now}");
    let task = world.task("a");
    assert_eq!(task["attempts"], 1, "{task:#}");
    assert!(text(&task["detail"]).ends_with("(tried again sooner: no such limit lasts that long)"), "{task:#}");
}

#[test]
fn a_person_who_knows_better_has_it_tried_at_once() {
    let world = World::new();
    let hour = REPORTS.replace("+6 seconds", "+1 hour");
    let mut plan = plan("land = \"auto\"", "", &["a"]);
    plan.run = plan.run.replace(REPORTS, &hour);
    world.plan(&plan);
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["a ", "window_quota"]);
    world.run(&["resume"]).ends(0).says("what waits for a limit is tried now");
    run.end().ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn nothing_is_said_to_go_on_by_itself_where_no_engine_is_at_work_or_the_run_is_stopped() {
    let world = World::new();
    let hour = REPORTS.replace("+6 seconds", "+1 hour");
    let mut plan = plan("land = \"auto\"", "", &["a"]);
    plan.run = plan.run.replace(REPORTS, &hour);
    world.plan(&plan);
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let run = text(&world.status()["run"]);
    let resume = format!("outlast resume {run}");
    let shown = world.run(&["status"]).ends(0).says("due in ").says(", once it is resumed").says(&resume);
    assert!(!shown.stdout.contains("goes on in"), "{}", shown.stdout);

    world.run(&["stop"]).ends(0);
    let task = world.task("a");
    assert_eq!((&task["cause"], &task["reset_at"]), (&"paused".into(), &Value::Null), "{task:#}");
    let detail = text(&task["detail"]);
    assert!(detail.starts_with("the run is stopped; its last try: window_quota: "), "{task:#}");
    let shown = world.run(&["status"]).ends(0).says("the run is stopped").says(&resume);
    assert!(!shown.stdout.contains("goes on in") && !shown.stdout.contains("due in"), "{}", shown.stdout);
    assert!(!world.run(&["--json"]).ends(0).stdout.contains("reset_at"));
}
