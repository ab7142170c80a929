//! Adapters: how each agent CLI is launched, read and judged.
//!
//! An [`Adapter`] turns a [`Brief`] into a [`Launch`], the CLI's output into [`Event`]s, and its end into a
//! [`Verdict`]; from its conversation it takes what the agent knows. Nothing here starts a process or opens a
//! connection, and nothing knows the plan as a whole.
//!
//! Where a CLI's behaviour is relied on, it was observed with the version named in `docs/agents.md`.

mod account;
mod adapter;
mod asked_again;
mod brief;
mod broken;
mod claude;
mod codex;
mod command;
pub mod discover;
pub mod docs;
mod error;
mod event;
mod gemini;
mod guard;
mod inherit;
mod kimi;
mod kind;
pub mod launch;
mod lines;
mod network;
mod opencode;
mod opening;
mod preface;
mod project;
pub mod prompt;
mod python;
mod qwen;
mod reader;
pub mod refusal;
mod report;
mod research;
mod retries;
mod spread;
mod stream;
mod verdict;

pub use account::ClosingAccount;
pub use adapter::{Adapter, Capabilities, adapter};
pub use asked_again::AskedAgain;
pub use brief::{Brief, Inherit, Key, KeyShape, Session, session_uuid};
pub use error::Error;
pub use event::{Event, Summary};
pub use kind::{Dialect, Kind};
pub use launch::{Hold, Launch};
pub use opening::{Opening, Unbegun};
pub use reader::{Reader, Source};
pub use research::text_hash;
pub use verdict::{Exit, ExitStatus, Verdict};
