//! The step language: what a scripted model does, one step per line, either inline in a goal or by name in a file.
//!
//! It is pure text handling; it never reads a file, runs a command or knows a wire format.

mod action;
mod line;
mod parse;
mod scenario;
#[cfg(test)]
mod tests;

pub use action::{Action, LocalStep};
pub use parse::parse_steps;
pub use scenario::{Scenario, Step, Turn, UsageOverride, inline_script};
