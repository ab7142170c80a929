//! Landing never changes what a person has, and is never undone by what they do next.

use std::path::Path;
use std::time::Duration;

use outlast_core::Oid;
use outlast_git::{Checkpoint, Integration, Move, MoveOutcome, TargetState, until_let_go};

use crate::fixture::{World, done, git, read, try_git, write};
use crate::late_gc::kept;

/// A published step of `target` from the base.
fn step(world: &World, target: &str) -> Move {
    let end = done(world, "t");
    let candidate = world.ready("t", &end, &world.base);
    let old = world.user.resolve_target(target).unwrap().tip;
    world.published("t", target, old.as_ref(), &candidate)
}

fn go(world: &World, step: &Move) -> MoveOutcome {
    world.user.move_target(&world.store, step).unwrap()
}

fn tip(world: &World, branch: &str) -> Oid {
    world.user.resolve_target(branch).unwrap().tip.unwrap()
}

/// The next commit of everything in `checkout` undoes nothing that landed.
fn next_commit_reverts_nothing(checkout: &Path) {
    write(checkout, "docs/guide.md", "edited by a person\n");
    git(checkout, &["commit", "-qam", "a person goes on"]);
    let touched = git(checkout, &["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(touched, "docs/guide.md", "the person's commit touched what landed");
}

#[test]
fn a_landing_is_one_commit_in_the_users_name_on_a_branch_of_the_run() {
    let world = World::new();
    write(&world.repo, "README.md", "the user's own unfinished edit\n");
    git(&world.repo, &["add", "README.md"]);
    write(&world.repo, "untracked", "theirs\n");
    git(&world.repo, &["stash", "push", "-q", "--keep-index", "-u"]);
    let before = world.snapshot();
    let end = done(&world, "t");
    let candidate = world.ready("t", &end, &world.base);
    assert_eq!(candidate, world.ready("t", &end, &world.base), "the same values give the same commit");
    assert_eq!(before, world.snapshot(), "something changed before the landing");

    let step = world.published("t", "outlast/run-1", None, &candidate);
    world.published("t", "outlast/run-1", None, &candidate);
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::AtOld);
    assert_eq!(go(&world, &step), MoveOutcome::Moved);
    assert_eq!(go(&world, &step), MoveOutcome::Moved, "done twice");
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::Landed);

    let log = git(&world.repo, &["log", "--format=%P|%an <%ae>|%cn|%B", "-1", "outlast/run-1"]);
    let trailers = "Do t\n\nOutlast-Run: run-1\nOutlast-Task: t\nOutlast-Agent: claude";
    assert_eq!(log, format!("{}|Ada Lovelace <ada@example.org>|Ada Lovelace|{trailers}", world.base));
    assert_eq!(
        git(&world.repo, &["log", "--format=%(trailers:key=Outlast-Task,valueonly)", "-1", "outlast/run-1"]),
        "t"
    );

    // Nothing of the user's but new objects, the branch and its reflog.
    let mut after = world.snapshot();
    after.retain(|path, _| {
        let path = path.to_string_lossy();
        !path.starts_with(".git/objects/") && !path.ends_with("/outlast/run-1")
    });
    let mut before = before;
    before.retain(|path, _| !path.starts_with(".git/objects"));
    assert_eq!(before, after);

    // It stands on its own: without the store and the pins.
    std::fs::remove_dir_all(world.store.path()).unwrap();
    std::fs::remove_dir_all(world.repo.join(".git/refs/outlast")).unwrap();
    git(&world.repo, &["gc", "-q", "--prune=now"]);
    git(&world.repo, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(git(&world.repo, &["show", "outlast/run-1:new.rs"]), "// new");
}

#[test]
fn locks_that_killed_gits_of_ours_have_left_on_pins_are_removed() {
    let world = World::new();
    let end = done(&world, "t");
    let pins = world.repo.join(format!(".git/refs/outlast/base/{}", world.run));
    let leave = || {
        for name in ["target", world.base.as_str()] {
            write(&pins, &format!("{name}.lock"), "");
        }
    };
    leave();
    world.user.pin_base(&world.store, &world.run, &world.base).unwrap();
    leave();
    let candidate = world.ready("t", &end, &world.base);
    leave();
    let step = world.published("t", "landed", None, &candidate);
    // This one is the user's: what they do with all of their refs is none of a landing's business.
    write(&world.repo, ".git/packed-refs.lock", "");
    assert_eq!(go(&world, &step), MoveOutcome::Moved);
    assert_eq!(tip(&world, "landed"), step.new);
    assert_eq!(kept(&world), "", "the landing's mark outlived it");
    std::fs::remove_file(world.repo.join(".git/packed-refs.lock")).unwrap();
}

#[test]
fn a_lock_that_a_killed_git_of_ours_has_left_on_the_target_is_removed_and_nobody_elses() {
    let world = World::new().impatient();
    let step = step(&world, "landed/here");
    let lock = world.repo.join(".git/refs/heads/landed/here.lock");
    for other in ["", world.base.as_str()] {
        write(&world.repo, ".git/refs/heads/landed/here.lock", other);
        assert!(world.user.move_target(&world.store, &step).is_err(), "somebody else's");
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), other);
    }
    write(&world.repo, ".git/refs/heads/landed/here.lock", format!("{}\n", step.new));
    assert_eq!(go(&world, &step), MoveOutcome::Moved);
    assert_eq!((tip(&world, "landed/here"), lock.exists()), (step.new, false));
}

