//! Repositories as people and agents leave them: every test works on real ones, in a folder of its own.
//!
//! Git is the program in `OUTLAST_GIT`, else `git`; the suite must pass with the oldest supported one and the newest.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod checkpoints;
mod crashes;
mod fixture;
mod hostile;
mod landings;
mod merges;
mod pruning;
mod refusals;
mod scopes;
mod workspaces;
