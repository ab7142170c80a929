//! Every key of every table that a person writes, with what it takes and means: the words of the reference.

/// One key of a table.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    /// What holds without it, as it would be written; nothing where nothing does.
    pub(super) default: Option<&'static str>,
    /// A value that it takes, as it is written in TOML.
    pub(super) example: &'static str,
    pub(super) meaning: &'static str,
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Text,
    Texts,
    Number,
    Integer,
    Duration,
    Table,
    /// `"auto"` or a whole number.
    AutoOrInteger,
    /// A string for the shell, or a list of a program and its arguments.
    Command,
}

impl Takes {
    /// The words of the page.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Texts => "list of strings",
            Self::Number => "number",
            Self::Integer => "whole number",
            Self::Duration => "duration",
            Self::Table => "table",
            Self::AutoOrInteger => "`\"auto\"` or whole number",
            Self::Command => "string or list of strings",
        }
    }

    /// A value that is of another type, as it is written in TOML.
    #[cfg(test)]
    pub(super) const fn wrong(self) -> &'static str {
        match self {
            Self::Text | Self::Texts | Self::Duration | Self::Table | Self::Command => "7",
            Self::Number | Self::Integer | Self::AutoOrInteger => "\"many\"",
        }
    }
}

const fn key(
    name: &'static str,
    takes: Takes,
    default: Option<&'static str>,
    example: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, takes, default, example, meaning }
}

use Takes::{AutoOrInteger, Command, Duration, Integer, Number, Table, Text, Texts};

pub(super) const RUN: &[Key] = &[
    key(
        "target",
        Text,
        Some("\"outlast/{run}\""),
        "\"main\"",
        "The branch that results land on; `{run}` is the run's id. A run starts from its tip where it exists, else from HEAD.",
    ),
    key(
        "concurrency",
        AutoOrInteger,
        Some("\"auto\""),
        "8",
        "How many tasks are worked on at once, 1 to 1000; `\"auto\"` is 5.",
    ),
    key(
        "land",
        Text,
        Some("\"review\""),
        "\"auto\"",
        "`\"review\"`: a person lands results with `outlast land`; `\"auto\"`: each lands as soon as it is verified.",
    ),
    key("hot_files", Texts, Some("[]"), "[\"Cargo.lock\"]", "Globs of files that only one task at a time may change."),
    key("budget", Table, None, "{ usd = 40.0 }", "What the run may spend; see `budget`."),
    key(
        "setup",
        Texts,
        Some("[]"),
        "[\"npm ci\"]",
        "Shell commands that make a fresh tree ready, run once per tree that tasks start from.",
    ),
    key(
        "hold",
        Duration,
        Some("\"30m\""),
        "\"1h30m\"",
        "How long a request waits for a provider before its agent is parked.",
    ),
];

pub(super) const BUDGET: &[Key] = &[
    key("usd", Number, None, "40.0", "US dollars."),
    key("tokens", Integer, None, "20_000_000", "Tokens of every kind; those read from a cache count a tenth."),
];

pub(super) const AGENT: &[Key] = &[
    key(
        "kind",
        Text,
        None,
        "\"claude-code\"",
        "Which program it is: `claude-code`, `codex`, `opencode`, `gemini`, `qwen`, `kimi`, or `command` for any other. Required.",
    ),
    key(
        "model",
        Text,
        None,
        "\"sonnet\"",
        "The model asked for; without it, the program's own choice. `opencode` needs one.",
    ),
    key(
        "accounts",
        Texts,
        Some("[]"),
        "[\"api\"]",
        "Accounts of your configuration that it may use, the preferred one first; empty: every one that fits.",
    ),
    key(
        "inherit",
        Texts,
        Some("[]"),
        "[\"memory\"]",
        "What of your and the repository's own settings of that program stays on: `memory`, `skills`, `hooks`, `mcp:NAME`.",
    ),
    key(
        "command",
        Texts,
        None,
        "[\"prog\", \"{goal_file}\"]",
        "Program and arguments, for the kind `command` alone; arguments may hold placeholders. A path without a root lies in the workspace.",
    ),
    key(
        "env",
        Table,
        None,
        "{ MODE = \"fast\" }",
        "Variables added for the kind `command` alone; values may hold placeholders. Never a key, an address or a proxy.",
    ),
];

