//! A store that a crash of the machine has taken bytes from: what a workspace has is put back, and nobody's git trips.

use std::fs;
use std::path::PathBuf;

use outlast_core::Oid;
use outlast_git::{Store, emptied};

use crate::fixture::{World, git, write};

fn object(world: &World, id: &str) -> PathBuf {
    world.store.objects_dir().join(&id[..2]).join(&id[2..])
}

/// Leaves objects of the store without a byte.
fn empty(world: &World, ids: &[&str]) {
    for id in ids {
        let file = object(world, id);
        fs::remove_file(&file).unwrap();
        fs::write(file, "").unwrap();
    }
}

fn reopened(world: World) -> World {
    let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
    World { store, ..world }
}

fn id_of(world: &World, what: &str) -> String {
    git(world.store.path(), &["rev-parse", what])
}

#[test]
fn h15_objects_that_are_lost_are_put_back_from_the_workspace_that_has_them() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "deep/new.txt", "new\n");
    let kept = world.checkpoint(&workspace, "t");
    let blob = id_of(&world, &format!("{}:deep/new.txt", kept.commit));
    let folder = id_of(&world, &format!("{}:deep", kept.commit));
    empty(&world, &[&blob, &folder, kept.tree.as_str()]);
    let world = reopened(world);
    world.fsck_store();
    assert_eq!(emptied(world.store.path()).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(world.text(&kept.commit, "deep/new.txt"), "new");
    // Git takes an empty file for what it need not write.
    git(workspace.path(), &["add", "--all"]);
    git(workspace.path(), &["commit", "-qm", "mine"]);
    git(workspace.path(), &["fsck", "--strict"]);
}

#[test]
fn h15_an_agents_commit_that_is_lost_is_put_back_from_its_repository() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "new.txt", "new\n");
    git(workspace.path(), &["add", "--all"]);
    git(workspace.path(), &["commit", "-qm", "mine"]);
    let head = git(workspace.path(), &["rev-parse", "HEAD"]);
    world.checkpoint(&workspace, "t");
    empty(&world, &[&head]);
    let world = reopened(world);
    world.fsck_store();
    assert_eq!(git(world.store.path(), &["cat-file", "-t", &head]), "commit");
}

#[test]
fn h15_a_task_goes_on_from_its_workspace_although_its_last_checkpoint_is_lost() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "one.txt", "one\n");
    write(workspace.path(), "deep/a.txt", "a\n");
    let first = world.checkpoint(&workspace, "t");
    write(workspace.path(), "two.txt", "two\n");
    write(workspace.path(), "deep/b.txt", "b\n");
    let second = workspace.checkpoint(&world.store, &world.user, &world.checkpoint_spec("t", Some(&first))).unwrap();
    // The agent went on, so that nobody has the second tree any more.
    write(workspace.path(), "three.txt", "three\n");
    let on = |world: &World, parent: &Oid| {
        let mut spec = world.checkpoint_spec("t", None);
        spec.parent = Some(parent.clone());
        let next = workspace.checkpoint(&world.store, &world.user, &spec).unwrap();
        world.fsck_objects(&next.commit);
        for (file, text) in [("one.txt", "one"), ("two.txt", "two"), ("three.txt", "three"), ("deep/b.txt", "b")] {
            assert_eq!(world.text(&next.commit, file), text);
        }
        id_of(world, &format!("{}^", next.commit))
    };
    empty(&world, &[second.tree.as_str()]);
    let world = reopened(world);
    assert_eq!(on(&world, &second.commit), first.commit.as_str(), "it stands on what is whole");
    let lost = vec![object(&world, second.tree.as_str())];
    assert_eq!(emptied(world.store.path()).unwrap(), lost, "it is told");
    let world = reopened(world);
    assert_eq!(emptied(world.store.path()).unwrap(), Vec::<PathBuf>::new(), "nothing leads to it any more");
    empty(&world, &[second.commit.as_str()]);
    let world = reopened(world);
    assert_eq!(on(&world, &second.commit), world.base.as_str());
    assert!(!object(&world, second.commit.as_str()).exists());
}

