//! The command line of the simulator: many seeds, each twice, on every core.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::bugbase;
use crate::invariant::Invariant;
use crate::profile::Profile;
use crate::report::Report;

const USAGE: &str = "\
Simulates the core: seeds of whole histories with faults and crashes, judged at every step.

  --seeds N        how many seeds (1000)
  --from SEED      the first of them (1)
  --profile NAME   default | storm
  --threads N      how many at once (one per core)
  --trace SEED     one seed, with every record
";

/// What is wanted.
#[derive(Debug, Clone)]
struct Wish {
    seeds: u64,
    from: u64,
    profile: Profile,
    threads: usize,
    trace: Option<u64>,
}

/// Runs the simulator as a program; `args` are without the program's own name.
///
/// Success means that no seed broke an invariant and that each gave the same records twice.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let wish = match Wish::read(args) {
        Ok(Some(wish)) => wish,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprint!("{why}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = wish.trace {
        return trace(seed, &wish.profile);
    }
    let started = Instant::now();
    let mut total = Total::default();
    for (seed, profile) in bugbase::cases() {
        total.add(seed, &twice(seed, &profile));
    }
    let known = total.seeds;
    total.join(simulate(&wish));
    total.print(&wish, known, started.elapsed());
    if total.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Wish {
    /// Reads the arguments; nothing where help is wanted.
    fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>, String> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut wish = Self { seeds: 1000, from: 1, profile: Profile::DEFAULT, threads, trace: None };
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            if name == "--help" || name == "-h" {
                return Ok(None);
            }
            let value = args.next().ok_or_else(|| format!("`{name}` needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{name} {value}`: not a number"));
            match name.as_str() {
                "--seeds" => wish.seeds = number()?,
                "--from" => wish.from = number()?,
                "--threads" => wish.threads = usize::try_from(number()?).unwrap_or(1).max(1),
                "--trace" => wish.trace = Some(number()?),
                "--profile" => {
                    wish.profile = Profile::named(&value).ok_or_else(|| format!("no profile `{value}`"))?;
                }
                _ => return Err(format!("unknown argument `{name}`")),
            }
        }
        Ok(Some(wish))
    }
}

/// Every seed of the wish, spread over threads. Each simulation is single-threaded.
fn simulate(wish: &Wish) -> Total {
    let next = AtomicU64::new(wish.from);
    let end = wish.from.saturating_add(wish.seeds);
    let work = || {
        let mut total = Total::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return total;
            }
            total.add(seed, &twice(seed, &wish.profile));
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..wish.threads).map(|_| scope.spawn(work)).collect();
        let mut total = Total::default();
        for thread in threads {
            match thread.join() {
                Ok(part) => total.join(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        total
    })
}

/// Simulates a seed two times, the second time without checks; a difference is a violation of its own.
fn twice(seed: u64, profile: &Profile) -> Report {
    let first = crate::run(seed, profile);
    if first.violation.is_some() {
        return first;
    }
    let second = crate::replay(seed, profile);
    if first == second {
        return first;
    }
    let violation = Invariant::SameSeedSameRecords.broken(format!("{first:?} and then {second:?}"));
    Report { violation: Some(violation), ..first }
}

/// What came of many seeds.
#[derive(Debug, Default)]
struct Total {
    seeds: u64,
    tasks: usize,
    records: usize,
    crashes: u64,
    steps: u64,
    events: u64,
    rejections: u64,
    least: Option<(usize, usize, u32)>,
    broken: BTreeMap<Invariant, Vec<(u64, String)>>,
}

impl Total {
    fn add(&mut self, seed: u64, report: &Report) {
        self.seeds += 1;
        self.tasks += report.tasks;
        self.records += report.records;
        self.crashes += u64::from(report.crashes);
        self.steps += report.steps;
        self.events += report.events;
        self.rejections += report.rejections;
        self.at_least((report.tasks, report.records, report.crashes));
        if let Some(violation) = &report.violation {
            self.broken.entry(violation.invariant).or_default().push((seed, violation.detail.clone()));
        }
    }

    fn at_least(&mut self, (tasks, records, crashes): (usize, usize, u32)) {
        let (t, r, c) = self.least.unwrap_or((usize::MAX, usize::MAX, u32::MAX));
        self.least = Some((t.min(tasks), r.min(records), c.min(crashes)));
    }

    fn join(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.tasks += other.tasks;
        self.records += other.records;
        self.crashes += other.crashes;
        self.steps += other.steps;
        self.events += other.events;
        self.rejections += other.rejections;
        if let Some(least) = other.least {
            self.at_least(least);
        }
        for (invariant, seeds) in other.broken {
            self.broken.entry(invariant).or_default().extend(seeds);
        }
    }

    fn print(&self, wish: &Wish, known: u64, took: Duration) {
        let (tasks, records, crashes) = self.least.unwrap_or_default();
        println!(
            "{} seeds ({known} of the bug base), each twice, profile {}: {} tasks, {} records, {} crashes, {} steps, \
             {} events, {} refused",
            self.seeds,
            wish.profile.name,
            self.tasks,
            self.records,
            self.crashes,
            self.steps,
            self.events,
            self.rejections
        );
        println!("the smallest: {tasks} tasks, {records} records, {crashes} crashes");
        println!("{:.1} s on {} threads", took.as_secs_f64(), wish.threads);
        for (invariant, seeds) in &self.broken {
            let (seed, detail) = &seeds[0];
            println!("BROKEN {invariant:?} by {} seeds; --trace {seed}: {detail}", seeds.len());
        }
    }
}

fn trace(seed: u64, profile: &Profile) -> ExitCode {
    let (report, records) = crate::history(seed, profile);
    for record in records {
        println!("{} {} {:?}", record.at.as_millis(), record.stream, record.fact);
    }
    println!("{report:#?}");
    if report.violation.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
