//! An agent is killed with all it started in the middle of a shell command: the next attempt goes on with its session.

use std::path::Path;

use outlast_testkit::provider::Script;

use crate::bench::{Bench, CLAUDE, CODEX, Cli, GEMINI, KIMI, OPENCODE, QWEN};
use crate::tree::{self, OF_ALL_KINDS};

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
    bench.kill_agent("survivor");
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
    let resumed = bench.said(&requests[asked_before]);
    assert!(resumed.by_people().contains("Write it down 007 times"), "the goal is there: {resumed:#?}");
    assert!(resumed.has_called("by the agent"), "and what was done: {resumed:#?}");
    assert!(resumed.by_people().contains("You go on with your task now"), "and the new prompt: {resumed:#?}");
}

/// A command that has had its effect before it is killed is not run again: whoever resumes is told of both.
fn does_nothing_twice(cli: Cli) {
    let Some(bench) = Bench::new(&[cli], Script::default()) else { return };
    let [gate, next] = ["gate", "next"].map(|name| bench.gate(name));
    tree::commit(&bench.repo);
    let task = format!(
        "[[task]]\nid = \"counter\"\nagent = \"{}\"\nwrites = [\"**\"]\nverify = [\"grep -q agent made.md\"]\n\
         goal = '''\nCount to one.\n```outlast-script\nwrite made.md \"by the agent\\n\"\n\
         run {OF_ALL_KINDS}; printf x >> counter.txt; {}\nrun {}\nsay \"Changed: made.md, counter.txt\"\n```\n'''\n",
        cli.program,
        gate.command(),
        next.command()
    );
    bench.plan(&[cli], &task);
    let run = bench.start(&["run", "--yes"]);
    let held = gate.reached();
    let workspace = bench.workspace();
    let at_the_kill = tree::on_disk(&workspace);
    tree::has_all_kinds(&at_the_kill);
    assert_eq!(at_the_kill[Path::new("counter.txt")], tree::file("x"));
    let asked_before = bench.provider.model_requests().len();
    bench.kill_agent("counter");
    drop(held);
    let held = next.reached();
    let taken_up = tree::on_disk(&workspace);
    drop(held);
    run.ends(0);

    let status = bench.status();
    let task = &status["tasks"][0];
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    assert_eq!(bench.on_target(&status, "counter.txt"), "x", "it was counted once");
    let requests = bench.provider.model_requests();
    let steps: Vec<_> = requests.iter().filter_map(|entry| entry.step).collect();
    assert_eq!(steps, [1, 2, 3, 4], "the command is not asked for again");
    let resumed = bench.said(&requests[asked_before]);
    assert!(resumed.has_called("by the agent"), "what was done: {resumed:#?}");
    let told = resumed.by_people();
    let told = told.rsplit_once("You go on with your task now").expect("the new prompt is there").1;
    for fact in ["printf x >> counter.txt", "have changed since it was asked for"] {
        assert!(told.contains(fact), "{fact}: {told}");
    }

    // What was kept of the first attempt, and what the second began with, is the tree of the kill, byte for byte.
    assert_eq!(tree::kept_at_the_end(&bench, "counter", 1), at_the_kill);
    assert_eq!(taken_up, at_the_kill);
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

#[test]
fn claude_killed_after_its_commands_effect_does_not_run_it_again() {
    does_nothing_twice(CLAUDE);
}

#[test]
fn codex_killed_after_its_commands_effect_does_not_run_it_again() {
    does_nothing_twice(CODEX);
}

#[test]
fn opencode_killed_after_its_commands_effect_does_not_run_it_again() {
    does_nothing_twice(OPENCODE);
}

#[test]
fn gemini_killed_after_its_commands_effect_does_not_run_it_again() {
    does_nothing_twice(GEMINI);
}

#[test]
fn qwen_killed_after_its_commands_effect_does_not_run_it_again() {
    does_nothing_twice(QWEN);
}

#[test]
fn kimi_killed_with_its_command_goes_on_with_its_session() {
    goes_on_with_its_session(KIMI);
}

#[test]
fn kimi_killed_after_its_commands_effect_does_not_run_it_again() {
    does_nothing_twice(KIMI);
}
