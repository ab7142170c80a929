//! Repositories as people and agents leave them: every test works on real ones, in a folder of its own.
//!
//! Git is the program in `OUTLAST_GIT`, else `git`; the suite must pass with the oldest supported one and the newest.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod checkpoints;
mod crashes;
mod damage;
mod filters;
mod fixture;
mod garbage;
mod hostile;
mod in_the_way;
mod landings;
mod late_gc;
mod line_ends;
mod lost;
mod mended;
mod merges;
mod pointers;
mod pruning;
mod refusals;
mod restores;
mod scopes;
mod sparse;
mod staged;
mod workspaces;

#[test]
fn everything_may_be_used_from_any_thread() {
    fn shared<T: Send + Sync>() {}
    shared::<outlast_git::UserRepo>();
    shared::<outlast_git::Store>();
    shared::<outlast_git::Workspace>();
    shared::<outlast_git::Integration>();
    shared::<outlast_git::Error>();
}
