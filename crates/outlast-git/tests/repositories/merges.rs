//! Bases of tasks with needs, and candidates on a target that moved.

use outlast_core::Oid;
use outlast_git::{CandidateOutcome, Merged, Scope, Spec, Workspace};

use crate::fixture::{World, at, git, write};

/// The result of a task that wrote these files, starting from `base`.
fn result(world: &World, task: &str, base: &Oid, files: &[(&str, &str)]) -> Oid {
    let spec = Spec { base: base.clone(), ..world.spec(task) };
    let workspace = Workspace::create(&world.user, &world.store, &spec).unwrap();
    for (path, text) in files {
        write(workspace.path(), path, text);
    }
    let end = world.checkpoint(&workspace, task);
    let split = world.store.scope_diff(base, &end.commit, &Scope::everything()).unwrap();
    let tree = world.store.in_scope_tree(base, &split).unwrap();
    world.store.keep_result(&world.run, &task.into(), base, &tree, &crate::fixture::ann(), at(5)).unwrap()
}

fn clean(merged: Merged) -> Oid {
    match merged {
        Merged::Clean(oid) => oid,
        Merged::Conflict(conflict) => panic!("{conflict:?}"),
    }
}

#[test]
fn the_same_needs_give_the_same_base_in_any_order() {
    let world = World::new();
    let a = result(&world, "a", &world.base, &[("a.txt", "a\n"), ("src/a.rs", "fn a() { 1 }\n")]);
    let b = result(&world, "b", &world.base, &[("b.txt", "b\n")]);
    let both = clean(world.store.compose(&world.user, &world.base, &[a.clone(), b.clone()]).unwrap());
    assert_eq!(both, clean(world.store.compose(&world.user, &world.base, &[b.clone(), a.clone(), b]).unwrap()));
    assert_eq!(clean(world.store.compose(&world.user, &world.base, &[]).unwrap()), world.base);
    assert_eq!((world.text(&both, "a.txt"), world.text(&both, "b.txt")), ("a".to_owned(), "b".to_owned()));

    // A task on top of both, and one that needs that and one of the two again.
    let c = result(&world, "c", &both, &[("c.txt", "c\n"), ("a.txt", "a, then c\n")]);
    let all = clean(world.store.compose(&world.user, &world.base, &[a, c]).unwrap());
    assert_eq!(world.text(&all, "a.txt"), "a, then c");
    assert_eq!(world.text(&all, "b.txt"), "b");
    world.fsck_store();
}

#[test]
fn needs_that_contradict_each_other_are_a_conflict_by_path() {
    let world = World::new();
    let a = result(&world, "a", &world.base, &[("文档.txt", "a\n"), ("README.md", "a\n")]);
    let b = result(&world, "b", &world.base, &[("文档.txt", "b\n"), ("README.md", "b\n"), ("fine", "b\n")]);
    let Merged::Conflict(conflict) = world.store.compose(&world.user, &world.base, &[a, b]).unwrap() else {
        panic!("merged")
    };
    assert_eq!(conflict.paths, ["README.md", "文档.txt"]);
}

#[test]
fn f09_a_change_against_a_deletion_is_a_conflict_whatever_attributes_say() {
    let world = World::with(|repo| {
        write(repo, ".gitattributes", "* merge=union\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "union"]);
    });
    let workspace = world.workspace("t");
    std::fs::remove_file(workspace.path().join("README.md")).unwrap();
    let end = world.checkpoint(&workspace, "t");
    write(&world.repo, "README.md", "edited\n");
    git(&world.repo, &["commit", "-qam", "edited"]);
    let tip = world.user.head().unwrap().commit;
    let spec = world.candidate_spec("t", &end, &Scope::everything(), &tip);
    let outcome = world.user.candidate(&world.store, &spec).unwrap();
    assert!(matches!(&outcome, CandidateOutcome::Conflict(c) if c.paths == ["README.md"]), "{outcome:?}");
}

#[test]
fn a_candidate_is_the_target_with_the_in_scope_part_and_nothing_else() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "src/a.rs", "fn a() { changed }\n");
    write(workspace.path(), "README.md", "out of scope\n");
    let end = world.checkpoint(&workspace, "t");
    write(&world.repo, "src/b.rs", "fn b() { by a person }\n");
    git(&world.repo, &["commit", "-qam", "moved on"]);
    let tip = world.user.head().unwrap().commit;
    let spec = world.candidate_spec("t", &end, &Scope::new(["src/**"]).unwrap(), &tip);
    let CandidateOutcome::Ready(candidate) = world.user.candidate(&world.store, &spec).unwrap() else {
        panic!("not ready")
    };
    let landed: Vec<_> = world.store.diff(&tip, &candidate.commit).unwrap().iter().map(|c| c.path_lossy()).collect();
    assert_eq!(landed, ["src/a.rs"]);
    assert_eq!(world.text(&candidate.commit, "src/b.rs"), "fn b() { by a person }");

    let spec = world.candidate_spec("t", &end, &Scope::new(["src/**"]).unwrap(), &candidate.commit);
    assert!(world.user.candidate(&world.store, &spec).is_err(), "a tip that the user's repository does not have");
    world.user.publish(&world.store, &world.run, &"t".into(), &candidate).unwrap();
    // With the target there already, nothing is left.
    assert_eq!(world.user.candidate(&world.store, &spec).unwrap(), CandidateOutcome::Empty);
    world.fsck_store();
}

