//! The measurement as a whole: a world of its own for each runner, the run, and what it came to.

mod agents;
mod bare;
mod figures;
mod ideal;
mod kills;
mod options;
mod ours;
mod persons;
mod report;
mod wire;
mod work;
mod world;
mod yardstick;

use std::time::{Duration, Instant};

pub(crate) use figures::Figures;
pub(crate) use options::{Options, Runner};
pub(crate) use report::Report;
pub(crate) use yardstick::Yardstick;

use kills::Kills;
use world::World;

/// What a runner says of its own batch.
struct Batch {
    /// The tasks whose agent said that it was done, and whose check passed.
    done: u32,
    /// How often each task was started, in the order of the tasks.
    starts: Vec<u32>,
    /// Whether one of those starts went on with a session, or from a note, in the order of the tasks.
    resumed: Vec<bool>,
    /// How long it took.
    wall: Duration,
}

/// How long what ends by itself may take to do so.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs one batch with one runner.
pub(crate) fn measure(options: &Options, runner: Runner, yardstick: &Yardstick) -> Figures {
    let world = World::new(options.cast(), &options.closings(), options.latency_ms);
    let mut kills = Kills::new(options, runner);
    let began = Instant::now();
    let batch = match runner {
        Runner::Outlast => ours::run(&world, options, &mut kills),
        Runner::Naive => persons::naive(&world, options, &mut kills),
        Runner::Savvy => persons::savvy(&world, options, &mut kills),
    };
    eprintln!("{runner}: {} of {} done after {:.0} s", batch.done, options.tasks(), began.elapsed().as_secs_f64());
    let left = world.left_after(PATIENCE);
    figures::of(options, runner, &world, &batch, &kills, left, yardstick)
}
