//! Deterministic simulator of the core: seeds, faults, bug base.
//!
//! Drives the same [step](outlast_core::driver::Driver::step) as the engine, over a simulated journal, world and
//! clock, and judges every step by invariants. A seed is a whole history: the same seed gives the same records.
//!
//! What the simulated world promises, real effects must keep, because the core relies on it:
//! - a launch finds what was launched before, and launches nothing of an attempt that was ended;
//! - a move of the target finds that the target holds the commit before it finds any reason not to move it, and a
//!   candidate finds the task's commit on the target before it makes another;
//! - an operation returns once, and never after it was cancelled; its other news may be lost, late or doubled;
//! - a landing's refusal comes once, from the operation in flight: it names no commit that could tell it from an
//!   older one.

mod agenda;
mod bugbase;
mod cli;
mod disk;
mod invariant;
mod ledger;
mod profile;
mod referee;
mod report;
mod rng;
mod scenario;
mod simulation;
mod world;

use outlast_core::Record;

pub use bugbase::cases as bug_base;
pub use cli::main;
pub use invariant::{Invariant, Violation};
pub use profile::{Faults, Profile};
pub use report::Report;

/// Simulates one seed.
pub fn run(seed: u64, profile: &Profile) -> Report {
    history(seed, profile).0
}

/// Simulates one seed without checking what happens, for comparison with a simulation that was checked.
pub(crate) fn replay(seed: u64, profile: &Profile) -> Report {
    simulation::Simulation::new(seed, profile, false).run().0
}

/// Simulates one seed, and keeps the records that led there.
pub fn history(seed: u64, profile: &Profile) -> (Report, Vec<Record>) {
    simulation::Simulation::new(seed, profile, true).run()
}