#[test]
fn a_landing_of_many_files_is_whole() {
    let world = World::new();
    let workspace = world.workspace("t");
    for n in 0..200 {
        write(workspace.path(), &format!("gen/{}/{n}", n % 7), format!("{n}\n").repeat(n));
    }
    let end = world.checkpoint(&workspace, "t");
    world.fsck_store();
    let candidate = world.ready("t", &end, &world.base);
    let step = world.published("t", "outlast/run-1", None, &candidate);
    world.published("t", "outlast/run-1", None, &candidate);
    assert_eq!(go(&world, &step), MoveOutcome::Moved);
    std::fs::remove_dir_all(world.store.path()).unwrap();
    git(&world.repo, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(git(&world.repo, &["ls-tree", "-r", "--name-only", "outlast/run-1", "gen"]).lines().count(), 200);
    assert_eq!(git(&world.repo, &["count-objects", "-v"]).lines().filter(|l| l.starts_with("garbage: 0")).count(), 1);
}

#[test]
fn a_target_that_is_checked_out_clean_moves_with_its_checkout() {
    let world = World::new();
    assert_eq!(go(&world, &step(&world, "main")), MoveOutcome::Moved);
    assert_eq!(read(&world.repo, "src/a.rs"), "fn t() {}\n");
    assert_eq!(git(&world.repo, &["status", "--porcelain"]), "");
    next_commit_reverts_nothing(&world.repo);
}

/// Does what is told in a shell; its last command, `outlast land`, is the next go.
fn follow(world: &World, step: &Move, command: &str) {
    let land = format!("outlast land --run {} {}", step.run, step.task);
    let before = command.strip_suffix(&land).unwrap_or_else(|| panic!("{command}")).trim_end_matches(" && ");
    let status = std::process::Command::new("sh").args(["-c", before]).current_dir("/").status().unwrap();
    assert!(status.success(), "{command}");
    assert_eq!(go(world, step), MoveOutcome::Moved, "{command}");
    assert_eq!(world.user.target_state(step).unwrap(), TargetState::Landed);
}

#[test]
fn g02_a_dirty_checkout_of_the_target_keeps_every_byte_and_the_command_is_named() {
    let world = World::new();
    let step = step(&world, "main");
    write(&world.repo, "src/a.rs", "the user's unstaged work\n");
    let before = world.snapshot();
    let MoveOutcome::CheckedOut { path, command, why } = go(&world, &step) else { panic!("landed on dirt") };
    assert_eq!(path, world.repo.canonicalize().unwrap());
    assert!(why.contains("src/a.rs"), "{why}");
    assert_eq!(before, world.snapshot());
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::AtOld);

    // The person runs the printed command in a shell, which leads to the landing.
    follow(&world, &step, &command);
    assert_eq!(git(&world.repo, &["show", "stash@{0}:src/a.rs"]), "the user's unstaged work");
    next_commit_reverts_nothing(&world.repo);
}

