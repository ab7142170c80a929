//! What a checkpoint says and keeps of the agent's own repository, and that all of it comes back.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlast_git::{Checkpoint, Note, Operation, Pinned, Scope, Spec, Workspace};

use crate::fixture::{World, executable, git, new_repo, read, try_git, write};

/// Everything in a working tree that an agent could miss: content, kind and executable bit of every file, every folder,
/// the `.git` of repositories in it; its own `.git` is looked at through git.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<PathBuf, String>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path == root.join(".git") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if meta.is_dir() {
                found.insert(name, "folder".to_owned());
                walk(root, &path, found);
            } else if meta.is_symlink() {
                found.insert(name, format!("link to {:?}", std::fs::read_link(&path).unwrap()));
            } else {
                let is_executable = meta.permissions().mode() & 0o100 != 0;
                found.insert(name, format!("{is_executable} {:?}", std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

/// What an agent sees of its repository.
fn state(path: &Path) -> BTreeMap<&'static str, String> {
    let say = |args: &[&str]| if try_git(path, args) { git(path, args) } else { "none".to_owned() };
    BTreeMap::from([
        ("HEAD", std::fs::read_to_string(path.join(".git/HEAD")).unwrap()),
        ("commit", say(&["rev-parse", "HEAD"])),
        ("staged", say(&["ls-files", "-s", "-z"])),
        ("status", say(&["status", "--porcelain", "-uall", "-z"])),
        ("status for people", say(&["status"])),
        ("refs", say(&["for-each-ref"])),
        ("stashes", say(&["stash", "list"])),
    ])
}

/// Takes a checkpoint, which must leave the agent's repository as it is, loses the workspace, brings it back, and cleans
/// the store as thoroughly as anybody can in between.
pub(crate) fn lose_and_restore(world: &World, workspace: &Workspace) -> Checkpoint {
    let path = workspace.path().to_owned();
    // Git refreshes the index by itself when it is asked for a status; that is not the checkpoint's doing.
    let before = (tree(&path), state(&path));
    let own = crate::fixture::snapshot(&path.join(".git"));
    let checkpoint = world.checkpoint(workspace, "t");
    assert_eq!(own, crate::fixture::snapshot(&path.join(".git")), "the agent's repository was written");
    std::fs::remove_dir_all(&path).unwrap();
    for repo in [world.store.path(), &world.repo] {
        git(repo, &["gc", "-q", "--prune=now"]);
    }
    world.fsck_store();
    let spec = Spec { restore: Some(checkpoint.commit.clone()), ..world.spec("t") };
    let back = Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert_eq!(tree(back.path()), before.0);
    assert_eq!(state(back.path()), before.1);
    git(back.path(), &["fsck", "--no-dangling"]);
    // What came back is the same once more, down to the commit beside the tree.
    let again = world.checkpoint(&back, "t");
    assert_eq!((again.tree, again.agent), (checkpoint.tree.clone(), checkpoint.agent.clone()));
    checkpoint
}

#[test]
fn a_checkpoint_restores_byte_identical_with_what_is_staged() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    // Deleted, renamed, untracked, of another kind.
    std::fs::remove_file(path.join("docs/guide.md")).unwrap();
    git(path, &["mv", "src/a.rs", "src/renamed.rs"]);
    git(path, &["rm", "-q", "--cached", "run.sh"]);
    write(path, "new/deep/file", "untracked\n");
    write(path, "crlf.txt", "one\r\ntwo\nthree\r\n");
    write(path, "文档/说明 书.txt", "unicode\n");
    write(path, "nothing", "");
    std::fs::write(path.join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), b"no text \0\xff").unwrap();
    executable(path, "tool", "#!/bin/sh\n");
    std::fs::set_permissions(path.join("run.sh"), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::remove_file(path.join("link")).unwrap();
    std::os::unix::fs::symlink("/nonexistent/目标", path.join("link")).unwrap();
    std::os::unix::fs::symlink("new", path.join("link to a folder")).unwrap();
    // One hunk staged, another not; a file staged and then deleted; one staged and then changed.
    write(path, "src/b.rs", "fn b() {}\nstaged\n");
    git(path, &["add", "src/b.rs"]);
    write(path, "src/b.rs", "fn b() {}\nstaged\nnot staged\n");
    write(path, "staged then deleted", "only the index has this\n");
    git(path, &["add", "staged then deleted"]);
    std::fs::remove_file(path.join("staged then deleted")).unwrap();
    // Empty folders, deep and many, and one with only what is ignored.
    for folder in ["empty", "deep/er/est", "src/sub", "文档/空"] {
        std::fs::create_dir_all(path.join(folder)).unwrap();
    }
    // A repository in the tree: its own commits, its own staged work, its own empty folders.
    new_repo(&path.join("vendor/lib"));
    write(path, "vendor/lib/README.md", "changed in there\n");
    git(&path.join("vendor/lib"), &["add", "README.md"]);
    write(path, "vendor/lib/new", "untracked in there\n");
    let inner = state(&path.join("vendor/lib"));

    let checkpoint = lose_and_restore(&world, &workspace);
    assert_eq!(state(&path.join("vendor/lib")), inner);
    git(&path.join("vendor/lib"), &["fsck", "--strict"]);
    assert_eq!(checkpoint.notes, [Note::NestedRepository("vendor/lib".into())]);
    assert_eq!(git(path, &["show", ":staged then deleted"]), "only the index has this");
    assert_eq!(git(path, &["diff", "--stat", "--", "src/b.rs"]).lines().count(), 2);
}

#[test]
fn what_is_added_by_force_counts_although_it_is_ignored() {
    let world = World::with(|repo| {
        write(repo, ".worktreeinclude", "secret.log\n");
        write(repo, "secret.log", "the user's own, and copied\n");
        git(repo, &["add", ".worktreeinclude"]);
        git(repo, &["commit", "-qm", "include"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    for name in ["forced.log", "target/deep/forced", "announced.log", "target/ignored", "ignored.log"] {
        write(path, name, format!("{name}\n"));
    }
    git(path, &["add", "-f", "forced.log", "target/deep/forced", "secret.log"]);
    git(path, &["add", "-fN", "announced.log"]);
    write(path, "forced.log", "changed since\n");
    assert!(matches!(workspace.pinned(&world.store, &world.user).unwrap(), Pinned::No(_)));
    let checkpoint = world.checkpoint(&workspace, "t");
    let changed: Vec<String> = checkpoint.changed.iter().map(outlast_git::Change::path_lossy).collect();
    assert_eq!(changed, ["announced.log", "forced.log", "target/deep/forced"], "nothing else, and no copied secret");
    assert_eq!(world.text(&checkpoint.commit, "forced.log"), "changed since");
    assert_eq!(workspace.pinned(&world.store, &world.user).unwrap(), Pinned::Yes);
    let split = world.store.scope_diff(&world.base, &checkpoint.commit, &Scope::everything()).unwrap();
    assert_eq!(split.in_scope.len(), 3, "it lands");
    // It counts on, whatever becomes of it in the index.
    git(path, &["reset", "-q"]);
    write(path, "target/deep/forced", "changed again\n");
    let again = world.checkpoint(&workspace, "t");
    assert_eq!(world.text(&again.commit, "target/deep/forced"), "changed again");
}

#[test]
fn the_message_says_where_the_agent_stood_and_the_parents_hold_it() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    let first = world.checkpoint(&workspace, "t");
    let message =
        |checkpoint: &Checkpoint| git(world.store.path(), &["log", "-1", "--format=%B", checkpoint.commit.as_str()]);
    let tree_of_base = git(path, &["rev-parse", "HEAD^{tree}"]);
    let base = &world.base;
    assert_eq!(
        message(&first),
        format!("turn of t\n\nOutlast-Branch: outlast/t\nOutlast-Head: {base}\nOutlast-Index: {tree_of_base}")
    );
    assert_eq!(git(world.store.path(), &["log", "-1", "--format=%P", first.commit.as_str()]), base.as_str());
    // What the index shows of the base is safe where it is: nothing is copied for a change that is not staged.
    let blob = git(path, &["rev-parse", "HEAD:README.md"]);
    assert!(!world.store.path().join("objects").join(&blob[..2]).join(&blob[2..]).exists(), "nothing was changed yet");
    write(path, "README.md", "changed and not staged\n");
    let unstaged = world.checkpoint(&workspace, "t");
    assert!(!world.store.path().join("objects").join(&blob[..2]).join(&blob[2..]).exists());
    assert_eq!(unstaged.agent.index, first.agent.index);
    git(path, &["checkout", "-q", "README.md"]);

    git(path, &["checkout", "-q", "--detach"]);
    git(path, &["commit", "-q", "--allow-empty", "-m", "the agent's own"]);
    write(path, "src/a.rs", "staged\n");
    git(path, &["add", "src/a.rs"]);
    write(path, "src/a.rs", "not staged\n");
    let (head, staged) = (git(path, &["rev-parse", "HEAD"]), git(path, &["write-tree"]));
    let spec = world.checkpoint_spec("t", Some(&first));
    let second = workspace.checkpoint(&world.store, &world.user, &spec).unwrap();
    assert_eq!(world.store.agent_state(&second.commit).unwrap(), second.agent);
    let said = (&second.agent.branch, second.agent.head.as_ref().unwrap().as_str());
    assert_eq!(said, (&None, head.as_str()));
    assert_eq!(second.agent.index.as_ref().unwrap().as_str(), staged);
    let parents = git(world.store.path(), &["log", "-1", "--format=%P", second.commit.as_str()]);
    let beside = second.agent.beside.as_ref().unwrap();
    assert_eq!(parents, format!("{} {head} {beside}", first.commit));
    let trailers = git(world.store.path(), &["log", "-1", "--format=%(trailers:only)", second.commit.as_str()]);
    assert_eq!(trailers.lines().count(), 3, "git reads them as trailers: {trailers}");
}

#[test]
fn a_tree_that_is_the_same_is_kept_again_when_only_what_is_staged_differs() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "src/a.rs", "changed\n");
    let mut spec = world.checkpoint_spec("t", None);
    spec.only_if_changed = true;
    let next = |spec: &mut outlast_git::CheckpointSpec| {
        spec.at = crate::fixture::at(spec.at.as_millis() / 1000 % 1000 + 1);
        let kept = workspace.checkpoint(&world.store, &world.user, spec).unwrap();
        spec.parent = Some(kept.commit.clone());
        kept.commit
    };
    let first = next(&mut spec);
    assert_eq!(next(&mut spec), first);
    git(path, &["add", "src/a.rs"]);
    let staged = next(&mut spec);
    assert_ne!(staged, first);
    std::fs::create_dir(path.join("empty")).unwrap();
    let with_folder = next(&mut spec);
    assert_ne!(with_folder, staged);
    assert_eq!(next(&mut spec), with_folder);
}

/// Two branches that change the same line, the second one checked out.
fn diverged(path: &Path) {
    git(path, &["checkout", "-q", "-b", "theirs"]);
    write(path, "src/a.rs", "fn theirs() {}\n");
    write(path, "added by them", "x\n");
    git(path, &["add", "-A"]);
    git(path, &["commit", "-qm", "theirs"]);
    git(path, &["checkout", "-q", "-b", "ours", "HEAD~1"]);
    write(path, "src/a.rs", "fn ours() {}\n");
    git(path, &["commit", "-qam", "ours"]);
}

#[test]
fn what_git_has_begun_comes_back_and_can_be_ended() {
    let begun: [(Operation, &[&str], &[&str]); 6] = [
        (Operation::Merge, &["merge", "theirs"], &["commit", "-qam", "merged"]),
        (Operation::Rebase, &["rebase", "theirs"], &["-c", "core.editor=true", "rebase", "--continue"]),
        (Operation::CherryPick, &["cherry-pick", "theirs"], &["-c", "core.editor=true", "cherry-pick", "--continue"]),
        (Operation::Revert, &["revert", "--no-edit", "HEAD~1"], &["-c", "core.editor=true", "revert", "--continue"]),
        (Operation::Am, &["am", "--3way", ".git/theirs.patch"], &["am", "--continue"]),
        (Operation::Bisect, &["bisect", "start", "HEAD", "HEAD~1"], &["bisect", "reset"]),
    ];
    for (what, begin, end) in begun {
        let world = World::new();
        let workspace = world.workspace("t");
        let path = workspace.path();
        diverged(path);
        if matches!(what, Operation::Revert | Operation::Bisect) {
            write(path, "src/a.rs", "fn ours_again() {}\n");
            git(path, &["commit", "-qam", "again"]);
        }
        git(path, &["format-patch", "-q", "-1", "--output=.git/theirs.patch", "theirs"]);
        assert_eq!(try_git(path, begin), what == Operation::Bisect, "{what:?}");
        let checkpoint = lose_and_restore(&world, &workspace);
        let names: Vec<Operation> = checkpoint.agent.in_progress.iter().map(|each| each.what).collect();
        assert_eq!(names, [what]);
        assert_eq!(checkpoint.agent.unmerged, usize::from(what != Operation::Bisect), "{what:?}");
        let heads = &checkpoint.agent.in_progress[0].heads;
        assert!(heads.iter().all(|head| try_git(world.store.path(), &["cat-file", "-e", head.as_str()])), "{heads:?}");
        assert!(heads.len() == 1 || matches!(what, Operation::Bisect | Operation::Am), "{what:?}: {heads:?}");

        write(path, "src/a.rs", "fn both() {}\n");
        if what != Operation::Bisect {
            git(path, &["add", "src/a.rs"]);
        }
        git(path, end);
        assert_eq!(world.checkpoint(&workspace, "t").agent.in_progress, []);
    }
}

#[test]
fn branches_and_stashes_beside_head_come_back() {
    let world = World::with(|repo| git_branch(repo, "shown"));
    let workspace = world.workspace("t");
    let path = workspace.path();
    diverged(path);
    for n in 0..3 {
        write(path, "src/b.rs", format!("stashed {n}\n"));
        write(path, &format!("untracked {n}"), "x\n");
        git(path, &["stash", "-q", "-u"]);
    }
    git(path, &["tag", "mine"]);
    git(path, &["update-ref", "refs/heads/shown", "theirs"]);
    git(path, &["checkout", "-q", "shown"]);
    let checkpoint = lose_and_restore(&world, &workspace);
    assert_eq!(checkpoint.agent.branch.as_deref(), Some("shown"));
    git(path, &["stash", "pop", "-q", "stash@{2}"]);
    assert_eq!(read(path, "src/b.rs"), "stashed 0\n");

    // No commit yet on the branch that HEAD names.
    git(path, &["checkout", "-q", "--orphan", "fresh/start"]);
    git(path, &["rm", "-qf", "--cached", "-r", "."]);
    let unborn = lose_and_restore(&world, &workspace);
    assert_eq!((unborn.agent.branch.as_deref(), unborn.agent.head), (Some("fresh/start"), None));
}

#[test]
fn e14_a_commit_left_on_a_detached_head_is_kept_told_and_comes_back() {
    let world = World::with(|repo| {
        git(repo, &["checkout", "-q", "-b", "theirs"]);
        for text in ["once", "twice"] {
            write(repo, "theirs.txt", text);
            git(repo, &["add", "theirs.txt"]);
            git(repo, &["commit", "-q", "-m", text]);
        }
        git(repo, &["checkout", "-q", "-"]);
    });
    let theirs = git(&world.repo, &["rev-parse", "theirs~1"]);
    let workspace = world.workspace("t");
    let path = workspace.path();
    let detached = |name: &str| {
        git(path, &["checkout", "-q", "--detach"]);
        write(path, name, "loose\n");
        git(path, &["add", name]);
        git(path, &["commit", "-q", "-m", name]);
        git(path, &["rev-parse", "HEAD"])
    };
    let told = |checkpoint: &Checkpoint| -> Vec<String> {
        let away = checkpoint.notes.iter().filter_map(|note| match note {
            Note::PutAway { name, commit } if name.starts_with(b"detached-") => {
                assert_eq!(name.to_string(), format!("detached-{}", &commit.as_str()[..12]));
                Some(commit.to_string())
            }
            _ => None,
        });
        away.collect()
    };
    // What the user's branches lead to is no work of the agent's.
    git(path, &["checkout", "-q", &theirs]);
    git(path, &["checkout", "-q", "-"]);
    // What a branch has taken over is not left, nor is what another one leads to.
    detached("taken");
    git(path, &["checkout", "-q", "-B", "work"]);
    let before = detached("before");
    git(path, &["checkout", "-q", "work"]);
    git(path, &["checkout", "-q", &before]);
    let loose = detached("loose");
    git(path, &["checkout", "-q", "work"]);
    let amended = detached("amended");
    git(path, &["commit", "-q", "--amend", "-m", "again"]);
    git(path, &["checkout", "-q", "-B", "other"]);
    git(path, &["checkout", "-q", "work"]);
    let first = world.checkpoint(&workspace, "t");
    assert_eq!(told(&first), std::slice::from_ref(&loose), "and not {before} nor {amended}");
    let second = lose_and_restore(&world, &workspace);
    assert_eq!((told(&second), &second.agent.beside), (vec![loose.clone()], &first.agent.beside));
    assert_eq!(git(path, &["show", &format!("{loose}:loose")]), "loose");
    let third = lose_and_restore(&world, &workspace);
    assert_eq!((told(&third), &third.agent.beside), (vec![loose.clone()], &first.agent.beside));
    git(path, &["merge", "-q", "--ff-only", &loose]);
    assert_eq!(told(&world.checkpoint(&workspace, "t")), Vec::<String>::new(), "HEAD leads to it again");
}

#[test]
fn branches_whose_names_cannot_be_files_beside_others_come_back_too() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    git(path, &["branch", "-m", "outlast"]);
    let head = git(path, &["rev-parse", "HEAD"]);
    let long = "x".repeat(300);
    let shown = read(path, ".git/packed-refs");
    write(path, ".git/packed-refs", format!("{shown}{head} refs/heads/outlasted\n{head} refs/heads/{long}\n"));
    write(path, ".git/refs/heads/outlasted/b", format!("{head}\n"));
    let checkpoint = lose_and_restore(&world, &workspace);
    assert_eq!(checkpoint.agent.branch.as_deref(), Some("outlast"));
    assert_eq!(git(path, &["rev-parse", "HEAD"]), head);
}

fn git_branch(repo: &Path, name: &str) {
    git(repo, &["branch", name]);
}

#[test]
fn an_index_that_cannot_be_read_costs_what_is_staged_and_no_more() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "work", "w");
    let index = path.join(".git/index");
    let sound = std::fs::read(&index).unwrap();
    let missing = {
        write(path, "gone", "nobody has this\n");
        git(path, &["add", "gone"]);
        std::fs::remove_file(path.join("gone")).unwrap();
        let id = git(path, &["rev-parse", ":gone"]);
        std::fs::remove_file(path.join(".git/objects").join(&id[..2]).join(&id[2..])).unwrap();
        std::fs::read(&index).unwrap()
    };
    let mut last = world.checkpoint(&workspace, "t");
    for bad in [b"rubbish".to_vec(), sound[..sound.len() / 2].to_vec(), missing] {
        std::fs::write(&index, bad).unwrap();
        let kept = world.checkpoint(&workspace, "t");
        let [Note::NotKept { what, .. }] = kept.notes.as_slice() else { panic!("{:?}", kept.notes) };
        assert_eq!((what.as_str(), &kept.agent.index), ("what is staged", &None));
        assert_eq!(world.text(&kept.commit, "work"), "w");
        last = kept;
    }
    std::fs::remove_file(&index).unwrap();
    nix::unistd::mkfifo(&index, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(world.checkpoint(&workspace, "t").tree, last.tree);
    world.fsck_store();
}

