//! What one event costs the core, by how many tasks there are: `cargo run --release -p outlast-sim --example core_bench`.
//!
//! Store and effects do nothing, so that only the core's own work is measured: admission, apply, decisions and the
//! comparison of what is desired with what is in flight. Each row is a state in which a careless core looks at every
//! task at every event.

use std::convert::Infallible;
use std::time::Instant;

use outlast_core::admit::{AttemptNews, Command, LandingNews};
use outlast_core::budget::Allowed;
use outlast_core::class::Class;
use outlast_core::desired::{Operation, OperationKey};
use outlast_core::driver::{Driver, Effects, Input, Store};
use outlast_core::record::{LandingCause, Outcome, RunSpec, TaskSpec, Verdict};
use outlast_core::{AgentName, Core, Epoch, Oid, Record, RunId, TaskId, Timestamp};

struct Nowhere;

impl Store for Nowhere {
    type Error = Infallible;

    fn append(&mut self, _: &[(u64, Record)]) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Effects for Nowhere {
    fn start(&mut self, _: &OperationKey, _: &Operation) {}

    fn cancel(&mut self, _: &OperationKey) {}
}

type Bench = Driver<Nowhere, Nowhere>;

/// Makes a state with about so many tasks, one of which, `live`, is worked on.
type Case = fn(usize) -> Bench;

/// How many tasks are worked on at once.
const CONCURRENCY: u32 = 20;
/// How many events are measured.
const EVENTS: usize = 200;

fn main() {
    let cases: [(&str, Case); 6] = [
        ("every slot is taken", slots_taken),
        ("no account is open", accounts_closed),
        ("all write one file", one_file),
        ("all land behind one that was refused", behind_refused),
        ("all are blocked by one", behind_failed),
        ("all are of finished runs", finished_runs),
    ];
    println!("microseconds an event        {:>10} {:>10} {:>10}", "1,000", "10,000", "100,000");
    for (name, case) in cases {
        let costs = [1_000, 10_000, 100_000].map(|tasks| per_event(case(tasks)));
        println!("{name:<36} {:>10.1} {:>10.1} {:>10.1}", costs[0], costs[1], costs[2]);
    }
    let costs = [1_000, 10_000, 100_000].map(per_task);
    println!("{:<36} {:>10.1} {:>10.1} {:>10.1}", "a task from start to result", costs[0], costs[1], costs[2]);
}

/// An event of the living task `live`, again and again.
fn per_event(mut driver: Bench) -> f64 {
    let held = AttemptNews::Held { class: Class::Overload, until: None };
    let started = Instant::now();
    for _ in 0..EVENTS / 2 {
        for news in [held.clone(), AttemptNews::Released] {
            step(&mut driver, attempt("r", "live", 1, news));
        }
    }
    started.elapsed().as_secs_f64() * 1e6 / EVENTS as f64
}

/// The four events that bring a task from its start to its verified result, with the start of the next one.
fn per_task(tasks: usize) -> f64 {
    let mut driver = plan(tasks, CONCURRENCY, false, |_, _| {});
    let count = EVENTS.min(tasks);
    let started = Instant::now();
    for i in 0..count {
        let id = format!("t{i}");
        step(&mut driver, attempt("r", &id, 1, AttemptNews::Exited(Outcome::Finished)));
        step(&mut driver, attempt("r", &id, 1, AttemptNews::Ended));
        step(&mut driver, verified("r", &id));
    }
    started.elapsed().as_secs_f64() * 1e6 / count as f64
}

fn slots_taken(tasks: usize) -> Bench {
    plan(tasks, CONCURRENCY, false, |_, _| {})
}

fn accounts_closed(tasks: usize) -> Bench {
    let mut driver = Driver::new(Core::default(), Nowhere, Nowhere);
    let until = Timestamp::from_millis(i64::MAX);
    step(&mut driver, Command::CloseAccount { account: "max".into(), class: Class::WindowQuota, until: Some(until) });
    start_run(&mut driver, "r", tasks, CONCURRENCY, false, |_, spec| {
        spec.needs_quota = true;
        spec.accounts = vec!["max".into()];
    });
    driver
}

fn one_file(tasks: usize) -> Bench {
    plan(tasks, CONCURRENCY, false, |_, spec| spec.writes = vec!["Cargo.lock".into()])
}

fn behind_refused(tasks: usize) -> Bench {
    let mut driver = plan(tasks, u32::MAX, true, |i, spec| {
        spec.writes.clear();
        if i > 0 {
            spec.needs = vec!["t0".into()];
        }
    });
    finish(&mut driver, "r", 0);
    let (cause, detail) = (LandingCause::Conflict, String::new());
    let news = LandingNews::Refused { commit: None, refusals: 0, cause, detail };
    step(&mut driver, Command::Landing { run: "r".into(), task: "t0".into(), news });
    finish_many(&mut driver, "r", 1..tasks);
    driver
}

fn behind_failed(tasks: usize) -> Bench {
    let mut driver = plan(tasks, CONCURRENCY, false, |i, spec| {
        if i > 0 {
            spec.needs = vec![TaskId::new(format!("t{}", i - 1))];
        }
    });
    let failed = Outcome::Failed { class: Class::Question, why: String::new(), until: None };
    step(&mut driver, attempt("r", "t0", 1, AttemptNews::Exited(failed)));
    step(&mut driver, attempt("r", "t0", 1, AttemptNews::Ended));
    driver
}

fn finished_runs(tasks: usize) -> Bench {
    let mut driver = Driver::new(Core::default(), Nowhere, Nowhere);
    for run in 0..100 {
        let run = format!("old{run}");
        start_run(&mut driver, &run, tasks / 100, u32::MAX, false, |_, spec| spec.writes.clear());
        finish_many(&mut driver, &run, 0..tasks / 100);
    }
    start_run(&mut driver, "r", 0, CONCURRENCY, false, |_, _| {});
    driver
}

/// A driver with one run of so many tasks and one more, `live`, that is worked on.
fn plan(tasks: usize, concurrency: u32, auto_land: bool, change: impl Fn(usize, &mut TaskSpec)) -> Bench {
    let mut driver = Driver::new(Core::default(), Nowhere, Nowhere);
    start_run(&mut driver, "r", tasks, concurrency, auto_land, change);
    driver
}

fn start_run(
    driver: &mut Bench,
    run: &str,
    tasks: usize,
    concurrency: u32,
    auto_land: bool,
    change: impl Fn(usize, &mut TaskSpec),
) {
    let spec = || TaskSpec {
        needs: Vec::new(),
        writes: Vec::new(),
        agent: AgentName::from("command"),
        accounts: Vec::new(),
        retries: 2,
        needs_quota: false,
        startup_retries: None,
        empty_retries: None,
    };
    let live = (run == "r").then(|| (TaskId::from("live"), spec()));
    let others = (0..tasks).map(|i| {
        let mut spec = TaskSpec { writes: vec![format!("src/module{i}/**")], ..spec() };
        change(i, &mut spec);
        (TaskId::new(format!("t{i}")), spec)
    });
    let tasks = live.into_iter().chain(others).collect();
    let (plan, base, target) = (String::new(), Oid::new("base"), format!("outlast/{run}"));
    let spec =
        RunSpec { plan, base, target, concurrency, auto_land, seed: 1, budget: Allowed::default(), hold_max_ms: None };
    step(driver, Command::StartRun { run: RunId::new(run), spec, tasks });
}

/// Brings a living task to its verified result.
fn finish(driver: &mut Bench, run: &str, task: usize) {
    finish_many(driver, run, task..task + 1);
}

fn finish_many(driver: &mut Bench, run: &str, tasks: std::ops::Range<usize>) {
    let each = |news: fn(&str, &str) -> Command| tasks.clone().map(|i| news(run, &format!("t{i}")).into()).collect();
    let batches: [Vec<Input>; 3] = [
        each(|run, task| attempt(run, task, 1, AttemptNews::Exited(Outcome::Finished))),
        each(|run, task| attempt(run, task, 1, AttemptNews::Ended)),
        each(verified),
    ];
    for batch in batches {
        let Ok(answers) = driver.step(Timestamp::EPOCH, batch);
        assert!(answers.iter().all(Result::is_ok), "{:?}", answers.iter().find(|answer| answer.is_err()));
    }
}

fn attempt(run: &str, task: &str, number: u32, news: AttemptNews) -> Command {
    Command::Attempt { run: run.into(), task: task.into(), number, epoch: Epoch(number), news }
}

fn verified(run: &str, task: &str) -> Command {
    let verdict = Verdict::Passed { result: Oid::new("result") };
    Command::Verified { run: run.into(), task: task.into(), number: 1, checkpoint: None, verdict }
}

fn step(driver: &mut Bench, command: Command) {
    let Ok(answers) = driver.step(Timestamp::EPOCH, vec![command.into()]);
    assert!(answers[0].is_ok(), "{answers:?}");
}
