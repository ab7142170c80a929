//! What a checkpoint takes, and what it leaves alone.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_git::{ByteSlice, Change, Checkpoint, Kind, Note, SkipReason};

use crate::fixture::{World, executable, git, write};

fn changed(changes: &[Change]) -> Vec<String> {
    let shape = |c: &Change| match (&c.old, &c.new) {
        (None, Some(_)) => '+',
        (Some(_), None) => '-',
        _ => '~',
    };
    changes.iter().map(|c| format!("{}{}", shape(c), c.path_lossy())).collect()
}

#[test]
fn g10_the_whole_tree_is_saved_and_the_agents_index_and_head_are_not_touched() {
    let world = World::new();
    let before = world.snapshot();
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "README.md", "changed\n");
    write(path, "new/deep/file", "untracked\n");
    std::fs::remove_file(path.join("docs/guide.md")).unwrap();
    git(path, &["mv", "src/a.rs", "src/renamed.rs"]);
    git(path, &["rm", "-q", "--cached", "src/b.rs"]);
    executable(path, "src/b.rs", "fn b() {}\n");
    std::fs::remove_file(path.join("link")).unwrap();
    std::os::unix::fs::symlink("README.md", path.join("link")).unwrap();
    write(path, "crlf.txt", "a\r\nb\n");
    write(path, "target/huge/output", "ignored");
    let own = |name: &str| std::fs::read(path.join(".git").join(name)).unwrap();
    let (index, head) = (own("index"), own("HEAD"));

    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!(
        changed(&checkpoint.changed),
        [
            "~README.md",
            "+crlf.txt",
            "-docs/guide.md",
            "~link",
            "+new/deep/file",
            "-src/a.rs",
            "~src/b.rs",
            "+src/renamed.rs"
        ]
    );
    let kind = |path: &str| checkpoint.changed.iter().find(|c| c.path == path).unwrap().new.as_ref().unwrap().kind;
    assert_eq!((kind("src/b.rs"), kind("link"), kind("crlf.txt")), (Kind::Executable, Kind::Link, Kind::File));
    let bytes = &checkpoint.changed.iter().find(|c| c.path == "crlf.txt").unwrap().new.as_ref().unwrap().oid;
    assert_eq!(world.store.blob(bytes).unwrap(), b"a\r\nb\n");
    assert!(checkpoint.settled && checkpoint.notes == [Note::Ignored("target/".into())], "{:?}", checkpoint.notes);
    assert_eq!(checkpoint.head.as_ref(), Some(&world.base));
    assert_eq!((own("index"), own("HEAD")), (index, head));
    assert_eq!(before, world.snapshot());
    assert_eq!(world.store.last_checkpoint(&world.attempt("t")).unwrap(), Some(checkpoint.commit.clone()));

    // The next one names only what changed since.
    write(path, "README.md", "again\n");
    std::fs::remove_dir_all(path.join("new")).unwrap();
    let spec = world.checkpoint_spec("t", Some(&checkpoint));
    let next = workspace.checkpoint(&world.store, &world.user, &spec).unwrap();
    assert_eq!(changed(&next.changed), ["~README.md", "-new/deep/file"]);
    assert_eq!(git(world.store.path(), &["rev-parse", &format!("{}^", next.commit)]), checkpoint.commit.as_str());
    world.fsck_store();
}

