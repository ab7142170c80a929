//! The files of a repository that agents' CLIs obey by themselves, and what becomes of each: for the documentation.
//!
//! `outlast doctor` looks into a repository's own; that none of them moves a request is shown by the tests with the real
//! CLIs.

use crate::Kind;

/// A file or folder that an agent of some kind reads from a repository.
pub(crate) struct Known {
    pub(crate) kind: Kind,
    pub(crate) file: &'static str,
    pub(crate) outcome: &'static str,
}

const fn known(kind: Kind, file: &'static str, outcome: &'static str) -> Known {
    Known { kind, file, outcome }
}

const FAMILY: &str = "hidden from the CLI; an MCP server of it is copied when `inherit` names it";
const HIDDEN: &str = "hidden from the CLI";
const SKILLS: &str = "left out unless `inherit` names skills";
const MEMORY: &str = "left out unless `inherit` names memory";
const UNTRUSTED: &str = "not read: the project is not trusted";

/// All of them, by kind.
pub(crate) const KNOWN: [Known; 33] = [
    known(Kind::ClaudeCode, ".claude/settings.json", "not read; its hooks are copied when `inherit` names hooks"),
    known(Kind::ClaudeCode, ".claude/settings.local.json", "not read"),
    known(Kind::ClaudeCode, ".mcp.json", "not read; a server of it is copied when `inherit` names it"),
    known(Kind::ClaudeCode, ".claude/skills", SKILLS),
    known(Kind::ClaudeCode, "CLAUDE.md", MEMORY),
    known(Kind::Codex, ".codex/config.toml", UNTRUSTED),
    known(Kind::Codex, ".codex/hooks.json", UNTRUSTED),
    known(Kind::Codex, ".agents/skills", SKILLS),
    known(Kind::Codex, "AGENTS.md", MEMORY),
    known(Kind::OpenCode, "opencode.json", "not read; an MCP server of it is copied when `inherit` names it"),
    known(Kind::OpenCode, ".opencode/", "not read, its plugins not loaded"),
    known(Kind::OpenCode, ".claude/skills", SKILLS),
    known(Kind::OpenCode, ".agents/skills", SKILLS),
    known(Kind::OpenCode, "AGENTS.md", MEMORY),
    known(Kind::OpenCode, "CLAUDE.md", MEMORY),
    known(Kind::Gemini, ".gemini/settings.json", FAMILY),
    known(Kind::Gemini, ".gemini/.env", HIDDEN),
    known(Kind::Gemini, ".env", HIDDEN),
    known(Kind::Gemini, ".gemini/skills", SKILLS),
    known(Kind::Gemini, "GEMINI.md", "read always: the CLI has no switch for it"),
    known(Kind::Qwen, ".qwen/settings.json", FAMILY),
    known(Kind::Qwen, ".qwen/.env", HIDDEN),
    known(Kind::Qwen, ".env", HIDDEN),
    known(Kind::Qwen, ".qwen/skills", SKILLS),
    known(Kind::Qwen, ".agents/skills", SKILLS),
    known(Kind::Qwen, "QWEN.md", MEMORY),
    known(Kind::Qwen, "AGENTS.md", MEMORY),
    known(Kind::Kimi, ".kimi/skills", SKILLS),
    known(Kind::Kimi, ".claude/skills", SKILLS),
    known(Kind::Kimi, ".codex/skills", SKILLS),
    known(Kind::Kimi, ".agents/skills", SKILLS),
    known(Kind::Kimi, ".kimi/AGENTS.md", MEMORY),
    known(Kind::Kimi, "AGENTS.md", MEMORY),
];
