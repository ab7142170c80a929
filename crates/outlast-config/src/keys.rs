//! The keys of plan files, by table: the ones of today, and the ones named already for later.

/// Tables at the top of a project or batch file.
pub(crate) const TOP: &[&str] = &["run", "agent", "defaults", "task"];

/// Keys of `[run]`.
pub(crate) const RUN: &[&str] = &["target", "concurrency", "land", "hot_files", "budget", "setup", "hold"];

/// Keys of `[agent.NAME]`.
pub(crate) const AGENT: &[&str] = &["kind", "model", "accounts", "inherit", "command", "env"];

/// Keys of `[defaults]`: those of a task that can hold for many.
pub(crate) const DEFAULTS: &[&str] =
    &["agent", "model", "timeout", "idle_timeout", "no_progress", "retries", "verify", "reads", "example", "output"];

/// Keys of a task.
pub(crate) const TASK: &[&str] = &[
    "id",
    "goal",
    "writes",
    "reads",
    "needs",
    "example",
    "output",
    "verify",
    "steps",
    "agent",
    "model",
    "timeout",
    "idle_timeout",
    "no_progress",
    "retries",
];

/// Keys of `output`.
pub(crate) const OUTPUT: &[&str] = &["path", "max_words"];

/// Keys of `budget`.
pub(crate) const BUDGET: &[&str] = &["usd", "tokens"];

/// Keys that have a meaning in the design and none in this release, wherever they are not among the known ones: a
/// `budget` is kept for a run, and not yet for a task.
pub(crate) const LATER: &[&str] = &[
    "env",
    "workspace",
    "mode",
    "cwd",
    "visible",
    "group",
    "stack",
    "for_each",
    "variants",
    "benchmark",
    "expect",
    "share",
    "sandbox",
    "connect",
    "uses",
    "after",
    "gate",
    "scope",
    "no_change",
    "done_when",
    "preamble",
    "context",
    "services",
    "notify",
    "budget",
    "pilot",
    "reserve",
    "window",
];

/// Keys that only the user's own configuration may hold.
pub(crate) const USER_ONLY: &[&str] = &[
    "account",
    "provider",
    "login",
    "key",
    "api_key",
    "key_env",
    "key_command",
    "key_file",
    "base_url",
    "ceiling",
    "priority",
    "reserve",
    "limits",
    "hours",
];

/// Kinds of agent that can be started.
pub(crate) const KINDS: &[&str] = &["claude-code", "codex", "opencode", "gemini", "qwen", "kimi", "command"];

/// What an agent may inherit, besides `mcp:NAME`.
pub(crate) const INHERIT: &[&str] = &["memory", "skills", "hooks"];

/// Where a key belongs, in words; nothing for one that no table of a plan knows.
pub(crate) fn homes(key: &str) -> Option<&'static str> {
    let is_in = |keys: &[&str]| keys.contains(&key);
    match (is_in(RUN), is_in(AGENT), is_in(TASK), is_in(DEFAULTS)) {
        (true, _, _, _) => Some("`[run]`"),
        (_, true, true, true) => Some("`[agent.NAME]`, of a task and of `[defaults]`"),
        (_, true, _, _) => Some("`[agent.NAME]`"),
        (_, _, true, true) => Some("a task and of `[defaults]`"),
        (_, _, true, false) => Some("a task"),
        _ => None,
    }
}