#[test]
fn g02_dirt_elsewhere_in_the_checkout_stays_and_the_landing_goes_through() {
    let world = World::new();
    let step = step(&world, "main");
    write(&world.repo, "README.md", "staged\n");
    git(&world.repo, &["add", "README.md"]);
    write(&world.repo, "src/b.rs", "unstaged\n");
    assert_eq!(go(&world, &step), MoveOutcome::Moved);
    assert_eq!(git(&world.repo, &["status", "--porcelain"]), "M  README.md\n M src/b.rs");
    git(&world.repo, &["commit", "-qam", "a person goes on"]);
    assert_eq!(git(&world.repo, &["show", "--format=", "--name-only", "HEAD"]), "README.md\nsrc/b.rs");
}

/// Git finds a branch locked when it has written everything: a `git commit` in that moment, or a lock that somebody left.
#[test]
fn a_lock_that_keeps_the_branch_where_it_is_leaves_the_checkout_as_it_was() {
    for lock in [".git/HEAD.lock", ".git/refs/heads/main.lock"] {
        let world = World::new().impatient();
        let step = step(&world, "main");
        write(&world.repo, "README.md", "staged\n");
        git(&world.repo, &["add", "README.md"]);
        write(&world.repo, "src/b.rs", "unstaged\n");
        write(&world.repo, "untracked", "theirs\n");
        write(&world.repo, lock, "");
        let all = || {
            let mut all = world.snapshot();
            // It holds when files were written, and git writes them again: their kinds and contents count.
            all.retain(|path, _| !path.ends_with("index"));
            for facts in all.values_mut() {
                let words: Vec<&str> = facts.split(' ').collect();
                *facts = [words[0], words[words.len() - 1]].join(" ");
            }
            (all, git(&world.repo, &["status", "--porcelain"]), git(&world.repo, &["ls-files", "--stage"]))
        };
        let before = all();
        let MoveOutcome::CheckedOut { command, why, .. } = go(&world, &step) else { panic!("moved under a lock") };
        assert!(why.contains(".lock"), "{why}");
        assert_eq!(before, all(), "{lock}");

        std::fs::remove_file(world.repo.join(lock)).unwrap();
        follow(&world, &step, &command);
        assert_eq!(git(&world.repo, &["status", "--porcelain"]), "M  README.md\n M src/b.rs\n?? untracked");
    }
}

#[test]
fn e01_a_lock_of_a_checkout_is_known_and_waited_for_while_it_is_held() {
    let world = World::new();
    git(&world.repo, &["branch", "elsewhere"]);
    assert_eq!(world.user.checkout_lock("main").unwrap(), None);
    for name in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        write(&world.repo, &format!(".git/{name}"), "");
        let lock = world.user.checkout_lock("main").unwrap().unwrap();
        assert!(lock.ends_with(name), "{}", lock.display());
        assert_eq!(world.user.checkout_lock("elsewhere").unwrap(), None, "nobody has that one checked out");
        assert!(!until_let_go(&lock, Duration::from_millis(20)));
        let holder = std::thread::spawn({
            let lock = lock.clone();
            move || std::fs::rename(&lock, lock.with_extension("done")).unwrap()
        });
        assert!(until_let_go(&lock, Duration::from_secs(60)));
        holder.join().unwrap();
    }
}

