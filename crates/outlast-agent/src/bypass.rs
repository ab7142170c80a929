//! Finds the files of a repository by which an agent could be moved past the gateway or made to run something unasked,
//! and says what becomes of each. For people: `outlast doctor` shows it; nothing depends on it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Kind, inherit};

/// A file of a repository that sets something an agent would obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file or folder, relative to the repository's root.
    pub file: PathBuf,
    /// The kind of agent that reads it.
    pub kind: Kind,
    /// What it sets that matters here: settings, variables, or what it is.
    pub sets: Vec<String>,
    /// What becomes of it.
    pub outcome: &'static str,
}

/// How a known file is looked at.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// The named fields of a JSON object.
    Json(&'static [&'static str]),
    /// The named tables and keys of a TOML file.
    Toml(&'static [&'static str]),
    /// Variables that name a provider, a key or a proxy.
    Variables,
    /// That it is there.
    There(&'static str),
}

/// A file that an agent of some kind reads from a repository.
pub(crate) struct Known {
    pub(crate) kind: Kind,
    pub(crate) file: &'static str,
    look: Look,
    pub(crate) outcome: &'static str,
}

const fn known(kind: Kind, file: &'static str, look: Look, outcome: &'static str) -> Known {
    Known { kind, file, look, outcome }
}

const CLAUDE: Look = Look::Json(&[
    "env",
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "otelHeadersHelper",
    "hooks",
    "model",
]);
const CLAUDE_OUT: &str = "not read; its hooks are copied when `inherit` names hooks";
const OPENCODE: Look =
    Look::Json(&["provider", "model", "small_model", "plugin", "mcp", "agent", "instructions", "permission"]);
const OPENCODE_OUT: &str = "not read; an MCP server of it is copied when `inherit` names it";
const FAMILY: Look =
    Look::Json(&["security", "proxy", "telemetry", "hooks", "mcpServers", "tools", "env", "modelProviders"]);
const FAMILY_OUT: &str = "hidden from the CLI; an MCP server of it is copied when `inherit` names it";
const HIDDEN: &str = "hidden from the CLI";
const SKILLS: Look = Look::There("skills");
const SKILLS_OUT: &str = "left out unless `inherit` names skills";
const MEMORY: Look = Look::There("instructions");
const MEMORY_OUT: &str = "left out unless `inherit` names memory";

/// Every file looked at, in the order it is reported.
pub(crate) const KNOWN: [Known; 27] = [
    known(Kind::ClaudeCode, ".claude/settings.json", CLAUDE, CLAUDE_OUT),
    known(Kind::ClaudeCode, ".claude/settings.local.json", CLAUDE, "not read"),
    known(
        Kind::ClaudeCode,
        ".mcp.json",
        Look::Json(&["mcpServers"]),
        "not read; a server of it is copied when `inherit` names it",
    ),
    known(Kind::ClaudeCode, ".claude/skills", SKILLS, SKILLS_OUT),
    known(Kind::ClaudeCode, "CLAUDE.md", MEMORY, MEMORY_OUT),
    known(
        Kind::Codex,
        ".codex/config.toml",
        Look::Toml(&[
            "model",
            "model_provider",
            "model_providers",
            "openai_base_url",
            "chatgpt_base_url",
            "notify",
            "mcp_servers",
            "hooks",
            "otel",
        ]),
        "not read: the project is not trusted",
    ),
    known(Kind::Codex, ".codex/hooks.json", Look::There("hooks"), "not read: the project is not trusted"),
    known(Kind::Codex, ".agents/skills", SKILLS, SKILLS_OUT),
    known(Kind::Codex, "AGENTS.md", MEMORY, MEMORY_OUT),
    known(Kind::OpenCode, "opencode.json", OPENCODE, OPENCODE_OUT),
    known(Kind::OpenCode, "opencode.jsonc", Look::There("settings"), "not read"),
    known(Kind::OpenCode, ".opencode/opencode.json", OPENCODE, "not read"),
    known(Kind::OpenCode, ".opencode/plugin", Look::There("plugins"), "not loaded"),
    known(Kind::OpenCode, ".opencode/plugins", Look::There("plugins"), "not loaded"),
    known(Kind::OpenCode, ".opencode/agent", Look::There("agents"), "not read"),
    known(Kind::OpenCode, ".claude/skills", SKILLS, SKILLS_OUT),
    known(Kind::OpenCode, "AGENTS.md", MEMORY, MEMORY_OUT),
    known(Kind::Gemini, ".gemini/settings.json", FAMILY, FAMILY_OUT),
    known(Kind::Gemini, ".gemini/.env", Look::Variables, HIDDEN),
    known(Kind::Gemini, ".env", Look::Variables, HIDDEN),
    known(Kind::Gemini, "GEMINI.md", MEMORY, "read always: the CLI has no switch for it"),
    known(Kind::Qwen, ".qwen/settings.json", FAMILY, FAMILY_OUT),
    known(Kind::Qwen, ".qwen/.env", Look::Variables, HIDDEN),
    known(Kind::Qwen, ".env", Look::Variables, HIDDEN),
    known(Kind::Qwen, ".qwen/skills", SKILLS, SKILLS_OUT),
    known(Kind::Qwen, "QWEN.md", MEMORY, MEMORY_OUT),
    known(Kind::Qwen, "AGENTS.md", MEMORY, MEMORY_OUT),
];

