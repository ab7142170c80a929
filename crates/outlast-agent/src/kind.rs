//! The kinds of agent that a plan may name, and the wire formats they speak.

use std::fmt;

/// Which adapter drives an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Claude Code.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// OpenCode.
    OpenCode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Kimi CLI.
    Kimi,
    /// Any other program.
    Command,
}

impl Kind {
    /// Every kind, in the order tables show them.
    pub const ALL: [Self; 7] =
        [Self::ClaudeCode, Self::Codex, Self::OpenCode, Self::Gemini, Self::Qwen, Self::Kimi, Self::Command];

    /// The name in a plan's `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Kimi => "kimi",
            Self::Command => "command",
        }
    }

    /// The kind of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The program looked for on the `PATH`; a plan's `command` names its own.
    pub const fn program(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("claude"),
            Self::Codex => Some("codex"),
            Self::OpenCode => Some("opencode"),
            Self::Gemini => Some("gemini"),
            Self::Qwen => Some("qwen"),
            Self::Kimi => Some("kimi"),
            Self::Command => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A wire format of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Gemini `generateContent`.
    Gemini,
}

impl Dialect {
    /// The name shown in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "Anthropic Messages",
            Self::Responses => "OpenAI Responses",
            Self::Chat => "OpenAI Chat Completions",
            Self::Gemini => "Gemini generateContent",
        }
    }
}
