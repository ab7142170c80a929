//! A `.git` that is a file or a link: submodules, linked worktrees, `--separate-git-dir`. What such a repository holds is
//! kept with the rest, or it is said that it is not.

use std::path::Path;

use outlast_git::{Checkpoint, Note, Pinned, Spec, Workspace};

use crate::fixture::{World, git, new_repo, read, write};
use crate::restores::lose_and_restore;

fn is_pinned(world: &World, workspace: &Workspace) -> bool {
    workspace.pinned(&world.store, &world.user).unwrap() == Pinned::Yes
}

#[test]
fn a_linked_worktree_comes_back_with_its_commits_and_what_is_staged_in_it() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["worktree", "add", "-q", "--detach", "experiments/one"]);
    git(path, &["worktree", "add", "-q", "-b", "two", "two"]);
    let one = path.join("experiments/one");
    write(&one, "src/a.rs", "fn experiment() {}\n");
    git(&one, &["commit", "-qam", "known to this worktree's HEAD alone"]);
    write(&one, "src/b.rs", "known to its index alone\n");
    git(&one, &["add", "src/b.rs"]);
    write(&one, "src/b.rs", "fn b() {}\n");
    write(&path.join("two"), "new", "untracked\n");
    let before = (state_of(&one), state_of(&path.join("two")));
    assert!(!is_pinned(&world, &workspace));
    let checkpoint = lose_and_restore(&world, &workspace);
    let repositories = ["experiments/one", "two"].map(|path| Note::NestedRepository(path.into()));
    assert_eq!(checkpoint.notes, repositories);
    assert_eq!((state_of(&one), state_of(&path.join("two"))), before);
    assert_eq!(git(&one, &["show", ":src/b.rs"]), "known to its index alone");
    assert!(is_pinned(&world, &workspace));
    git(&one, &["commit", "-qm", "goes on"]);
    assert!(!is_pinned(&world, &workspace));
}

fn lose(world: &World, workspace: &Workspace) {
    std::fs::remove_dir_all(workspace.path()).unwrap();
    for repo in [world.store.path(), &world.repo] {
        git(repo, &["gc", "-q", "--prune=now"]);
    }
    world.fsck_store();
}

fn restore(world: &World, checkpoint: &Checkpoint) -> Workspace {
    let spec = Spec { restore: Some(checkpoint.commit.clone()), ..world.spec("t") };
    Workspace::create(&world.user, &world.store, &spec).unwrap()
}

/// What an agent sees of a repository whose `.git` is a file.
fn state_of(path: &Path) -> Vec<String> {
    let say = |args: &[&str]| git(path, args);
    vec![
        say(&["rev-parse", "HEAD"]),
        say(&["rev-parse", "--abbrev-ref", "HEAD"]),
        say(&["ls-files", "-s"]),
        // Without a refresh of its index, which would be news.
        say(&["--no-optional-locks", "status", "--porcelain", "-uall"]),
        say(&["worktree", "list", "--porcelain"]),
        say(&["for-each-ref"]),
    ]
}

#[test]
fn what_a_merge_left_open_in_a_linked_worktree_comes_back() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "README.md", "ours\n");
    git(path, &["commit", "-qam", "ours"]);
    git(path, &["worktree", "add", "-q", "--detach", "wt", "HEAD~1"]);
    let wt = path.join("wt");
    write(&wt, "README.md", "theirs\n");
    git(&wt, &["commit", "-qam", "theirs"]);
    assert!(!crate::fixture::try_git(&wt, &["merge", "outlast/t"]));
    let before = state_of(&wt);
    lose_and_restore(&world, &workspace);
    assert_eq!(state_of(&wt), before);
    write(&wt, "README.md", "both\n");
    git(&wt, &["commit", "-qam", "merged"]);
    assert_eq!(git(&wt, &["rev-list", "--count", "HEAD"]), "4");
}

