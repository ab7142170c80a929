//! Steps with commands on the real binary: what they show to be done is not done again, and nothing else is taken for done.

use crate::world::{Plan, World};

/// A task of one step, which its file shows to be done; `script` is what its agent does.
fn world(script: &str, keys: &str) -> World {
    let world = World::new();
    let keys = format!("writes = [\"parts/one.txt\"]\n{keys}\n[task.steps]\nmade = \"test -f parts/one.txt\"");
    world.plan(&Plan::new("land = \"auto\"").task("one", script, &keys));
    world
}

/// The numbers of the turns that were asked for.
fn asked(world: &World) -> Vec<usize> {
    world.provider.model_requests().iter().filter_map(|entry| entry.step).collect()
}

#[test]
fn out_of_time_with_all_steps_done_and_a_check_that_passes_is_done_late() {
    let world = world("write parts/one.txt \"part one\\n\"\nhang", "retries = 0\nidle_timeout = \"2s\"");
    world.run(&["run", "--yes"]).ends(0).says("with all its steps done (late)");
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 1);
    world.nothing_is_left();
}

#[test]
fn out_of_time_with_a_step_left_or_a_check_that_fails_is_a_timeout() {
    for script in ["hang", "write parts/one.txt \"wrong\\n\"\nhang"] {
        let world = world(script, "retries = 0\nidle_timeout = \"2s\"");
        world.run(&["run", "--yes"]).ends(5);
        let task = world.task("one");
        assert_eq!((task["state"].as_str(), task["cause"].as_str()), (Some("failed"), Some("timeout")), "{task:#}");
    }
}

#[test]
fn a_task_whose_agent_died_when_all_was_done_needs_no_other() {
    let world = world("write parts/one.txt \"part one\\n\"\ndie 3", "retries = 1");
    world.run(&["run", "--yes"]).ends(0).says("so it needs no agent");
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 2);
    assert_eq!(asked(&world).iter().filter(|step| **step == 1).count(), 1, "nothing was asked again");
    world.nothing_is_left();
}

#[test]
fn steps_that_hold_keep_no_agent_from_a_task_whose_check_fails() {
    let world = world("write parts/one.txt \"wrong\\n\"", "retries = 1");
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((task["cause"].as_str(), &task["attempts"]), (Some("verify"), &2.into()), "{task:#}");
    assert_eq!(asked(&world).iter().filter(|step| **step == 1).count(), 2, "its second agent had a try");
}
