//! How soon a run of ten thousand tasks works again after `kill -9`: from the start of `outlast resume` to the record of
//! the first new attempt, and to that of its process.
//!
//! A part of the tasks that are done is done for real; the others get the records, refs and attempt folders of one that was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Child;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_core::{Fact, Record, Stream, TaskId};
use outlast_journal::{Entry, Journal};
use outlast_process::ShimId;

use crate::place::{Place, count};

/// The bound, in milliseconds.
const BOUND: i64 = 1000;
/// How many work at once.
const AT_ONCE: usize = 8;
/// How many tasks are done for real.
const REAL: usize = 60;
/// Every so manieth task needs the one before it.
const NEEDS_EVERY: usize = 10;

/// An agent: it writes its part, or works for long once there is a gate.
const WORK: &str = "if test -e \"$1\"; then exec sleep 3600; fi\nmkdir -p parts\necho \"$OUTLAST_TASK\" > \"parts/$OUTLAST_TASK.txt\"\n";

/// Prints the figures; whether the bound is kept.
pub(crate) fn measure(numbers: &mut dyn Iterator<Item = u32>) -> bool {
    let mut next = |unless: usize| numbers.next().map_or(unless, |number| number as usize);
    let (tasks, done, rounds) = (next(10_000), next(5_000), next(5));
    let place = Place::new(&[("README.md", "# Parts\n"), ("work.sh", WORK), ("check.sh", "test -d parts\n")]);
    let gate = place.env.root().join("gate");
    place.repo.write("outlast.toml", plan(tasks, &gate)).unwrap();

    let mut engine = place.start(&["run", "--yes"]);
    let is_done = |fact: &Fact| matches!(fact, Fact::Verified { .. });
    let real = REAL.min(done);
    place.until(&mut engine, 0, "some are done", |records| count(records, is_done) >= real);
    std::fs::write(&gate, "").unwrap();
    at_work(&place, &mut engine, 0);
    end(engine);
    let (done, last, real) = done_alike(&place, done);

    // The first resume sees to what was cut off above, and is none of the measured.
    let mut engine = place.start(&["resume"]);
    let mut last = at_work(&place, &mut engine, last).1;
    println!(
        "{tasks} tasks, {done} of them done ({real} for real), {AT_ONCE} at work; the engine and half of the agents are killed with SIGKILL"
    );
    let (mut started, mut spawned) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        end(engine);
        let shims = place.shims();
        assert_eq!(shims.len(), AT_ONCE, "so many are at work");
        end_shims(shims.into_iter().take(AT_ONCE / 2).collect());
        let began = now();
        engine = place.start(&["resume"]);
        let is_new = |fact: &Fact| matches!(fact, Fact::AttemptStarted { .. });
        let (records, seq) = place.until(&mut engine, last, "new attempts in the place of those", |records| {
            count(records, is_new) >= AT_ONCE / 2 && all_spawned(records)
        });
        last = seq;
        let first =
            |is: fn(&Fact) -> bool| records.iter().find(|record| is(&record.fact)).unwrap().at.as_millis() - began;
        let (start, spawn) = (
            first(|fact| matches!(fact, Fact::AttemptStarted { .. })),
            first(|fact| matches!(fact, Fact::Spawned { .. })),
        );
        println!("round {round}: first new attempt on record after {start} ms, its agent after {spawn} ms");
        started.push(start);
        spawned.push(spawn);
    }
    end(engine);
    let (started, spawned) = (median(&mut started), median(&mut spawned));
    let is_kept = spawned < BOUND;
    let floor = floor(&place);
    println!(
        "median of {rounds}: {started} ms, with its agent {spawned} ms, at most {BOUND} ms{}; floor (the journal read once) {floor} ms",
        if is_kept { "" } else { ": MISSED" }
    );
    is_kept
}

fn plan(tasks: usize, gate: &Path) -> String {
    let mut plan = format!(
        "[run]\nconcurrency = {AT_ONCE}\n\n[agent.work]\nkind = \"command\"\ncommand = [\"sh\", \"work.sh\", {gate:?}]\n\n\
         [defaults]\nagent = \"work\"\ntimeout = \"2h\"\nidle_timeout = \"2h\"\nverify = [\"sh check.sh\"]\n"
    );
    for number in 1..=tasks {
        plan.push_str(&format!(
            "[[task]]\nid = \"t{number}\"\ngoal = \"Write part {number}.\"\nwrites = [\"parts/t{number}.txt\"]\n"
        ));
        if number % NEEDS_EVERY == 0 {
            plan.push_str(&format!("needs = [\"t{}\"]\n", number - 1));
        }
    }
    plan
}

