//! Repositories of three kinds: the user's, the store and a task's; workspaces, checkpoints, scope diffs and landings.
//!
//! The user's checkout, index, HEAD, stash and configuration are read and never written; the only refs written in the
//! user's repository are pins under `refs/outlast/base/` and a landing's target. Nothing here runs git with a
//! configuration, a hooks folder or a repository that an agent can write, and nothing follows a symlink in an agent's
//! tree. The interface is synchronous: the engine calls it from threads that may block.

mod agent_index;
mod agent_repo;
mod agent_state;
mod attributes;
mod beside;
mod candidate;
mod checkpoint;
mod copy;
mod damage;
mod durable;
mod emptied;
mod error;
mod fill;
mod filters;
mod git;
mod in_progress;
mod in_the_way;
mod inside;
mod integration;
mod kept_pack;
mod landing;
mod lock;
mod lost;
mod merge;
mod nested;
mod objects;
mod oid;
mod pack;
mod raw;
mod refusal;
mod result;
mod scan;
mod scope;
mod settings;
mod shell;
mod source;
mod store;
mod tree;
mod user;
mod workspace;
mod worktrees;

pub use agent_state::{AgentState, InProgress, Operation};
pub use candidate::{Candidate, CandidateOutcome, CandidateSpec};
pub use checkpoint::{Checkpoint, CheckpointSpec, FILE_LIMIT_DEFAULT, Note, SkipReason};
pub use damage::{Needed, damaged};
pub use emptied::emptied;
pub use error::{Error, Result};
pub use filters::Unfiltered;
pub use git::{Git, is_waited_for};
pub use gix::bstr::{BStr, BString, ByteSlice};
pub use inside::{read_inside, write_inside};
pub use integration::Integration;
pub use landing::{Move, MoveOutcome, TargetState};
pub use merge::{Conflict, Merged};
pub use refusal::Refusal;
pub use scope::{Block, Scope, ScopeDiff};
pub use shell::{quoted, word};
pub use store::{Store, attempt_ref, result_ref};
pub use tree::{Change, Entry, Kind};
pub use user::{Head, Identity, Target, UserRepo, Worktree, has_object, pinned_runs, until_let_go};
pub use workspace::{
    Aside, Listed, Pinned, Removal, Report, SetAside, Spec, Workspace, damaged_records, set_aside, size_of, trees_aside,
};