#[test]
fn a_submodule_that_the_agent_added_comes_back() {
    let world = World::new();
    let library = world.dir.path().join("library");
    new_repo(&library);
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["submodule", "--quiet", "add", library.to_str().unwrap(), "vendor/lib"]);
    let sub = path.join("vendor/lib");
    write(&sub, "src/a.rs", "fn patched() {}\n");
    git(&sub, &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "in the submodule"]);
    write(&sub, "src/b.rs", "not committed\n");
    let before = (state_of(&sub), state_of(path));
    assert!(!is_pinned(&world, &workspace));
    let kept = world.checkpoint(&workspace, "t");
    lose(&world, &workspace);
    let back = restore(&world, &kept);
    assert_eq!((state_of(&sub), state_of(path)), before);
    let again = world.checkpoint(&back, "t");
    assert_eq!((again.tree, again.agent), (kept.tree, kept.agent));
    git(&sub, &["fsck", "--strict"]);
    assert_eq!(git(&sub, &["log", "-1", "--format=%s"]), "in the submodule");
    assert!(is_pinned(&world, &workspace));
}

#[test]
fn a_repository_that_lies_elsewhere_in_the_workspace_comes_back_and_one_outside_is_told() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    let outside = world.dir.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    for name in ["ignored", "shown", "linked", "gone", "away"] {
        new_repo(&path.join(name));
    }
    let part = |from: &str, to: &Path| {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(path.join(from).join(".git"), to).unwrap();
    };
    part("ignored", &path.join("target/meta/ignored.git"));
    write(path, "ignored/.git", "gitdir: ../target/meta/ignored.git\n");
    part("shown", &path.join("meta/shown.git"));
    write(path, "shown/.git", format!("gitdir: {}/meta/shown.git", path.display()));
    part("linked", &path.join("meta/linked"));
    std::os::unix::fs::symlink("../meta/linked", path.join("linked/.git")).unwrap();
    std::fs::remove_dir_all(path.join("gone/.git")).unwrap();
    write(path, "gone/.git", "gitdir: nowhere\n");
    part("away", &outside.join("away.git"));
    write(path, "away/.git", format!("gitdir: {}/away.git\n", outside.display()));
    git(path, &["worktree", "add", "-q", "-b", "far", outside.join("far").to_str().unwrap()]);
    let heads = || ["ignored", "shown", "linked"].map(|name| git(&path.join(name), &["status", "--porcelain", "-b"]));
    let before = heads();
    let kept = world.checkpoint(&workspace, "t");
    let told: Vec<_> = kept.notes.iter().filter(|n| matches!(n, Note::RepositoryElsewhere { .. })).collect();
    let elsewhere = |path: &str, to: &str| Note::RepositoryElsewhere {
        path: path.into(),
        to: outside.join(to).to_str().unwrap().into(),
    };
    assert_eq!(told, [&elsewhere(".git/worktrees/far", "far/.git"), &elsewhere("away/.git", "away.git")]);
    assert!(!kept.notes.iter().any(|n| matches!(n, Note::NotKept { .. })), "{:?}", kept.notes);

    lose(&world, &workspace);
    restore(&world, &kept);
    assert_eq!(heads(), before);
    assert_eq!(read(path, "gone/.git"), "gitdir: nowhere\n");
    assert_eq!(read(path, "away/README.md"), "hello\n");
}

#[test]
fn an_own_repository_that_is_elsewhere_is_told() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    let outside = world.dir.path().join("own.git");
    git(path, &["init", "-q", "--separate-git-dir", outside.to_str().unwrap()]);
    write(path, "src/a.rs", "fn changed() {}\n");
    git(path, &["commit", "-qam", "there"]);
    let kept = world.checkpoint(&workspace, "t");
    let told = Note::RepositoryElsewhere { path: ".git".into(), to: outside.to_str().unwrap().into() };
    assert_eq!((kept.changed.len(), kept.notes), (1, vec![told]), "its files are kept");
}
