//! Every turn's work is kept before its answer is passed on: what an agent knows to be done is never lost.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::fixture::Repo;
use outlast_testkit::provider::{Fault, Rule, Script, When};

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
    Repo::at(world.homes()[0].join("store.git"))
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
fn a_turn_that_takes_very_long_to_keep_holds_nobody_up_and_is_told() {
    let world = World::new();
    let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("one", script, "writes = [\"parts/**\"]\nretries = 0"));
    let mut run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    // Whoever keeps a tree holds this lock: for as long as the test has it, nothing is kept.
    let below = world.homes()[0].join("store.git/outlast/workspaces");
    let found = std::process::Command::new("find").arg(below).args(["-name", "*.lock"]).output().unwrap();
    let path = String::from_utf8(found.stdout).unwrap();
    let file = std::fs::File::options().write(true).open(path.trim()).unwrap();
    let held = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
    run.until(&["takes more than 20 s to keep, so its agent goes on meanwhile"]);
    drop(held);
    run.end().ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 1);
    world.nothing_is_left();
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

#[test]
fn whoever_takes_over_is_told_what_was_read_and_done() {
    let silent =
        Rule { when: When { step: Some(3), ..When::default() }, fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script { keep_bodies: true, ..Script::default() }.with_fault(silent));
    let script = "read README.md\nwrite parts/a.txt \"part a\\n\"\nwrite parts/b.txt \"part b\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("work", script, "writes = [\"parts/**\"]"));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("the third turn", |log| log.iter().any(|entry| entry.step == Some(3)));
    let known = world.homes()[0].join("attempts");
    kill_agents(&world);
    run.end().ends(0).says("vanished");
    world.all_are("landed");

    let requests = world.provider.model_requests();
    let note = requests
        .iter()
        .filter_map(|entry| world.provider.body(entry.number))
        .map(|body| String::from_utf8_lossy(&body).into_owned())
        .find(|body| body.contains("Another agent worked on this task before you"))
        .expect("somebody took over");
    for fact in ["parts/a.txt (added)", "```\\npart a\\n```", "README.md"] {
        assert!(note.contains(fact), "{fact} is missing in {note}");
    }
    assert!(!note.contains("had no result yet"), "nothing was under way: {note}");
    // The same is there for people and programs.
    let progress = walk(&known).into_iter().find(|path| path.ends_with("progress.json")).expect("it was kept");
    let progress: serde_json::Value = serde_json::from_slice(&fs::read(progress).unwrap()).unwrap();
    assert_eq!(progress["task_id"], "work");
    assert_eq!(progress["changed_files"][0], "parts/a.txt", "{progress:#}");
}

#[test]
fn whoever_takes_over_is_told_what_git_has_begun() {
    let world = World::with_script(Script { keep_bodies: true, ..Script::default() });
    let merge = "mkdir parts; git checkout -qb side; echo one > parts/a.txt; git add parts; git commit -qm one; \
                 git checkout -q -; mkdir -p parts; echo two > parts/a.txt; git add parts; git commit -qm two; git merge side";
    let script = format!("run \"{merge}\"\ndie 3");
    world.plan(&Plan::new("").task("work", &script, "writes = [\"parts/**\"]\nretries = 1\nverify = []"));
    world.run(&["run", "--yes"]);
    assert_eq!(world.task("work")["attempts"], 2);
    let requests = world.provider.model_requests();
    let bodies = requests.iter().filter_map(|entry| world.provider.body(entry.number));
    let told = bodies.map(|body| String::from_utf8_lossy(&body).into_owned());
    let told: Vec<String> = told.filter(|body| body.contains("You go on with your task now")).collect();
    let begun = "git has begun and not ended: merge, paths left open: 1.";
    assert!(!told.is_empty() && told.iter().all(|body| body.contains(begun)), "{told:#?}");
}

fn walk(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] });
    found.collect()
}

#[test]
fn a_workspace_that_somebody_removes_while_its_agent_works_is_brought_back_as_it_was_at_the_last_turn() {
    let world = World::new();
    let script = "write parts/a.txt \"part a\\n\"\nrun \"mkfifo $TMPDIR/go || true\"\n\
                  run \"[ $OUTLAST_ATTEMPT != ${OUTLAST_ATTEMPT%.1} ] && cat $TMPDIR/go || true\"\nwrite parts/b.txt \"part b\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("work", script, "writes = [\"parts/**\"]"));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a third turn", |log| log.iter().any(|entry| entry.step == Some(3)));
    let temp = world.homes()[0].join("temp").join(text(&world.status()["run"])).join("work");
    fs::remove_dir_all(workspace(&world)).unwrap();
    // Opened once the agent reads from it: it goes on without a workspace.
    fs::write(temp.join("go"), "on\n").unwrap();
    run.end().ends(0).says("its workspace was removed").says("continuing from what is there");
    world.all_are("landed");
    assert_eq!(world.task("work")["attempts"], 2);
    world.nothing_is_left();
}
