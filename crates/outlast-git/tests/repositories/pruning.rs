//! The user's garbage collection takes nothing that a checkpoint, a result or a task's repository needs.

use outlast_git::Workspace;

use crate::fixture::{World, git, write};

/// The most thorough cleaning a person can ask for.
fn prune(world: &World) {
    git(&world.repo, &["reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"]);
    git(&world.repo, &["gc", "-q", "--prune=now"]);
}

#[test]
fn checkpoints_and_the_agents_commits_survive_gc_with_prune_now() {
    let world = World::with(|repo| {
        git(repo, &["checkout", "-qb", "doomed"]);
        write(repo, "borrowed", "only on the doomed branch\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "doomed"]);
        git(repo, &["tag", "-am", "note", "v1"]);
        git(repo, &["checkout", "-q", "main"]);
        // Content that is in the user's repository by accident, reachable from nothing.
        write(repo, "README.md", "dangling content\n");
        git(repo, &["stash", "-q"]);
        git(repo, &["stash", "drop", "-q"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "README.md", "dangling content\n");
    write(path, "borrowed", "only on the doomed branch\n");
    let first = world.checkpoint(&workspace, "t");
    git(
        path,
        &[
            "merge",
            "-q",
            "--no-edit",
            "--no-ff",
            "-Xtheirs",
            "--allow-unrelated-histories",
            "--no-commit",
            "-s",
            "ours",
            "doomed",
        ],
    );
    git(path, &["commit", "-qam", "the agent merged a branch of the user's"]);
    let second = world.checkpoint(&workspace, "t");

    git(&world.repo, &["branch", "-qD", "doomed"]);
    git(&world.repo, &["tag", "-d", "v1"]);
    prune(&world);
    world.fsck_store();
    git(path, &["fsck", "--no-dangling"]);
    for checkpoint in [&first, &second] {
        git(world.store.path(), &["rev-list", "--objects", checkpoint.commit.as_str()]);
        assert_eq!(world.text(&checkpoint.commit, "README.md"), "dangling content");
        assert_eq!(world.text(&checkpoint.commit, "borrowed"), "only on the doomed branch");
    }
    assert_eq!(git(path, &["cat-file", "-t", "v1"]), "tag");
    assert_eq!(world.checkpoint(&workspace, "t").tree, second.tree);
}

#[test]
fn a_history_that_no_pin_reaches_is_copied_down_to_one_that_is() {
    let world = World::new();
    let workspace = world.workspace("t");
    // The user commits on after the run began; the agent, who can read the objects, builds on that by its id.
    for n in 0..3 {
        write(&world.repo, "later", format!("{n}"));
        git(&world.repo, &["add", "-A"]);
        git(&world.repo, &["commit", "-qm", "later"]);
    }
    let later = git(&world.repo, &["rev-parse", "HEAD"]);
    git(workspace.path(), &["checkout", "-q", &later]);
    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!(checkpoint.head.unwrap().as_str(), later);
    git(&world.repo, &["reset", "-q", "--hard", world.base.as_str()]);
    prune(&world);
    assert!(!crate::fixture::try_git(&world.repo, &["cat-file", "-e", &later]));
    world.fsck_store();
    assert_eq!(world.text(&checkpoint.commit, "later"), "2");
}

#[test]
fn results_bases_and_packed_stores_survive_too() {
    let world = World::new();
    let workspace = world.workspace("a");
    write(workspace.path(), "a.txt", "from a\n");
    let end = world.checkpoint(&workspace, "a");
    let result = world
        .store
        .keep_result(&world.run, &"a".into(), &world.base, &end.tree, &crate::fixture::ann(), crate::fixture::at(1))
        .unwrap();
    assert_eq!(world.store.result(&world.run, &"a".into()).unwrap(), Some(result.clone()));
    let outlast_git::Merged::Clean(base) = world.store.compose(&world.user, &world.base, &[result]).unwrap() else {
        panic!("conflict")
    };
    let spec = outlast_git::Spec { base, ..world.spec("b") };
    let needs_a = Workspace::create(&world.user, &world.store, &spec).unwrap();
    // As after many runs.
    git(world.store.path(), &["repack", "-a", "-l", "-q"]);
    git(&world.repo, &["checkout", "-q", "--orphan", "elsewhere"]);
    git(&world.repo, &["commit", "-qm", "elsewhere"]);
    git(&world.repo, &["branch", "-qD", "main"]);
    prune(&world);
    assert_eq!(crate::fixture::read(needs_a.path(), "a.txt"), "from a\n");
    git(needs_a.path(), &["fsck", "--no-dangling"]);
    write(needs_a.path(), "b.txt", "from b\n");
    let end = world.checkpoint(&needs_a, "b");
    assert_eq!(end.changed.len(), 1);
    world.fsck_store();
}

#[test]
fn nobody_can_make_the_store_drop_what_no_ref_names_yet() {
    let world = World::new();
    // As an earlier version made it.
    let config = world.store.path().join("config");
    std::fs::write(&config, "[core]\n\trepositoryformatversion = 0\n\tbare = true\n").unwrap();
    outlast_git::Store::open_or_init(world.store.path(), &world.user).unwrap();
    write(world.dir.path(), "blob", "between its writing and its ref\n");
    let file = world.dir.path().join("blob");
    let blob = git(world.store.path(), &["hash-object", "-w", file.to_str().unwrap()]);
    for args in [&["gc", "-q", "--prune=now"][..], &["prune", "--expire=now"], &["prune-packed"], &["repack", "-adq"]] {
        crate::fixture::try_git(world.store.path(), args);
        git(world.store.path(), &["cat-file", "-e", &blob]);
    }
}

#[test]
fn a_scattered_store_is_packed_into_one_file_and_loses_nothing() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(world.dir.path(), "blob", "no ref names this\n");
    let file = world.dir.path().join("blob");
    let blob = git(world.store.path(), &["hash-object", "-w", file.to_str().unwrap()]);
    std::fs::create_dir_all(world.store.path().join("outlast/packing-left/objects")).unwrap();
    let mut commits = Vec::new();
    for n in 0..52 {
        write(workspace.path(), "README.md", format!("{n}\n"));
        let last = commits.last();
        let mut spec = world.checkpoint_spec("t", last);
        spec.at = crate::fixture::at(n);
        commits.push(workspace.checkpoint(&world.store, &world.user, &spec).unwrap());
        git(world.store.path(), &["repack", "-a", "-l", "-q"]);
    }
    let packs = || {
        let names = std::fs::read_dir(world.store.path().join("objects/pack")).unwrap().map(|e| e.unwrap().file_name());
        names.filter(|name| name.as_encoded_bytes().ends_with(b".pack")).count()
    };
    assert!(packs() > 50);
    world.user.pin_base(&world.store, &"run-2".into(), &world.base).unwrap();
    assert_eq!(packs(), 1);
    git(world.store.path(), &["cat-file", "-e", &blob]);
    for commit in &commits {
        git(world.store.path(), &["rev-list", "--objects", "--quiet", commit.commit.as_str()]);
    }
    world.fsck_store();
    let left = std::fs::read_dir(world.store.path().join("outlast")).unwrap().map(|e| e.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.as_encoded_bytes().starts_with(b"packing-")));
}
