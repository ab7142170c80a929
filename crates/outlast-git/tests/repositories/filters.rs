//! Files that a filter of the user's would have changed: known before they are in anybody's history.

use std::path::Path;

use outlast_git::Scope;

use crate::fixture::{World, git, write};

/// A repository with a filter that hides what is added, one that the user has not set up, and Git LFS.
fn with_filters(repo: &Path) {
    git(repo, &["config", "filter.hide.clean", "sed s/plain/HIDDEN/"]);
    git(repo, &["config", "filter.Shout.process", "shout"]);
    write(repo, ".gitattributes", "*.key filter=hide\n*.unknown filter=nobody\n*.bin filter=lfs\n*.SH filter=Shout\n");
    write(repo, "crypt/.gitattributes", "* filter=git-crypt-team\n.gitattributes !filter\n");
    git(repo, &["add", "-A"]);
    git(repo, &["commit", "-qm", "filters"]);
}

fn unfiltered(world: &World, files: &[(&str, &str)]) -> Vec<String> {
    let workspace = world.workspace("t");
    for (path, text) in files {
        write(workspace.path(), path, text);
    }
    let end = world.checkpoint(&workspace, "t");
    let split = world.store.scope_diff(&world.base, &end.commit, &Scope::everything()).unwrap();
    let tree = world.store.in_scope_tree(&world.base, &split).unwrap();
    let found = world.user.unfiltered(&world.store, &world.base, &tree).unwrap();
    found.into_iter().map(|file| format!("{} {}", file.path, file.driver)).collect()
}

#[test]
fn what_a_filter_would_have_changed_is_found_and_what_it_made_is_not() {
    let world = World::with(with_filters);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    let found = unfiltered(
        &world,
        &[
            ("a.key", "plain\n"),
            ("b.unknown", "x\n"),
            ("c.bin", "huge\n"),
            ("d.bin", pointer),
            ("e.SH", "x\n"),
            ("empty.bin", ""),
            ("crypt/plain", "secret\n"),
            ("crypt/sealed", "\0GITCRYPT\0..."),
            ("plain.txt", "x\n"),
        ],
    );
    assert_eq!(found, ["a.key hide", "c.bin lfs", "crypt/plain git-crypt-team", "e.SH Shout"]);
}

#[test]
fn an_agent_that_takes_the_attribute_away_changes_nothing() {
    let world = World::with(with_filters);
    let found =
        unfiltered(&world, &[("a.key", "plain\n"), (".gitattributes", ""), ("crypt/.gitattributes", "* -filter\n")]);
    assert_eq!(found, ["a.key hide"]);
    // One that adds it has the file go through the filter too, as git would from then on.
    let world = World::with(with_filters);
    let found = unfiltered(&world, &[("note.txt", "plain\n"), (".gitattributes", "*.txt filter=hide\n")]);
    assert_eq!(found, ["note.txt hide"]);
}
