//! The engine is killed with SIGKILL, wherever it is, and `outlast resume` goes on as if nothing had happened.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_engine::POINTS;
use outlast_testkit::provider::{Fault, RefusalKind, Rule, Script, When};

use crate::long;
use crate::running::Running;
use crate::user::Snapshot;
use crate::world::{Plan, World};

/// Where results land by themselves, or where a person lands them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Land {
    Auto,
    Review,
}

/// Four tasks, two at once, one of which starts from another's result.
fn four(land: Land) -> Plan {
    let mode = if land == Land::Auto { "auto" } else { "review" };
    let reads = "read parts/first.txt\nwrite parts/second.txt \"part second\\n\"";
    Plan::new(&format!("concurrency = 2\nland = \"{mode}\""))
        .part("first")
        .task("second", reads, "writes = [\"parts/second.txt\"]\nneeds = [\"first\"]")
        .part("third")
        .part("fourth")
}

/// Kills the engine when it passes `point` for the `n`th time, goes on, and checks everything.
fn killed_at(point: &str, n: u32, land: Land) {
    let world = World::new();
    world.plan(&four(land));
    let base = world.repo.commit_id("HEAD").unwrap();
    let user = Snapshot::of_lived_in(&world.repo, "outlast/");
    let fault = format!("{point}:{n}");

    let mut run = world.command(&["run", "--yes"]);
    let killed = Running::of({
        run.env("OUTLAST_FAULT", &fault);
        run
    })
    .end();
    // Nothing lands in a run that is reviewed: the points of landing are passed by `land`.
    let of_landing = land == Land::Review && ["after_candidate", "before_move", "after_move"].contains(&point);
    assert_eq!(killed.was_killed(), !of_landing, "{fault}:\n{}", killed.stderr);
    user.is_untouched(&format!("killed at {fault}"));

    let resumed = world.run(&["resume"]);
    if resumed.code() == Some(9) {
        // It was killed before the run was on record: then there is nothing to resume, and nothing in the way.
        assert_eq!(fault, "before_append:1");
        world.run(&["run", "--yes"]).ends(0);
    } else {
        resumed.ends(0);
    }
    if land == Land::Review {
        world.all_are("done");
        user.is_untouched(&format!("reviewed after {fault}"));
        if of_landing {
            let mut command = world.command(&["land", "--all"]);
            command.env("OUTLAST_FAULT", &fault);
            assert!(Running::of(command).end().was_killed(), "{fault}");
        }
        world.run(&["land", "--all"]).ends(0);
    }
    everything_landed_once(&world, &base, 4, &fault);
    user.is_untouched(&format!("landed after {fault}"));
}

#[track_caller]
pub(crate) fn everything_landed_once(world: &World, base: &str, tasks: usize, when: &str) {
    world.all_are("landed");
    let target = world.target();
    let landed = world.landed_on(&target, base);
    let each: BTreeSet<&String> = landed.iter().collect();
    assert_eq!((landed.len(), each.len()), (tasks, tasks), "{when}: {landed:?}");
    world.every_commit_passes(&target, base);
    world.nothing_is_left();
    let fsck = world.repo.text(&["fsck", "--strict", "--no-dangling"]).unwrap();
    assert_eq!(fsck, "", "{when}");
}

/// Every third point from the given one, so that three tests share them.
fn some_points(first: usize, n: u32, land: Land) {
    for point in POINTS.iter().skip(first).step_by(3) {
        killed_at(point, n, land);
    }
}

#[test]
fn killed_at_a_point_of_the_first_third_everything_lands_once() {
    some_points(0, 1, Land::Auto);
}

#[test]
fn killed_at_a_point_of_the_second_third_everything_lands_once() {
    some_points(1, 1, Land::Auto);
}

#[test]
fn killed_at_a_point_of_the_last_third_everything_lands_once() {
    some_points(2, 1, Land::Auto);
}

#[test]
fn killed_while_a_review_lands_everything_lands_once() {
    for point in ["after_verify", "after_candidate", "before_move", "after_move"] {
        killed_at(point, 2, Land::Review);
    }
}

#[test]
fn killed_at_every_point_once_and_twice_with_and_without_review_everything_lands_once() {
    if !long("the first and second passage of every point, both ways of landing") {
        return;
    }
    for point in POINTS {
        killed_at(point, 2, Land::Auto);
        killed_at(point, 1, Land::Review);
        killed_at(point, 2, Land::Review);
    }
}

/// Numbers that differ from run to run, and can be had again by their seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        // The constants of Knuth's MMIX generator.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }
}

fn many(tasks: u32) -> Plan {
    let mut plan = Plan::new("concurrency = 4\nland = \"auto\"");
    for number in 1..tasks {
        plan = plan.part(&format!("part-{number}"));
    }
    plan.task(
        "last",
        "read parts/part-1.txt\nwrite parts/last.txt \"part last\\n\"",
        "writes = [\"parts/last.txt\"]\nneeds = [\"part-1\"]",
    )
}