#[test]
fn a_task_that_needs_another_lands_without_it_where_the_two_do_not_touch() {
    let world = World::new();
    let a = result(&world, "a", &world.base, &[("a.txt", "a\n")]);
    let base = clean(world.store.compose(&world.user, &world.base, &[a]).unwrap());
    let b = result(&world, "b", &base, &[("b.txt", "b\n")]);
    let mut spec =
        world.candidate_spec("b", &world.checkpoint(&world.workspace("x"), "x"), &Scope::everything(), &world.base);
    (spec.base, spec.result_tree) = (base, b);
    let CandidateOutcome::Ready(candidate) = world.user.candidate(&world.store, &spec).unwrap() else {
        panic!("not ready")
    };
    let landed: Vec<_> =
        world.store.diff(&world.base, &candidate.commit).unwrap().iter().map(|c| c.path_lossy()).collect();
    assert_eq!(landed, ["b.txt"]);
}

/// What a task that edits the last line comes to, on a target whose first line was edited meanwhile.
fn both_edit(attributes: &str, agents: Option<&str>) -> CandidateOutcome {
    let text = |first: &str, last: &str| format!("{first}\n{}{last}\n", "between\n".repeat(20));
    let world = World::with(|repo| {
        write(repo, "data.txt", text("first", "last"));
        write(repo, ".gitattributes", attributes);
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "data"]);
    });
    let workspace = world.workspace("t");
    write(workspace.path(), "data.txt", text("first", "by the agent"));
    if let Some(agents) = agents {
        write(workspace.path(), ".gitattributes", agents);
    }
    let end = world.checkpoint(&workspace, "t");
    write(&world.repo, "data.txt", text("by a person", "last"));
    git(&world.repo, &["commit", "-qam", "edited"]);
    let tip = world.user.head().unwrap().commit;
    world.user.candidate(&world.store, &world.candidate_spec("t", &end, &Scope::everything(), &tip)).unwrap()
}

#[test]
fn what_a_merge_driver_is_named_for_is_not_merged_without_it() {
    let conflict =
        |outcome: &CandidateOutcome| matches!(outcome, CandidateOutcome::Conflict(c) if c.paths == ["data.txt"]);
    for attributes in ["*.txt merge=ours\n", "data.txt merge=my-driver\n", "*.txt -merge\n", "*.txt binary\n"] {
        let outcome = both_edit(attributes, None);
        assert!(conflict(&outcome), "{attributes}: {outcome:?}");
    }
    // Nor where the agent takes the attribute away.
    assert!(conflict(&both_edit("data.txt merge=my-driver\n", Some(""))));
    for attributes in ["", "*.txt merge\n", "*.txt merge=text\n", "other.txt merge=ours\n"] {
        let outcome = both_edit(attributes, None);
        assert!(matches!(outcome, CandidateOutcome::Ready(_)), "{attributes}: {outcome:?}");
    }
}

#[test]
fn needs_that_both_change_what_has_a_merge_driver_are_a_conflict() {
    let world = World::with(|repo| {
        write(repo, "data.txt", "1\n2\n3\n4\n5\n6\n7\n8\n");
        write(repo, ".git/info/attributes", "data.txt merge=my-driver\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "data"]);
    });
    let a = result(&world, "a", &world.base, &[("data.txt", "one\n2\n3\n4\n5\n6\n7\n8\n")]);
    let b = result(&world, "b", &world.base, &[("data.txt", "1\n2\n3\n4\n5\n6\n7\neight\n")]);
    let merged = world.store.compose(&world.user, &world.base, &[a.clone(), b]).unwrap();
    assert!(matches!(&merged, Merged::Conflict(c) if c.paths == ["data.txt"]), "{merged:?}");
    // One after the other is no merge.
    let on_a = clean(world.store.compose(&world.user, &world.base, std::slice::from_ref(&a)).unwrap());
    let c = result(&world, "c", &on_a, &[("data.txt", "uno\n2\n3\n4\n5\n6\n7\n8\n")]);
    let both = clean(world.store.compose(&world.user, &world.base, &[a, c]).unwrap());
    assert!(world.text(&both, "data.txt").starts_with("uno"));
}
