//! A plan's own command that leaves no record of how it ended has shown nothing: it is no failure of the task, and nobody
//! runs it for ever.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::{begun, slow};
use crate::running::Running;
use crate::world::{Plan, World, text};

/// A check that lasts long enough for its launch to be seen.
const SLOWLY: &str = "verify = [\"sleep 0.5 && sh check.sh\"]";
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

/// Takes the file of a command's launch away as soon as it runs, until this is dropped: it leaves no record of its end.
struct WithoutRecord {
    over: Arc<AtomicBool>,
    taker: Option<JoinHandle<()>>,
}

impl Drop for WithoutRecord {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.taker.take().unwrap().join().unwrap();
    }
}

/// Has the command of a purpose leave no record in an attempt. It must last for a moment: see [`SLOWLY`].
fn without_a_record(world: &World, attempt: &str, purpose: &str) -> WithoutRecord {
    let run = text(&world.status()["run"]);
    let folder = world.homes().remove(0).join("attempts").join(run).join(attempt).join(purpose);
    let launch = folder.join("launch.jsonl");
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    // Nobody tells when the shim has said who it is: it is looked for.
    let taker = std::thread::spawn(move || {
        while !until.load(Ordering::Relaxed) {
            if fs::read_to_string(&launch).is_ok_and(|lines| lines.contains("\n{\"shim\"")) {
                fs::remove_file(&launch).unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    WithoutRecord { over, taker: Some(taker) }
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
        let world = killed("", PART, &format!("retries = 0\n{SLOWLY}"), "after_checkpoint:1");
        let _lost = without_a_record(&world, "one.1", purpose);
        world.run(&["resume"]).ends(0).says("vanished").says("nothing was shown in 4 runs");
        landed(&world, 2);
    }
}

#[test]
fn a_setup_of_which_nothing_is_on_record_fails_no_task() {
    let setup = "setup = [\"sleep 0.5 && mkdir deps && touch deps/made\"]";
    let world =
        killed(setup, PART, "retries = 0\nverify = [\"test -e deps/made && sh check.sh\"]", "before_workspace:1");
    let _lost = without_a_record(&world, "one.1", "setup-1");
    world.run(&["resume"]).ends(0).says("vanished").says("nothing was shown in 4 runs");
    landed(&world, 2);
}

#[test]
fn a_step_of_which_nothing_is_on_record_is_not_taken_for_one_that_is_left() {
    let step = "[task.steps]\nmade = \"sleep 0.5 && test -f parts/one.txt\"";
    // Asked when an agent has run out of time: one that had done all is not at fault, whatever is lost afterwards.
    let world =
        killed("", &format!("{PART}\nhang"), &format!("retries = 0\nidle_timeout = \"2s\"\n{step}"), "after_spawn:1");
    let lost = without_a_record(&world, "one.1", "step-1-1");
    world.run(&["resume"]).ends(0).says("vanished").says("so it needs no agent");
    landed(&world, 2);
    drop(lost);
    // Asked before an agent is started again.
    let world = killed("", &format!("{PART}\ndie 3"), &format!("retries = 1\n{step}"), "after_end:1");
    let _lost = without_a_record(&world, "one.2", "step-1-1");
    world.run(&["resume"]).ends(0).says("vanished").says("so it needs no agent");
    landed(&world, 3);
}

#[test]
fn a_landing_of_which_nothing_is_shown_is_left_to_a_person_and_can_be_asked_for_again() {
    let world = killed("", PART, &format!("retries = 0\n{SLOWLY}"), "after_candidate:1");
    let lost = without_a_record(&world, "one.1", "verify-merged-1");
    world.run(&["resume"]).says("`outlast land` tries again: nothing was shown in 4 runs");
    let task = world.task("one");
    assert_eq!((&task["state"], &task["attempts"]), (&"done".into(), &1.into()), "{task:#}");
    drop(lost);
    world.run(&["land", "one"]).ends(0);
    landed(&world, 1);
}

/// The command itself is killed, and what looks after it lives: by a person, or a host that is out of memory.
#[test]
fn a_check_that_is_killed_itself_runs_again_and_one_that_always_is_shows_nothing() {
    // In the workspace and on what would land, each with a home of its own.
    for (times, says, attempts) in [(1, "is verified", 1), (4, "nothing was shown in 4 runs", 3)] {
        let world = World::new();
        let killed = format!("echo x >> $HOME/ran; [ $(wc -l < $HOME/ran) -gt {times} ] || kill -9 $$");
        let keys = format!("writes = [\"parts/**\"]\nretries = 0\nverify = ['{killed}', \"sh check.sh\"]");
        world.plan(&Plan::new("land = \"auto\"").task("one", PART, &keys));
        world.run(&["run", "--yes"]).ends(0).says(says);
        landed(&world, attempts);
    }
}
