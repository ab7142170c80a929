//! What came of a simulation.

use crate::invariant::Violation;

/// What came of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How many tasks there were.
    pub tasks: usize,
    /// How many records were written.
    pub records: usize,
    /// How often the orchestrator crashed.
    pub crashes: u32,
    /// How many steps the driver took.
    pub steps: u64,
    /// How many things happened.
    pub events: u64,
    /// How many commands were refused: stale outcomes and wishes that could not be had.
    pub rejections: u64,
    /// A hash over every record in order: equal for equal seeds.
    pub log_hash: u64,
    /// The first invariant that was broken; the simulation ended there.
    pub violation: Option<Violation>,
}
