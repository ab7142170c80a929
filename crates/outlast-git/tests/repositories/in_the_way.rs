//! A landing that a checkout is in the way of: what is told works there, and keeps every byte.

use outlast_git::{Move, MoveOutcome};

use crate::fixture::{World, git, read, write};

/// A published step of `main` to what a task leaves.
fn step(world: &World, make: impl Fn(&std::path::Path)) -> Move {
    let workspace = world.workspace("t");
    make(workspace.path());
    let end = world.checkpoint(&workspace, "t");
    let candidate = world.ready("t", &end, &world.base);
    world.published("t", "main", Some(&world.base), &candidate)
}

fn go(world: &World, step: &Move) -> MoveOutcome {
    world.user.move_target(&world.store, step).unwrap()
}

/// Runs a command in a shell, anywhere.
#[track_caller]
fn run(command: &str) {
    let done = std::process::Command::new("sh").args(["-c", command]).current_dir("/").output().unwrap();
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Does what a refusal tells, whose last part is to land; what brings things back afterwards is handed over.
#[track_caller]
fn follow(world: &World, step: &Move) -> Option<String> {
    let MoveOutcome::CheckedOut { command, .. } = go(world, step) else { panic!("nothing was in the way") };
    let land = format!(" && outlast land --run {} {}", step.run, step.task);
    let (before, after) = command.split_once(&land).unwrap_or_else(|| panic!("nothing is done before: {command}"));
    run(before);
    assert_eq!(go(world, step), MoveOutcome::Moved, "{command}");
    after.split_once(": ").map(|(_, back)| back.to_owned())
}

#[test]
fn a_file_where_it_brings_a_folder() {
    for ignored in [false, true] {
        let world = World::new();
        let step = step(&world, |tree| write(tree, "tools/new/run.rs", "// run\n"));
        if ignored {
            write(&world.repo, ".git/info/exclude", "tools\n");
        }
        write(&world.repo, "tools", "theirs\n");
        write(&world.repo, "README.md", "unfinished\n");
        assert_eq!(follow(&world, &step), None);
        assert_eq!(read(&world.repo, "tools/new/run.rs"), "// run\n");
        assert_eq!(git(&world.repo, &["show", "stash@{0}^3:tools"]), "theirs");
        assert_eq!(read(&world.repo, "README.md"), "unfinished\n", "all else stays where it is");
    }
}

#[test]
fn a_folder_where_it_brings_a_file() {
    for ignored in [false, true] {
        let world = World::new();
        let step = step(&world, |tree| write(tree, "tools", "// run\n"));
        if ignored {
            write(&world.repo, ".git/info/exclude", "tools/\n");
        }
        write(&world.repo, "tools/deep/mine", "theirs\n");
        std::fs::create_dir(world.repo.join("tools/empty")).unwrap();
        assert_eq!(follow(&world, &step), None);
        assert_eq!(read(&world.repo, "tools"), "// run\n");
        assert_eq!(git(&world.repo, &["show", "stash@{0}^3:tools/deep/mine"]), "theirs");
    }
}

#[test]
fn a_file_in_a_folder_that_is_ignored_as_a_whole() {
    let world = World::new();
    let step = step(&world, |tree| {
        write(tree, "made/out.js", "// out\n");
        git(tree, &["add", "-f", "made/out.js"]);
    });
    write(&world.repo, ".git/info/exclude", "made/\n");
    write(&world.repo, "made/out.js", "theirs\n");
    write(&world.repo, "made/other.js", "theirs, too\n");
    assert_eq!(follow(&world, &step), None);
    assert_eq!(
        (read(&world.repo, "made/out.js"), read(&world.repo, "made/other.js")),
        ("// out\n".into(), "theirs, too\n".into())
    );
    assert_eq!(git(&world.repo, &["show", "stash@{0}^3:made/out.js"]), "theirs");
}

#[test]
fn files_that_git_was_told_to_leave_alone() {
    for marks in [&["--skip-worktree"][..], &["--assume-unchanged"], &["--skip-worktree", "--assume-unchanged"]] {
        let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n{last}\n");
        let world = World::with(|repo| {
            write(repo, "conf", lines("1", "6"));
            git(repo, &["add", "conf"]);
            git(repo, &["commit", "-qm", "conf"]);
        });
        let step = step(&world, |tree| {
            write(tree, "conf", lines("one", "6"));
            write(tree, "src/b.rs", "fn t() {}\n");
        });
        for mark in marks {
            git(&world.repo, &["update-index", mark, "conf", "src/b.rs", "README.md"]);
        }
        let is_marked = |path| !git(&world.repo, &["ls-files", "-v", path]).starts_with('H');
        // Of two that are marked and that the landing changes, one is as it was.
        write(&world.repo, "conf", lines("1", "mine"));
        write(&world.repo, "README.md", "mine\n");
        let MoveOutcome::CheckedOut { command, .. } = go(&world, &step) else { panic!("landed over it") };
        assert!(!command.contains("b.rs") && !command.contains("README"), "{command}");
        let back = follow(&world, &step).unwrap();
        assert_eq!((read(&world.repo, "conf"), is_marked("conf")), (lines("one", "6"), false));
        assert_eq!((read(&world.repo, "README.md"), is_marked("README.md")), ("mine\n".to_owned(), true));
        run(&back);
        assert_eq!((read(&world.repo, "conf"), is_marked("conf")), (lines("one", "mine"), true));
    }
}

#[test]
fn a_worktree_of_the_target_whose_folder_is_gone() {
    for locked in [false, true] {
        let world = World::new();
        let second = world.dir.path().join("it's gone");
        git(&world.repo, &["checkout", "-q", "--detach"]);
        git(&world.repo, &["worktree", "add", "-q", second.to_str().unwrap(), "main"]);
        let step = step(&world, |tree| write(tree, "new.rs", "// new\n"));
        if locked {
            git(&world.repo, &["worktree", "lock", second.to_str().unwrap()]);
        }
        std::fs::remove_dir_all(&second).unwrap();
        assert_eq!(follow(&world, &step), None);
    }
}
