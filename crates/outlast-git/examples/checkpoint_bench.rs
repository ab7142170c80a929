//! How long a checkpoint takes beside git's own four commands, in one run on one made-up repository.
//!
//! `checkpoint_bench [FILES] [ROUNDS]` prints both sides, the floor, and the ratio; it ends with 1 where that is below 2. Both
//! sides save three changed files and a new one of the same tree, in turns. Git gets a private index that is a copy of the
//! workspace's, and its own defaults: it does not sync loose objects, which a checkpoint does. The floor is to look at every
//! file once, on all cores.
#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use outlast_core::{AttemptId, RunId, TaskId, Timestamp};
use outlast_git::{CheckpointSpec, FILE_LIMIT_DEFAULT, Git, Spec, Store, UserRepo, Workspace};

/// How much faster than git a checkpoint is to be.
const RATIO_LEAST: f64 = 2.0;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).filter_map(|arg| arg.parse::<usize>().ok());
    let (files, rounds) = (args.next().unwrap_or(80_000), args.next().unwrap_or(15));
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
    println!("a workspace of {files} files in {} folders took {:.0} ms", folders(files), ms(begun.elapsed()));

    let attempt = AttemptId { run, task, number: 1 };
    let mut parent = None;
    let paths: Vec<PathBuf> = (0..files).map(|n| workspace.path().join(place(n))).collect();
    let (mut ours, mut gits, mut floors) = (Vec::new(), Vec::new(), Vec::new());
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
        floors.push(look_at_all(&paths));
        parent = Some(checkpoint.commit);
    }
    let per_round = |cpu: Duration| ms(cpu) / (rounds + 1) as f64;
    println!("processor time: checkpoint {:.0} ms, git {:.0} ms", per_round(our_cpu), per_round(git_cpu));
    // The first round fills both caches. The best round says what the machine can do, the median what it did.
    let mut reached = 0.0;
    for (what, of) in [("best", best as fn(&mut [Duration]) -> Duration), ("median", median)] {
        let [ours, gits, floor] = [&mut ours, &mut gits, &mut floors].map(|times| of(&mut times[1..]));
        reached = gits.as_secs_f64() / ours.as_secs_f64();
        let [ours, gits, floor] = [ours, gits, floor].map(ms);
        println!(
            "{what} of {rounds}: checkpoint {ours:.1} ms, git {gits:.1} ms: {reached:.2}x faster; floor {floor:.1} ms, {:.2}x it",
            ours / floor
        );
    }
    if reached < RATIO_LEAST {
        println!("MISSED: a checkpoint is to be {RATIO_LEAST}x faster than git");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// How long it takes to look at every file once, on all cores.
fn look_at_all(paths: &[PathBuf]) -> Duration {
    let begun = Instant::now();
    let cores = std::thread::available_parallelism().unwrap().get();
    std::thread::scope(|scope| {
        for share in paths.chunks(paths.len().div_ceil(cores)) {
            scope.spawn(|| share.iter().for_each(|path| drop(path.symlink_metadata())));
        }
    });
    begun.elapsed()
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
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(dir).args(args);
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

/// Made by `fast-import`, which writes one pack: the files themselves are only in the workspace.
fn make_repo(repo: &Path, files: usize) {
    std::fs::create_dir_all(repo).unwrap();
    git(repo, None, &["init", "-q", "-b", "main"]);
    git(repo, None, &["config", "user.name", "Bench"]);
    git(repo, None, &["config", "user.email", "bench@example.org"]);
    let program = Git::locate().unwrap().program().to_owned();
    let mut import = Command::new(program);
    import.current_dir(repo).args(["fast-import", "--quiet"]).stdin(Stdio::piped());
    let mut import = import.spawn().unwrap();
    let mut out = BufWriter::new(import.stdin.take().unwrap());
    write!(out, "commit refs/heads/main\ncommitter Bench <bench@example.org> 0 +0000\ndata 5\nbase\n").unwrap();
    for n in 0..files {
        let text = format!("line of file {n}\n").repeat(1 + n % 40);
        write!(out, "M 644 inline {}\ndata {}\n{text}\n", place(n), text.len()).unwrap();
    }
    out.flush().unwrap();
    drop(out);
    assert!(import.wait().unwrap().success());
}

/// Where a file is: some eighteen in a folder, folders in folders, as in a large project.
fn place(n: usize) -> String {
    let folder = n / FILES_PER_FOLDER;
    format!("part{}/module{}/unit{}/file{n}.rs", folder % 20, folder / 20 % 15, folder / 300)
}

const FILES_PER_FOLDER: usize = 18;

fn folders(files: usize) -> usize {
    files.div_ceil(FILES_PER_FOLDER)
}

fn touch(workspace: &Path, round: usize, files: usize) {
    for k in 0..3 {
        let n = (round * 131 + k * 977) % files;
        std::fs::write(workspace.join(place(n)), format!("round {round} of file {n}\n")).unwrap();
    }
    std::fs::write(workspace.join(format!("new{round}.rs")), format!("{round}\n")).unwrap();
}
