//! A workspace whose own repository a crash has damaged: git works there again, and nothing of the agent's is lost.

use std::fs;
use std::path::Path;

use outlast_git::{Checkpoint, Workspace};

use crate::fixture::{World, git, read, try_git, write};

const GARBAGE: &[u8] = b"\0\x01garbage\xff";

fn mend(world: &World, workspace: &Workspace, kept: Option<&Checkpoint>) -> Vec<String> {
    let mended = workspace.mend(&world.store, &world.user, kept.map(|kept| &kept.commit)).unwrap();
    // Once is enough.
    assert_eq!(workspace.mend(&world.store, &world.user, kept.map(|kept| &kept.commit)).unwrap(), Vec::<String>::new());
    mended
}

fn damage(workspace: &Workspace, name: &str, bytes: &[u8]) {
    fs::write(workspace.path().join(".git").join(name), bytes).unwrap();
}

/// A workspace with a commit of the agent's, something staged and something that is neither.
fn worked_in(world: &World) -> Workspace {
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "one.txt", "one\n");
    git(path, &["add", "one.txt"]);
    git(path, &["commit", "-qm", "mine"]);
    write(path, "two.txt", "two\n");
    git(path, &["add", "two.txt"]);
    write(path, "three.txt", "three\n");
    workspace
}

fn status(path: &Path) -> String {
    git(path, &["status", "--porcelain=v1", "--branch"])
}

#[test]
fn a_sound_repository_is_left_as_it_is() {
    let world = World::new();
    let workspace = worked_in(&world);
    git(workspace.path(), &["config", "index.skipHash", "true"]);
    git(workspace.path(), &["add", "three.txt"]);
    git(workspace.path(), &["pack-refs", "--all"]);
    assert_eq!(mend(&world, &workspace, None), Vec::<String>::new());
}

#[test]
fn an_index_a_head_and_a_configuration_without_sense_are_written_anew_as_they_were_kept() {
    for bytes in [&b""[..], GARBAGE] {
        for name in ["index", "HEAD", "config", "packed-refs"] {
            let world = World::new();
            let workspace = worked_in(&world);
            let path = workspace.path();
            let kept = world.checkpoint(&workspace, "t");
            let (before, head) = (status(path), git(path, &["rev-parse", "HEAD"]));
            let shown = git(path, &["for-each-ref"]);
            damage(&workspace, name, bytes);
            if name != "packed-refs" && (name != "config" || !bytes.is_empty()) {
                assert!(!try_git(path, &["status"]), "{name}");
            }
            assert_eq!(mend(&world, &workspace, Some(&kept)), [name]);
            assert_eq!((status(path), git(path, &["rev-parse", "HEAD"])), (before, head), "{name}");
            assert_eq!(git(path, &["for-each-ref"]), shown);
            assert_eq!(git(path, &["config", "user.name"]), "Ada Lovelace");
            git(path, &["commit", "-qm", "two"]);
            let aside = path.join(format!(".git/{name}.damaged"));
            assert_eq!(fs::read(aside).ok().as_deref(), (!bytes.is_empty()).then_some(bytes), "it is kept");
            let again = world.checkpoint(&workspace, "t");
            assert_eq!(again.tree, kept.tree);
        }
    }
}

#[test]
fn all_of_it_at_once_and_without_a_checkpoint_costs_no_commit_and_no_file() {
    let world = World::new();
    let workspace = worked_in(&world);
    let path = workspace.path();
    let head = git(path, &["rev-parse", "HEAD"]);
    let branch = format!("refs/heads/{}", workspace.branch());
    for name in ["index", "HEAD", "config", "objects/info/alternates", branch.as_str()] {
        damage(&workspace, name, b"");
    }
    let mended = mend(&world, &workspace, None);
    assert_eq!(mended.len(), 5, "{mended:?}");
    assert_eq!(git(path, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(path, &["symbolic-ref", "HEAD"]), branch);
    let told = status(path);
    assert!(told.contains("?? two.txt") && told.contains("?? three.txt") && !told.contains("one.txt"), "{told}");
    assert_eq!(read(path, "two.txt"), "two\n");
    git(path, &["add", "--all"]);
    git(path, &["commit", "-qm", "all"]);
    git(path, &["fsck", "--strict"]);
}

#[test]
fn head_is_where_its_log_says_that_it_was_moved_to_since() {
    let world = World::new();
    let workspace = worked_in(&world);
    let path = workspace.path();
    let kept = world.checkpoint(&workspace, "t");
    git(path, &["checkout", "-q", "-b", "other"]);
    damage(&workspace, "HEAD", b"");
    assert_eq!(mend(&world, &workspace, Some(&kept)), ["HEAD"]);
    assert_eq!(git(path, &["symbolic-ref", "--short", "HEAD"]), "other");
    git(path, &["checkout", "-q", "--detach", "HEAD"]);
    git(path, &["commit", "-qm", "detached"]);
    let head = git(path, &["rev-parse", "HEAD"]);
    damage(&workspace, "HEAD", b"");
    assert_eq!(mend(&world, &workspace, Some(&kept)), ["HEAD"]);
    assert_eq!(git(path, &["rev-parse", "HEAD"]), head);
    assert!(!try_git(path, &["symbolic-ref", "-q", "HEAD"]));
}

#[test]
fn a_branch_whose_newest_commit_is_lost_stands_at_the_one_before_and_its_files_stay() {
    let world = World::new();
    let workspace = worked_in(&world);
    let path = workspace.path();
    let first = git(path, &["rev-parse", "HEAD"]);
    git(path, &["commit", "-qm", "two"]);
    let lost = git(path, &["rev-parse", "HEAD"]);
    let object = path.join(".git/objects").join(&lost[..2]).join(&lost[2..]);
    fs::remove_file(&object).unwrap();
    fs::write(&object, "").unwrap();
    assert!(!try_git(path, &["status"]));
    let mended = mend(&world, &workspace, None);
    assert_eq!(mended, ["objects".to_owned(), format!("refs/heads/{}", workspace.branch())]);
    assert_eq!(git(path, &["rev-parse", "HEAD"]), first);
    assert!(status(path).contains("A  two.txt"), "{}", status(path));
    git(path, &["commit", "-qm", "two again"]);
    git(path, &["fsck", "--strict", "--no-reflogs"]);
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_no_deletion_after_its_index_was_damaged() {
    for knows in [true, false] {
        let world = World::new();
        let workspace = world.workspace("t");
        let path = workspace.path();
        git(path, &["sparse-checkout", "set", "src"]);
        let kept = world.checkpoint(&workspace, "t");
        for name in ["index", "config"] {
            damage(&workspace, name, b"");
        }
        assert_eq!(mend(&world, &workspace, knows.then_some(&kept)), ["config", "index"]);
        assert_eq!(status(path).lines().count(), 1, "{}", status(path));
        let again = world.checkpoint(&workspace, "t");
        assert_eq!(again.tree, kept.tree);
        git(path, &["sparse-checkout", "disable"]);
        assert_eq!(read(path, "docs/guide.md"), "guide\n");
    }
}

#[test]
fn a_repository_that_is_a_link_is_none_of_ours() {
    let world = World::new();
    let workspace = world.workspace("t");
    let elsewhere = world.dir.path().join("elsewhere");
    fs::rename(workspace.path().join(".git"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, workspace.path().join(".git")).unwrap();
    fs::write(elsewhere.join("HEAD"), "").unwrap();
    assert_eq!(mend(&world, &workspace, None), Vec::<String>::new());
    assert_eq!(read(&elsewhere, "HEAD"), "");
}