/// What cannot be taken back is told with the command that finishes it.
#[test]
fn what_git_left_under_a_lock_and_cannot_be_taken_back_is_told_with_what_finishes_it() {
    let world = World::with(|repo| write(repo, ".gitattributes", "*.rs filter=ends\n")).impatient();
    git(&world.repo, &["config", "filter.ends.clean", "cat"]);
    // The git that takes it back is ended when it writes what the first one has written before.
    let second = "test -e ../once && kill -9 $PPID; : > ../once";
    let ends = format!("test -e ../go-on -o %f != src/a.rs || {{ {second}; }}; cat");
    git(&world.repo, &["config", "filter.ends.smudge", &ends]);
    std::fs::write(world.repo.join("../go-on"), "").unwrap();
    let step = step(&world, "main");
    std::fs::remove_file(world.repo.join("../go-on")).unwrap();
    write(&world.repo, "README.md", "the user's unfinished edit\n");
    write(&world.repo, ".git/HEAD.lock", "");
    let MoveOutcome::CheckedOut { command, why, .. } = go(&world, &step) else { panic!("moved under a lock") };
    assert!(why.contains("HEAD.lock") && why.contains("what it had written is still there"), "{why}");

    std::fs::write(world.repo.join("../go-on"), "").unwrap();
    std::fs::remove_file(world.repo.join(".git/HEAD.lock")).unwrap();
    follow(&world, &step, &command);
    assert_eq!(git(&world.repo, &["status", "--porcelain"]), " M README.md\n?? .gitattributes");
    assert_eq!(read(&world.repo, "README.md"), "the user's unfinished edit\n");
}

#[test]
fn untracked_and_ignored_files_in_the_way_are_not_overwritten() {
    for ignored in [false, true] {
        let world = World::new();
        let step = step(&world, "main");
        if ignored {
            write(&world.repo, ".git/info/exclude", "new.rs\n");
        }
        write(&world.repo, "new.rs", "theirs\n");
        let MoveOutcome::CheckedOut { command, .. } = go(&world, &step) else { panic!("ignored: {ignored}") };
        assert_eq!(read(&world.repo, "new.rs"), "theirs\n");
        assert_eq!(tip(&world, "main"), world.base);
        follow(&world, &step, &command);
        assert_eq!(git(&world.repo, &["show", "stash@{0}^3:new.rs"]), "theirs");
    }
}

#[test]
fn a_target_checked_out_in_a_second_worktree_is_moved_there() {
    let world = World::new();
    let second = world.dir.path().join("second tree");
    git(&world.repo, &["worktree", "add", "-q", "-b", "release", second.to_str().unwrap()]);
    let step = step(&world, "release");
    write(&second, "src/a.rs", "unfinished\n");
    assert!(
        matches!(go(&world, &step), MoveOutcome::CheckedOut { path, .. } if path == second.canonicalize().unwrap())
    );
    git(&second, &["checkout", "-q", "src/a.rs"]);
    assert_eq!(go(&world, &step), MoveOutcome::Moved);
    next_commit_reverts_nothing(&second);
    assert_eq!(tip(&world, "main"), world.base);
}

#[test]
fn a_target_of_a_worktree_whose_folder_is_gone_is_left_alone() {
    let world = World::new();
    let second = world.dir.path().join("second");
    git(&world.repo, &["worktree", "add", "-q", "-b", "release", second.to_str().unwrap()]);
    let step = step(&world, "release");
    std::fs::remove_dir_all(&second).unwrap();
    assert!(matches!(go(&world, &step), MoveOutcome::CheckedOut { why, .. } if why.contains("gone")));
    git(&world.repo, &["worktree", "prune"]);
    assert_eq!(go(&world, &step), MoveOutcome::Moved);
}

#[test]
fn a_target_in_the_middle_of_a_rebase_is_left_alone() {
    let world = World::with(|repo| {
        git(repo, &["checkout", "-qb", "topic"]);
        write(repo, "README.md", "topic\n");
        git(repo, &["commit", "-qam", "topic"]);
        git(repo, &["checkout", "-q", "main"]);
        write(repo, "README.md", "main\n");
        git(repo, &["commit", "-qam", "main"]);
    });
    let step = step(&world, "topic");
    git(&world.repo, &["checkout", "-q", "topic"]);
    assert!(!try_git(&world.repo, &["rebase", "-q", "main"]));
    assert!(matches!(go(&world, &step), MoveOutcome::CheckedOut { why, .. } if why.contains("rebase")));
}