#[test]
fn e22_any_path_survives() {
    let world = World::new();
    let workspace = world.workspace("t");
    let names: [&[u8]; 7] = [
        "文档/说明 书.txt".as_bytes(),
        b"a -> b.txt",
        b"new\nline",
        b"tab\tquote\"back\\slash",
        b"\xff\xfe",
        b" lead",
        b"-rf",
    ];
    for name in names {
        let path = workspace.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    let checkpoint = world.checkpoint(&workspace, "t");
    let mut found: Vec<&[u8]> = checkpoint.changed.iter().map(|c| c.path.as_bytes()).collect();
    let mut wanted = names.to_vec();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    for change in &checkpoint.changed {
        assert_eq!(world.store.blob(&change.new.as_ref().unwrap().oid).unwrap(), change.path.as_bytes());
    }
    world.fsck_store();
}

#[test]
fn line_ends_and_ignore_rules_are_those_git_would_apply() {
    let world = World::with(|repo| {
        git(repo, &["config", "core.autocrlf", "input"]);
        write(repo, ".gitattributes", "*.bat eol=crlf\n*.raw -text\n");
        write(repo, "src/.gitignore", "*.tmp\n!keep.tmp\n/gen\n");
        write(repo, ".git/info/exclude", "/local-only\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "rules"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    for name in ["x.bat", "x.txt", "x.raw"] {
        write(path, name, "one\r\ntwo\r\n");
    }
    for name in ["src/a.tmp", "src/keep.tmp", "src/gen/x", "gen/x", "src/sub/b.tmp", "local-only", ".env.x"] {
        write(path, name, "x");
    }
    let checkpoint = world.checkpoint(&workspace, "t");
    git(path, &["add", "-A"]);
    assert_eq!(checkpoint.tree.as_str(), git(path, &["write-tree"]));
    assert_eq!(changed(&checkpoint.changed), ["+gen/x", "+src/keep.tmp", "+x.bat", "+x.raw", "+x.txt"]);
}

#[test]
fn e13_the_agents_own_commits_are_copied_whole_wherever_head_stands() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["checkout", "-q", "--detach"]);
    for n in 0..3 {
        write(path, "src/a.rs", format!("{n}"));
        write(path, "forced.log", format!("{n}"));
        git(path, &["add", "-f", "forced.log"]);
        git(path, &["commit", "-qam", "own"]);
    }
    // Packed by the agent's own housekeeping: no loose object is left to read.
    git(path, &["gc", "-q", "--prune=now"]);
    let head = git(path, &["rev-parse", "HEAD"]);
    write(path, "src/a.rs", "uncommitted");
    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!(checkpoint.head.as_ref().unwrap().as_str(), head);
    assert_eq!(git(world.store.path(), &["rev-parse", &format!("{}^2", checkpoint.commit)]), head);
    assert_eq!(world.text(&checkpoint.commit, "src/a.rs"), "uncommitted");
    assert_eq!(changed(&checkpoint.changed), ["+forced.log", "~src/a.rs"], "what it committed counts, ignored or not");
    std::fs::remove_dir_all(path).unwrap();
    world.fsck_store();
    assert_eq!(git(world.store.path(), &["log", "--format=%s", &head, "--not", world.base.as_str()]), "own\nown\nown");
}

#[test]
fn e27_a_repository_in_the_tree_is_plain_files_and_what_cannot_be_taken_is_named() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    crate::fixture::new_repo(&path.join("vendor/lib"));
    write(path, "big", vec![7; 1000]);
    write(path, "docs/guide.md", vec![8; 1000]);
    nix::unistd::mkfifo(&path.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    write(path, ".GIT/config", "x");
    let mut spec = world.checkpoint_spec("t", None);
    spec.file_limit = 999;
    let checkpoint = workspace.checkpoint(&world.store, &world.user, &spec).unwrap();
    let paths = changed(&checkpoint.changed);
    assert!(
        paths.contains(&"+vendor/lib/src/a.rs".to_owned()) && !paths.iter().any(|p| p.contains(".git/")),
        "{paths:?}"
    );
    assert!(checkpoint.changed.iter().all(|c| c.new.as_ref().is_none_or(|e| e.kind != Kind::Gitlink)));
    assert!(
        !paths.iter().any(|p| ["+big", "~docs/guide.md", "-docs/guide.md", "+pipe"].contains(&p.as_str())),
        "{paths:?}"
    );
    let skipped = |path: &str, reason| Note::Skipped { path: path.into(), reason };
    for note in [
        Note::NestedRepository("vendor/lib".into()),
        skipped("big", SkipReason::TooLarge { bytes: 1000 }),
        skipped("docs/guide.md", SkipReason::TooLarge { bytes: 1000 }),
        skipped("pipe", SkipReason::NotAFile),
        skipped(".GIT", SkipReason::Unstorable),
    ] {
        assert!(checkpoint.notes.contains(&note), "{note:?} not in {:?}", checkpoint.notes);
    }
    world.fsck_store();
}

#[test]
fn e01_thirteen_checkpoints_at_once_pass_while_every_lock_of_git_is_held() {
    let world = World::new();
    let workspaces: Vec<_> = (0..13).map(|n| (format!("t{n}"), world.workspace(&format!("t{n}")))).collect();
    for dir in workspaces.iter().map(|(_, w)| w.path()).chain([world.repo.as_path()]) {
        for lock in ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/heads/main.lock"] {
            write(&dir.join(".git"), lock, "");
        }
        write(dir, "work", "w");
    }
    std::thread::scope(|scope| {
        for (task, workspace) in &workspaces {
            scope.spawn(|| assert_eq!(changed(&world.checkpoint(workspace, task).changed), ["+work"]));
        }
    });
    assert_eq!(world.store.refs().unwrap().len(), 13);
    world.fsck_store();
}

