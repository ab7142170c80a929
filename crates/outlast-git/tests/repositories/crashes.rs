//! Killed at any moment, every operation can be done again and nothing is lost.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use outlast_git::{Store, UserRepo};

use crate::fixture::{World, git, read, try_git, write};

const WORLD: &str = "OUTLAST_TEST_WORLD";
const DEED: &str = "OUTLAST_TEST_DEED";

/// A world whose repository has enough files that making a workspace takes a while.
fn large() -> World {
    World::with(|repo| {
        for n in 0..150 {
            write(repo, &format!("many/{}/{n}.txt", n % 20), format!("file {n}\n"));
        }
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "many"]);
    })
}

/// The world in a child of a test: the same folders, opened anew.
fn reopened(dir: &Path) -> World {
    let repo = dir.join("用户 repo");
    let user = UserRepo::open(&repo).unwrap();
    let store = Store::open_or_init(&dir.join("state/store.git"), &user).unwrap();
    let base = user.head().unwrap().commit;
    // The real folder belongs to the parent, which removes it.
    World { dir: tempfile::tempdir().unwrap(), repo, user, store, run: "run-1".into(), base }
}

/// What a child does until it is killed. Not a test by itself: run by the tests below.
#[test]
#[ignore = "the child of the other tests in this file"]
fn child() {
    let dir = PathBuf::from(std::env::var_os(WORLD).unwrap());
    let world = reopened(&dir);
    let mut spec = world.spec("t");
    spec.path = dir.join("work spaces/t");
    println!("ready");
    match std::env::var(DEED).unwrap().as_str() {
        "create" => {
            outlast_git::Workspace::create(&world.user, &world.store, &spec).unwrap();
        }
        _ => {
            let workspace = outlast_git::Workspace::open(&world.store, &world.run, &"t".into()).unwrap();
            workspace.checkpoint(&world.store, &world.user, &world.checkpoint_spec("t", None)).unwrap();
        }
    }
    println!("finished");
}

/// Starts `deed` in a child, kills it `after` it began, and tells whether it had finished.
fn killed(world: &World, deed: &str, after: Duration) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::child", "--ignored", "--nocapture"])
        .env(WORLD, world.dir.path())
        .env(DEED, deed)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut said = String::new();
    let mut byte = [0];
    while !said.contains("ready") {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "the child said {said:?}");
        said.push(char::from(byte[0]));
    }
    // The moment is the point of the test: it is different in every round.
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    // What git it left may still hold the pipe; only what the child itself said counts.
    nix::fcntl::fcntl(&out, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).ok();
    String::from_utf8_lossy(&rest).contains("finished")
}

#[test]
fn a_creation_killed_at_any_moment_is_done_again() {
    let world = large();
    let mut cut_short = 0;
    for round in 0..5 {
        if !killed(&world, "create", Duration::from_millis(round * 9)) {
            cut_short += 1;
        }
        let workspace = world.workspace("t");
        assert_eq!(git(workspace.path(), &["status", "--porcelain"]), "", "round {round}");
        assert_eq!(read(workspace.path(), "many/9/149.txt"), "file 149\n");
        assert_eq!(world.checkpoint(&workspace, "t").changed, []);
        workspace.remove(&world.store, &world.user, &outlast_git::Removal::Forced).unwrap();
    }
    assert!(cut_short > 0, "no kill came in time");
}

#[test]
fn a_checkpoint_killed_at_any_moment_is_done_again_and_the_ref_is_never_broken() {
    let world = large();
    let workspace = world.workspace("t");
    let mut cut_short = 0;
    for round in 0..5 {
        for n in 0..150 {
            write(workspace.path(), &format!("many/{}/{n}.txt", n % 20), format!("round {round} file {n}\n"));
        }
        if !killed(&world, "checkpoint", Duration::from_millis(round * 7)) {
            cut_short += 1;
        }
        if let Some(commit) = world.store.last_checkpoint(&world.attempt("t")).unwrap() {
            git(world.store.path(), &["rev-list", "--objects", "--quiet", commit.as_str()]);
        }
        let checkpoint = world.checkpoint(&workspace, "t");
        assert_eq!(checkpoint.changed.len(), 150);
        assert_eq!(world.text(&checkpoint.commit, "many/0/0.txt"), format!("round {round} file 0"));
    }
    assert!(cut_short > 0, "no kill came in time");
    world.fsck_store();
    assert!(try_git(workspace.path(), &["fsck"]));
}
