//! R1: what outlast does not work on, it says before anything changes.

use std::path::Path;

use outlast_git::{Error, Git, Refusal, Store, UserRepo};

use crate::fixture::{World, executable, git, new_repo, snapshot, try_git, write};

fn refusal(path: &Path) -> Refusal {
    match UserRepo::open(path) {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// Makes a repository, lets `prepare` spoil it, and expects this refusal and nothing changed.
fn refused(code: &str, prepare: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    new_repo(&repo);
    prepare(&repo);
    let before = snapshot(dir.path());
    let refusal = refusal(&repo);
    assert_eq!(refusal.code(), code, "{refusal}");
    assert!(!refusal.to_string().is_empty() && !refusal.why().is_empty() && !refusal.fix().is_empty());
    assert_eq!(before, snapshot(dir.path()), "{code} changed something");
}

/// Two branches that change the same line.
fn diverge(repo: &Path) {
    git(repo, &["checkout", "-qb", "side"]);
    write(repo, "README.md", "side\n");
    git(repo, &["commit", "-qam", "side"]);
    git(repo, &["checkout", "-q", "main"]);
    write(repo, "README.md", "main\n");
    git(repo, &["commit", "-qam", "main"]);
}

#[test]
fn r1_every_unusable_state_is_refused_and_nothing_changes() {
    refused("not-a-repository", |repo| std::fs::remove_dir_all(repo.join(".git")).unwrap());
    refused("operation-in-progress", |repo| {
        diverge(repo);
        assert!(!try_git(repo, &["merge", "-q", "side"]));
    });
    refused("operation-in-progress", |repo| {
        diverge(repo);
        assert!(!try_git(repo, &["rebase", "-q", "side"]));
    });
    refused("operation-in-progress", |repo| {
        diverge(repo);
        assert!(!try_git(repo, &["cherry-pick", "side"]));
    });
    refused("operation-in-progress", |repo| {
        git(repo, &["bisect", "start"]);
    });
    refused("submodules", |repo| {
        git(repo, &["submodule", "--quiet", "add", repo.to_str().unwrap(), "sub"]);
        git(repo, &["commit", "-qm", "sub"]);
    });
    refused("partial-clone", |repo| {
        git(repo, &["config", "remote.origin.promisor", "true"]);
    });
    refused("unknown-extension", |repo| {
        git(repo, &["config", "core.repositoryformatversion", "1"]);
        git(repo, &["config", "extensions.holograms", "true"]);
    });
    refused("reftable", |repo| {
        git(repo, &["config", "core.repositoryformatversion", "1"]);
        git(repo, &["config", "extensions.refStorage", "reftable"]);
    });
    refused("sha256-repository", |repo| {
        std::fs::remove_dir_all(repo.join(".git")).unwrap();
        git(repo, &["init", "-q", "--object-format=sha256"]);
    });
    refused("git-refused", |repo| write(repo, ".git/config", "[core\n"));
}

#[test]
fn what_gives_up_an_unfinished_operation_is_a_command_that_git_takes() {
    let begin: [&[&str]; 5] = [
        &["am", "-3", "../patch"],
        &["rebase", "--apply", "side"],
        &["rebase", "side"],
        &["merge", "side"],
        &["revert", "HEAD~1"],
    ];
    for begun in begin {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        new_repo(&repo);
        diverge(&repo);
        write(&repo, "../patch", git(&repo, &["format-patch", "-1", "--stdout", "side"]));
        write(&repo, "README.md", "again\n");
        git(&repo, &["commit", "-qam", "again"]);
        assert!(!try_git(&repo, begun), "{begun:?} was finished");
        let refused = refusal(&repo);
        assert!(refused.to_string().starts_with(&format!("a `git {}` is", begun[0])), "{refused}");
        let fix = refused.fix();
        let (_, command) = fix.split_once(", or: git ").unwrap();
        git(&repo, &command.split(' ').collect::<Vec<_>>());
        UserRepo::open(&repo).unwrap();
    }
}

#[test]
fn a_submodule_is_named_by_its_path_and_one_that_is_gone_refuses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    new_repo(&repo);
    write(&repo, ".gitmodules", "");
    git(&repo, &["add", ".gitmodules"]);
    git(&repo, &["commit", "-qm", "empty"]);
    UserRepo::open(&repo).unwrap();
    git(&repo, &["submodule", "--quiet", "add", repo.to_str().unwrap(), "deep/sub"]);
    git(&repo, &["commit", "-qm", "sub"]);
    assert_eq!(refusal(&repo), Refusal::Submodule { path: "deep/sub".to_owned() });
    git(&repo, &["rm", "-q", "--cached", "deep/sub"]);
    git(&repo, &["commit", "-qm", "its entry in .gitmodules is left over"]);
    assert!(git(&repo, &["show", "HEAD:.gitmodules"]).contains("[submodule"));
    UserRepo::open(&repo).unwrap();
}

#[test]
fn e21_no_commit_says_make_a_first_commit() {
    refused("no-commit", |repo| {
        git(repo, &["checkout", "-q", "--orphan", "empty"]);
    });
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "-b", "master"]);
    let refusal = refusal(dir.path());
    assert_eq!(refusal, Refusal::NoCommit { branch: "master".to_owned(), was_at: None });
    assert!(refusal.fix().contains("make a first commit"));
}