pub(super) const TASK: &[Key] = &[
    key(
        "id",
        Text,
        None,
        "\"other\"",
        "Its name, unique in the plan; in a Markdown file, the file's name unless given. Required.",
    ),
    key("goal", Text, None, "\"Do it.\"", "What is to be done, in your words; in a Markdown file, the text. Required."),
    key(
        "writes",
        Texts,
        Some("[]"),
        "[\"src/a.rs\", \"tests/**\"]",
        "Globs of the files that it may change; what it changes elsewhere does not land. Empty: any file, unchecked.",
    ),
    key("reads", Texts, Some("[]"), "[\"docs/http.md\"]", "Globs of files that it depends on without changing them."),
    key("needs", Texts, Some("[]"), "[]", "Ids of tasks whose results it starts from."),
    key("example", Text, None, "\"docs/example.md\"", "A file of the repository to follow as a pattern."),
    key(
        "output",
        Table,
        None,
        "{ path = \"report.md\" }",
        "The answer that is wanted beside the change; see `output`.",
    ),
    key(
        "verify",
        Texts,
        Some("[]"),
        "[\"cargo test -q\"]",
        "Shell commands that must all succeed on what would land; a task's own replace those of the defaults.",
    ),
    key(
        "steps",
        Table,
        None,
        "{ one = \"test -e one\" }",
        "Its parts, in order: a name and the shell command that succeeds when it is done (empty: none). In a Markdown file, a `- [ ]` list with the command in a code span: after the name and a colon, a dash, an arrow or in brackets, on a line of its own below, or (a known program with its arguments) within the sentence; a `sh` block below does as well.",
    ),
    key("agent", Text, None, "\"a\"", "Which agent does it; without it, the only one there is."),
    key("model", Text, None, "\"opus\"", "The model asked for, over the agent's own."),
    key(
        "timeout",
        Duration,
        Some("\"20m\""),
        "\"1h\"",
        "How long an attempt may work; time in which a request waits is not counted.",
    ),
    key("idle_timeout", Duration, Some("\"5m\""), "\"90s\"", "How long an attempt may be silent."),
    key(
        "no_progress",
        Integer,
        None,
        "50",
        "After how many turns that repeat earlier ones and change nothing an attempt is ended; 0 for never. Without it, 30, and never for an agent of kind `command`.",
    ),
    key(
        "retries",
        Integer,
        Some("2"),
        "0",
        "How many more tries it has after the first, 0 to 20; only its own failures use one. One that never begins (no word, no request), and one whose agent takes its work for done and has changed nothing, is tried once more at most.",
    ),
];

pub(super) const OUTPUT: &[Key] = &[
    key("path", Text, None, "\"report.md\"", "The file that it is written to."),
    key("max_words", Integer, None, "300", "Its longest length, in words."),
];

pub(super) const ACCOUNT: &[Key] = &[
    key(
        "provider",
        Text,
        None,
        "\"anthropic\"",
        "Whose API it is: `anthropic`, `openai`, `gemini` or `openai-compatible`. Required unless a `login` says it.",
    ),
    key(
        "login",
        Text,
        None,
        "\"claude\"",
        "A subscription in place of a key: `claude` (its long-lived token) or `codex` (what `codex login` keeps).",
    ),
    key("key_env", Text, None, "\"ANTHROPIC_API_KEY\"", "The environment variable that holds the key."),
    key("key_command", Command, None, "[\"pass\", \"api\"]", "A command that prints the key."),
    key("key_file", Text, None, "\"/run/key\"", "A file that holds the key."),
    key(
        "base_url",
        Text,
        None,
        "\"https://api.example.com/v1\"",
        "The provider's address, where it is not the usual one; `openai-compatible` needs it.",
    ),
    key(
        "models",
        Texts,
        Some("[]"),
        "[\"sonnet\"]",
        "Models that it is for: a family (`sonnet`), a version with its releases (`gpt-5`, not `gpt-5-mini`), or a pattern \
         (`gpt-5*`); empty: any. A request for another model goes to another account, or is refused.",
    ),
    key("priority", Integer, Some("100"), "1", "Accounts with a smaller number are used first."),
    key(
        "limits",
        Table,
        None,
        "{ concurrent = 4 }",
        "Limits that you know of, kept before the provider has to refuse; see `limits`.",
    ),
    key("hours", Text, None, "\"22:00-08:00\"", "Hours of the day in which alone it is used."),
];

pub(super) const LIMITS: &[Key] = &[
    key("requests_per_minute", Integer, None, "50", "Requests in a minute."),
    key("tokens_per_minute", Integer, None, "40_000", "Tokens in a minute."),
    key("concurrent", Integer, None, "4", "Requests at once."),
];

pub(super) const CEILING: &[Key] = &[
    key("budget", Table, None, "{ usd = 100.0 }", "What no run may spend more than; see `budget`."),
    key("concurrency", Integer, None, "10", "How many tasks no plan may have worked on at once more than."),
    key(
        "memory_percent",
        Integer,
        Some("90"),
        "80",
        "How full the machine's memory may be before agents that wait for a provider are parked, one after another.",
    ),
];
