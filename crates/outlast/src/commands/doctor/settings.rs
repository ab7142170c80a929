//! What a settings file of an agent's CLI would set, by the names of its keys. Values are never read out: they may be
//! credentials.

use serde_json::{Map, Value};

/// What a file would do to the agent that reads it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// What it sets or starts, as phrases.
    pub(crate) sets: Vec<String>,
    /// Whether it would send requests elsewhere or sign them with another credential.
    pub(crate) moves: bool,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Toml,
    /// `NAME=value` lines.
    Variables,
}

/// How many names of one kind are listed.
const NAMES_MAX: usize = 8;

/// Keys at the top of a settings file that start something or move requests: the key, what it does, whether it moves.
const KEYS: [(&str, &str, bool); 20] = [
    ("hooks", "runs hooks", false),
    ("statusLine", "runs a command for the status line", false),
    ("mcpServers", "starts MCP servers", false),
    ("mcp_servers", "starts MCP servers", false),
    ("mcp", "starts MCP servers", false),
    ("enableAllProjectMcpServers", "approves every MCP server of the repository", false),
    ("plugin", "loads plugins", false),
    ("notify", "runs a command when a turn ends", false),
    ("telemetry", "sends telemetry", false),
    ("otel", "sends telemetry", false),
    ("apiKeyHelper", "runs a command for a key", true),
    ("awsAuthRefresh", "runs a command for a key", true),
    ("awsCredentialExport", "runs a command for a key", true),
    ("provider", "names providers", true),
    ("model_provider", "chooses the provider", true),
    ("model_providers", "names providers", true),
    ("modelProviders", "names providers", true),
    ("openai_base_url", "sets the provider's address", true),
    ("chatgpt_base_url", "sets the provider's address", true),
    ("proxy", "sets a proxy", true),
];

/// Beginnings of variables by which a CLI finds provider, login or proxy.
const PREFIXES: [&str; 10] =
    ["ANTHROPIC_", "CLAUDE_CODE_", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "QWEN_", "DASHSCOPE_", "KIMI_", "AWS_"];

/// Reads a file's text; `None` where it cannot be understood.
pub(crate) fn effects(format: Format, text: &str) -> Option<Effects> {
    match format {
        Format::Json => tables(serde_json::from_str(text).ok()?),
        Format::Toml => tables(toml::from_str(text).ok()?),
        Format::Variables => Some(variables(text.lines().filter_map(variable))),
    }
}

fn tables(settings: Value) -> Option<Effects> {
    let Value::Object(settings) = settings else { return None };
    let mut effects = match settings.get("env") {
        Some(Value::Object(env)) => variables(env.keys().map(String::as_str)),
        _ => Effects::default(),
    };
    for (key, does, moves) in KEYS {
        let Some(value) = settings.get(key).filter(|value| !is_empty(value)) else { continue };
        let names = match value {
            Value::Object(table) => format!(" ({})", listed(table.keys().map(String::as_str))),
            _ => String::new(),
        };
        effects.sets.push(format!("{does}{names}"));
        effects.moves |= moves;
    }
    if moves_in_auth(&settings) {
        effects.sets.push("chooses how to log in".to_owned());
        effects.moves = true;
    }
    Some(effects)
}

/// Gemini CLI and Qwen Code keep the choice of login below `security.auth`.
fn moves_in_auth(settings: &Map<String, Value>) -> bool {
    let auth = settings.get("security").and_then(|security| security.get("auth"));
    auth.is_some_and(|auth| !is_empty(auth))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(table) => table.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn variables<'a>(names: impl Iterator<Item = &'a str>) -> Effects {
    let telling = |name: &&str| {
        let upper = name.to_ascii_uppercase();
        upper.ends_with("_PROXY") || PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
    };
    let names: Vec<&str> = names.filter(telling).collect();
    if names.is_empty() {
        return Effects::default();
    }
    Effects { sets: vec![format!("sets {}", listed(names.into_iter()))], moves: true }
}

/// The name in a line of a `.env` file.
fn variable(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, _) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_MAX { format!("{shown} and {} more", names.len() - NAMES_MAX) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_and_values_never() {
        let text = r#"{
            "env": { "ANTHROPIC_BASE_URL": "http://canary", "EDITOR": "vi" },
            "hooks": { "SessionStart": ["canary"] }, "apiKeyHelper": "echo canary", "model": "opus", "mcpServers": {}
        }"#;
        let found = effects(Format::Json, text).unwrap();
        let expected = ["sets ANTHROPIC_BASE_URL", "runs hooks (SessionStart)", "runs a command for a key"];
        assert_eq!(found, Effects { sets: expected.map(str::to_owned).to_vec(), moves: true });
    }

    #[test]
    fn what_only_starts_something_moves_nothing() {
        let found = effects(Format::Toml, "model = \"x\"\n[mcp_servers.db]\ncommand = \"canary\"\n").unwrap();
        assert_eq!(found, Effects { sets: vec!["starts MCP servers (db)".to_owned()], moves: false });
        assert_eq!(effects(Format::Json, r#"{"model":"opus"}"#), Some(Effects::default()));
        assert_eq!(effects(Format::Json, "{ // a comment"), None);
    }

    #[test]
    fn variables_of_the_program_itself_are_no_business_of_ours() {
        let text = "# OPENAI_API_KEY=no\nDATABASE_URL=canary\nexport OPENAI_API_KEY=canary\nhttps_proxy = canary\n";
        let found = effects(Format::Variables, text).unwrap();
        assert_eq!(found.sets, ["sets OPENAI_API_KEY, https_proxy"]);
        assert!(found.moves);
        assert_eq!(effects(Format::Variables, "DATABASE_URL=x\n"), Some(Effects::default()));
    }
}
