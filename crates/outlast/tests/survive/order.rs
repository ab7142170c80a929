//! What is on disk before what: the order of writes and syncs, as the system sees it, and what others may drop meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_testkit::fixture::{Repo, TestEnv};

use crate::running::Running;
use crate::world::{Plan, World, text};

/// A call of a traced process. `began` and `ended` are places in the trace: calls of several threads overlap.
#[derive(Debug)]
struct Call {
    name: String,
    arguments: String,
    began: usize,
    ended: usize,
}

/// Reads what `strace -f -y` wrote.
fn calls(trace: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut begun: BTreeMap<&str, (String, String, usize)> = BTreeMap::new();
    for (at, line) in trace.lines().enumerate() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(rest) = rest.strip_prefix("<... ") {
            if let Some((name, arguments, began)) = begun.remove(pid)
                && rest.starts_with(&name)
            {
                calls.push(Call { name, arguments, began, ended: at });
            }
        } else if let Some((name, arguments)) = rest.split_once('(') {
            let (name, arguments) = (name.to_owned(), arguments.to_owned());
            if rest.ends_with("<unfinished ...>") {
                begun.insert(pid, (name, arguments, at));
            } else {
                calls.push(Call { name, arguments, began: at, ended: at });
            }
        }
    }
    calls.sort_by_key(|call| call.ended);
    calls
}

impl Call {
    fn is_sync(&self) -> bool {
        matches!(self.name.as_str(), "fsync" | "fdatasync")
    }

    /// The file that a sync is of.
    fn synced(&self) -> Option<&str> {
        let file = self.arguments.split_once('<')?.1.split_once('>')?.0;
        self.is_sync().then_some(file)
    }

    /// From where to where a rename goes.
    fn renamed(&self) -> Option<(&str, &str)> {
        if !self.name.starts_with("rename") {
            return None;
        }
        let mut paths = self.arguments.split('"').skip(1).step_by(2);
        Some((paths.next()?, paths.next()?))
    }
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The trace of a run of a task with four turns; nothing where it cannot be made, which is said.
fn traced(world: &World) -> Option<Vec<Call>> {
    let wanted = std::env::var_os("OUTLAST_TRACE").is_some_and(|value| value == "1");
    let file = world.env.root().join("trace");
    let probe = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        assert!(!wanted, "strace is needed, and has to be allowed to trace");
        eprintln!("SKIPPED, needs strace (OUTLAST_TRACE=1 demands it): the order of syncs");
        return None;
    }
    let mut strace = world.env.command("strace");
    strace.current_dir(world.repo.dir()).args(["-f", "-y", "-qq", "-s", "8192", "-o"]).arg(&file);
    strace.args(["-e", "trace=fsync,fdatasync,rename,renameat,renameat2,pwrite64", "-e", "signal=none", "--"]);
    strace.arg(env!("CARGO_BIN_EXE_outlast")).args(["run", "--yes"]);
    Running::of(strace).end().ends(0);
    Some(calls(&String::from_utf8_lossy(&fs::read(&file).unwrap())))
}

