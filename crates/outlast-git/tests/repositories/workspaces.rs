//! Making, finding, restoring and removing workspaces.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use outlast_core::Oid;
use outlast_git::{Error, Pinned, Removal, Workspace};

use crate::fixture::{World, executable, git, read, try_git, write};

const NOBODY: &dyn Fn(&Path) -> Vec<String> = &|_| Vec::new();

#[test]
fn e07_a_workspace_is_the_base_on_a_branch_of_its_own() {
    let world = World::with(|repo| {
        write(repo, ".gitattributes", "*.bat text eol=crlf\n");
        write(repo, "win.bat", "one\r\ntwo\r\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "windows"]);
        git(repo, &["tag", "-am", "annotated", "v1"]);
        git(repo, &["branch", "outlast"]);
        git(repo, &["remote", "add", "origin", "https://example.invalid/x"]);
    });
    let before = world.snapshot();
    let workspace = world.workspace("Fix It");
    let path = workspace.path();

    assert_eq!(git(path, &["rev-parse", "HEAD"]), world.base.as_str());
    assert_eq!(git(path, &["symbolic-ref", "--short", "HEAD"]), workspace.branch());
    assert!(workspace.branch().starts_with("outlast/fix-it-"), "{}", workspace.branch());
    assert_eq!(git(path, &["status", "--porcelain"]), "");
    assert_eq!(git(path, &["rev-parse", "main", "v1^{commit}"]), format!("{0}\n{0}", world.base));
    assert_eq!(git(path, &["cat-file", "-t", "v1"]), "tag");
    assert_eq!(git(path, &["remote"]), "");
    assert_eq!(git(path, &["config", "user.name"]), "Ada Lovelace");
    git(path, &["fsck", "--strict"]);

    assert_eq!(read(path, "win.bat"), "one\r\ntwo\r\n");
    assert_eq!(std::fs::read_link(path.join("link")).unwrap(), Path::new("src/a.rs"));
    assert!(path.join("run.sh").metadata().unwrap().permissions().mode() & 0o100 != 0);
    assert_eq!(before, world.snapshot());
}

#[test]
fn every_workspace_operation_done_twice_gives_the_same() {
    let world = World::new();
    let first = world.workspace("t");
    write(first.path(), "new.txt", "mine");
    let again = world.workspace("t");
    assert_eq!(read(again.path(), "new.txt"), "mine");
    let (one, two) = (world.checkpoint(&again, "t"), world.checkpoint(&again, "t"));
    assert_eq!(one, two);
    world.user.pin_base(&world.store, &world.run, &world.base).unwrap();
    again.remove(&world.store, &world.user, &Removal::Safe { users: NOBODY }).unwrap();
    assert!(matches!(Workspace::open(&world.store, &world.run, &"t".into()), Err(Error::NoWorkspace { .. })));
}

#[test]
fn e02_fifty_creations_at_once_leave_no_half_made_one() {
    let world = World::new();
    let before = world.snapshot();
    std::thread::scope(|scope| {
        let made: Vec<_> = (0..50)
            .map(|n| {
                scope.spawn({
                    let world = &world;
                    move || world.workspace(&format!("t{n}"))
                })
            })
            .collect();
        for workspace in made {
            let workspace = workspace.join().unwrap();
            assert_eq!(read(workspace.path(), "src/b.rs"), "fn b() {}\n");
        }
    });
    for listed in world.store.workspaces().unwrap() {
        assert_eq!(git(&listed.path, &["status", "--porcelain"]), "");
        assert_eq!(git(&listed.path, &["rev-parse", "HEAD"]), world.base.as_str());
        assert!(listed.bytes > 0);
    }
    assert_eq!(world.store.workspaces().unwrap().len(), 50);
    assert_eq!(before, world.snapshot());
}

#[test]
fn ids_that_differ_in_case_or_script_get_workspaces_of_their_own() {
    let world = World::new();
    let paths: std::collections::BTreeSet<_> = ["Foo", "foo", "文档", "说明", "huz.11"]
        .iter()
        .map(|t| world.workspace(t).path().to_string_lossy().to_lowercase())
        .collect();
    assert_eq!(paths.len(), 5);
}

#[test]
fn e09_a_place_that_is_taken_fails_loudly_and_is_left_alone() {
    let world = World::new();
    let spec = world.spec("t");
    write(&spec.path, "precious", "theirs");
    let error = Workspace::create(&world.user, &world.store, &spec).unwrap_err();
    assert!(matches!(error, Error::Occupied(_)), "{error}");
    assert_eq!(read(&spec.path, "precious"), "theirs");
}

#[test]
fn e27_no_workspace_lies_inside_the_repository() {
    let world = World::new();
    let before = world.snapshot();
    let door = world.dir.path().join("door");
    std::os::unix::fs::symlink(&world.repo, &door).unwrap();
    for place in [&world.repo, &door] {
        let mut spec = world.spec("t");
        spec.path = place.join("new/t");
        let error = Workspace::create(&world.user, &world.store, &spec).unwrap_err();
        assert!(matches!(error, Error::InsideRepository { .. }), "{error}");
    }
    assert_eq!(before, world.snapshot());
}

#[test]
fn e11_a_left_over_from_another_base_is_reclaimed_only_when_all_of_it_is_saved() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "work", "mine");
    write(&world.repo, "next", "x");
    git(&world.repo, &["add", "next"]);
    git(&world.repo, &["commit", "-qm", "next"]);
    let mut spec = world.spec("t");
    spec.base = world.user.head().unwrap().commit;
    world.user.pin_base(&world.store, &world.run, &spec.base).unwrap();

    let error = Workspace::create(&world.user, &world.store, &spec).unwrap_err();
    assert!(matches!(&error, Error::Unpinned { what, .. } if what[0].contains("`work`")), "{error}");
    assert_eq!(read(workspace.path(), "work"), "mine");

    let saved = world.checkpoint(&workspace, "t");
    let fresh = Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert!(fresh.path().join("next").exists() && !fresh.path().join("work").exists());
    assert_eq!(world.text(&saved.commit, "work"), "mine");
}