#[test]
fn h15_a_history_that_nobody_has_whole_any_more_keeps_no_tree_from_being_kept() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    let commit = |name: &str| {
        write(path, name, name);
        git(path, &["add", "--all"]);
        git(path, &["commit", "-qm", name]);
        git(path, &["rev-parse", "HEAD"])
    };
    let first = commit("first");
    git(path, &["checkout", "-q", "-b", "other"]);
    commit("apart");
    git(path, &["checkout", "-q", "-"]);
    commit("second");
    let kept = world.checkpoint(&workspace, "t");
    empty(&world, &[&first]);
    fs::remove_file(path.join(".git/objects").join(&first[..2]).join(&first[2..])).unwrap();
    let world = reopened(world);
    write(path, "later.txt", "later\n");
    let spec = world.checkpoint_spec("t", Some(&kept));
    let next = workspace.checkpoint(&world.store, &world.user, &spec).unwrap();
    assert_eq!(world.text(&next.commit, "later.txt"), "later");
}

#[test]
fn h15_what_is_put_back_by_hand_is_lost_no_more() {
    let world = World::new();
    let workspace = world.workspace("t");
    let kept = world.checkpoint(&workspace, "t");
    let file = object(&world, kept.commit.as_str());
    let aside = world.dir.path().join("aside");
    fs::copy(&file, &aside).unwrap();
    empty(&world, &[kept.commit.as_str()]);
    let world = reopened(world);
    assert_eq!(emptied(world.store.path()).unwrap(), std::slice::from_ref(&file));
    fs::rename(&aside, &file).unwrap();
    assert_eq!(emptied(world.store.path()).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn h15_files_of_packs_without_a_byte_are_made_anew_or_told() {
    let world = World::new();
    let workspace = world.workspace("t");
    for number in 0..100 {
        write(workspace.path(), &format!("many/{number}.txt"), format!("{number}\n"));
    }
    let kept = world.checkpoint(&workspace, "t");
    let packs = || fs::read_dir(world.store.objects_dir().join("pack")).unwrap().map(|entry| entry.unwrap().path());
    let with = |ending: &str| packs().find(|file| file.extension().is_some_and(|found| found == ending)).unwrap();
    let (pack, index) = (with("pack"), with("idx"));
    let emptied_file = |file: &PathBuf| {
        fs::remove_file(file).unwrap();
        fs::write(file, "").unwrap();
    };
    emptied_file(&index);
    let store = Store::open_or_init(world.store.path(), &world.user).unwrap();
    assert!(fs::metadata(&index).unwrap().len() > 0, "it is made anew");
    world.fsck_store();
    emptied_file(&pack);
    drop(store);
    let world = reopened(world);
    assert!(!pack.exists() && !index.exists());
    world.fsck_objects(&kept.tree);
    assert_eq!(world.text(&kept.tree, "many/7.txt"), "7");
    assert_eq!(emptied(world.store.path()).unwrap(), [object(&world, kept.commit.as_str())], "nobody else has it");
}

#[test]
fn h15_a_store_that_does_not_know_any_more_where_it_borrows_from_is_told_again() {
    let world = World::new();
    let workspace = world.workspace("t");
    let kept = world.checkpoint(&workspace, "t");
    let alternates = world.store.objects_dir().join("info/alternates");
    let text = fs::read(&alternates).unwrap();
    fs::write(&alternates, "").unwrap();
    assert_eq!(emptied(world.store.path()).unwrap(), std::slice::from_ref(&alternates), "doctor names it");
    let world = reopened(world);
    assert_eq!(fs::read(&alternates).unwrap(), text);
    assert_eq!(emptied(world.store.path()).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(world.text(&kept.commit, "README.md"), "hello");
}
