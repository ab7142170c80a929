//! A plan's own commands end, with all that they have started, when whoever runs them is stopped; they run again when the
//! run goes on.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::running::{LIMIT, Running};
use crate::world::{Plan, World};

/// How long an end may take: killing takes a few seconds where asking does not help.
const SOON: Duration = Duration::from_secs(20);

/// Lasts for minutes the first time that it runs in a place, with a child that does not end when asked, and then passes.
pub(crate) fn slow(name: &str) -> String {
    let lasts = "(trap '' TERM; sleep 600) & sleep 600";
    format!("test -e \"$TMPDIR/{name}\" || {{ touch \"$TMPDIR/{name}\"; {lasts}; }}")
}

fn world(run: &str, keys: &str) -> World {
    let world = World::new();
    let keys = format!("writes = [\"parts/**\"]\nretries = 0\ntimeout = \"10m\"\n{keys}");
    world.plan(&Plan::new(run).task("one", "write parts/one.txt \"part one\\n\"", &keys));
    world
}

/// Waits until a command has made so many files of this name in the home. Nobody tells of that: it is looked for.
#[track_caller]
pub(crate) fn begun(world: &World, name: &str, times: usize) {
    let since = Instant::now();
    let count = || {
        let found = Command::new("find").arg(world.env.outlast_home()).args(["-name", name]).output().unwrap();
        found.stdout.iter().filter(|byte| **byte == b'\n').count()
    };
    while count() < times {
        assert!(since.elapsed() < LIMIT, "{name} never began: {:#}", world.status());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Stops what runs, which must not wait for its commands, and leaves nothing.
#[track_caller]
fn stopped(world: &World, run: Running) {
    let asked = Instant::now();
    world.run(&["stop"]).ends(0).says("is stopped");
    run.end().ends(0);
    assert!(asked.elapsed() < SOON, "it took {:?}", asked.elapsed());
    assert_eq!(world.task("one")["state"], "parked");
    world.nothing_is_left();
}

#[test]
fn a_check_is_ended_by_stop_and_made_anew() {
    let verify = format!("verify = ['''{}''', \"sh check.sh\"]", slow("checked"));
    let world = world("land = \"auto\"", &verify);
    // In the workspace, then on what would land: each has a folder of its own for temporary files.
    let run = world.start(&["run", "--yes"]);
    begun(&world, "checked", 1);
    stopped(&world, run);
    let run = world.start(&["resume"]);
    begun(&world, "checked", 2);
    stopped(&world, run);
    world.run(&["resume"]).ends(0);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["attempts"]), (&"landed".into(), &1.into()), "{task:#}");
    assert_eq!(world.provider.model_requests().len(), 2, "its agent was not started again");
    world.nothing_is_left();
}

#[test]
fn setup_is_ended_by_a_signal_and_the_workspace_gets_its_results_all_the_same() {
    let setup = format!("setup = ['''{}''', \"mkdir deps && touch deps/made\"]", slow("set-up"));
    let world = world(&format!("land = \"auto\"\n{setup}"), "verify = [\"test -e deps/made && sh check.sh\"]");
    let run = world.start(&["run", "--yes"]);
    begun(&world, "set-up", 1);
    let asked = Instant::now();
    run.signal(Signal::SIGINT);
    run.end().ends(130);
    assert!(asked.elapsed() < SOON, "it took {:?}", asked.elapsed());
    world.nothing_is_left();
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn a_steps_command_is_ended_by_stop_and_asked_again() {
    let hold = Fault::Hold { seconds: None };
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault: hold, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    let step = slow("asked");
    let keys = format!("writes = [\"parts/**\"]\nretries = 0\ntimeout = \"10m\"\n[task.steps]\nmade = '''{step}'''");
    let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("one", script, &keys));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    stopped(&world, run);
    // Whoever goes on asks first what is done.
    let run = world.start(&["resume"]);
    begun(&world, "asked", 1);
    stopped(&world, run);
    world.run(&["resume"]).ends(0).says("so it needs no agent");
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn a_landing_that_is_interrupted_ends_its_check_and_is_done_the_next_time() {
    let verify = format!("verify = [\"sh check.sh\", '''{}''']", slow("checked"));
    let world = world("land = \"review\"", &verify);
    for (place, command) in [(1, &["run", "--yes"][..]), (2, &["resume"])] {
        let run = world.start(command);
        begun(&world, "checked", place);
        stopped(&world, run);
    }
    world.run(&["resume"]).ends(0);
    world.all_are("done");
    // The place where it is checked has forgotten.
    Command::new("find").arg(world.env.outlast_home()).args(["-name", "checked", "-delete"]).status().unwrap();
    let land = world.start(&["land", "one"]);
    begun(&world, "checked", 1);
    let asked = Instant::now();
    land.signal(Signal::SIGINT);
    land.end().ends(130);
    assert!(asked.elapsed() < SOON, "it took {:?}", asked.elapsed());
    world.nothing_is_left();
    world.run(&["land", "one"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}
