//! The cases of group D on the real binary: agents that never begin, never end, stand still, hide, or leave others behind.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::world::{Plan, World, text};

/// A plan whose only agent is this shell command; it asks no model.
fn shell(command: &str, keys: &str) -> Plan {
    let agent = format!(
        "land = \"auto\"\n\n[agent.shell]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {command:?}, \"{{goal_file}}\"]"
    );
    Plan::new(&agent).task("one", "", &format!("writes = [\"parts/**\"]\nagent = \"shell\"\n{keys}"))
}

fn ends_with(plan: &Plan, cause: &str, attempts: u64) {
    let world = World::new();
    world.plan(plan);
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &cause.into()), "{task:#}");
    assert_eq!(task["attempts"], attempts, "{task:#}");
    world.nothing_is_left();
}

#[test]
fn d01_standard_input_is_at_its_end_from_the_start() {
    let world = World::new();
    let command = "cat; mkdir -p parts; echo 'part one' > parts/one.txt";
    world.plan(&shell(command, "retries = 0\nidle_timeout = \"20s\""));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
}

#[test]
fn d05_an_agent_that_never_says_a_word_failed_at_the_start_after_one_more_try() {
    ends_with(&shell("sleep 1000", "retries = 1\ntimeout = \"1s\""), "startup", 2);
}

#[test]
fn d02_one_complaint_is_no_start() {
    let mut world = World::new();
    let folder = world.env.root().join("programs");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("claude");
    std::fs::write(&program, "#!/bin/sh\necho 'Reading additional input from stdin...' >&2\nexec sleep 1000\n")
        .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.env.prepend_path(&folder).unwrap();
    let agent = "[agent.waits]\nkind = \"claude-code\"\naccounts = [\"main\"]";
    let keys = "agent = \"waits\"\nretries = 0\ntimeout = \"2s\"";
    world.plan(&Plan::new(&format!("land = \"auto\"\n\n{agent}")).task("one", "", keys));
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"startup".into()), "{task:#}");
    world.nothing_is_left();
}

#[test]
fn d03_one_that_lingers_has_done_its_work_and_is_said_to_have_lingered() {
    let world = World::new();
    let script = "linger\nwrite parts/one.txt \"part one\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("one", script, "writes = [\"parts/**\"]\nretries = 0"));
    world.run(&["run", "--yes"]).ends(0).says("lingered");
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn one_that_is_killed_from_outside_is_lost_and_costs_no_try() {
    let world = World::new();
    let command = "if [ -e $HOME/once ]; then mkdir -p parts; echo 'part one' > parts/one.txt; \
                   else touch $HOME/once; kill -9 $$; fi";
    world.plan(&shell(command, "retries = 0"));
    world.run(&["run", "--yes"]).ends(0).says("vanished").says("killed from outside (signal 9)");
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 2);
    world.nothing_is_left();
}

#[test]
fn d07_spinning_grandchildren_in_sessions_of_their_own_end_with_a_timeout() {
    let spin = "fork-detached \"while :; do :; done\"\n".repeat(3);
    let keys = "retries = 0\nidle_timeout = \"1s\"";
    ends_with(&Plan::new("").task("one", &format!("{spin}hang"), keys), "timeout", 1);
}

#[test]
fn d08_a_workspace_that_somebody_works_in_is_not_removed() {
    let world = World::new();
    world.plan(&Plan::new("").part("one"));
    world.run(&["run", "--yes"]).ends(0);
    let workspace: PathBuf = text(&world.task("one")["workspace"]).into();
    let mut command = Command::new("sleep");
    let mut sits = command.arg("1000").current_dir(&workspace).stdout(Stdio::null()).spawn().unwrap();
    let pid = sits.id();
    let told = world.run(&["discard", "one"]);
    let there = workspace.join("parts/one.txt").exists();
    sits.kill().unwrap();
    sits.wait().unwrap();
    assert!(there, "it is gone from beneath its user");
    told.ends(0).says("its workspace stays").says(&format!("process {pid}"));
    world.run(&["clean", "--yes"]).ends(0);
    assert!(!workspace.exists(), "nobody is in it any more");
}

#[test]
fn d11_whatever_the_agent_is_wrapped_in_ends_with_it() {
    let inner = "env WRAPPED=1 sh -c 'sh -c \"sleep 1000; true\"; true' & nohup setsid sleep 1000 & wait; true";
    ends_with(&shell(inner, "retries = 0\ntimeout = \"1s\""), "startup", 1);
}

#[test]
fn d13_one_that_is_stopped_is_not_alive() {
    let stops = "echo working; kill -STOP $$; echo never";
    ends_with(&shell(stops, "retries = 0\nidle_timeout = \"1s\""), "timeout", 1);
}

#[test]
fn d16_lines_of_megabytes_hide_nothing_that_follows() {
    let world = World::new();
    let command = "head -c 5000000 /dev/zero | tr '\\\\0' x; echo; head -c 20000000 /dev/zero | tr '\\\\0' y; \
                   mkdir -p parts; echo 'part one' > parts/one.txt; echo; echo 'Blocked: question: which one?'";
    world.plan(&shell(command, "retries = 0"));
    world.run(&["run", "--yes"]);
    let task = world.task("one");
    assert_eq!(task["cause"], "question", "{task:#}");
}
