//! An agent is killed with all it started in the middle of a shell command: the next attempt goes on with its session.

use outlast_testkit::provider::Script;

use crate::bench::{Bench, CLAUDE, CODEX, Cli, GEMINI, OPENCODE, QWEN};
use crate::processes::kill_tree;

fn goes_on_with_its_session(cli: Cli) {
    let Some(bench) = Bench::new(&[cli], Script::default()) else { return };
    let gate = bench.gate("gate");
    bench.repo.commit_file("README.md", "Nothing yet.\n", "First").unwrap();
    let task = format!(
        "[[task]]\nid = \"survivor\"\nagent = \"{}\"\nwrites = [\"made.md\", \"seen.md\"]\nverify = [\"grep -q agent seen.md\"]\n\
         goal = '''\nWrite it down 007 times.\n```outlast-script\nwrite made.md \"by the agent\\n\"\n\
         run \"{} && cat made.md > seen.md\"\nsay \"Changed: made.md, seen.md\"\n```\n'''\n",
        cli.program,
        gate.command()
    );
    bench.plan(&[cli], &task);
    let run = bench.start(&["run", "--yes"]);
    let held = gate.reached();
    let asked_before = bench.provider.model_requests().len();
    let shim = bench.last_event("survivor", "spawned")["shim"]["pid"].as_i64().unwrap();
    kill_tree(i32::try_from(shim).unwrap());
    drop(held);
    run.ends(0);

    let status = bench.status();
    assert_eq!(bench.landed(&status), ["survivor"]);
    let task = &status["tasks"][0];
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    // The plan allows no second try, so none was used.
    assert_eq!(bench.last_event("survivor", "attempt_started")["number"], 2);
    let mut ends = bench.json(&["log", "--json", "survivor"]);
    ends.retain(|line| line["event"] == "attempt_exited");
    assert_eq!(ends[0]["data"]["outcome"]["failed"]["class"], "vanished", "{ends:#?}");

    let requests = bench.provider.model_requests();
    let steps: Vec<_> = requests.iter().filter_map(|entry| entry.step).collect();
    assert_eq!(steps, [1, 2, 2, 3], "what was done is not done again, the command that was killed is");
    let resumed = bench.bodies(&requests[asked_before..]).remove(0);
    assert!(resumed.contains("Write it down 007 times"), "the goal is there: {resumed}");
    assert!(resumed.contains("by the agent"), "and what was done: {resumed}");
    assert!(resumed.contains("You go on with your task now"), "and the new prompt: {resumed}");
}

#[test]
fn claude_killed_with_its_command_goes_on_with_its_session() {
    goes_on_with_its_session(CLAUDE);
}

#[test]
fn codex_killed_with_its_command_goes_on_with_its_session() {
    goes_on_with_its_session(CODEX);
}

#[test]
fn opencode_killed_with_its_command_goes_on_with_its_session() {
    goes_on_with_its_session(OPENCODE);
}

#[test]
fn gemini_killed_with_its_command_goes_on_with_its_session() {
    goes_on_with_its_session(GEMINI);
}

#[test]
fn qwen_killed_with_its_command_goes_on_with_its_session() {
    goes_on_with_its_session(QWEN);
}
