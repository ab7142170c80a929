//! How long a checkpoint takes beside git's own four commands, in one run on one made-up repository.
//!
//! `cargo run -p outlast-git --example checkpoint_bench [FILES] [ROUNDS]` prints both sides and their ratio. Both sides
//! save three changed files and a new one, on disk when they return; git gets a private index that knows the tree.
#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use outlast_core::{AttemptId, RunId, TaskId, Timestamp};
use outlast_git::{CheckpointSpec, FILE_LIMIT_DEFAULT, Git, Spec, Store, UserRepo, Workspace};

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|arg| arg.parse::<usize>().ok());
    let (files, rounds) = (args.next().unwrap_or(5000), args.next().unwrap_or(20));
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    make_repo(&repo, files);

    let user = UserRepo::open(&repo).unwrap();
    let store = Store::open_or_init(&dir.path().join("store.git"), &user).unwrap();
    let (run, task) = (RunId::from("bench"), TaskId::from("t"));
    let base = user.head().unwrap().commit;
    user.pin_base(&store, &run, &base).unwrap();
    let spec = Spec {
        run: run.clone(),
        task: task.clone(),
        path: dir.path().join("workspace"),
        base: base.clone(),
        trusted: base,
        restore: None,
    };
    let begun = Instant::now();
    let workspace = Workspace::create(&user, &store, &spec).unwrap();
    println!("workspace of {files} files: {:.1} ms", ms(begun.elapsed()));

    let attempt = AttemptId { run, task, number: 1 };
    let mut parent = None;
    let (mut ours, mut gits) = (Vec::new(), Vec::new());
    let (mut our_cpu, mut git_cpu) = (Duration::ZERO, Duration::ZERO);
    for round in 0..=rounds {
        touch(workspace.path(), round, files);
        let (begun, cpu) = (Instant::now(), cpu_time(UsageWho::RUSAGE_SELF));
        let checkpoint = workspace
            .checkpoint(
                &store,
                &user,
                &CheckpointSpec {
                    attempt: attempt.clone(),
                    parent: parent.clone(),
                    message: "turn\n".to_owned(),
                    at: Timestamp::EPOCH,
                    only_if_changed: false,
                    file_limit: FILE_LIMIT_DEFAULT,
                },
            )
            .unwrap();
        ours.push(begun.elapsed());
        our_cpu += cpu_time(UsageWho::RUSAGE_SELF) - cpu;
        let (begun, cpu) = (Instant::now(), cpu_time(UsageWho::RUSAGE_CHILDREN));
        let tree = by_git(workspace.path(), dir.path());
        gits.push(begun.elapsed());
        git_cpu += cpu_time(UsageWho::RUSAGE_CHILDREN) - cpu;
        assert_eq!(tree, checkpoint.tree.as_str(), "the two disagree");
        parent = Some(checkpoint.commit);
    }
    let per_round = |cpu: Duration| ms(cpu) / (rounds + 1) as f64;
    let ratio = git_cpu.as_secs_f64() / our_cpu.as_secs_f64();
    println!(
        "    CPU time: checkpoint {:6.1} ms, git {:6.1} ms, ratio {ratio:.1}",
        per_round(our_cpu),
        per_round(git_cpu)
    );
    // The first round fills both caches. The best round says what the machine can do, the median what it did.
    for (what, of) in [("best", best as fn(&mut [Duration]) -> Duration), ("median", median)] {
        let (ours, gits) = (of(&mut ours[1..]), of(&mut gits[1..]));
        let ratio = gits.as_secs_f64() / ours.as_secs_f64();
        println!("{what:>6} of {rounds}: checkpoint {:6.1} ms, git {:6.1} ms, ratio {ratio:.1}", ms(ours), ms(gits));
    }
}

/// The processor time used so far, which a busy machine falsifies less than the clock on the wall.
fn cpu_time(who: UsageWho) -> Duration {
    let usage = getrusage(who).unwrap();
    let span = |time: TimeVal| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap());
    span(usage.user_time()) + span(usage.system_time())
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn best(times: &mut [Duration]) -> Duration {
    times.iter().copied().min().unwrap()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn git(dir: &Path, index: Option<&Path>, args: &[&str]) -> String {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| Git::locate().unwrap().program().to_owned());
    let mut command = Command::new(program);
    command.current_dir(dir).args(["-c", "core.fsync=loose-object,reference", "-c", "gc.auto=0"]).args(args);
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn by_git(workspace: &Path, dir: &Path) -> String {
    let index = dir.join("private-index");
    if !index.exists() {
        std::fs::copy(workspace.join(".git/index"), &index).unwrap();
    }
    git(workspace, Some(&index), &["add", "-A"]);
    let tree = git(workspace, Some(&index), &["write-tree"]);
    let commit = git(workspace, None, &["commit-tree", "-p", "HEAD", "-m", "turn", &tree]);
    git(workspace, None, &["update-ref", "refs/shadow/t", &commit]);
    tree
}

fn make_repo(repo: &Path, files: usize) {
    std::fs::create_dir_all(repo).unwrap();
    git(repo, None, &["init", "-q", "-b", "main"]);
    git(repo, None, &["config", "user.name", "Bench"]);
    git(repo, None, &["config", "user.email", "bench@example.org"]);
    for n in 0..files {
        let path = repo.join(place(n));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("line of file {n}\n").repeat(1 + n % 400)).unwrap();
    }
    git(repo, None, &["add", "-A"]);
    git(repo, None, &["commit", "-qm", "base"]);
    git(repo, None, &["repack", "-adq"]);
}

fn place(n: usize) -> String {
    format!("src/part{}/module{}/file{n}.rs", n % 17, n / 17 % 15)
}

fn touch(workspace: &Path, round: usize, files: usize) {
    for k in 0..3 {
        let n = (round * 131 + k * 977) % files;
        std::fs::write(workspace.join(place(n)), format!("round {round} of file {n}\n")).unwrap();
    }
    std::fs::write(workspace.join(format!("new{round}.rs")), format!("{round}\n")).unwrap();
}
