//! Case H15 on the real binary: a workspace whose record is damaged costs what was in no checkpoint, and is in nobody's way.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::world::{Plan, World, text};

const TWO: &str = "write parts/a.txt \"part a\\n\"\nwrite parts/b.txt \"part b\\n\"";

/// A task that has done a part, kept it, and whose engine and agent were killed in its second turn.
fn killed_in_the_second_turn() -> World {
    killed_in_turn(2)
}

/// The same in this turn: what the one before the last has done is kept for certain.
pub(crate) fn killed_in_turn(turn: usize) -> World {
    killed_in_turn_of(TWO, turn)
}

/// The same of an agent with this script.
pub(crate) fn killed_in_turn_of(script: &str, turn: usize) -> World {
    let when = When { step: Some(turn), ..When::default() };
    let rule = Rule { when, fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script { keep_bodies: true, ..Script::default() }.with_fault(rule));
    let plan = Plan::new("land = \"auto\"").agent_arguments(&["--retries", "0", "--resume", "{resume}"]);
    world.plan(&plan.task("work", script, "writes = [\"parts/**\"]\nretries = 0"));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("that turn", |log| log.iter().any(|entry| entry.step == Some(turn)));
    assert!(run.kill_9().was_killed());
    for (_, pid) in world.living_shims() {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    world
}

/// What is in the one folder of `folder`.
pub(crate) fn only(folder: PathBuf) -> PathBuf {
    let found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// The working tree of a task of the only run.
fn tree(world: &World, task: &str) -> PathBuf {
    only(world.homes()[0].join("workspaces")).join(task)
}

/// What outlast remembers about the workspace of a task of the only run.
fn record(world: &World, task: &str) -> PathBuf {
    let run = tree(world, task).parent().unwrap().file_name().unwrap().to_owned();
    world.homes()[0].join("store.git/outlast/workspaces").join(run).join(format!("{task}.d/workspace.json"))
}

fn goes_on_from_what_was_kept(damage: impl Fn(PathBuf)) {
    let world = killed_in_the_second_turn();
    let tree = tree(&world, "work");
    fs::write(tree.join("parts/later.txt"), "part later\n").unwrap();
    damage(record(&world, "work"));
    world.run(&["resume"]).ends(0).says("work~damaged-1").says("it is back as it was at its last turn");
    world.all_are("landed");
    // What no checkpoint had is where it was told to be.
    let aside = tree.with_file_name("work~damaged-1");
    assert_eq!(fs::read_to_string(aside.join("parts/later.txt")).unwrap(), "part later\n");
    for part in ["a", "b"] {
        let landed = world.repo.text(&["show", &format!("{}:parts/{part}.txt", world.target())]).unwrap();
        assert_eq!(landed, format!("part {part}"));
    }
    world.nothing_is_left();
    world.run(&["clean", "--yes"]).ends(0).says("freed");
    assert!(!tree.exists() && aside.is_dir());
}

#[test]
fn h15_a_workspace_whose_record_holds_no_byte_is_set_aside_and_its_task_goes_on() {
    goes_on_from_what_was_kept(|record| fs::write(record, "").unwrap());
}

#[test]
fn h15_a_workspace_whose_record_is_gone_is_set_aside_and_its_task_goes_on() {
    goes_on_from_what_was_kept(|record| fs::remove_file(record).unwrap());
}

#[test]
fn h15_a_task_with_a_damaged_workspace_can_be_given_up() {
    let world = killed_in_the_second_turn();
    fs::write(record(&world, "work"), "").unwrap();
    world.run(&["pause"]).ends(0);
    world.run(&["discard", "work"]).ends(0).says("work~damaged-1");
    world.all_are("discarded");
    let aside = tree(&world, "work~damaged-1");
    assert_eq!(fs::read_to_string(aside.join("parts/a.txt")).unwrap(), "part a\n");
    world.nothing_is_left();
}

#[test]
fn h15_one_damaged_workspace_keeps_clean_from_none_of_the_others() {
    let world = World::new();
    let part = |id: &str| format!("write parts/{id}.txt \"part {id}\\n\"");
    let plan = Plan::new("land = \"auto\"");
    let plan = plan.task("a", &part("a"), "writes = [\"parts/a.txt\"]\nretries = 0");
    world.plan(&plan.task("b", &part("b"), "writes = [\"parts/b.txt\"]\nretries = 0"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    fs::write(record(&world, "a"), "").unwrap();
    world.run(&["clean", "--yes"]).ends(0).says("stays: its record").says("workspace.json` is damaged");
    assert!(tree(&world, "a").is_dir() && !tree(&world, "b").exists());
}

/// The copy of the plan that the only run goes by.
fn copy_of_the_plan(world: &World) -> PathBuf {
    only(world.homes()[0].join("plans"))
}

#[test]
fn a_damaged_copy_of_a_plan_is_made_anew_from_the_checkout_or_told_of_before_an_engine_begins() {
    for damage in [|copy: &PathBuf| fs::write(copy, "").unwrap(), |copy: &PathBuf| fs::remove_file(copy).unwrap()] {
        let world = killed_in_the_second_turn();
        let copy = copy_of_the_plan(&world);
        let whole = fs::read(&copy).unwrap();
        damage(&copy);
        // The plan in the checkout is another one by now.
        let plan = fs::read_to_string(world.repo.dir().join("outlast.toml")).unwrap();
        world.repo.write("outlast.toml", plan.replace("Do work.", "Do more work.")).unwrap();
        let told = world.run(&["resume", "--json"]).ends(12).json();
        assert_eq!(told["error"]["code"], "plan/damaged", "{told:#}");
        world.run(&["retry", "--all"]).says("there is nothing to try again");
        let task = world.task("work");
        assert_eq!((task["attempts"].as_u64(), &task["cause"]), (Some(1), &"plan_damaged".into()), "{task:#}");
        let copied = text(&task["fix"][0]);
        assert!(copied.contains(&copy.display().to_string()), "{copied}");
        // Put back, or the same as ever in the checkout.
        world.repo.write("outlast.toml", plan).unwrap();
        world.run(&["resume"]).ends(0).says("is made anew");
        assert_eq!(fs::read(&copy).unwrap(), whole);
        world.all_are("landed");
        world.nothing_is_left();
    }
}

#[test]
fn tasks_of_a_plan_that_is_damaged_wait_in_an_engine_that_works_on_them_and_use_no_try() {
    let world = killed_in_the_second_turn();
    let (first, copy) = (text(&world.status()["run"]), copy_of_the_plan(&world));
    let whole = fs::read(&copy).unwrap();
    fs::write(&copy, "{").unwrap();
    // An engine goes on with every run of its repository.
    let plan = Plan::new("land = \"auto\"").agent_arguments(&["--retries", "0", "--resume", "{resume}"]);
    world.plan(&plan.task("other", "write parts/other.txt \"part other\\n\"", "writes = [\"parts/other.txt\"]"));
    let gate = world.repo.dir().join(".git/refs/heads/gate.lock");
    fs::write(&gate, "").unwrap();
    let text_of = fs::read_to_string(world.repo.dir().join("outlast.toml")).unwrap();
    world.repo.write("outlast.toml", text_of.replace("land = \"auto\"", "land = \"auto\"\ntarget = \"gate\"")).unwrap();
    let mut run = world.start(&["run", "--yes"]);
    run.until(&[&format!("run {first} of this repository goes on here too"), &format!("outlast pause {first}")]);
    run.until(&["work: the copy of its plan", "it is tried again"]);
    let status = world.run(&["status", &first, "--json"]).ends(0).json();
    let task = &status["tasks"][0];
    assert_eq!((&task["cause"], task["attempts"].as_u64()), (&"tried_again".into(), Some(1)), "{task:#}");
    fs::remove_file(&gate).unwrap();
    run.end().ends(0);
    fs::write(&copy, whole).unwrap();
    world.run(&["resume", &first]).ends(0);
    let status = world.run(&["status", &first, "--json"]).ends(0).json();
    assert_eq!(status["tasks"][0]["state"], "landed", "{status:#}");
    world.nothing_is_left();
}

#[test]
fn h15_what_is_set_aside_is_told_of_by_doctor_and_goes_with_clean_once_all_of_it_is_kept() {
    let world = killed_in_the_second_turn();
    let tree = tree(&world, "work");
    fs::write(tree.join("parts/later.txt"), "part later\n").unwrap();
    fs::write(record(&world, "work"), "").unwrap();
    let id = text(&world.status()["run"]);
    let doctor = |name: &str| {
        let told = world.run(&["doctor", "--offline", "--json"]).json();
        let found = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
        found.map(|check| (text(&check["detail"]), text(&check["fix"])))
    };
    let (detail, fix) = doctor("workspaces").expect("a record is damaged");
    assert!(
        detail.contains(&format!("{id}/work")) && fix.starts_with(&format!("outlast resume {id}")),
        "{detail}: {fix}"
    );
    assert_eq!(doctor("set aside"), None);
    world.run(&["resume"]).ends(0).says("work~damaged-1");
    assert_eq!(doctor("workspaces"), None);
    let (detail, fix) = doctor("set aside").expect("a workspace is set aside");
    let aside = tree.with_file_name("work~damaged-1");
    assert!(detail.contains(&aside.display().to_string()) && fix.starts_with("outlast clean"), "{detail}: {fix}");
    // What was in no checkpoint is kept nowhere else.
    let told = world.run(&["clean", "--yes"]).ends(0).says("`parts/later.txt` is kept nowhere else");
    let by_hand = format!("rm -rf '{}'", aside.display());
    told.says(&by_hand);
    assert!(aside.is_dir());
    // A list removes nothing.
    fs::remove_file(aside.join("parts/later.txt")).unwrap();
    world.run(&["clean"]).ends(0).says("work~damaged-1  can go");
    assert!(aside.is_dir());
    world.run(&["clean", "--yes"]).ends(0).says("work~damaged-1  removed");
    assert!(!aside.exists());
    assert_eq!(doctor("set aside"), None);
    world.run(&["clean", "--yes"]).ends(0);
}

#[test]
fn a_damaged_copy_of_a_plan_is_told_of_by_doctor() {
    let world = killed_in_the_second_turn();
    let (id, copy) = (text(&world.status()["run"]), copy_of_the_plan(&world));
    fs::write(&copy, "").unwrap();
    let told = world.run(&["doctor", "--offline", "--json"]).ends(12).json();
    let check = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == format!("plan of {id}"));
    let check = check.unwrap_or_else(|| panic!("{told:#}"));
    assert!(text(&check["detail"]).contains(&copy.display().to_string()), "{check:#}");
    assert!(text(&check["fix"]).starts_with(&format!("outlast resume {id}")), "{check:#}");
}
