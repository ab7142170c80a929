//! The scripted agent: a small command-line agent that really talks to a gateway, works in its directory with real
//! tools, keeps its sessions on disk, and misbehaves on command.
//!
//! It is as naive as the real ones: it retries nothing unless told to, and dies of the first refusal it sees.

mod attempt;
mod hands;
mod local;
mod options;
mod report;
mod run;
mod session;
mod speak;
mod talk;

pub use options::main;
