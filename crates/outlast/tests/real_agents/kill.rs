//! An agent is killed with all it started in the middle of a shell command: the next attempt goes on with its session.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use outlast_testkit::fixture::Repo;
use outlast_testkit::provider::Script;
use serde_json::Value;

use crate::bench::{Bench, CLAUDE, CODEX, Cli, GEMINI, KIMI, OPENCODE, QWEN};
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

/// A command that has had its effect before it is killed is not run again: whoever resumes is told of both.
fn does_nothing_twice(cli: Cli) {
    let Some(bench) = Bench::new(&[cli], Script::default()) else { return };
    let gate = bench.gate("gate");
    bench.repo.commit_file("README.md", "Nothing yet.\n", "First").unwrap();
    let task = format!(
        "[[task]]\nid = \"counter\"\nagent = \"{}\"\nwrites = [\"made.md\", \"counter.txt\"]\nverify = [\"grep -q agent made.md\"]\n\
         goal = '''\nCount to one.\n```outlast-script\nwrite made.md \"by the agent\\n\"\n\
         run \"printf x >> counter.txt; {}\"\nsay \"Changed: made.md, counter.txt\"\n```\n'''\n",
        cli.program,
        gate.command()
    );
    bench.plan(&[cli], &task);
    let run = bench.start(&["run", "--yes"]);
    let held = gate.reached();
    let workspace = bench.status()["tasks"][0]["workspace"].as_str().unwrap().to_owned();
    let at_the_kill = files(Path::new(&workspace));
    assert_eq!(at_the_kill["counter.txt"], b"x");
    let asked_before = bench.provider.model_requests().len();
    let shim = bench.last_event("counter", "spawned")["shim"]["pid"].as_i64().unwrap();
    kill_tree(i32::try_from(shim).unwrap());
    drop(held);
    run.ends(0);

    let status = bench.status();
    let task = &status["tasks"][0];
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    assert_eq!(bench.on_target(&status, "counter.txt"), "x", "it was counted once");
    let requests = bench.provider.model_requests();
    let steps: Vec<_> = requests.iter().filter_map(|entry| entry.step).collect();
    assert_eq!(steps, [1, 2, 3], "the command is not asked for again");
    let resumed = bench.bodies(&requests[asked_before..]).remove(0);
    for told in ["Count to one", "by the agent", "printf x >> counter.txt", "have changed since it was asked for"] {
        assert!(resumed.contains(told), "{told}: {resumed}");
    }

    // What was kept of the first attempt, and what the second began with, is the tree of the kill, byte for byte.
    let mut kept = bench.json(&["log", "--json", "counter"]);
    kept.retain(|line| line["event"] == "checkpointed");
    let ended = kept.iter().rfind(|line| line["data"]["number"] == 1).expect("its end is kept");
    let store = Repo::at(bench.state().join("store.git"));
    let commit = ended["data"]["commit"].as_str().unwrap();
    let names = store.text(&["ls-tree", "-r", "--name-only", commit]).unwrap();
    let in_store = |name: &str| store.git(&["cat-file", "blob", &format!("{commit}:{name}")]).unwrap();
    let found: BTreeMap<String, Vec<u8>> = names.lines().map(|name| (name.to_owned(), in_store(name))).collect();
    assert_eq!(found, at_the_kill);
    let tree = |commit: &Value| {
        store.text(&["rev-parse", &format!("{}^{{tree}}", commit["data"]["commit"].as_str().unwrap())]).unwrap()
    };
    let second: Vec<_> = kept.iter().filter(|line| line["data"]["number"] == 2).map(tree).collect();
    assert!(second.iter().all(|other| *other == tree(ended)), "nothing else changed: {kept:#?}");
}

/// Every file of a workspace but the repository's own.
fn files(workspace: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(workspace).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != ".git" {
            found.insert(entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        }
    }
    found
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