/// What of this repository an agent would obey, and what becomes of it.
pub fn scan(repository: &Path) -> Vec<Finding> {
    KNOWN
        .iter()
        .filter_map(|known| {
            let sets = look(repository, known)?;
            Some(Finding { file: PathBuf::from(known.file), kind: known.kind, sets, outcome: known.outcome })
        })
        .collect()
}

/// What a file sets; `None` when it is not there or sets nothing that matters.
fn look(repository: &Path, known: &Known) -> Option<Vec<String>> {
    if let Look::There(what) = known.look {
        return repository.join(known.file).symlink_metadata().ok().map(|_| vec![what.to_owned()]);
    }
    let text = match inherit::read_text(repository, known.file) {
        Ok(text) => text?,
        Err(error) => return Some(vec![format!("unreadable: {error}")]),
    };
    let sets = match known.look {
        Look::Json(fields) => match serde_json::from_str::<Value>(&text) {
            Ok(settings) => json_sets(&settings, fields),
            Err(_) => vec!["not plain JSON: not looked into".to_owned()],
        },
        Look::Toml(names) => toml_sets(&text, names),
        Look::Variables => variables(&text),
        Look::There(_) => Vec::new(),
    };
    if sets.is_empty() { None } else { Some(sets) }
}

/// The named fields that are there; the names below `env` and the servers' names too, as they tell more.
fn json_sets(settings: &Value, fields: &[&str]) -> Vec<String> {
    let mut sets = Vec::new();
    for &field in fields {
        match settings.get(field) {
            None => {}
            Some(Value::Object(inner)) if matches!(field, "env" | "mcpServers" | "mcp" | "provider" | "hooks") => {
                sets.extend(inner.keys().map(|name| format!("{field}.{name}")));
            }
            Some(_) => sets.push(field.to_owned()),
        }
    }
    sets
}

/// The named keys and tables of a TOML file, found by their lines: it need not be valid to be reported.
fn toml_sets(text: &str, names: &[&str]) -> Vec<String> {
    let mut sets: Vec<String> = Vec::new();
    let mut in_table = false;
    for line in text.lines().map(str::trim) {
        let name = match line.strip_prefix('[') {
            Some(table) => {
                in_table = true;
                table.trim_start_matches('[').trim_end_matches(']').trim()
            }
            None if in_table => continue,
            None => line.split('=').next().unwrap_or_default().trim(),
        };
        let first = name.split('.').next().unwrap_or_default();
        if names.contains(&first) && !sets.iter().any(|known| known == name) {
            sets.push(name.to_owned());
        }
    }
    sets
}

/// The variables of a `.env` that decide where requests go, and with which key.
fn variables(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.trim().trim_start_matches("export ").split_once('='));
    let names = names.map(|(name, _)| name.trim());
    let matters = |name: &&str| {
        let upper = name.to_ascii_uppercase();
        upper.ends_with("_PROXY")
            || ["ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_", "QWEN_", "DASHSCOPE_", "CODE_ASSIST_"]
                .iter()
                .any(|prefix| upper.starts_with(prefix))
    };
    names.filter(matters).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn what_matters_is_reported_for_each_agent_that_reads_it_and_the_rest_is_not() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(scan(dir.path()), []);
        write(
            dir.path(),
            ".claude/settings.json",
            r#"{"env":{"ANTHROPIC_BASE_URL":"x"},"apiKeyHelper":"x","theme":"dark"}"#,
        );
        write(
            dir.path(),
            ".codex/config.toml",
            "model = \"x\"\n[tui]\nmodel = 1\n[model_providers.a]\nname = \"a\"\n[[hooks.Stop]]\n",
        );
        write(dir.path(), ".env", "DATABASE_URL=x\nexport OPENAI_BASE_URL=x\nHTTPS_PROXY=x\n");
        write(dir.path(), "opencode.json", "// a comment\n{}");
        write(dir.path(), ".gemini/settings.json", r#"{"ui":{}}"#);
        let found: Vec<_> =
            scan(dir.path()).into_iter().map(|found| (found.kind, found.file, found.sets.join(" "))).collect();
        let wanted = [
            (Kind::ClaudeCode, ".claude/settings.json", "env.ANTHROPIC_BASE_URL apiKeyHelper"),
            (Kind::Codex, ".codex/config.toml", "model model_providers.a hooks.Stop"),
            (Kind::OpenCode, "opencode.json", "not plain JSON: not looked into"),
            (Kind::Gemini, ".env", "OPENAI_BASE_URL HTTPS_PROXY"),
            (Kind::Qwen, ".env", "OPENAI_BASE_URL HTTPS_PROXY"),
        ];
        assert_eq!(found, wanted.map(|(kind, file, sets)| (kind, PathBuf::from(file), sets.to_owned())));
    }
}
