//! What interruptions cost, and that it is told: cases A03, A07, A18, A22 and H12.

use std::time::Duration;

use outlast_testkit::provider::{Fault, Rule, Script, When};
use serde_json::Value;

use crate::world::{Plan, World, text};

const RESUMES: [&str; 4] = ["--retries", "0", "--resume", "{resume}"];

/// All tokens that a task was billed, and those that it was billed again.
fn tokens(task: &Value) -> (u64, u64) {
    let tokens = &task["tokens"];
    let kinds = ["input", "cache_write", "cache_read", "output"];
    let known = |name: &str| tokens[name].as_u64().unwrap_or_else(|| panic!("{name} is not known: {task:#}"));
    (kinds.iter().map(|kind| known(kind)).sum(), known("spent_again"))
}

/// Kills the agent, the first time that it comes here.
const DIES: &str = "run \"if [ ! -e $HOME/once ]; then touch $HOME/once; kill -9 $PPID; fi\"";

/// A script of ten turns that dies near their end, the first time that it comes there.
fn nearly_done(id: &str, dies: bool) -> String {
    let mut steps: Vec<String> = (1..=9).map(|n| format!("write parts/{id}-{n}.txt \"part {id}-{n}\\n\"")).collect();
    if dies {
        steps.push(DIES.to_owned());
    }
    steps.push(format!("write parts/{id}.txt \"part {id}\\n\""));
    steps.join("\n")
}

#[test]
fn a07_twelve_of_fourteen_die_at_ninety_percent_and_what_is_paid_again_is_told_and_small() {
    let world = World::new();
    let mut plan = Plan::new("land = \"auto\"\nconcurrency = 7").agent_arguments(&RESUMES);
    let ids: Vec<String> = (1..=14).map(|n| format!("t{n}")).collect();
    for (at, id) in ids.iter().enumerate() {
        let keys = format!("writes = [\"parts/{id}.txt\", \"parts/{id}-*\"]\nretries = 1");
        plan = plan.task(id, &nearly_done(id, at < 12), &keys);
    }
    world.plan(&plan);
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let (mut all, mut again) = (0, 0);
    for (at, id) in ids.iter().enumerate() {
        let task = world.task(id);
        let (billed, of_that) = tokens(&task);
        assert_eq!(of_that > 0, at < 12, "who was not interrupted has paid nothing again: {task:#}");
        assert_eq!(task["attempts"], if at < 12 { 2 } else { 1 }, "{task:#}");
        (all, again) = (all + billed, again + of_that);
    }
    let bill = world.provider.bill();
    let theirs = bill.total.tokens;
    assert_eq!(all, theirs.input + theirs.cache_write + theirs.cache_read + theirs.output, "{bill:#?}");
    // One conversation that is sent once more, of eleven: whoever begins anew pays all of them.
    assert!(again * 5 <= all, "{again} of {all}");
    // Each turn was asked for once, and the one after the command that killed its agent twice.
    assert_eq!(bill.total.requests - bill.total.refused, 12 * (12 + 1) + 2 * 11, "{bill:#?}");
    world.nothing_is_left();
}

#[test]
fn h12_a_resume_whose_cache_is_broken_is_told_by_its_cost() {
    let world = World::new();
    let script = format!(
        "write parts/one.txt \"part one\\n\"\nusage in=0 out=10 cache_write=174000 cache_read=0\n{DIES}\nread README.md"
    );
    let plan = Plan::new("land = \"auto\"").agent_arguments(&RESUMES);
    world.plan(&plan.task("one", &script, "writes = [\"parts/one.txt\"]\nretries = 1"));
    world.run(&["run", "--yes"]).ends(0);
    let task = world.task("one");
    assert_eq!(task["resumed_by"], "session", "{task:#}");
    let (_, again) = tokens(&task);
    assert!((174_000..175_000).contains(&again), "{task:#}");
    let log = world.run(&["log", "one"]).ends(0).stdout;
    assert!(log.contains(&format!("paid for again after interruptions: {again} tokens")), "{log}");
}

