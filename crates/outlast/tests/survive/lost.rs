//! Case H15 on the real binary: a crash of the machine leaves files of our store without a byte, and work goes on from what
//! workspaces, the user's repository and the journal still hold of them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::damage::{killed_in_turn, only};
use crate::world::{Plan, World, text};

fn store(world: &World) -> PathBuf {
    world.homes()[0].join("store.git")
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn empty(file: &Path) {
    fs::remove_file(file).unwrap();
    fs::write(file, "").unwrap();
}

/// What `doctor` says of the store, where it says anything.
fn doctor(world: &World) -> Option<String> {
    let told = world.run(&["doctor", "--offline", "--json"]).json();
    let found = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == "store")?.clone();
    Some(format!("{} · {}", text(&found["detail"]), text(&found["fix"])))
}

#[test]
fn h15_a_task_goes_on_from_its_workspace_with_every_object_of_the_store_lost() {
    let world = killed_in_turn(3);
    let objects: Vec<PathBuf> = files(&store(&world).join("objects"));
    let objects: Vec<&PathBuf> = objects.iter().filter(|file| !file.ends_with("info/alternates")).collect();
    assert!(objects.len() > 2, "{objects:?}");
    objects.iter().for_each(|file| empty(file));
    assert!(doctor(&world).expect("files hold no byte").contains("outlast resume"));
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("work")["attempts"], 2, "no try is used up by it");
    for part in ["a", "b"] {
        let landed = world.repo.text(&["show", &format!("{}:parts/{part}.txt", world.target())]).unwrap();
        assert_eq!(landed, format!("part {part}"));
    }
    // What was on its way when the engine was killed never got its name.
    let is_kept = |file: &&PathBuf| !file.file_name().unwrap().to_string_lossy().starts_with("tmp_obj_");
    let left: Vec<PathBuf> = files(&store(&world).join("objects"));
    assert!(left.iter().filter(is_kept).all(|file| fs::metadata(file).unwrap().len() > 0), "{left:?}");
    world.run(&["clean"]).ends(0);
    assert_eq!(doctor(&world), None, "nobody needs what is lost any more");
    world.nothing_is_left();
}

#[test]
fn h15_verified_work_lands_with_every_object_of_the_store_lost_and_is_not_paid_for_again() {
    let world = World::new();
    world.plan(&Plan::new("").part("one").task(
        "two",
        "write two.txt \"two\\n\"",
        "writes = [\"two.txt\"]\nneeds = [\"one\"]",
    ));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("done");
    let objects: Vec<PathBuf> = files(&store(&world).join("objects"));
    objects.iter().filter(|file| !file.ends_with("info/alternates")).for_each(|file| empty(file));
    world.run(&["land", "one"]).ends(0);
    world.run(&["land", "two"]).ends(0);
    for (file, text) in [("parts/one.txt", "part one"), ("two.txt", "two")] {
        assert_eq!(world.repo.text(&["show", &format!("{}:{file}", world.target())]).unwrap(), text);
    }
    assert_eq!([world.task("one")["attempts"].as_u64(), world.task("two")["attempts"].as_u64()], [Some(1); 2]);
    assert!(doctor(&world).is_some(), "its checkpoints are lost");
    world.run(&["clean"]).ends(0);
    assert_eq!(doctor(&world), None, "nobody needs what led to work that has landed");
    world.nothing_is_left();
}

#[test]
fn h15_work_that_would_land_after_a_result_that_is_lost_is_not_waited_for() {
    let world = World::new();
    world.plan(&Plan::new("concurrency = 1").part("one").part("two"));
    world.run(&["run", "--yes"]).ends(0);
    // What it was made from is nowhere any more.
    let trees = only(world.homes()[0].join("workspaces"));
    fs::write(trees.join("one/parts/one.txt"), "something else\n").unwrap();
    let objects: Vec<PathBuf> = files(&store(&world).join("objects"));
    objects.iter().filter(|file| !file.ends_with("info/alternates")).for_each(|file| empty(file));
    world.run(&["land", "--all"]).ends(12).says("outlast run --only TASK --again");
    world.all_are("done");
}

#[test]
fn h15_refs_that_hold_no_byte_are_written_anew_by_the_journal() {
    let world = killed_in_turn(3);
    world.run(&["resume"]).ends(0);
    let mut refs = files(&store(&world).join("refs/outlast"));
    // What was on its way when the engine was killed never got its name.
    refs.retain(|file| !file.file_name().unwrap().to_string_lossy().starts_with(".outlast-"));
    let held: Vec<String> = refs.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    assert!(refs.iter().any(|file| file.ends_with("result")) && refs.len() > 1, "{refs:?}");
    refs.iter().for_each(|file| empty(file));
    let unknown = store(&world).join("refs/outlast/gone/task/1");
    fs::create_dir_all(unknown.parent().unwrap()).unwrap();
    fs::write(&unknown, "").unwrap();
    let told = doctor(&world).expect("refs hold no byte");
    assert!(told.contains("refs/outlast") && told.contains("outlast clean"), "{told}");
    world.run(&["clean"]).ends(0);
    for (file, held) in refs.iter().zip(held) {
        assert_eq!(fs::read_to_string(file).unwrap(), held, "{}", file.display());
    }
    assert!(!unknown.exists());
    assert_eq!(doctor(&world), None);
}

/// What is done to a file, and its name.
type Damage = (&'static str, fn(&Path));

#[test]
fn h15_a_store_that_does_not_say_what_it_borrows_is_told_of_by_doctor_and_goes_on() {
    let damages: [Damage; 3] = [
        ("empty", |file| empty(file)),
        ("gone", |file| fs::remove_file(file).unwrap()),
        ("garbage", |file| fs::write(file, b"\x01\xff").unwrap()),
    ];
    for (how, damage) in damages {
        let world = killed_in_turn(3);
        let alternates = store(&world).join("objects/info/alternates");
        damage(&alternates);
        let told = doctor(&world).unwrap_or_else(|| panic!("{how}: doctor finds nothing"));
        assert!(told.contains("objects/info/alternates") && told.contains("outlast clean"), "{how}: {told}");
        world.run(&["resume"]).ends(0);
        world.all_are("landed");
        assert_eq!(doctor(&world), None, "{how}");
        world.nothing_is_left();
    }
}
