//! The system calls that no safe library offers, and `/proc`: each wrapped once, with nothing decided here.

pub(crate) mod capabilities;
pub(crate) mod environment;
pub(crate) mod fork;
pub(crate) mod landlock_abi;
pub(crate) mod lifeline;
pub(crate) mod pidfd;
pub(crate) mod procfs;
pub(crate) mod readiness;
pub(crate) mod signals;
