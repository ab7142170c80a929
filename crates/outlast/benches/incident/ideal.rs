//! The shortest time that a batch can take, whoever runs it: a lower bound of any list schedule, and the closings.

use std::fmt;
use std::time::Duration;

use super::options::Options;
use super::world::World;
use super::yardstick::Yardstick;

/// A lower bound, by its parts; in seconds.
#[derive(Debug, Clone)]
pub(crate) struct Ideal {
    /// All tasks one after the other.
    work: f64,
    longest: f64,
    cpu: f64,
    slots: f64,
    cores: f64,
    /// How long each closing was.
    closed: Vec<f64>,
    /// One turn: what was taken before a closing is answered during it.
    latency: f64,
    /// How long nobody ran the batch: outlast was killed, and the person not yet back.
    away: f64,
}

impl Ideal {
    pub(crate) fn of(options: &Options, world: &World, yardstick: &Yardstick, closed: Vec<f64>, away: f64) -> Self {
        let each: Vec<(Duration, Duration)> = world
            .cast
            .iter()
            .zip(0..)
            .map(|(cli, number)| (yardstick.of(*cli).own + world.thinks(number), yardstick.of(*cli).cpu))
            .collect();
        let walls = || each.iter().map(|(wall, _)| wall.as_secs_f64());
        Self {
            work: walls().sum(),
            longest: walls().fold(0.0, f64::max),
            cpu: each.iter().map(|(_, cpu)| cpu.as_secs_f64()).sum(),
            slots: f64::from(options.at_once()),
            cores: std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64),
            closed,
            latency: options.latency_ms as f64 / 1000.0,
            away,
        }
    }

    /// The bound.
    pub(crate) fn seconds(&self) -> f64 {
        let closed: f64 = self.closed.iter().map(|seconds| (seconds - self.latency).max(0.0)).sum();
        self.schedule() + closed + self.away
    }

    fn schedule(&self) -> f64 {
        (self.work / self.slots).max(self.longest).max(self.cpu / self.cores)
    }
}

impl fmt::Display for Ideal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, longest, cpu, slots, cores, closed, latency, away } = self;
        let schedule = self.schedule();
        let closed: Vec<String> = closed.iter().map(|seconds| format!("max(0, {seconds:.1} - {latency:.1})")).collect();
        write!(
            f,
            "max({work:.1}/{slots} slots, {longest:.1} longest, {cpu:.1} cpu/{cores} cores) + {} + {away:.1} away \
             = {schedule:.1} + ... = {:.1} s",
            if closed.is_empty() { "0".to_owned() } else { closed.join(" + ") },
            self.seconds()
        )
    }
}
