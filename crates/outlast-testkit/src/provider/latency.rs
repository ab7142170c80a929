//! How long the model thinks: longer here, shorter there, and the same every time.

use std::time::Duration;

use sha2::{Digest, Sha256};

/// The time before the first byte of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    mean: Duration,
    spread: f64,
}

impl Latency {
    pub(super) fn new(mean: Duration, spread: f64) -> Self {
        Self { mean, spread: spread.clamp(0.0, 1.0) }
    }

    /// That of a turn (from 1) of a scenario: between `mean * (1 - spread)` and `mean * (1 + spread)`.
    pub fn of(&self, scenario: &str, step: usize) -> Duration {
        let hash = Sha256::digest(format!("{scenario}/{step}").as_bytes());
        let share = f64::from(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])) / f64::from(u32::MAX);
        self.mean.mul_f64(1.0 + self.spread * (2.0 * share - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_differ_within_the_spread_around_the_mean() {
        let latency = Latency::new(Duration::from_millis(1_000), 0.5);
        let all: Vec<Duration> = (1..=200).map(|step| latency.of("a", step)).collect();
        let within = Duration::from_millis(500)..=Duration::from_millis(1_500);
        assert!(all.iter().all(|one| within.contains(one)), "{all:?}");
        let mean = all.iter().sum::<Duration>() / 200;
        assert!((900..1_100).contains(&mean.as_millis()), "{mean:?}");
        assert_eq!(latency.of("a", 7), all[6], "the same every time");
        assert_ne!(latency.of("b", 7), all[6]);
        assert_eq!(Latency::new(Duration::from_millis(7), 0.0).of("a", 1), Duration::from_millis(7));
    }
}
