//! The pure heart of outlast: plan model, state machines, scheduling, and the step that drives them.
//!
//! Nothing here reads a clock, a file, the environment or a random source: what the outside world knows arrives as a
//! [`record`], what should happen leaves as an operation. The same code runs live, in replay and in the simulator.

pub mod hash;
pub mod ids;
pub mod plan;
pub mod time;

pub use ids::{AccountId, AgentName, AttemptId, Epoch, Oid, RunId, TaskId};
pub use time::Timestamp;
