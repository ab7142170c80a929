//! A workspace whose record is damaged: set aside whole, made anew, and in nobody's way.

use std::fs;
use std::path::PathBuf;

use outlast_git::{Error, Workspace};

use crate::fixture::{World, read, write};

fn record(world: &World, task: &str) -> PathBuf {
    world.dir.path().join(format!("state/store.git/outlast/workspaces/{}/{task}.d/workspace.json", world.run))
}

/// Makes a workspace with a checkpoint and later work, and damages its record.
fn damaged(world: &World, damage: impl Fn(PathBuf)) -> outlast_git::Spec {
    let workspace = world.workspace("t");
    write(workspace.path(), "kept.txt", "kept");
    let kept = world.checkpoint(&workspace, "t");
    write(workspace.path(), "later.txt", "later");
    damage(record(world, "t"));
    let mut spec = world.spec("t");
    spec.restore = Some(kept.commit);
    spec
}

#[test]
fn h15_a_workspace_with_a_damaged_record_is_set_aside_and_is_back_as_it_was_kept() {
    let damages: [fn(PathBuf); 3] = [
        |record| fs::write(record, "").unwrap(),
        |record| fs::write(record, "{\"run\": 1").unwrap(),
        |record| fs::remove_file(record).unwrap(),
    ];
    for damage in damages {
        let world = World::new();
        let spec = damaged(&world, damage);
        let found = Workspace::open(&world.store, &world.run, &"t".into()).unwrap_err();
        assert!(matches!(found, Error::DamagedWorkspace { .. } | Error::NoWorkspace { .. }), "{found}");
        for number in 1..=2 {
            let again = Workspace::create(&world.user, &world.store, &spec).unwrap();
            assert_eq!(read(again.path(), "kept.txt"), "kept");
            assert!(!again.path().join("later.txt").exists());
            let aside = again.aside().unwrap();
            let tree = aside.tree.as_ref().unwrap();
            assert!(tree.display().to_string().ends_with(&format!("/t~damaged-{number}")), "{aside:?}");
            assert_eq!(read(tree, "later.txt"), "later");
            assert!(aside.record.is_dir());
            // What is set aside is no workspace any more, and what stands in its place is whole.
            let listed = world.store.workspaces().unwrap();
            assert_eq!(listed.iter().map(|one| (&one.path, one.is_damaged)).collect::<Vec<_>>(), [(&spec.path, false)]);
            assert_eq!(Workspace::create(&world.user, &world.store, &spec).unwrap().aside(), None);
            write(again.path(), "later.txt", "later");
            damage(record(&world, "t"));
        }
    }
}

#[test]
fn h15_one_damaged_record_hides_no_other_workspace() {
    let world = World::new();
    damaged(&world, |record| fs::write(record, "").unwrap());
    let other = world.workspace("u");
    let listed = world.store.workspaces().unwrap();
    let told: Vec<_> = listed.iter().map(|one| (one.task.as_str(), one.is_damaged)).collect();
    assert_eq!(told, [("t", true), ("u", false)]);
    assert_eq!(listed[1].path, other.path());
}

#[test]
fn what_is_whole_or_not_ours_is_not_set_aside() {
    let world = World::new();
    let aside = |task: &str| {
        let spec = world.spec(task);
        Workspace::set_aside(&world.store, &world.run, &spec.task, &spec.path, None).unwrap()
    };
    world.workspace("t");
    write(&world.spec("stranger").path, "precious", "theirs");
    assert_eq!((aside("t"), aside("stranger"), aside("none")), (None, None, None));
    assert_eq!(read(&world.spec("stranger").path, "precious"), "theirs");
}

#[test]
fn h15_a_marker_of_a_creation_that_holds_garbage_has_nothing_removed_that_it_names() {
    let world = World::new();
    let precious = world.dir.path().join("precious");
    write(&precious, "file", "theirs");
    let mark = |record: PathBuf| {
        fs::write(record.with_file_name("creating"), precious.display().to_string()).unwrap();
        fs::remove_file(record).unwrap();
    };
    let spec = damaged(&world, mark);
    let again = Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert_eq!(read(world.dir.path(), "precious/file"), "theirs");
    assert_eq!(read(again.path(), "kept.txt"), "kept");
    assert_eq!(read(again.aside().unwrap().tree.as_ref().unwrap(), "later.txt"), "later", "what stood there is kept");
    // The same where nothing stands there.
    fs::remove_dir_all(again.path()).unwrap();
    mark(record(&world, "t"));
    let again = Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert_eq!((read(world.dir.path(), "precious/file"), again.aside()), ("theirs".to_owned(), None));
}