#[test]
fn a_target_that_a_person_moved_is_not_moved_back() {
    let world = World::new();
    git(&world.repo, &["branch", "release"]);
    let step = step(&world, "release");
    git(&world.repo, &["checkout", "-q", "release"]);
    write(&world.repo, "docs/guide.md", "theirs\n");
    git(&world.repo, &["commit", "-qam", "theirs"]);
    git(&world.repo, &["checkout", "-q", "main"]);
    let theirs = tip(&world, "release");
    assert_eq!(go(&world, &step), MoveOutcome::NotAtOld { found: Some(theirs.clone()) });
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::Moved { tip: Some(theirs.clone()) });

    // On top of where it is now, both changes are there.
    let end = world.store.last_checkpoint(&world.attempt("t")).unwrap().unwrap();
    let end = Checkpoint {
        commit: end.clone(),
        tree: end,
        changed: vec![],
        head: None,
        agent: outlast_git::AgentState::default(),
        settled: true,
        notes: vec![],
    };
    let candidate = world.ready("t", &end, &theirs);
    let again = world.published("t", "release", Some(&theirs), &candidate);
    assert_eq!(go(&world, &again), MoveOutcome::Moved);
    assert_eq!(git(&world.repo, &["show", "release:docs/guide.md"]), "theirs");
    assert_eq!(git(&world.repo, &["show", "release:new.rs"]), "// new");
    // The first step is recognised as landed in another shape, by its trailers.
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::Landed);
}

#[test]
fn a_landing_is_found_again_after_people_built_on_it_amended_or_reset_it() {
    let world = World::new();
    git(&world.repo, &["branch", "release"]);
    let step = step(&world, "release");
    go(&world, &step);
    git(&world.repo, &["checkout", "-q", "release"]);
    next_commit_reverts_nothing(&world.repo);
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::Landed);
    git(&world.repo, &["reset", "-q", "--hard", "HEAD~1"]);
    write(&world.repo, "new.rs", "// amended\n");
    git(&world.repo, &["commit", "-qa", "--amend", "--no-edit"]);
    git(&world.repo, &["reflog", "expire", "--expire=now", "--all"]);
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::Landed);
    git(&world.repo, &["checkout", "-q", "--detach", "main"]);
    git(&world.repo, &["branch", "-qD", "release"]);
    assert_eq!(world.user.target_state(&step).unwrap(), TargetState::Moved { tip: None });
}

#[test]
fn a_git_that_is_killed_in_the_midst_of_a_checkout_is_told_with_the_command_that_finishes_it() {
    for killed_at in ["new.rs", "src/a.rs"] {
        let world = World::with(|repo| write(repo, ".gitattributes", "*.rs filter=ends\n"));
        git(&world.repo, &["config", "filter.ends.clean", "cat"]);
        // The parent of a filter's shell is the git that asks for what it is to write.
        let ends = format!("test -e ../go-on -o %f != {killed_at} || kill -9 $PPID; cat");
        git(&world.repo, &["config", "filter.ends.smudge", &ends]);
        std::fs::write(world.repo.join("../go-on"), "").unwrap();
        let step = step(&world, "main");
        write(&world.repo, "README.md", "the user's unfinished edit\n");
        std::fs::remove_file(world.repo.join("../go-on")).unwrap();

        let MoveOutcome::CheckedOut { command, why, .. } = go(&world, &step) else { panic!("it was not killed") };
        assert!(why.contains("ended from outside"), "{killed_at}: {why}");
        assert!(world.repo.join(".git/index.lock").exists() && command.contains("index.lock"), "{command}");
        assert_eq!(world.user.target_state(&step).unwrap(), TargetState::AtOld);
        assert_eq!(git(&world.repo, &["stash", "list"]), "", "nothing of theirs is written");
        // What they have changed since is kept, too.
        write(&world.repo, "new.rs", "written by the user after all\n");
        std::fs::write(world.repo.join("../go-on"), "").unwrap();
        let MoveOutcome::CheckedOut { why: again, .. } = go(&world, &step) else { panic!("it went over their file") };
        assert!(again.contains("index.lock"), "{again}");

        let command = match command.contains("'new.rs'") {
            true => command,
            // It was not there when the command was made.
            false => {
                let stash = format!("git -C '{}' stash push --all -- new.rs && outlast land", world.repo.display());
                command.replace("outlast land", &stash)
            }
        };
        follow(&world, &step, &command);
        assert_eq!(read(&world.repo, "new.rs"), "// new\n");
        assert_eq!(read(&world.repo, "README.md"), "the user's unfinished edit\n");
        assert_eq!(git(&world.repo, &["show", "stash@{0}^3:new.rs"]), "written by the user after all");
        git(&world.repo, &["checkout", "-q", "README.md"]);
        next_commit_reverts_nothing(&world.repo);
    }
}

