//! Seeds of whole histories keep every invariant, and the same seed gives the same history.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use outlast_sim::{Profile, Report, bug_base, history, run};

/// Simulates these seeds on every core.
fn reports(seeds: std::ops::Range<u64>, profile: &Profile) -> Vec<(u64, Report)> {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut reports = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return reports;
            }
            reports.push((seed, run(seed, profile)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        threads.into_iter().flat_map(join).collect()
    })
}

#[test]
fn default_seeds_keep_every_invariant_and_are_big_enough() {
    for (seed, report) in reports(1..101, &Profile::DEFAULT) {
        assert_eq!(report.violation, None, "seed {seed}");
        assert!(report.tasks >= 20 && report.records >= 200 && report.crashes >= 5, "seed {seed}: {report:?}");
        assert!(report.rejections > 0, "seed {seed}: no stale outcome at all: {report:?}");
    }
}

#[test]
fn storm_seeds_keep_every_invariant() {
    for (seed, report) in reports(1..11, &Profile::STORM) {
        assert_eq!(report.violation, None, "seed {seed}");
    }
}

#[test]
fn people_have_tasks_tried_again_while_faults_happen_and_after() {
    let mut retried = 0;
    for seed in 1..21 {
        let (_, records) = history(seed, &Profile::DEFAULT);
        retried += records.iter().filter(|record| record.fact == outlast_core::Fact::RetryRequested).count();
    }
    assert!(retried >= 20, "{retried}");
}

#[test]
fn seeds_of_the_bug_base_keep_every_invariant() {
    for (seed, profile) in bug_base() {
        assert_eq!(run(seed, &profile).violation, None, "seed {seed} of {}", profile.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_records() {
    for seed in 1..4 {
        let (first, records) = history(seed, &Profile::DEFAULT);
        let (second, again) = history(seed, &Profile::DEFAULT);
        assert_eq!((first, records), (second, again), "seed {seed}");
    }
    assert_ne!(run(1, &Profile::DEFAULT).log_hash, run(2, &Profile::DEFAULT).log_hash);
}