#[test]
fn objects_are_synced_before_their_ref_and_the_ref_before_its_record() {
    let world = World::new();
    let script = "write parts/a.txt \"part a\\n\"\nwrite parts/b.txt \"part b\\n\"\nwrite parts/c.txt \"part c\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("one", script, "writes = [\"parts/**\"]"));
    let Some(calls) = traced(&world) else { return };
    world.all_are("landed");

    let store = Repo::at(world.homes()[0].join("store.git"));
    let last = text(&world.task("one")["checkpoint"]);
    let synced = |file: &str, after: usize, before: usize| {
        calls.iter().any(|call| call.synced() == Some(file) && call.began > after && call.ended < before)
    };
    let refs: Vec<(&Call, &str, &str)> = calls
        .iter()
        .filter_map(|call| call.renamed().map(|(from, to)| (call, from, to)))
        .filter(|(_, _, to)| to.contains("store.git/refs/outlast/") && to.ends_with("/one/1"))
        .collect();
    assert!(refs.len() >= 4, "at the start, and before each turn after a change: {refs:#?}");
    let count = format!("-{}", refs.len());
    let commits = store.text(&["rev-list", "--first-parent", "--reverse", &count, &last]).unwrap();
    let mut since = 0;
    for ((moved, from, to), commit) in refs.into_iter().zip(commits.lines()) {
        let mut objects = 0;
        for call in calls.iter().filter(|call| call.began > since && call.began < moved.began) {
            let Some((temp, name)) = call.renamed().filter(|(_, to)| to.contains("store.git/objects/")) else {
                continue;
            };
            assert!(synced(temp, since, call.began), "{name} has a name before its content is on disk");
            assert!(synced(folder(name), call.ended, moved.began), "{name} may be gone while the ref names it");
            objects += 1;
        }
        assert!(objects >= 1, "the commit at least");
        assert!(synced(from, since, moved.began), "{to} has a name before its content is on disk");
        // The record names the commit: it is written once the ref is there for good, and synced itself.
        let in_journal = |call: &&Call| {
            call.name == "pwrite64" && call.arguments.contains("journal.db-wal>") && call.arguments.contains(commit)
        };
        let record = calls.iter().find(in_journal).expect("the checkpoint is on record");
        assert!(synced(folder(to), moved.ended, record.began), "{to} may be gone while a record names {commit}");
        let wal = record.arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).unwrap().0;
        assert!(synced(wal, record.ended, usize::MAX), "the record of {commit} is never synced");
        since = moved.ended;
    }
}

/// Ends whoever looks at it, also where a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Cleans a repository as thoroughly as git can, again and again.
fn clean(env: &TestEnv, repository: &Path, stop: &AtomicBool) -> u32 {
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut git = env.command("git");
        // Whoever removes the repository meanwhile, or works in it, makes it fail: that is no harm.
        let done = git.arg("-C").arg(repository).args(["gc", "--quiet", "--prune=now"]).output().unwrap();
        rounds += u32::from(done.status.success());
    }
    rounds
}

#[test]
fn whoever_cleans_a_repository_at_any_moment_costs_nothing() {
    let world = World::new();
    let commit = "git -c user.name=A -c user.email=a@b commit -qm own";
    let plan = (0..3).fold(Plan::new("land = \"auto\"\nconcurrency = 2"), |plan, n| {
        let script = format!(
            "write parts/a{n}.txt \"part a{n}\\n\"\nrun \"git add -A; {commit}\"\nwrite parts/b{n}.txt \"part b{n}\\n\"\n\
             run \"git add parts/b{n}.txt\"\nwrite parts/c{n}.txt \"part c{n}\\n\"\nrun \"git gc --quiet --prune=now\""
        );
        plan.task(&format!("t{n}"), &script, &format!("writes = [\"parts/?{n}.txt\"]"))
    });
    world.plan(&plan);
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    let store = world.homes()[0].join("store.git");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (env, store, user, stop) = (&world.env, &store, world.repo.dir(), &stop);
        let stops = Stop(stop);
        // The user cleans up as well: what is to land has just come there, and is named by nothing yet.
        let cleaners = [store.as_path(), user].map(|place| scope.spawn(move || clean(env, place, stop)));
        let ran = run.end();
        drop(stops);
        for cleaner in cleaners {
            assert!(cleaner.join().unwrap() > 0, "it was never cleaned");
        }
        ran.ends(0);
    });
    world.all_are("landed");
    // Every checkpoint that was ever on record is there in full, the staged file and the agent's own commit included.
    let repo = Repo::at(&store);
    repo.git(&["fsck", "--strict", "--no-dangling"]).unwrap();
    world.repo.git(&["fsck", "--strict", "--no-dangling"]).unwrap();
    for n in 0..3 {
        let last = text(&world.task(&format!("t{n}"))["checkpoint"]);
        repo.git(&["rev-list", "--objects", "--quiet", &last]).unwrap();
        let turns = repo.text(&["rev-list", "--first-parent", "--count", &last]).unwrap();
        assert!(turns.parse::<u32>().unwrap() >= 5, "{turns}");
    }
}
