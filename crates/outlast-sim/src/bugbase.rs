//! Seeds that once broke an invariant: simulated before any others, for ever.
//!
//! One file per profile, one seed a line, with what it found after a `#`. A seed is only as good as the simulation it
//! was found in; one that has lost its history by a change of the simulator may go.

use crate::profile::Profile;

const DEFAULT: &str = include_str!("../bugbase/default.txt");
const STORM: &str = include_str!("../bugbase/storm.txt");

/// Every seed of the bug base with its profile.
pub fn cases() -> Vec<(u64, Profile)> {
    let of = |text: &'static str, profile: Profile| read(text).map(move |seed| (seed, profile.clone()));
    of(DEFAULT, Profile::DEFAULT).chain(of(STORM, Profile::STORM)).collect()
}

fn read(text: &str) -> impl Iterator<Item = u64> {
    text.lines().filter_map(|line| line.split('#').next()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_bug_base_is_a_seed_or_a_comment() {
        for text in [DEFAULT, STORM] {
            let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
            assert_eq!(lines.count(), read(text).count(), "{text}");
        }
    }
}