/// Kills one run again and again, each time after a while that nobody has chosen, until it has landed everything.
fn killed_at_random_moments(tasks: u32, kills: u32) {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let mut dice = Dice(seed);
    let mut left = kills;
    while left > 0 {
        let world = World::new();
        world.plan(&many(tasks));
        let base = world.repo.commit_id("HEAD").unwrap();
        let user = Snapshot::of_lived_in(&world.repo, "outlast/");
        let mut run = world.start(&["run", "--yes"]);
        run.until(&["the run starts"]);
        while left > 0 {
            let moment = Duration::from_millis(dice.roll(2_500));
            let began = Instant::now();
            if run.ended_within(moment) {
                break;
            }
            left -= 1;
            eprintln!("seed {seed}: killed after {:?}", began.elapsed());
            run.kill_9();
            user.is_untouched(&format!("seed {seed}"));
            run = world.start(&["resume"]);
        }
        let ran = run.end();
        ran.ends(0);
        everything_landed_once(&world, &base, tasks as usize, &format!("seed {seed}"));
        user.is_untouched(&format!("seed {seed}, at the end"));
    }
}

#[test]
fn killed_at_five_random_moments_everything_lands_once() {
    killed_at_random_moments(8, 5);
}

#[test]
fn killed_at_twenty_random_moments_of_twenty_tasks_everything_lands_once() {
    if long("20 kills of 20 tasks") {
        killed_at_random_moments(20, 20);
    }
}

/// Five agents, each in the middle of its second turn, which the first engine that asks never gets an answer to.
fn five_in_their_second_turn() -> World {
    let hold = Fault::Hold { seconds: None };
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault: hold, times: Some(5) };
    let world = World::with_script(Script::default().with_fault(rule));
    let mut plan = Plan::new("land = \"auto\"\nconcurrency = 5");
    for id in FIVE {
        let script = format!(
            "write parts/{id}.txt \"part {id}\\n\"\nwrite parts/{id}-2.txt \"part {id}-2\\n\"\nrun \"cat parts/{id}.txt\""
        );
        plan = plan.task(id, &script, &format!("writes = [\"parts/{id}*\"]"));
    }
    world.plan(&plan);
    world
}

const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];

fn all_in_their_second_turn(world: &World) {
    world.provider_saw("five second turns", |log| {
        log.iter().filter(|entry| entry.step == Some(2)).count() == FIVE.len()
    });
}

#[test]
fn d10_agents_outlive_their_engine_and_are_taken_up_again() {
    let world = five_in_their_second_turn();
    let run = world.start(&["run", "--yes"]);
    all_in_their_second_turn(&world);
    assert!(run.kill_9().was_killed());
    let before = world.living_shims();
    assert_eq!(before.len(), 5, "every agent's shim goes on: {before:?}");
    assert_eq!(world.task("a")["state"], "running", "without an engine too");

    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    for id in FIVE {
        assert_eq!(world.task(id)["attempts"], 1, "{id} was not started anew");
    }
    for (folder, pid) in before {
        let shim = outlast_process::files::load_shim(&folder).unwrap().unwrap();
        assert_eq!(shim.shim.pid, pid, "the same shim finished in {folder:?}");
    }
    // Only the answers that were in flight at the kill were asked for again.
    for step in 1..=4 {
        let asked = world.provider.model_requests().iter().filter(|entry| entry.step == Some(step)).count();
        assert_eq!(asked, if step == 2 { 10 } else { 5 }, "turn {step}");
    }
    world.nothing_is_left();
}

#[test]
fn an_agent_whose_shim_is_killed_is_started_anew_with_its_work() {
    let world = five_in_their_second_turn();
    let run = world.start(&["run", "--yes"]);
    all_in_their_second_turn(&world);
    for (_, pid) in world.living_shims() {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    run.end().ends(0).says("vanished").says("continuing from what is there");
    world.all_are("landed");
    for id in FIVE {
        assert_eq!(world.task(id)["attempts"], 2, "{id}");
    }
    world.nothing_is_left();
}

#[test]
fn a_hold_outlives_the_engine() {
    let refuse = Fault::Refuse { reason: RefusalKind::WindowQuota, seconds: Some(5) };
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault: refuse, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["is held"]);
    assert!(run.kill_9().was_killed());
    let task = world.task("one");
    assert_eq!(task["state"], "held", "{task:#}");
    assert!(task["reset_at"].is_string(), "{task:#}");

    world.run(&["resume"]).ends(0);
    assert_eq!(world.task("one")["attempts"], 1);
    let bill = world.provider.bill();
    assert_eq!((bill.total.refused, bill.total.requests), (1, 3), "nobody asked before the reset: {bill:#?}");
    world.all_are("landed");
    world.nothing_is_left();
}
