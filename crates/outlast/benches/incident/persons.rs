//! The two persons who run a batch by hand: one looks in now and then, the other never leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Batch;
use super::bare::{Begin, Job, jobs, pool};
use super::kills::Kills;
use super::options::Options;
use super::world::World;

/// How often the savvy person takes up one task again while the provider answers.
const TRIES: u32 = 10;

/// Everything that failed is resubmitted from scratch, once the whole batch has ended and the person has looked in.
pub(crate) fn naive(world: &World, options: &Options, kills: &mut Kills) -> Batch {
    let timeout = Duration::from_secs(options.timeout_seconds);
    by_hand(world, options, kills, |failed| {
        if failed.iter().any(|job| job.starts > 0) {
            sleep(Duration::from_secs_f64(options.look_seconds()));
        }
        pool(options.at_once(), failed, || true, |job| job.attempt(world, Begin::Anew, timeout))
    })
}

/// What failed is resumed: at once, or, while the provider is closed, in the second in which it opens. Nothing is
/// started while it is closed.
pub(crate) fn savvy(world: &World, options: &Options, kills: &mut Kills) -> Batch {
    let timeout = Duration::from_secs(options.timeout_seconds);
    by_hand(world, options, kills, |failed| {
        sleep(closed_for(world).unwrap_or_default());
        let paused = AtomicBool::new(false);
        pool(
            options.at_once(),
            failed,
            || !paused.load(Ordering::Relaxed),
            |job| {
                for _ in 0..TRIES {
                    job.attempt(world, Begin::Resume, timeout);
                    if job.done {
                        break;
                    }
                    if closed_for(world).is_some() {
                        paused.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            },
        )
    })
}

/// Round after round, until all is done or the time is over.
fn by_hand(world: &World, options: &Options, kills: &mut Kills, round: impl Fn(Vec<Job>) -> Vec<Job>) -> Batch {
    let began = Instant::now();
    let mut starts = vec![0; world.cast.len()];
    let mut resumed = vec![false; world.cast.len()];
    let mut open = jobs(world);
    let limit = Duration::from_secs(options.limit_total_seconds);
    kills.meanwhile(world, || {
        while !open.is_empty() && began.elapsed() < limit {
            open = round(std::mem::take(&mut open));
            for job in &open {
                starts[job.number() as usize] = job.starts;
                resumed[job.number() as usize] = job.resumed;
            }
            open.retain(|job| !job.done);
        }
    });
    let done = u32::try_from(world.cast.len() - open.len()).unwrap();
    Batch { done, starts, resumed, wall: began.elapsed() }
}

/// How much longer the provider is closed, if it is: the person knows it to the second, whatever the provider states.
fn closed_for(world: &World) -> Option<Duration> {
    let closings = world.provider.bill().closings;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let left = Duration::from_millis(closings.last()?.ends_at_ms).checked_sub(now)?;
    (!left.is_zero()).then_some(left)
}