#[test]
fn e17_the_users_hooks_do_not_run_when_a_workspace_is_made() {
    let world = World::with(|repo| executable(repo, ".git/hooks/post-checkout", "#!/bin/sh\ntouch hook-ran\nexit 1\n"));
    let workspace = world.workspace("t");
    assert!(!workspace.path().join("hook-ran").exists() && !world.repo.join("hook-ran").exists());
}

#[test]
fn e18_a_hooks_folder_that_the_tree_does_not_have_is_reported() {
    let absent = World::with(|repo| {
        git(repo, &["config", "core.hooksPath", ".husky/_"]);
        executable(repo, ".husky/_/pre-commit", "#!/bin/sh\n");
        write(repo, ".git/info/exclude", ".husky/_/\n");
    });
    let before = absent.user.config_fingerprint().unwrap();
    assert_eq!(absent.workspace("t").report().hooks_absent.as_deref(), Some(".husky/_"));
    assert_eq!(absent.user.config_fingerprint().unwrap(), before);
    git(&absent.repo, &["config", "core.hooksPath", "elsewhere"]);
    assert_ne!(absent.user.config_fingerprint().unwrap(), before);

    let present = World::with(|repo| {
        git(repo, &["config", "core.hooksPath", "hooks"]);
        executable(repo, "hooks/pre-commit", "#!/bin/sh\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "hooks"]);
    });
    assert_eq!(present.workspace("t").report().hooks_absent, None);
}

#[test]
fn e19_k16_worktreeinclude_copies_ignored_files_as_files_and_no_checkpoint_takes_them() {
    let world = World::with(|repo| {
        write(
            repo,
            ".worktreeinclude",
            "# local settings\n**/.env.local\n.env\n/README.md\nnot-ignored\n/esc.log\n/in.log\n/plain.log\n/run.log\n",
        );
        write(repo, ".env", "KEY=canary\n");
        write(repo, "pkg/配置/.env.local", "X=1\n");
        write(repo, ".env.other", "not named\n");
        write(repo, "plain.log", "nothing in its name says that it is secret\n");
        executable(repo, "run.log", "#!/bin/sh\n");
        write(repo, "not-ignored", "untracked but not ignored\n");
        std::os::unix::fs::symlink("/etc/passwd", repo.join("esc.log")).unwrap();
        std::os::unix::fs::symlink("README.md", repo.join("in.log")).unwrap();
        git(repo, &["add", ".worktreeinclude"]);
        git(repo, &["commit", "-qm", "list"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    assert_eq!(
        (read(path, ".env"), read(path, "pkg/配置/.env.local")),
        ("KEY=canary\n".to_owned(), "X=1\n".to_owned())
    );
    for (secret, mode) in [(".env", 0o600), ("pkg/配置/.env.local", 0o600), ("plain.log", 0o600), ("run.log", 0o700)]
    {
        let meta = path.join(secret).symlink_metadata().unwrap();
        assert!(meta.is_file() && meta.permissions().mode() & 0o777 == mode, "{secret}");
    }
    assert!(!path.join(".env.other").exists() && !path.join("not-ignored").exists());
    assert!(path.join("esc.log").symlink_metadata().is_err());
    assert_eq!(std::fs::read_link(path.join("in.log")).unwrap(), Path::new("README.md"));
    assert_eq!(workspace.report().included.len(), 5);
    assert_eq!(workspace.report().not_included, [b"esc.log".to_vec()]);

    // Also when the agent stops ignoring them.
    write(path, ".gitignore", "");
    let checkpoint = world.checkpoint(&workspace, "t");
    let changed: Vec<_> = checkpoint.changed.iter().map(outlast_git::Change::path_lossy).collect();
    assert_eq!(changed, [".gitignore"]);
}

#[test]
fn e19_nothing_is_copied_through_a_link_of_the_tree() {
    let world = World::with(|repo| {
        let outside = repo.parent().unwrap().join("outside");
        std::fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, repo.join("conf")).unwrap();
        write(repo, ".worktreeinclude", ".env\n");
        git(repo, &["add", "-f", "conf", ".worktreeinclude"]);
        git(repo, &["commit", "-qm", "a folder that is a link"]);
        std::fs::remove_file(repo.join("conf")).unwrap();
        write(repo, "conf/.env", "KEY=1\n");
    });
    let error = Workspace::create(&world.user, &world.store, &world.spec("t")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(!world.dir.path().join("outside/.env").exists());
}

#[test]
fn e24_the_users_filters_fill_the_tree_and_what_they_made_is_not_the_agents_change() {
    let world = World::with(|repo| {
        git(repo, &["config", "filter.upper.smudge", "tr a-z A-Z"]);
        git(repo, &["config", "filter.upper.clean", "cat"]);
        git(repo, &["config", "filter.lfs.smudge", "false"]);
        git(repo, &["config", "filter.lfs.required", "true"]);
        write(repo, ".gitattributes", "*.up filter=upper\n*.bin filter=lfs\n");
        write(repo, "x.up", "text\n");
        git(repo, &["add", "x.up", ".gitattributes"]);
        let id = git(repo, &["hash-object", "-w", "--no-filters", "README.md"]);
        git(repo, &["update-index", "--add", "--cacheinfo", &format!("100644,{id},big.bin")]);
        git(repo, &["commit", "-qm", "filters"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    assert_eq!((read(path, "x.up"), read(path, "big.bin")), ("TEXT\n".to_owned(), "hello\n".to_owned()));
    let counts: Vec<_> = workspace.report().filtered.clone().into_iter().collect();
    assert_eq!(counts, [("lfs".to_owned(), 1), ("upper".to_owned(), 1)]);
    assert_eq!(workspace.report().dirty, 1);

    // Written again with the same bytes: still nothing of the agent's.
    write(path, "x.up", "TEXT\n");
    assert_eq!(world.checkpoint(&workspace, "t").changed, []);
    write(path, "x.up", "other\n");
    assert_eq!(world.checkpoint(&workspace, "t").changed.len(), 1);
}

#[test]
fn h04_a_lost_workspace_comes_back_at_the_same_path_with_its_work() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path().to_owned();
    write(&path, "src/a.rs", "committed\n");
    git(&path, &["commit", "-qam", "the agent's own"]);
    let head = git(&path, &["rev-parse", "HEAD"]);
    write(&path, "src/a.rs", "uncommitted\n");
    write(&path, "new", "untracked\n");
    std::fs::remove_file(path.join("docs/guide.md")).unwrap();
    let saved = world.checkpoint(&workspace, "t");
    std::fs::remove_dir_all(&path).unwrap();

    let mut spec = world.spec("t");
    spec.restore = Some(saved.commit.clone());
    let back = Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert_eq!(back.path(), path);
    assert_eq!((read(&path, "src/a.rs"), read(&path, "new")), ("uncommitted\n".to_owned(), "untracked\n".to_owned()));
    assert_eq!(git(&path, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&path, &["status", "--porcelain", "-uall"]), " D docs/guide.md\n M src/a.rs\n?? new");
    let next = world.checkpoint(&back, "t");
    assert_eq!(next.tree, saved.tree);
}

#[test]
fn e14_commits_that_only_a_reflog_names_are_kept_before_a_workspace_goes() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path().to_owned();
    let commit = |text: &str| {
        write(&path, "src/b.rs", text);
        git(&path, &["commit", "-qam", text]);
        git(&path, &["rev-parse", "HEAD"])
    };
    let branch = git(&path, &["rev-parse", "--abbrev-ref", "HEAD"]);
    git(&path, &["checkout", "-q", "--detach"]);
    let checkpointed = commit("checkpointed");
    git(&path, &["checkout", "-q", &branch]);
    world.checkpoint(&workspace, "t");
    git(&path, &["checkout", "-q", "--detach"]);
    let detached = commit("detached");
    git(&path, &["checkout", "-q", &branch]);
    let reset = commit("reset");
    git(&path, &["reset", "-q", "--hard", "HEAD~1"]);
    let open = || Workspace::open(&world.store, &world.run, &"t".into()).unwrap();
    let error = open().remove(&world.store, &world.user, &Removal::Safe { users: NOBODY }).unwrap_err();
    let told = error.to_string();
    assert!(told.contains(&detached) && told.contains(&reset) && !told.contains(&checkpointed), "{told}");

    workspace.archive(&world.store, &world.user, None).unwrap();
    open().remove(&world.store, &world.user, &Removal::Safe { users: NOBODY }).unwrap();
    for (commit, text) in [(&detached, "detached"), (&reset, "reset"), (&checkpointed, "checkpointed")] {
        assert_eq!(world.text(&Oid::new(commit), "src/b.rs"), text);
        let name = format!("refs/outlast/archive/{}/t/{commit}", world.run);
        git(world.store.path(), &["show-ref", "--verify", "-q", &name]);
    }
}

#[test]
fn e13_e14_removal_needs_every_file_and_commit_saved_and_nobody_inside() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path().to_owned();
    let remove = |users: &dyn Fn(&Path) -> Vec<String>| {
        Workspace::open(&world.store, &world.run, &"t".into()).unwrap().remove(
            &world.store,
            &world.user,
            &Removal::Safe { users },
        )
    };
    let unsaved = |what: &str| {
        let error = remove(NOBODY).unwrap_err();
        assert!(
            matches!(&error, Error::Unpinned { what: all, .. } if all.iter().any(|w| w.contains(what))),
            "{what}: {error}"
        );
        assert!(path.join("README.md").exists());
    };
    write(&path, "only-untracked", "x");
    unsaved("only-untracked");
    world.checkpoint(&workspace, "t");

    // A commit on a detached HEAD, a stash and a side branch: none is in the working tree.
    git(&path, &["checkout", "-q", "--detach"]);
    git(&path, &["commit", "-q", "--allow-empty", "-m", "detached"]);
    let detached = git(&path, &["rev-parse", "HEAD"]);
    unsaved(&detached);
    git(&path, &["checkout", "-q", "-b", "side", "HEAD~1"]);
    git(&path, &["branch", "kept", &detached]);
    write(&path, "README.md", "stashed once\n");
    git(&path, &["stash", "-q"]);
    write(&path, "README.md", "stashed twice\n");
    git(&path, &["stash", "-q"]);
    unsaved("stash");
    let kept = workspace.archive(&world.store, &world.user, None).unwrap();
    assert!(kept.iter().any(|id| id.as_str() == detached), "{kept:?}");
    assert_eq!(workspace.archive(&world.store, &world.user, None).unwrap(), kept);
    assert_eq!(workspace.pinned(&world.store, &world.user).unwrap(), Pinned::Yes);

    let error = remove(&|_| vec!["process 7 works there".to_owned()]).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }) && path.exists());
    std::fs::set_permissions(path.join("src"), std::fs::Permissions::from_mode(0o500)).unwrap();
    remove(NOBODY).unwrap();
    assert!(!path.exists());
    world.fsck_store();
    for id in kept {
        git(world.store.path(), &["rev-list", "--objects", id.as_str()]);
    }
}

#[test]
fn a_forced_removal_takes_what_is_there() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "x", "x");
    let path = workspace.path().to_owned();
    workspace.remove(&world.store, &world.user, &Removal::Forced).unwrap();
    assert!(!path.exists() && world.store.workspaces().unwrap().is_empty());
}

#[test]
fn agents_in_two_workspaces_share_no_stash_branch_or_configuration() {
    let world = World::new();
    let (a, b) = (world.workspace("a"), world.workspace("b"));
    write(a.path(), "README.md", "a\n");
    git(a.path(), &["stash", "-q"]);
    git(a.path(), &["branch", "mine"]);
    git(a.path(), &["config", "x.y", "z"]);
    git(a.path(), &["gc", "-q", "--prune=now"]);
    assert_eq!(git(b.path(), &["stash", "list"]), "");
    assert!(!try_git(b.path(), &["rev-parse", "-q", "--verify", "mine"]) && !try_git(b.path(), &["config", "x.y"]));
    assert_eq!(git(&world.repo, &["stash", "list"]), "");
    assert_eq!(git(b.path(), &["status", "--porcelain"]), "");
}
