//! What of a change may land, decided path by path.

use outlast_core::Oid;
use outlast_git::{Block, Change, Scope, ScopeDiff};

use crate::fixture::{World, git, write};

fn paths(changes: &[Change]) -> Vec<String> {
    changes.iter().map(Change::path_lossy).collect()
}

fn split(world: &World, end: &Oid, globs: &[&str]) -> ScopeDiff {
    world.store.scope_diff(&world.base, end, &Scope::new(globs).unwrap()).unwrap()
}

#[test]
fn g10_a_rename_out_of_scope_is_two_paths_and_only_the_scope_is_applied() {
    let world = World::new();
    let workspace = world.workspace("t");
    git(workspace.path(), &["mv", "src/a.rs", "moved.rs"]);
    write(workspace.path(), "src/b.rs", "fn b2() {}\n");
    write(workspace.path(), "scratch", vec![b'x'; 21_000]);
    let end = world.checkpoint(&workspace, "t");
    let split = split(&world, &end.commit, &["src/*.rs"]);
    assert_eq!(paths(&split.in_scope), ["src/a.rs", "src/b.rs"]);
    assert_eq!(paths(&split.out_of_scope), ["moved.rs", "scratch"]);
    assert!(!split.noise_only && split.blocked.is_empty());

    let tree = world.store.in_scope_tree(&world.base, &split).unwrap();
    assert_eq!(tree, world.store.in_scope_tree(&world.base, &split).unwrap());
    let applied = world.store.diff(&world.base, &tree).unwrap();
    assert_eq!(applied, split.in_scope);
}

#[test]
fn e22_hostile_names_are_matched_by_their_bytes() {
    let world = World::new();
    let workspace = world.workspace("t");
    for name in ["文档/说明 书.txt", "文档/a\nb", "文档/\"q\"\t", "other/文档"] {
        write(workspace.path(), name, "x");
    }
    let end = world.checkpoint(&workspace, "t");
    let split = split(&world, &end.commit, &["文档/**"]);
    assert_eq!(paths(&split.in_scope), ["文档/\"q\"\t", "文档/a\nb", "文档/说明 书.txt"]);
    assert_eq!(paths(&split.out_of_scope), ["other/文档"]);
}

#[test]
fn g05_links_that_leave_the_tree_are_blocked_also_by_way_of_other_links() {
    let world = World::new();
    let workspace = world.workspace("t");
    let link = |target: &str, name: &str| {
        let path = workspace.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    link("/", "esc");
    link("/tmp/pwn-absent", "REPORT.md");
    link("../outside", "up");
    link("..", "src/parent");
    // Textually inside, in truth outside: src/parent is the root.
    link("parent/../x", "src/sneaky");
    link("loop2", "loop1");
    link("loop1", "loop2");
    link("../README.md", "src/fine");
    link("src/parent/docs/absent", "dangling-inside");
    let end = world.checkpoint(&workspace, "t");
    let split = world.store.scope_diff(&world.base, &end.commit, &Scope::everything()).unwrap();
    let mut blocked: Vec<_> = split.blocked.iter().map(|(c, b)| (c.path_lossy(), *b)).collect();
    blocked.sort_by(|a, b| a.0.cmp(&b.0));
    let expected =
        ["REPORT.md", "esc", "loop1", "loop2", "src/sneaky", "up"].map(|p| (p.to_owned(), Block::LinkLeavesTree));
    assert_eq!(blocked, expected);
    assert_eq!(paths(&split.in_scope), ["dangling-inside", "src/fine", "src/parent"]);
}

#[test]
fn e27_a_gitlink_that_an_agent_commits_is_blocked() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", world.base)]);
    git(path, &["commit", "-qm", "gitlink"]);
    let end = world.checkpoint(&workspace, "t");
    assert_eq!(end.changed, [], "the working tree has no such folder");
    let split = world.store.scope_diff(&world.base, end.head.as_ref().unwrap(), &Scope::everything()).unwrap();
    assert_eq!(split.blocked.len(), 1);
    assert_eq!((split.blocked[0].0.path_lossy(), split.blocked[0].1), ("sub".to_owned(), Block::Gitlink));
    world.fsck_store();
}

#[test]
fn a_file_that_became_a_folder_is_in_scope_only_as_a_whole() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    std::fs::remove_file(path.join("README.md")).unwrap();
    write(path, "README.md/inner", "x");
    std::fs::remove_dir_all(path.join("src")).unwrap();
    write(path, "src", "x");
    let end = world.checkpoint(&workspace, "t");
    let narrow = split(&world, &end.commit, &["README.md/*", "src"]);
    assert_eq!(paths(&narrow.in_scope), Vec::<String>::new());
    let whole = split(&world, &end.commit, &["README.md", "README.md/*", "src", "src/**"]);
    assert_eq!(whole.in_scope.len(), 5);
    let tree = world.store.in_scope_tree(&world.base, &whole).unwrap();
    assert_eq!(tree, end.tree);
}

#[test]
fn e29_line_ends_alone_and_nothing_at_all_are_noise() {
    let world = World::with(|repo| {
        write(repo, "dos.txt", "one\r\ntwo\r\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "dos"]);
    });
    let workspace = world.workspace("t");
    let nothing = world.checkpoint(&workspace, "t");
    assert!(split(&world, &nothing.commit, &["**"]).noise_only);
    write(workspace.path(), "dos.txt", "one\ntwo\n");
    let ends = world.checkpoint(&workspace, "t");
    let noise = split(&world, &ends.commit, &["**"]);
    assert!(noise.noise_only && noise.eol_only == ["dos.txt"]);
    write(workspace.path(), "dos.txt", "one\nthree\n");
    let real = world.checkpoint(&workspace, "t");
    assert!(!split(&world, &real.commit, &["**"]).noise_only);
    assert!(split(&world, &real.commit, &["src/**"]).noise_only, "out of scope does not count");
}
