//! The scripted provider: an HTTP server on loopback that answers agents out of scripts, in four wire formats, with
//! faults and quota windows on cue.
//!
//! Every answer follows from the request alone (which scenario, how many tool calls are answered), so restarted and
//! resumed agents are served like any other. It never calls a model and never leaves loopback by itself.

mod answer;
mod arrival;
mod background;
mod books;
mod closing;
mod command;
mod fault;
mod file;
mod keeper;
mod latency;
mod log;
mod player;
mod refusal;
mod resolve;
mod respond;
mod route;
mod serve;
mod tools;
mod window;

pub use background::Background;
pub use closing::{Closing, ClosingTally};
pub use command::main;
pub use fault::{Fault, InlineFault, Rule, When};
pub use file::Script;
pub use latency::Latency;
pub use log::{Bill, Ended, LogEntry, Tally};
pub use refusal::{Refusal, RefusalKind};
pub use serve::{Provider, Running};
pub use window::{Says, Window, WindowKind};
