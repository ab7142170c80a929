//! The agent's index is read once for as long as it stays the same, and a checkpoint is the same as if it were read each time.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use outlast_git::{Checkpoint, Workspace};

use crate::fixture::{World, git, write};

/// Where it is remembered what the index was.
fn remembered(world: &World) -> PathBuf {
    world.store.path().join("outlast/workspaces/run-1/t.d/staged")
}

/// Gives the index a time so long past that it cannot have been written to again unseen.
fn let_rest(path: &Path) {
    let index = std::fs::File::options().write(true).open(path.join(".git/index")).unwrap();
    index.set_modified(SystemTime::now() - Duration::from_secs(5)).unwrap();
}

/// A checkpoint, which is the same with what is remembered and without.
fn checkpoint(world: &World, workspace: &Workspace) -> Checkpoint {
    let with = world.checkpoint(workspace, "t");
    if remembered(world).exists() {
        std::fs::remove_file(remembered(world)).unwrap();
    }
    let without = world.checkpoint(workspace, "t");
    assert_eq!(with, without);
    // Nor does it matter who knows it.
    assert_eq!(world.checkpoint(workspace, "t"), without);
    without
}

#[test]
fn an_index_that_stays_the_same_is_read_once_and_the_checkpoint_is_as_if_it_were_read_each_time() {
    let world = World::with(|repo| {
        write(repo, ".gitignore", "*.log\n");
        write(repo, "build.log", "tracked although it is ignored\n");
        git(repo, &["add", "-A", "-f"]);
        git(repo, &["commit", "-qm", "logs"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    let acts: [(&str, bool, &dyn Fn()); 11] = [
        ("nothing", true, &|| {}),
        ("an edit", true, &|| write(path, "src/a.rs", "edited\n")),
        ("a file that git tracks although it is ignored", true, &|| write(path, "build.log", "edited\n")),
        ("a deletion", true, &|| std::fs::remove_file(path.join("build.log")).unwrap()),
        ("the same file again", true, &|| write(path, "build.log", "anew\n")),
        ("what is staged, and ignored", true, &|| {
            write(path, "kept.log", "by force\n");
            git(path, &["add", "-f", "kept.log"]);
        }),
        ("what is staged, and gone again", true, &|| std::fs::remove_file(path.join("kept.log")).unwrap()),
        ("a file that is announced", false, &|| {
            write(path, "announced.txt", "soon\n");
            git(path, &["add", "-N", "announced.txt"]);
        }),
        ("a commit", true, &|| {
            git(path, &["add", "-A"]);
            git(path, &["commit", "-qm", "own"]);
        }),
        ("a file that git leaves alone", false, &|| drop(git(path, &["update-index", "--skip-worktree", "README.md"]))),
        ("nothing left alone", true, &|| drop(git(path, &["update-index", "--no-skip-worktree", "README.md"]))),
    ];
    for (what, is_remembered, act) in acts {
        // What was known before the act has to be of no use after it, where the index changed.
        act();
        let_rest(path);
        let checkpoint = checkpoint(&world, &workspace);
        assert_eq!(remembered(&world).exists(), is_remembered, "{what}");
        let index = git(path, &["write-tree"]);
        assert_eq!(checkpoint.agent.index.as_ref().map(|tree| tree.as_str()), Some(index.as_str()), "{what}");
    }
}

#[test]
fn what_is_remembered_is_what_is_used_and_only_for_the_very_file() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    let_rest(path);
    let first = world.checkpoint(&workspace, "t");
    let text = std::fs::read_to_string(remembered(&world)).unwrap();
    let tree = first.agent.index.clone().unwrap();
    assert!(text.ends_with(&format!(" {tree}\n")), "{text}");

    // A lie shows that the index is not read.
    let docs = git(&world.repo, &["rev-parse", "HEAD:docs"]);
    let lie = text.replace(tree.as_str(), &docs);
    std::fs::write(remembered(&world), &lie).unwrap();
    assert_eq!(world.checkpoint(&workspace, "t").agent.index.unwrap().as_str(), docs);
    // Of a tree that is nowhere, or cut off, or in rubbish, nothing is known.
    for damaged in [&text.replace(tree.as_str(), &"7".repeat(40)), &lie[..lie.len() - 1], "", "\0\0\0\n", "1 2\n"] {
        std::fs::write(remembered(&world), damaged).unwrap();
        assert_eq!(world.checkpoint(&workspace, "t"), first, "{damaged:?}");
    }
    // Another file of the same length and time is not the same one.
    std::fs::write(remembered(&world), &lie).unwrap();
    let index = path.join(".git/index");
    let time = index.metadata().unwrap().modified().unwrap();
    std::fs::copy(&index, path.join(".git/other")).unwrap();
    std::fs::rename(path.join(".git/other"), &index).unwrap();
    std::fs::File::options().write(true).open(&index).unwrap().set_modified(time).unwrap();
    assert_eq!(world.checkpoint(&workspace, "t"), first);
}

#[test]
fn an_index_that_was_written_a_moment_ago_is_not_remembered() {
    let world = World::new();
    let workspace = world.workspace("t");
    let index = std::fs::File::options().write(true).open(workspace.path().join(".git/index")).unwrap();
    index.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    world.checkpoint(&workspace, "t");
    assert!(!remembered(&world).exists());
}
