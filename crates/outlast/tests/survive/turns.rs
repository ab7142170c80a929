//! Every turn's work is kept before its answer is passed on: what an agent knows to be done is never lost.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::fixture::Repo;

use crate::running::Running;
use crate::world::{Plan, World, text};

/// An agent that writes one file a turn.
fn three_files() -> World {
    let world = World::new();
    let script = "write parts/a.txt \"part a\\n\"\nwrite parts/b.txt \"part b\\n\"\nwrite parts/c.txt \"part c\\n\"";
    let plan = Plan::new("land = \"auto\"").agent_arguments(&["--resume", "{resume}"]);
    world.plan(&plan.task("work", script, "writes = [\"parts/**\"]"));
    world
}

fn store(world: &World) -> Repo {
    Repo::at(&world.homes()[0].join("store.git"))
}

/// The files below `parts/` in the newest checkpoint of the task.
fn kept(world: &World) -> Vec<String> {
    let checkpoint = text(&world.task("work")["checkpoint"]);
    let names = store(world).text(&["ls-tree", "-r", "--name-only", &checkpoint, "parts/"]).unwrap();
    names.lines().map(str::to_owned).collect()
}

fn workspace(world: &World) -> PathBuf {
    PathBuf::from(text(&world.task("work")["workspace"]))
}

fn kill_agents(world: &World) {
    for (_, pid) in world.living_shims() {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
}

/// Kills the engine as it passes a point for the `n`th time; what the agent had been answered by then.
fn killed_at(point: &str, n: u32) -> World {
    let world = three_files();
    let mut command = world.command(&["run", "--yes"]);
    command.env("OUTLAST_FAULT", format!("{point}:{n}"));
    assert!(Running::of(command).end().was_killed());
    world
}

#[test]
fn a_workspace_that_is_lost_comes_back_as_it_was_at_the_last_turn() {
    let world = killed_at("turn_before_checkpoint", 4);
    kill_agents(&world);
    let workspace = workspace(&world);
    assert!(workspace.join("parts/c.txt").exists());
    assert_eq!(kept(&world), ["parts/a.txt", "parts/b.txt"]);
    fs::remove_dir_all(&workspace).unwrap();

    world.run(&["resume"]).ends(0).says("its workspace was lost");
    world.all_are("landed");
    let target = world.target();
    for part in ["a", "b", "c"] {
        assert_eq!(world.repo.text(&["show", &format!("{target}:parts/{part}.txt")]).unwrap(), format!("part {part}"));
    }
    world.nothing_is_left();
}

#[test]
fn no_answer_is_passed_on_before_the_tree_of_its_turn_is_durable() {
    // The second turn begins with the first file: until that is kept, nothing of the second answer is seen.
    let world = killed_at("turn_before_checkpoint", 2);
    let workspace = workspace(&world);
    assert!(workspace.join("parts/a.txt").exists(), "the first turn's answer was passed on");
    assert!(!workspace.join("parts/b.txt").exists(), "the second turn's answer was not");
    assert_eq!(kept(&world), Vec::<String>::new());

    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("work")["attempts"], 1, "the agent itself outlived it");
    // The answer that was in flight is asked for once more, and nothing else is.
    let again = world.provider.model_requests().iter().filter(|entry| entry.step == Some(2)).count();
    assert!(again <= 2, "{again}");
    world.nothing_is_left();
}

#[test]
fn each_turn_leaves_a_commit_and_a_turn_that_changed_nothing_leaves_none() {
    let world = World::new();
    let script = "write parts/a.txt \"part a\\n\"\nread parts/a.txt\nread README.md\nwrite parts/b.txt \"part b\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("work", script, "writes = [\"parts/**\"]"));
    world.run(&["run", "--yes"]).ends(0);
    let checkpoint = text(&world.task("work")["checkpoint"]);
    let log = store(&world).text(&["log", "--first-parent", "--reverse", "--format=%s", &checkpoint]).unwrap();
    let turns: Vec<&str> = log.lines().filter_map(|line| line.split_once(": turn ")).map(|(_, turn)| turn).collect();
    assert_eq!(turns, ["2", "5"], "{log}");
}
