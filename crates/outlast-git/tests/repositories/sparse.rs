//! What an agent's git is told to leave alone: a file that is not on disk for that reason is not a deleted one.

use std::path::Path;

use outlast_git::{Checkpoint, Note, Pinned, Scope, Spec, Workspace};

use crate::fixture::{World, git, read, write};
use crate::restores::lose_and_restore;

fn changes(checkpoint: &Checkpoint) -> Vec<(String, bool)> {
    checkpoint.changed.iter().map(|change| (change.path_lossy(), change.new.is_some())).collect()
}

/// What would land of a checkpoint.
fn lands(world: &World, checkpoint: &Checkpoint) -> Vec<(String, bool)> {
    let split = world.store.scope_diff(&world.base, &checkpoint.commit, &Scope::everything()).unwrap();
    assert!(split.out_of_scope.is_empty() && split.blocked.is_empty());
    split.in_scope.iter().map(|change| (change.path_lossy(), change.new.is_some())).collect()
}

fn is_pinned(world: &World, workspace: &Workspace) -> bool {
    workspace.pinned(&world.store, &world.user).unwrap() == Pinned::Yes
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_no_deletion() {
    let sets: [&[&str]; 2] = [&["sparse-checkout", "set", "src"], &["sparse-checkout", "set", "--no-cone", "/src/"]];
    for set in sets {
        let world = World::with(|repo| {
            write(repo, "docs/deep/er.md", "deep\n");
            write(repo, "docs/deep.md", "sorts before the folder\n");
            git(repo, &["add", "-A"]);
            git(repo, &["commit", "-qm", "more"]);
        });
        let workspace = world.workspace("t");
        let path = workspace.path();
        git(path, set);
        assert!(!path.join("docs").exists(), "{set:?}");
        let nothing = world.checkpoint(&workspace, "t");
        assert_eq!((changes(&nothing), nothing.notes), (vec![], vec![]), "{set:?}");
        write(path, "src/a.rs", "fn changed() {}\n");
        std::fs::remove_file(path.join("src/b.rs")).unwrap();
        let wanted = [("src/a.rs".to_owned(), true), ("src/b.rs".to_owned(), false)];

        let restored = lose_and_restore(&world, &workspace);
        assert_eq!((&changes(&restored)[..], &lands(&world, &restored)[..]), (&wanted[..], &wanted[..]), "{set:?}");
        assert!(!path.join("docs").exists() && is_pinned(&world, &workspace), "{set:?}");
        // The checkout is whole again once the agent says so, and everything that was left out is as it was.
        git(path, &["sparse-checkout", "disable"]);
        assert_eq!(read(path, "docs/deep/er.md"), "deep\n");
        let whole = world.checkpoint(&workspace, "t");
        assert_eq!((whole.tree, whole.agent.beside), (restored.tree, None), "{set:?}");
        // Now it is a deletion.
        std::fs::remove_dir_all(path.join("docs/deep")).unwrap();
        assert!(changes(&world.checkpoint(&workspace, "t")).contains(&("docs/deep/er.md".to_owned(), false)));
    }
}

#[test]
fn folders_that_a_sparse_index_folds_are_no_deletion_either() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["sparse-checkout", "set", "--sparse-index", "src"]);
    git(path, &["rm", "-q", "--sparse", "run.sh"]);
    assert!(git(path, &["ls-files", "--sparse", "-s"]).contains("040000"), "nothing is folded");
    std::fs::remove_file(path.join("src/b.rs")).unwrap();
    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!(changes(&checkpoint), [("run.sh".to_owned(), false), ("src/b.rs".to_owned(), false)]);
    let say = || (git(path, &["status", "--porcelain"]), git(path, &["ls-files", "-t"]), path.join("docs").exists());
    let before = say();
    std::fs::remove_dir_all(path).unwrap();
    let spec = Spec { restore: Some(checkpoint.commit.clone()), ..world.spec("t") };
    let back = Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert_eq!((say(), world.checkpoint(&back, "t").tree), (before, checkpoint.tree));
}

