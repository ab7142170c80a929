//! The cases of group D on the real binary: agents that never begin, never end, stand still, hide, or leave others behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{Plan, World, text};

/// A plan whose only agent is this shell command; it asks no model.
fn shell(command: &str, keys: &str) -> Plan {
    let agent = format!(
        "land = \"auto\"\n\n[agent.shell]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {command:?}, \"{{goal_file}}\"]"
    );
    Plan::new(&agent).task("one", "", &format!("writes = [\"parts/**\"]\nagent = \"shell\"\n{keys}"))
}

fn ends_with(plan: &Plan, cause: &str, attempts: u64) -> Value {
    let world = World::new();
    world.plan(plan);
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &cause.into()), "{task:#}");
    assert_eq!(task["attempts"], attempts, "{task:#}");
    world.nothing_is_left();
    task
}

#[test]
fn d01_standard_input_is_at_its_end_from_the_start() {
    let world = World::new();
    let command = "cat; mkdir -p parts; echo 'part one' > parts/one.txt";
    world.plan(&shell(command, "retries = 0\nidle_timeout = \"20s\""));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
}

/// Long enough for an agent to have begun on a busy machine: a test of what comes then must not end before it.
const BEGINS_WITHIN: u64 = 6;

#[test]
fn d05_an_agent_that_never_says_a_word_failed_at_the_start_after_one_more_try() {
    // However many tries it has, and however short a silence is allowed.
    let cases = [("timeout", 0, 1), ("timeout", 1, 2), ("timeout", 20, 2), ("idle_timeout", 20, 2)];
    std::thread::scope(|scope| {
        for (key, retries, attempts) in cases {
            scope.spawn(move || {
                let world = World::new();
                // Each start is a line; so what is ended is an agent that has begun and says nothing.
                let command = "echo $OUTLAST_ATTEMPT >> $HOME/begun; exec sleep 1000";
                world.plan(&shell(command, &format!("retries = {retries}\n{key} = \"{BEGINS_WITHIN}s\"")));
                let asked = Instant::now();
                world.run(&["run", "--yes"]).ends(5);
                let took = asked.elapsed();
                let task = world.task("one");
                assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"startup".into()), "{task:#}");
                assert_eq!(task["attempts"], attempts, "{task:#}");
                let begun = in_home(&world, "begun");
                let each: Vec<&str> = begun.lines().map(|line| line.rsplit_once('.').unwrap().1).collect();
                assert_eq!(each, &["1", "2"][..attempts], "each attempt had begun: {begun}");
                let least = Duration::from_secs(BEGINS_WITHIN * attempts as u64);
                assert!(took >= least, "it was given {least:?} in all, and ended after {took:?}");
                if key == "idle_timeout" {
                    let why = format!("for {BEGINS_WITHIN}s after its start (the task's `idle_timeout`)");
                    assert!(text(&task["detail"]).contains(&why), "{task:#}");
                }
                world.nothing_is_left();
            });
        }
    });
}

#[test]
fn d02_one_complaint_is_no_start() {
    let mut world = World::new();
    let folder = world.env.root().join("programs");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("claude");
    let complaint = "Reading additional input from stdin...";
    std::fs::write(&program, format!("#!/bin/sh\necho '{complaint}' >&2\nexec sleep 1000\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.env.prepend_path(&folder).unwrap();
    let agent = "[agent.waits]\nkind = \"claude-code\"\naccounts = [\"main\"]";
    let keys = format!("agent = \"waits\"\nretries = 0\ntimeout = \"{BEGINS_WITHIN}s\"");
    world.plan(&Plan::new(&format!("land = \"auto\"\n\n{agent}")).task("one", "", &keys));
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"startup".into()), "{task:#}");
    let attempts = world.homes()[0].join("attempts").join(text(&world.status()["run"]));
    let said = fs::read_to_string(attempts.join("one.1/stderr")).unwrap();
    assert_eq!(said.trim_end(), complaint, "it has complained");
    world.nothing_is_left();
}