/// Follows the journal after `last` until as many as may be are at work, and nothing else is.
fn at_work(place: &Place, engine: &mut Child, last: u64) -> (Vec<Record>, u64) {
    let what = "as many as may be are at work";
    place.until(engine, last, what, |records| all_spawned(records) && place.shims().len() == AT_ONCE)
}

/// Whether every attempt that these records start has a process, or is over.
fn all_spawned(records: &[Record]) -> bool {
    let mut open = BTreeSet::new();
    for record in records {
        let key = |number: &u32| (record.stream.clone(), *number);
        match &record.fact {
            Fact::AttemptStarted { number, .. } => drop(open.insert(key(number))),
            Fact::Spawned { number, .. } | Fact::AttemptEnded { number } => drop(open.remove(&key(number))),
            _ => {}
        }
    }
    open.is_empty()
}

fn end(mut engine: Child) {
    engine.kill().unwrap();
    engine.wait().unwrap();
}

/// Kills shims with SIGKILL, and with them all that they look after.
fn end_shims(shims: Vec<ShimId>) {
    for shim in shims {
        kill(Pid::from_raw(shim.pid), Signal::SIGKILL).unwrap();
    }
}

/// Has tasks that have not begun be done as one was that is: its records under their names, its refs, its attempt's folder.
/// How many are done then, the last entry of the journal, and how many were done for real.
fn done_alike(place: &Place, done: usize) -> (usize, u64, usize) {
    let home = place.home().unwrap();
    let journal = Journal::open(home.join("journal.db")).unwrap();
    let core = outlast_engine::replay(&journal.reader().unwrap()).unwrap();
    let run = core.runs.values().next().unwrap();
    let mut of: BTreeMap<TaskId, Vec<(Entry, Record)>> = BTreeMap::new();
    let read = journal.replay(0, |_, entry| {
        let record = outlast_engine::read_record(&entry)?;
        if let Stream::Task(_, task) = &record.stream {
            of.entry(task.clone()).or_default().push((entry, record));
        }
        Ok::<(), outlast_engine::Error>(())
    });
    read.unwrap();
    let real: Vec<&TaskId> = run.tasks.iter().filter(|task| task.state() == "done").map(|task| &task.id).collect();
    let is_plain = |task: &&&TaskId| {
        let records: Vec<Record> = of[**task].iter().map(|(_, record)| record.clone()).collect();
        count(&records, |fact| matches!(fact, Fact::AttemptStarted { .. })) == 1
    };
    let model = *real.iter().find(is_plain).unwrap();
    let new = run.tasks.iter().filter(|task| of[&task.id].len() == 1).take(done - real.len());
    let folders = ["store.git/refs/outlast", "attempts"].map(|folder| home.join(folder).join(run.id.as_str()));
    let mut entries = Vec::new();
    let mut made = 0;
    for task in new {
        for (entry, _) in &of[model][1..] {
            let stream = Stream::Task(run.id.clone(), task.id.clone()).to_string();
            entries.push(Entry { stream, ..entry.clone() });
        }
        for folder in &folders {
            copy_alike(folder, &model.slug(), &task.id.slug());
        }
        made += 1;
    }
    for some in entries.chunks(1000) {
        journal.append(some.to_vec()).unwrap();
    }
    (real.len() + made, journal.last_seq(), real.len())
}

/// Copies what a folder has of one task for another: `NAME`, and `NAME.…`.
fn copy_alike(folder: &Path, model: &str, name: &str) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let found = entry.file_name().into_string().unwrap();
        if let Some(rest) = found.strip_prefix(model).filter(|rest| rest.is_empty() || rest.starts_with('.')) {
            copy(&entry.path(), &folder.join(format!("{name}{rest}")));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let kind = from.symlink_metadata().unwrap().file_type();
    if kind.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else if kind.is_file() {
        std::fs::copy(from, to).unwrap();
    }
}

/// How long it takes to read the journal once, in milliseconds.
fn floor(place: &Place) -> i64 {
    let began = Instant::now();
    let reader = outlast_journal::JournalReader::open(place.home().unwrap().join("journal.db")).unwrap();
    reader.replay(0, |_, _| Ok::<(), outlast_journal::Error>(())).unwrap();
    i64::try_from(began.elapsed().as_millis()).unwrap()
}

fn median(times: &mut [i64]) -> i64 {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The wall clock, by which records are dated.
fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