#[test]
fn what_changes_in_git_alone_outside_a_sparse_checkout_is_kept() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["checkout", "-q", "-b", "theirs"]);
    write(path, "docs/guide.md", "their guide\n");
    write(path, "docs/new.md", "their page\n");
    std::fs::remove_file(path.join("run.sh")).unwrap();
    git(path, &["add", "-A"]);
    git(path, &["commit", "-qm", "theirs"]);
    git(path, &["checkout", "-q", "outlast/t"]);
    git(path, &["sparse-checkout", "set", "--no-cone", "/src/"]);
    git(path, &["merge", "-q", "--no-edit", "theirs"]);
    assert!(!path.join("docs").exists());
    let merged = world.checkpoint(&workspace, "t");
    let wanted = [("docs/guide.md".to_owned(), true), ("docs/new.md".to_owned(), true), ("run.sh".to_owned(), false)];
    assert_eq!(changes(&merged), wanted);
    assert_eq!(world.text(&merged.commit, "docs/new.md"), "their page");
    assert_eq!(merged.tree.as_str(), git(path, &["rev-parse", "HEAD^{tree}"]));
    // Staged only, and known to no commit.
    write(path, "docs/staged.md", "only the index has this\n");
    git(path, &["add", "--sparse", "docs/staged.md"]);
    git(path, &["update-index", "--skip-worktree", "docs/staged.md"]);
    std::fs::remove_dir_all(path.join("docs")).unwrap();
    assert!(!is_pinned(&world, &workspace));
    let staged = lose_and_restore(&world, &workspace);
    assert_eq!(world.text(&staged.commit, "docs/staged.md"), "only the index has this");
    assert!(is_pinned(&world, &workspace));
}

#[test]
fn files_that_git_is_told_to_leave_alone_count_when_they_are_there() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["update-index", "--skip-worktree", "src/a.rs", "src/b.rs"]);
    git(path, &["update-index", "--assume-unchanged", "README.md", "run.sh"]);
    write(path, "src/a.rs", "fn changed() {}\n");
    std::fs::remove_file(path.join("src/b.rs")).unwrap();
    write(path, "README.md", "changed\n");
    std::fs::remove_file(path.join("run.sh")).unwrap();
    let wanted = [("README.md".to_owned(), true), ("run.sh".to_owned(), false), ("src/a.rs".to_owned(), true)];
    assert_eq!(changes(&lose_and_restore(&world, &workspace)), wanted);
    assert_eq!(
        git(path, &["ls-files", "-v", "src/a.rs", "src/b.rs", "README.md"]),
        "h README.md\nS src/a.rs\nS src/b.rs"
    );
}

#[test]
fn what_stands_in_the_place_of_a_file_that_is_left_out_wins() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["update-index", "--skip-worktree", "docs/guide.md", "README.md"]);
    std::fs::remove_dir_all(path.join("docs")).unwrap();
    write(path, "docs", "a file now");
    std::fs::remove_file(path.join("README.md")).unwrap();
    write(path, "README.md/inner", "a folder now");
    let checkpoint = world.checkpoint(&workspace, "t");
    let wanted = [("README.md", false), ("README.md/inner", true), ("docs", true), ("docs/guide.md", false)];
    assert_eq!(changes(&checkpoint), wanted.map(|(path, is_there)| (path.to_owned(), is_there)));
    world.fsck_store();
}

#[test]
fn nothing_is_taken_for_deleted_while_nobody_knows_what_a_sparse_checkout_leaves_out() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["sparse-checkout", "set", "src"]);
    write(path, "src/a.rs", "fn changed() {}\n");
    let split = |path: &Path| git(path, &["update-index", "--split-index"]);
    split(path);
    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!(changes(&checkpoint), [("src/a.rs".to_owned(), true)]);
    let is_told = |what: &str| checkpoint.notes.iter().any(|n| matches!(n, Note::NotKept { what: w, .. } if w == what));
    assert!(is_told("which files were deleted in its sparse checkout"), "{:?}", checkpoint.notes);
}