/// A file that an agent of the only task has left in its home.
fn in_home(world: &World, name: &str) -> String {
    let homes = world.homes()[0].join("homes").join(text(&world.status()["run"])).join("one");
    let homes = fs::read_dir(&homes).unwrap().map(|home| home.unwrap().path().join(name));
    homes.filter_map(|file| fs::read_to_string(file).ok()).collect()
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

/// An agent that says it has written a part with this text, and then stays until its time is over.
fn stays(keys: &str, part: &str, code: i32) -> World {
    let result = "{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"done\"}";
    let command = format!("mkdir -p parts; echo part {part} > parts/one.txt; echo '{result}'; exec sleep 1000");
    let world = World::new();
    world.plan(&shell(&command, &format!("retries = 0\n{keys}")));
    world.run(&["run", "--yes"]).ends(code).says("lingered after its last word, until its time was over");
    world.nothing_is_left();
    world
}

#[test]
fn d03_a_result_counts_when_the_time_is_over_before_it_was_lingered_for() {
    // Long enough to say it on a busy machine, and shorter than anybody is lingered for.
    std::thread::scope(|scope| {
        for keys in ["timeout = \"7s\"", "idle_timeout = \"7s\""] {
            scope.spawn(move || stays(keys, "one", 0).all_are("landed"));
        }
        // What it says of its work is shown, as always.
        scope.spawn(|| assert_eq!(stays("idle_timeout = \"7s\"", "none", 5).task("one")["cause"], "verify"));
    });
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
    // Nor is one that waits for a child which is stopped.
    let waits = "echo working; sh -c 'kill -STOP $$; echo never' & wait; echo never";
    ends_with(&shell(waits, "retries = 0\nidle_timeout = \"1s\""), "timeout", 1);
}

#[test]
fn d13_no_terminal_can_stop_an_agent() {
    // A session of its own has no terminal; of one that began outside of its namespace it would see a zero.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let ours = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned();
    let command = format!(
        "set -- $(cat /proc/$$/stat); [ $6 != 0 ] && [ $6 != {ours} ] && [ $7 = 0 ] || exit 1; \
         mkdir -p parts; echo 'part one' > parts/one.txt"
    );
    let world = World::new();
    world.plan(&shell(&command, "retries = 0"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
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

/// Children that hold memory, in sessions of their own, left behind by each of several tries.
#[test]
fn d15_what_a_timed_out_try_leaves_is_gone_before_the_next_one_begins() {
    let world = World::new();
    // Each try writes down which of those that came before still live. They see no process of one another, but a lock that one of
    // them holds for as long as it lives.
    let marks = "for lock in \"$HOME\"/lock.*; do [ ! -e \"$lock\" ] || flock -n \"$lock\" true || \
                 echo \"$lock\" >> \"$HOME/alive\"; done";
    let leaves = "setsid sh -c 'exec 9>\"$HOME/lock.${OUTLAST_ATTEMPT##*/}\"; flock 9; \
                  x=$(head -c 20000000 /dev/zero | tr \"\\\\0\" y); echo $$ >> \"$HOME/left\"; sleep 1000; : $x' & \
                  sleep 1000";
    let command = format!("echo working; {marks}; {leaves}");
    world.plan(&shell(&command, "retries = 4\nidle_timeout = \"1s\""));
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((&task["cause"], &task["attempts"]), (&"timeout".into(), &5.into()), "{task:#}");
    let home = world.homes().remove(0).join("homes");
    let mut files = Vec::new();
    let mut folders = vec![home];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    let named = |name: &str| files.iter().find(|file| file.ends_with(name));
    let left = std::fs::read_to_string(named("left").unwrap()).unwrap();
    assert_eq!(left.lines().count(), 5, "each of them has left one behind: {left}");
    assert!(named("alive").is_none(), "one of them lived on");
    world.nothing_is_left();
}

#[test]
fn h05_whoever_goes_on_begins_where_the_session_began_wherever_it_went() {
    let world = World::new();
    let script = "pwd >> \"$HOME/began\"; case $OUTLAST_ATTEMPT in \
                  *one.1) echo '{\"type\":\"system\",\"session_id\":\"s-1\"}'; mkdir -p parts/deep; cd parts/deep; kill -9 $$;; esac; \
                  [ \"$0\" = s-1 ] || exit 3; mkdir -p parts; cp \"$HOME/began\" parts/began";
    let agent = format!(
        "land = \"auto\"\n\n[agent.own]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \'\'\'{script}\'\'\', \"{{resume}}\"]"
    );
    let keys = "writes = [\"parts/**\"]\nagent = \"own\"\nretries = 0";
    world.plan(&Plan::new(&agent).task("one", "say \"it\"", keys));
    world.run(&["run", "--yes"]).ends(0);
    let task = world.task("one");
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    let began = world.repo.text(&["show", &format!("{}:parts/began", world.target())]).unwrap();
    let places: Vec<&str> = began.lines().collect();
    let workspace = text(&task["workspace"]);
    assert_eq!(places, [&*workspace; 2], "{began}");
}