#[test]
fn a_branch_that_was_deleted_under_head_is_told_with_what_brings_it_back() {
    let dir = tempfile::tempdir().unwrap();
    new_repo(dir.path());
    let (head, status) = (git(dir.path(), &["rev-parse", "HEAD"]), git(dir.path(), &["status", "--porcelain"]));
    let branch = git(dir.path(), &["symbolic-ref", "--short", "HEAD"]);
    git(dir.path(), &["update-ref", "-d", &format!("refs/heads/{branch}")]);
    let fix = refusal(dir.path()).fix();
    let (_, command) = fix.split_once("last: git ").unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    git(dir.path(), &words);
    assert_eq!(git(dir.path(), &["rev-parse", &branch]), head);
    assert_eq!(git(dir.path(), &["status", "--porcelain"]), status);
}

#[test]
fn r1_bare_and_shallow_clones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    new_repo(&repo);
    write(&repo, "x", "x");
    git(&repo, &["add", "x"]);
    git(&repo, &["commit", "-qm", "second"]);
    git(dir.path(), &["clone", "-q", "--bare", "repo", "bare.git"]);
    git(dir.path(), &["clone", "-q", "--depth=1", &format!("file://{}", repo.display()), "shallow"]);
    assert_eq!(refusal(&dir.path().join("bare.git")).code(), "bare-repository");
    assert_eq!(refusal(&dir.path().join("shallow")).code(), "shallow-clone");
}

#[test]
fn e21_an_author_is_never_guessed() {
    let dir = tempfile::tempdir().unwrap();
    new_repo(dir.path());
    git(dir.path(), &["config", "user.email", ""]);
    let error = UserRepo::open(dir.path()).unwrap().user_identity().unwrap_err();
    assert!(matches!(error, Error::Refused(Refusal::NoIdentity { missing: "user.email" })), "{error}");
}

#[test]
fn an_old_git_and_a_missing_git_are_named() {
    let dir = tempfile::tempdir().unwrap();
    executable(dir.path(), "git", "#!/bin/sh\necho git version 2.38.1\n");
    assert_eq!(Git::at(dir.path().join("git")).unwrap_err(), Refusal::GitTooOld { found: "2.38.1".to_owned() });
    assert_eq!(Git::at(dir.path().join("none")).unwrap_err().code(), "git-missing");
}

#[test]
fn e07_head_is_the_commit_checked_out_also_detached_orphaned_or_in_a_linked_worktree() {
    let world = World::with(|repo| {
        git(repo, &["checkout", "-qb", "feature"]);
        for n in 0..10 {
            write(repo, "n", n.to_string());
            git(repo, &["add", "n"]);
            git(repo, &["commit", "-qm", "more"]);
        }
    });
    let head = world.user.head().unwrap();
    assert_eq!(head.branch.as_deref(), Some("feature"));
    assert_eq!(head.commit.as_str(), git(&world.repo, &["rev-parse", "feature"]));

    let linked = world.dir.path().join("linked");
    git(&world.repo, &["worktree", "add", "-q", "--detach", linked.to_str().unwrap(), "main"]);
    let there = UserRepo::open(&linked.join("src")).unwrap();
    assert_eq!(there.head().unwrap().branch, None);
    assert_eq!(there.head().unwrap().commit.as_str(), git(&world.repo, &["rev-parse", "main"]));
    assert_eq!(there.objects_dir(), world.user.objects_dir());

    git(&world.repo, &["checkout", "-q", "--orphan", "fresh"]);
    git(&world.repo, &["commit", "-qm", "root"]);
    let orphan = UserRepo::open(&world.repo).unwrap().head().unwrap();
    assert_eq!(orphan.commit.as_str(), git(&world.repo, &["rev-parse", "fresh"]));
}

#[test]
fn e23_a_target_that_cannot_live_beside_a_branch_is_refused() {
    let world = World::with(|repo| {
        git(repo, &["branch", "agents"]);
        git(repo, &["branch", "Feat/x"]);
    });
    let code = |name: &str| match world.user.resolve_target(name) {
        Err(Error::Refused(refusal)) => refusal.code(),
        other => panic!("{name}: {other:?}"),
    };
    for name in ["Agents/run1/t1", "agents/t1", "Agents", "Feat", "feat/y", "FEAT/x", "Feat/x/y"] {
        assert_eq!(code(name), "target-collides", "{name}");
    }
    for name in ["", "-x", "a..b", "a b", "x.lock", "/x"] {
        assert_eq!(code(name), "bad-target", "{name}");
    }
    assert_eq!(world.user.resolve_target("outlast/run-1").unwrap().tip, None);
    assert_eq!(world.user.resolve_target("agents").unwrap().tip, Some(world.base.clone()));
}

#[test]
fn a_store_serves_one_repository_only() {
    let world = World::new();
    let other = World::new();
    let again = Store::open_or_init(world.store.path(), &world.user).unwrap();
    assert_eq!(again.path(), world.store.path());
    assert!(matches!(Store::open_or_init(world.store.path(), &other.user), Err(Error::StoreOfOther { .. })));
}

#[test]
fn e16_a_base_with_a_submodule_is_refused_wherever_it_lies() {
    let world = World::new();
    let id = world.base.as_str();
    git(&world.repo, &["update-index", "--add", "--cacheinfo", &format!("160000,{id},deep/er/sub")]);
    git(&world.repo, &["commit", "-qm", "gitlink without .gitmodules"]);
    let base = world.user.head().unwrap().commit;
    let error = world.user.pin_base(&world.store, &"run-2".into(), &base).unwrap_err();
    assert!(matches!(error, Error::Refused(Refusal::Submodule { ref path }) if path == "deep/er/sub"), "{error}");
}
