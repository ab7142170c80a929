//! A plan's own command that leaves no record of how it ended has shown nothing: it is no failure of the task, and nobody
//! runs it for ever.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::{begun, slow};
use crate::running::Running;
use crate::world::{Plan, World, text};

const PART: &str = "write parts/one.txt \"part one\\n\"";

/// A run of one task, whose engine was killed at a point.
fn killed(run: &str, script: &str, keys: &str, point: &str) -> World {
    let world = World::new();
    let keys = format!("writes = [\"parts/**\"]\n{keys}");
    world.plan(&Plan::new(&format!("land = \"auto\"\n{run}")).task("one", script, &keys));
    let mut run = world.command(&["run", "--yes"]);
    run.env("OUTLAST_FAULT", point);
    let ran = Running::of(run).end();
    assert!(ran.was_killed(), "{point}:\n{}", ran.stderr);
    world
}

/// Has the command of a purpose leave no record in an attempt: something lies where it is written.
fn without_a_record(world: &World, attempt: &str, purpose: &str) -> PathBuf {
    let run = text(&world.status()["run"]);
    let folder = world.homes().remove(0).join("attempts").join(run).join(attempt).join(purpose);
    let in_the_way = folder.join("exit.partial");
    fs::create_dir_all(&in_the_way).unwrap();
    in_the_way
}

/// The task landed, with so many attempts.
fn landed(world: &World, attempts: usize) {
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], attempts);
    world.nothing_is_left();
}

#[test]
fn a_check_that_is_ended_from_outside_with_what_looks_after_it_runs_again() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let world = World::new();
        let check = format!("verify = ['''{}''', \"sh check.sh\"]", slow("checked"));
        let keys = format!("writes = [\"parts/**\"]\nretries = 0\ntimeout = \"10m\"\n{check}");
        world.plan(&Plan::new("land = \"auto\"").task("one", PART, &keys));
        let run = world.start(&["run", "--yes"]);
        // In the workspace, then on what would land.
        for times in [1, 2] {
            begun(&world, "checked", times);
            for (_, pid) in world.living_shims() {
                kill(Pid::from_raw(pid), signal).unwrap();
            }
        }
        run.end().ends(0);
        landed(&world, 1);
    }
}

#[test]
fn a_check_of_which_nothing_is_on_record_uses_no_try() {
    for purpose in ["verify-1", "verify-merged-1"] {
        let world = killed("", PART, "retries = 0", "after_checkpoint:1");
        without_a_record(&world, "one.1", purpose);
        world.run(&["resume"]).ends(0).says("vanished").says("nothing was shown in 4 runs");
        landed(&world, 2);
    }
}

#[test]
fn a_setup_of_which_nothing_is_on_record_fails_no_task() {
    let setup = "setup = [\"mkdir deps && touch deps/made\"]";
    let world =
        killed(setup, PART, "retries = 0\nverify = [\"test -e deps/made && sh check.sh\"]", "before_workspace:1");
    without_a_record(&world, "one.1", "setup-1");
    world.run(&["resume"]).ends(0).says("vanished").says("nothing was shown in 4 runs");
    landed(&world, 2);
}

#[test]
fn a_step_of_which_nothing_is_on_record_is_not_taken_for_one_that_is_left() {
    let step = "[task.steps]\nmade = \"test -f parts/one.txt\"";
    // Asked when an agent has run out of time: one that had done all is not at fault, whatever is lost afterwards.
    let world =
        killed("", &format!("{PART}\nhang"), &format!("retries = 0\nidle_timeout = \"2s\"\n{step}"), "after_spawn:1");
    without_a_record(&world, "one.1", "step-1-1");
    world.run(&["resume"]).ends(0).says("vanished").says("so it needs no agent");
    landed(&world, 2);
    // Asked before an agent is started again.
    let world = killed("", &format!("{PART}\ndie 3"), &format!("retries = 1\n{step}"), "after_end:1");
    without_a_record(&world, "one.2", "step-1-1");
    world.run(&["resume"]).ends(0).says("vanished").says("so it needs no agent");
    landed(&world, 3);
}

#[test]
fn a_landing_of_which_nothing_is_shown_is_left_to_a_person_and_can_be_asked_for_again() {
    let world = killed("", PART, "retries = 0", "after_candidate:1");
    let in_the_way = without_a_record(&world, "one.1", "verify-merged-1");
    world.run(&["resume"]).says("`outlast land` tries again: nothing was shown in 4 runs");
    let task = world.task("one");
    assert_eq!((&task["state"], &task["attempts"]), (&"done".into(), &1.into()), "{task:#}");
    fs::remove_dir(&in_the_way).unwrap();
    world.run(&["land", "one"]).ends(0);
    landed(&world, 1);
}