#[test]
fn nothing_that_comes_back_is_written_through_a_link() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path().to_owned();
    let outside = world.dir.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::create_dir_all(path.join("place/empty")).unwrap();
    new_repo(&path.join("place/lib"));
    let checkpoint = world.checkpoint(&workspace, "t");
    // The same list of folders and repositories, beside a tree in which the place is a link.
    std::fs::remove_dir_all(path.join("place")).unwrap();
    std::os::unix::fs::symlink(&outside, path.join("place")).unwrap();
    let linked = world.checkpoint(&workspace, "t");
    let beside = checkpoint.agent.beside.unwrap();
    let tree = git(world.store.path(), &["rev-parse", &format!("{}^{{tree}}", linked.commit)]);
    let message = format!("forged\n\nOutlast-Head: {}\nOutlast-Beside: {beside}", world.base);
    let forged =
        git(world.store.path(), &["-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", "-m", &message, &tree]);
    std::fs::remove_dir_all(&path).unwrap();
    let spec = Spec { restore: Some(outlast_core::Oid::new(forged)), ..world.spec("t") };
    assert!(Workspace::create(&world.user, &world.store, &spec).is_err());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_workspace_is_not_removed_while_only_it_holds_what_is_staged_or_a_repository() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    let open = || match workspace.pinned(&world.store, &world.user).unwrap() {
        Pinned::Yes => String::new(),
        Pinned::No(what) => what.join("; "),
    };
    write(path, "src/b.rs", "only the index has this\n");
    git(path, &["add", "src/b.rs"]);
    write(path, "src/b.rs", "fn b() {}\n");
    assert_eq!(open(), "what is staged of `src/b.rs` is in no checkpoint");
    world.checkpoint(&workspace, "t");
    assert_eq!(open(), "");
    new_repo(&path.join("lib"));
    assert!(open().contains("`lib/.git` differs from the last checkpoint"), "{}", open());
    world.checkpoint(&workspace, "t");
    assert_eq!(open(), "");
    git(&path.join("lib"), &["commit", "-q", "--allow-empty", "-m", "another"]);
    assert_eq!(open(), "`lib/.git` differs from the last checkpoint");
    // A file in it that no checkpoint takes: half a repository would be none.
    let mut spec = world.checkpoint_spec("t", None);
    spec.file_limit = 400;
    write(path, "lib/.git/objects/large", vec![7; 500]);
    let kept = workspace.checkpoint(&world.store, &world.user, &spec).unwrap();
    assert!(kept.notes.iter().any(|note| matches!(note, Note::NotKept { what, .. } if what == "`lib/.git`")));
}
