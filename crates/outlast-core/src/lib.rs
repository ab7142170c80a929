//! The pure heart of outlast: plan model, state machines, scheduling, and the step that drives them.
//!
//! Nothing here reads a clock, a file, the environment or a random source: what the outside world knows arrives as a
//! [`record`], what should happen leaves as an operation. The same code runs live, in replay and in the simulator.

pub mod admit;
mod again;
mod again_paid;
mod alike;
mod assign;
pub mod budget;
pub mod class;
mod core;
mod decide;
pub mod desired;
pub mod driver;
pub mod explain;
mod give_up;
pub mod glob;
pub mod hash;
pub mod ids;
mod ledger;
#[doc(hidden)]
pub mod mutant;
pub mod pace;
pub mod placeholder;
pub mod plan;
pub mod record;
pub mod research;
pub mod reset;
pub mod retry;
pub mod run;
mod scope;
pub mod task;
#[cfg(test)]
mod testing;
pub mod time;
pub mod usage;
pub mod wake;
mod window;

pub use self::core::{Core, total};
pub use again_paid::PaidAgain;
pub use class::Class;
pub use ids::{AccountId, AgentName, AttemptId, Epoch, ExchangeId, Oid, RunId, TaskId};
pub use ledger::LedgerRow;
pub use record::{Fact, Record, Stream};
pub use time::Timestamp;
pub use usage::Usage;
pub use window::{TRIAL_MAX, Window};