#[test]
fn a03_what_nested_agents_use_is_their_tasks_and_its_budget_holds_them_too() {
    let world = World::new();
    for n in 1..=3 {
        let script = format!("usage in=1000 out=1500 cache_write=0\nwrite parts/one-{n}.txt \"part one-{n}\\n\"");
        let goal = format!("Nested {n}.\n```outlast-script\n{script}\n```\n");
        world.repo.write(format!("nested-{n}.md"), goal).unwrap();
    }
    world.repo.commit("Goals").unwrap();
    let program = env!("CARGO_BIN_EXE_outlast");
    let nested = format!(
        "for n in 1 2 3; do '{program}' __agent nested-$n.md & done; wait; exec '{program}' __agent \"$0\" --resume \"$1\""
    );
    let agent = format!(
        "land = \"auto\"\nbudget = {{ tokens = 12_000 }}\n\n[agent.nests]\nkind = \"command\"\naccounts = [\"main\"]\n\
         command = [\"sh\", \"-c\", '''{nested}''', \"{{goal_file}}\", \"{{resume}}\"]"
    );
    let keys = "writes = [\"parts/**\"]\nagent = \"nests\"\nretries = 0";
    world.plan(&Plan::new(&agent).task(
        "one",
        "usage in=1000 out=1500 cache_write=0\nwrite parts/one.txt \"part one\\n\"",
        keys,
    ));
    world.run(&["run", "--yes"]).ends(7).says("the budget is reached");
    let (status, task) = (world.status(), world.task("one"));
    let theirs = world.provider.bill().total.tokens;
    let billed = theirs.input + theirs.cache_write + theirs.cache_read + theirs.output;
    assert!(billed > 2_500 && billed <= 12_000, "the nested agents are held by it: {:#?}", world.provider.bill());
    assert_eq!(tokens(&task).0, billed, "what they use is the task's: {task:#}");
    // What is half done is named, with where its work is.
    assert_eq!((&task["state"], &status["state"]), (&"parked".into(), &"parked".into()), "{status:#}");
    assert!(task["branch"].is_string() && task["checkpoint"].is_string(), "{task:#}");
    world.nothing_is_left();

    world.run(&["budget", "--tokens", "10000000"]).ends(0);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn a18_an_engine_that_is_killed_and_started_again_costs_no_agent_its_life_or_its_work() {
    const AGENTS: usize = 6;
    let hold = Fault::Hold { seconds: None };
    let rule = Rule { when: When { step: Some(10), ..When::default() }, fault: hold, times: Some(AGENTS as u64) };
    let world = World::with_script(Script::default().with_fault(rule));
    let ids: Vec<String> = (1..=AGENTS).map(|n| format!("t{n}")).collect();
    let mut plan = Plan::new("land = \"auto\"\nconcurrency = 6").agent_arguments(&RESUMES);
    for id in &ids {
        let keys = format!("writes = [\"parts/{id}.txt\", \"parts/{id}-*\"]\nretries = 0");
        plan = plan.task(id, &nearly_done(id, false), &keys);
    }
    world.plan(&plan);
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("six tenth turns", |log| log.iter().filter(|e| e.step == Some(10)).count() == AGENTS);
    assert!(run.kill_9().was_killed());
    assert_eq!(world.living_shims().len(), AGENTS, "nobody has noticed");
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    for id in &ids {
        assert_eq!(world.task(id)["attempts"], 1, "{id} was taken up again and not begun anew");
    }
    let asked = |step| world.provider.model_requests().iter().filter(|entry| entry.step == Some(step)).count();
    for step in 1..=11 {
        assert_eq!(asked(step), if step == 10 { 2 * AGENTS } else { AGENTS }, "turn {step}");
    }
    world.nothing_is_left();
}

#[test]
fn a22_who_waits_for_another_task_costs_nothing_and_a_wait_that_is_cut_orphans_nobody() {
    let hold = Fault::Hold { seconds: Some(3.0) };
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault: hold, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    // The child takes longer than all that the parent may take.
    let parent =
        "writes = [\"parts/parent.txt\"]\nneeds = [\"child\"]\ntimeout = \"2s\"\nidle_timeout = \"2s\"\nretries = 0";
    let plan = Plan::new("land = \"auto\"").part("child");
    world.plan(&plan.task("parent", "read parts/child.txt\nwrite parts/parent.txt \"part parent\\n\"", parent));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("the child's second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    let waiting = world.task("parent");
    assert_eq!((&waiting["state"], &waiting["attempts"]), (&"pending".into(), &0.into()), "{waiting:#}");
    assert_eq!(tokens(&waiting), (0, 0), "it has no process and has asked nothing");
    // Whoever waits for both is killed: the child goes on, and the parent is begun by its end.
    assert!(run.kill_9().was_killed());
    assert_eq!(world.living_shims().len(), 1);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    for id in ["child", "parent"] {
        assert_eq!(world.task(id)["attempts"], 1, "{id}");
    }
    let log = world.run(&["log", "--all", "--json"]).ends(0).stdout;
    let at = |task: &str, event: &str| {
        let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = records.into_iter().find(|record| record["task"] == task && record["event"] == event);
        text(&found.unwrap_or_else(|| panic!("{task} {event}"))["at"]).parse::<jiff::Timestamp>().unwrap()
    };
    let waited = at("parent", "attempt_started").duration_since(at("child", "verified")).unsigned_abs();
    assert!(waited < Duration::from_secs(2), "the child's result begins it, and no poll does: {waited:?}");
    world.nothing_is_left();
}
