//! The contract that every kind of agent fills in.

use outlast_core::research::{Conversation, ResearchState};

use crate::event::Summary;
use crate::launch::Hold;
use crate::reader::Reader;
use crate::verdict::{self, Exit, Verdict};
use crate::{Brief, Dialect, Error, Kind, Launch};
use crate::{claude, codex, command, gemini, kimi, opencode, qwen};

/// What a kind of agent can do, as its documentation table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The version whose behaviour was observed.
    pub observed: &'static str,
    /// The wire formats it speaks.
    pub dialects: &'static [Dialect],
    /// Whether an earlier session can go on.
    pub resume: bool,
    /// Whether the session's id is chosen by us, so that it is known before the first output.
    pub session_id_fixed: bool,
    /// Whether the key can be handed out in the shape of a subscription's login.
    pub login_shape: bool,
    /// Whether it reports the tokens it used.
    pub reports_usage: bool,
    /// What a plan's `inherit` may name.
    pub inherit: &'static str,
    /// Where provider address and key are set.
    pub strongest_layer: &'static str,
    /// What its exit code does not tell.
    pub exit_trap: &'static str,
    /// What to know about its resume.
    pub resume_trap: &'static str,
}

/// One kind of agent: how it is launched, read and judged. It starts nothing and keeps no state.
pub trait Adapter: Sync {
    /// The kind it is for.
    fn kind(&self) -> Kind;

    /// What the kind can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether it chooses no model by itself, so that a plan must.
    fn needs_model(&self) -> bool {
        false
    }

    /// How its requests are held.
    fn hold(&self) -> Hold;

    /// Builds the launch of one attempt; it may read what `inherit` names.
    ///
    /// # Errors
    /// What the plan asks for cannot be had with this kind: see [`Error`].
    fn launch(&self, brief: &Brief) -> Result<Launch, Error>;

    /// A reader for one attempt's output.
    fn reader(&self) -> Reader;

    /// What the agent has read, run, changed and said so far, from the conversation that a request of it holds.
    ///
    /// Within the bounds of [`ResearchState`]; a tool that is not known is passed over.
    fn research(&self, conversation: &Conversation) -> ResearchState;

    /// What it ended with, where that is nothing but a provider's error: an agent that has changed nothing ended by that,
    /// whatever its exit code says, and so did one that ran out of time.
    fn last_word(&self, summary: &Summary) -> Option<Verdict> {
        verdict::last_word(summary)
    }

    /// Judges an attempt that has ended.
    fn judge(&self, exit: &Exit, summary: &Summary) -> Verdict {
        verdict::judge(exit, summary)
    }
}

/// The adapter of a kind.
pub fn adapter(kind: Kind) -> &'static dyn Adapter {
    match kind {
        Kind::ClaudeCode => &claude::ClaudeCode,
        Kind::Command => &command::Command,
        Kind::Codex => &codex::Codex,
        Kind::OpenCode => &opencode::OpenCode,
        Kind::Gemini => &gemini::Gemini,
        Kind::Qwen => &qwen::Qwen,
        Kind::Kimi => &kimi::Kimi,
    }
}
