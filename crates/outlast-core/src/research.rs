//! What an agent knows: its conversation in no dialect in particular, and the research state taken from it.
//!
//! A model is told everything anew with each request, so the newest request holds all that an agent has read, run,
//! changed and said. [`Conversation`] is that request without its dialect, [`ResearchState`] what is worth keeping of
//! it, and [`Progress`] what is shown of it to people and scripts. Reading requests is the gateway's part, knowing a
//! CLI's tools the adapter's; nothing here does any I/O.

mod bounds;
mod conversation;
mod follow;
mod markdown;
mod progress;
mod state;

pub use bounds::{head, tail};
pub use conversation::{Conversation, Item, Role};
pub use progress::{Progress, SCHEMA};
pub use state::{
    COMMAND_LEN_MAX, COMMANDS_MAX, CommandRun, DECISIONS_MAX, EDITS_MAX, EditKind, EditMade, Ended, FILES_MAX,
    FileRead, LISTED_MAX, LOOKUPS_MAX, LeftOut, Lookup, PATH_LEN_MAX, REPORT_LEN_MAX, ResearchState, SHOWN_LEN_MAX,
    SHOWN_TOTAL_MAX, STATE_LEN_MAX, SUB_AGENTS_MAX, SubAgent, TAIL_LEN_MAX, TEXT_LEN_MAX, TodoItem, TodoState,
    UNANSWERED_MAX, Unanswered,
};

#[cfg(test)]
mod tests;