#[test]
fn e01_a_lock_of_someone_elses_is_waited_for() {
    let world = World::new();
    let step = step(&world, "outlast/run-1");
    let lock = world.repo.join(".git/refs/heads/outlast/run-1.lock");
    write(&world.repo, ".git/refs/heads/outlast/run-1.lock", "");
    std::thread::scope(|scope| {
        let landing = scope.spawn(|| go(&world, &step));
        // Long enough for git to have met the lock; there is no event to wait for.
        std::thread::sleep(std::time::Duration::from_millis(400));
        assert!(!landing.is_finished());
        std::fs::remove_file(&lock).unwrap();
        assert_eq!(landing.join().unwrap(), MoveOutcome::Moved);
    });
}

#[test]
fn an_index_of_the_integration_worktree_that_a_crash_has_damaged_is_made_anew() {
    let world = World::new();
    let end = done(&world, "t");
    let candidate = world.ready("t", &end, &world.base);
    let integration = Integration::new(world.dir.path().join("integration"));
    let check = |commit: &Oid| integration.checkout(&world.user, &world.store, &world.base, commit).unwrap();
    let path = check(&world.base);
    write(&path, "target/cache", "warm");
    let index = world.store.path().join("outlast/integration/index");
    for damaged in ["", "DIRC and no more", "garbage"] {
        std::fs::write(&index, damaged).unwrap();
        check(&candidate.commit);
        assert_eq!(
            (read(&path, "new.rs"), git(&path, &["status", "--porcelain"])),
            ("// new\n".to_owned(), String::new())
        );
        check(&world.base);
        assert!(!path.join("new.rs").exists());
    }
}

#[test]
fn the_integration_worktree_is_exactly_the_commit_and_keeps_ignored_files() {
    let world = World::with(|repo| {
        write(repo, ".env", "KEY=1\n");
        std::os::unix::fs::symlink("README.md", repo.join("in.log")).unwrap();
        write(repo, ".worktreeinclude", ".env\nin.log\n");
    });
    let end = done(&world, "t");
    let candidate = world.ready("t", &end, &world.base);
    let before = world.snapshot();
    let integration = Integration::new(world.dir.path().join("integration"));
    let check = |commit: &Oid| integration.checkout(&world.user, &world.store, &world.base, commit).unwrap();
    let path = check(&candidate.commit);
    assert_eq!(read(&path, "new.rs"), "// new\n");
    write(&path, "target/cache", "warm");
    write(&path, "junk/x", "left by a verify");
    write(&path, "README.md", "changed by a verify");
    std::fs::remove_file(path.join("src/b.rs")).unwrap();
    crate::fixture::new_repo(&path.join("nested"));
    assert_eq!(git(&path, &["rev-parse", "HEAD"]), candidate.commit.as_str());
    crate::fixture::executable(&path, ".git/hooks/post-checkout", "#!/bin/sh\ntouch planted\n");
    check(&world.base);
    assert_eq!(read(&path, "README.md"), "hello\n");
    assert_eq!(read(&path, "src/b.rs"), "fn b() {}\n");
    assert_eq!((read(&path, "target/cache"), read(&path, ".env")), ("warm".to_owned(), "KEY=1\n".to_owned()));
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
    assert!(!path.join(".git/hooks/post-checkout").exists());
    assert!(!path.join("junk").exists() && !path.join("new.rs").exists() && !path.join("nested").exists());
    check(&candidate.commit);
    check(&candidate.commit);
    assert_eq!(read(&path, "new.rs"), "// new\n");
    assert_eq!(git(&world.repo, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(before, world.snapshot());
}
