//! Plants each bug in turn and looks for the first seed that finds it: the table of `tests/mutants.rs` is made of this.
//! With names of bugs, those only.

use std::process::ExitCode;

#[cfg(debug_assertions)]
use outlast_core::mutant::{Bug, plant};
#[cfg(debug_assertions)]
use outlast_sim::Profile;

/// A bug that takes more seeds than this is one that the simulator does not find.
#[cfg(debug_assertions)]
const SEEDS: u64 = 1000;

#[cfg(not(debug_assertions))]
fn main() -> ExitCode {
    eprintln!("no bug can be planted in a build without debug assertions");
    ExitCode::from(2)
}

#[cfg(debug_assertions)]
fn main() -> ExitCode {
    let mut missed = false;
    let named: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |bug: &Bug| named.is_empty() || named.contains(&format!("{bug:?}"));
    for bug in Bug::ALL.into_iter().filter(is_wanted) {
        plant(Some(bug));
        let found = (1..=SEEDS).find_map(|seed| {
            let violation = outlast_sim::run(seed, &Profile::DEFAULT).violation?;
            Some((seed, violation))
        });
        plant(None);
        match found {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}, {violation}"),
            None => {
                missed = true;
                println!("{bug:?}: not found by {SEEDS} seeds");
            }
        }
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