#[test]
fn a_file_that_changes_while_it_is_read_makes_the_checkpoint_unsettled() {
    let world = World::new();
    let workspace = world.workspace("t");
    let file = workspace.path().join("growing");
    std::fs::write(&file, vec![1; 64 << 10]).unwrap();
    let stop = AtomicBool::new(false);
    let (started, wait) = std::sync::mpsc::channel();
    let noticed = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut out = std::fs::File::options().append(true).open(&file).unwrap();
            out.write_all(b"x").unwrap();
            started.send(()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                out.write_all(b"x").unwrap();
            }
        });
        wait.recv().unwrap();
        // On a busy machine the writer may get no turn while the file is read: then nothing changes, and that is true.
        let noticed = (0..50).any(|_| !world.checkpoint(&workspace, "t").settled);
        stop.store(true, Ordering::Relaxed);
        noticed
    });
    assert!(noticed);
    assert!(world.checkpoint(&workspace, "t").settled);
}

#[test]
fn a_change_within_the_clocks_tick_is_not_missed() {
    let world = World::new();
    let workspace = world.workspace("t");
    let mut last = None;
    for n in 0..12 {
        write(workspace.path(), "same-size", format!("{n:04}"));
        let checkpoint = world.checkpoint(&workspace, "t");
        assert_eq!(world.text(&checkpoint.commit, "same-size"), format!("{n:04}"));
        assert_ne!(last.replace(checkpoint.tree.clone()), Some(checkpoint.tree));
    }
}

#[test]
fn the_cache_may_be_lost_or_damaged_at_any_time() {
    let world = World::new();
    let workspace = world.workspace("t");
    write(workspace.path(), "new", "x");
    write(workspace.path(), "src/a.rs", "changed");
    let first = world.checkpoint(&workspace, "t");
    let admin = world.store.path().join("outlast/workspaces/run-1/t.d");
    let caches = || -> Vec<_> {
        let all = std::fs::read_dir(&admin).unwrap().map(|e| e.unwrap().path());
        all.filter(|p| p.file_name().unwrap().as_bytes().starts_with(b"index-")).collect()
    };
    assert_eq!(caches().len(), 1);
    std::fs::write(&caches()[0], "DIRC rubbish").unwrap();
    assert_eq!(world.checkpoint(&workspace, "t"), first);
    std::fs::remove_file(&caches()[0]).unwrap();
    assert_eq!(world.checkpoint(&workspace, "t"), first);
}

