//! Spawner, attempt shim, process-tree containment, file sandbox.
//!
//! A [`Spawner`], forked before the engine has threads, starts one shim per [`LaunchSpec`]. The shim is the parent of one
//! program: it holds its tree together, keeps its output, its clock and its way to the gateway, and outlives the engine. A
//! [`ShimClient`] speaks to it; [`files`] are what it leaves. Nothing here knows what an agent is.
//!
//! Linux only for now: what other systems lack (namespaces, sub-reaper, pidfds, Landlock, inotify) is confined to `sys`,
//! `containment`, `sandbox`, `shim::program`, `shim::tree` and `listener::absence`.

mod client;
mod containment;
mod error;
mod exit;
pub mod file_size;
pub mod files;
mod hold;
mod launch_file;
mod listener;
mod mark;
pub mod open_files;
mod protocol;
mod public;
mod sandbox;
mod shim;
mod shim_id;
mod shut;
pub mod socket;
mod spawner;
mod spec;
mod survivors;
mod sys;
mod text;

pub use client::ShimClient;
pub use containment::Containment;
pub use error::{Error, Result};
pub use exit::{ExitReason, ExitRecord};
pub use hold::HoldProfile;
pub use protocol::{Command, Event, OpenRequest, ShimState, TimeoutKind};
pub use shim_id::{ShimFile, ShimId};
pub use spawner::Spawner;
pub use spec::{
    ContainmentChoice, FileRules, LaunchSpec, Listener, MARKER_VARIABLE, PORT_PLACEHOLDER, TemplateFile, Timeouts,
};
pub use survivors::{Survivor, Trace, end_survivors, kill_survivors, survivors};
pub use text::OsText;