#[test]
fn what_a_turn_changes_is_kept_beside_the_cache_which_is_written_anew_only_when_much_has_changed() {
    let world = World::with(|repo| {
        for n in 0..200 {
            write(repo, &format!("many/{}/{n}", n % 10), format!("{n}"));
        }
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "many"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    let admin = world.store.path().join("outlast/workspaces/run-1/t.d");
    let caches = |lead: &str| -> Vec<_> {
        let all = std::fs::read_dir(&admin).unwrap().map(|e| e.unwrap().path());
        all.filter(|p| p.file_name().unwrap().as_bytes().starts_with(lead.as_bytes())).collect()
    };
    let is_as_git_sees_it = |checkpoint: &Checkpoint| {
        git(path, &["add", "-A"]);
        assert_eq!(checkpoint.tree.as_str(), git(path, &["write-tree"]));
    };
    // Nothing changed so lately that it has to be read again each time.
    for n in 0..200 {
        let file = std::fs::File::options().write(true).open(path.join(format!("many/{}/{n}", n % 10))).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    }
    let first = world.checkpoint(&workspace, "t");
    let whole = caches("index-");
    assert_eq!((first.changed.len(), caches("since-").len(), whole.len()), (0, 0, 1));
    let changes: [&dyn Fn(); 5] = [
        &|| write(path, "many/1/1", "changed"),
        &|| write(path, "many/new", "new"),
        &|| std::fs::remove_file(path.join("many/2/2")).unwrap(),
        &|| executable(path, "many/3/3", "3"),
        &|| write(path, "many/2/2", "back, and another"),
    ];
    let mut last = Some(first);
    for change in changes {
        change();
        let checkpoint = world.checkpoint_after(&workspace, "t", last.as_ref());
        is_as_git_sees_it(&checkpoint);
        assert_eq!((caches("since-").len(), caches("index-")), (1, whole.clone()));
        last = Some(checkpoint);
    }
    std::fs::remove_file(path.join("many/new")).unwrap();
    let kept = caches("since-").pop().unwrap();
    // Zeros where the checksum was, and an id with other bytes: what a crash of the machine may leave.
    let mut torn = std::fs::read(&kept).unwrap();
    let len = torn.len();
    torn[12 + 40] ^= 1;
    torn[len - 20..].fill(0);
    let mut checkpoint = last.clone().unwrap();
    for damaged in [b"DIRC rubbish".to_vec(), torn] {
        std::fs::write(&kept, damaged).unwrap();
        checkpoint = world.checkpoint_after(&workspace, "t", last.as_ref());
        is_as_git_sees_it(&checkpoint);
        assert_eq!(checkpoint.changed.len(), 1, "damaged, it is as good as none");
        caches("since-").into_iter().for_each(|other| std::fs::remove_file(other).unwrap());
    }

    for n in 20..60 {
        write(path, &format!("many/{}/{n}", n % 10), "much");
    }
    is_as_git_sees_it(&world.checkpoint_after(&workspace, "t", Some(&checkpoint)));
    assert!(caches("since-").is_empty() && caches("index-").len() == 1 && caches("index-") != whole);
}

#[test]
fn a_tree_large_enough_to_be_looked_at_on_several_threads_is_saved_the_same() {
    let world = World::with(|repo| {
        for n in 0..2500 {
            write(repo, &format!("many/{}/{n}", n % 50), format!("{n}"));
        }
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "many"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "many/7/7", "changed");
    std::fs::remove_file(path.join("many/8/8")).unwrap();
    std::fs::remove_dir_all(path.join("many/9")).unwrap();
    write(path, "many/9", "a file now");
    executable(path, "many/10/10", "10");
    write(path, "many/new", "new");
    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!(checkpoint.changed.len(), 4 + 1 + 50);
    git(path, &["add", "-A"]);
    assert_eq!(checkpoint.tree.as_str(), git(path, &["write-tree"]));

    // What stands beside files that are all as they were.
    write(path, "many/11/beside.log", "ignored");
    std::fs::create_dir(path.join("many/12/empty")).unwrap();
    git(path, &["init", "-q", "many/13"]);
    write(path, "many/14/deep/down/new", "new");
    std::os::unix::fs::symlink("15", path.join("many/15/link")).unwrap();
    let next = world.checkpoint_after(&workspace, "t", Some(&checkpoint));
    let changed: Vec<String> = next.changed.iter().map(Change::path_lossy).collect();
    assert_eq!(changed, ["many/14/deep/down/new", "many/15/link"]);
    assert!(next.notes.contains(&Note::Ignored("many/11/beside.log".into())), "{:?}", next.notes);
    assert!(next.notes.contains(&Note::NestedRepository("many/13".into())), "{:?}", next.notes);
    let folders = world.text(next.agent.beside.as_ref().unwrap(), "folders");
    assert!(folders.contains("many/12/empty\0"), "{folders:?}");
}

#[test]
fn folders_and_files_may_take_each_others_place() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    std::fs::remove_dir_all(path.join("src")).unwrap();
    write(path, "src", "now a file");
    std::fs::remove_file(path.join("README.md")).unwrap();
    write(path, "README.md/inner", "now a folder");
    std::fs::remove_dir_all(path.join("docs")).unwrap();
    std::os::unix::fs::symlink("src", path.join("docs")).unwrap();
    let checkpoint = world.checkpoint(&workspace, "t");
    git(path, &["add", "-A"]);
    assert_eq!(checkpoint.tree.as_str(), git(path, &["write-tree"]));
    world.fsck_store();
}

#[test]
fn a_broken_repository_of_the_agents_does_not_stop_a_checkpoint() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "work", "w");
    write(path, "README.md", "committed\n");
    git(path, &["commit", "-qam", "own"]);
    let head = git(path, &["rev-parse", "HEAD"]);
    let tree = git(path, &["rev-parse", "HEAD^{tree}"]);
    let object = path.join(".git/objects").join(&tree[..2]).join(&tree[2..]);
    std::fs::set_permissions(&object, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&object, "damaged").unwrap();
    let damaged = world.checkpoint(&workspace, "t");
    assert!(
        matches!(&damaged.notes[..], [Note::HeadNotCopied { head: h, .. }] if h.as_str() == head),
        "{:?}",
        damaged.notes
    );
    assert_eq!(changed(&damaged.changed), ["~README.md", "+work"]);

    std::fs::remove_dir_all(path.join(".git")).unwrap();
    write(path, ".git", "gitdir: /nonexistent\n");
    let without = world.checkpoint(&workspace, "t");
    assert_eq!((without.head, without.tree), (None, damaged.tree));
    world.fsck_store();
}

#[test]
fn unreadable_files_and_folders_keep_their_last_state() {
    // Root reads everything, so there is nothing to see.
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let workspace = world.workspace("t");
    let lock = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    lock(&workspace.path().join("src"));
    lock(&workspace.path().join("README.md"));
    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!((checkpoint.changed.len(), checkpoint.notes.len()), (0, 2));
}
