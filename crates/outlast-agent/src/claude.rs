//! Claude Code.
//!
//! A repository's `.claude/settings.json` may set any variable, address and key included, and beats the process's
//! environment. So no settings file of the repository or of the home is a source at all (`--setting-sources ''`), and
//! what we set comes as a file through `--settings`, as strong as inline JSON without showing the key in the argument
//! list. What a plan inherits is copied into that file.

use std::path::PathBuf;

use outlast_core::research::{Conversation, ResearchState};
use serde_json::{Map, Value, json};

use crate::launch::{self, Hold, text};
use crate::reader::Reader;
use crate::stream::messages::Messages;
use crate::{
    Adapter, Brief, Capabilities, Dialect, Error, Inherit, KeyShape, Kind, Launch, Session, inherit, research,
};

/// The adapter of Claude Code.
pub(crate) struct ClaudeCode;

/// Its configuration folder below the home.
const FOLDER: &str = ".claude";
/// Our settings file in that folder: not the name it looks for by itself.
const SETTINGS: &str = ".claude/outlast-settings.json";
/// Our list of MCP servers in that folder.
const SERVERS: &str = ".claude/outlast-mcp.json";

/// Variables that would send requests elsewhere or sign them with something else; emptied in our settings.
const EMPTIED: [&str; 18] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_API_BASE_URL",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_GATEWAY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// Variables that switch off what an unattended run must not do, and the timers that would end a held request: the
/// fetch timer, the request timer and the stream's watchdog; without the last one a refusal is retried for ever.
const SWITCHES: [(&str, &str); 10] = [
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    // It refuses to skip permissions as root without this; the shim's sandbox is one.
    ("IS_SANDBOX", "1"),
    ("API_FORCE_IDLE_TIMEOUT", "0"),
    ("API_TIMEOUT_MS", "2147483647"),
    ("CLAUDE_ENABLE_STREAM_WATCHDOG", "0"),
    ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "86400000"),
    ("CLAUDE_CODE_RETRY_WATCHDOG", "1"),
];

impl Adapter for ClaudeCode {
    fn kind(&self) -> Kind {
        Kind::ClaudeCode
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            observed: "2.1.197",
            dialects: &[Dialect::Messages],
            resume: true,
            session_id_fixed: true,
            login_shape: true,
            reports_usage: true,
            inherit: "memory, skills, hooks, mcp",
            strongest_layer: "a file given with `--settings`; no other settings file is a source",
            exit_trap: "0 without a result after SIGINT; a failed request is a result of subtype success",
            resume_trap: "sessions are kept by working directory; the model must be named again; a kill loses the last calls",
        }
    }

    fn hold(&self) -> Hold {
        Hold::silent()
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, Error> {
        let provider = provider(brief);
        let mut env = launch::base_env(brief)?;
        env.insert("CLAUDE_CONFIG_DIR".to_owned(), text(&brief.home.join(FOLDER))?);
        env.extend(SWITCHES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        env.extend(provider.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));

        let mut settings_env: Map<String, Value> = EMPTIED.iter().map(|name| ((*name).to_owned(), json!(""))).collect();
        settings_env.extend(SWITCHES.map(|(name, value)| (name.to_owned(), json!(value))));
        settings_env.extend(provider.into_iter().map(|(name, value)| (name.to_owned(), json!(value))));
        let mut settings = json!({ "env": settings_env });
        let mut files = Vec::new();
        let inherited = inherited(brief, &mut settings, &mut files)?;
        files.push((PathBuf::from(SETTINGS), settings.to_string()));

        Ok(Launch {
            argv: argv(brief, &inherited)?,
            env,
            files,
            read_paths: Vec::new(),
            execute_paths: launch::execute_paths(brief, false),
            dialect: Some(Dialect::Messages),
            hold: self.hold(),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Messages::default())
    }

    fn research(&self, conversation: &Conversation) -> ResearchState {
        research::collect(conversation, &research::CLAUDE)
    }
}

/// Address and key, the key in its shape. An API key wins over a login silently, so only one of them is ever set.
fn provider(brief: &Brief) -> Vec<(&'static str, String)> {
    let key = brief.key.reveal().to_owned();
    let key = match brief.key_shape {
        KeyShape::ApiKey => ("ANTHROPIC_API_KEY", key),
        KeyShape::Login => ("CLAUDE_CODE_OAUTH_TOKEN", key),
    };
    vec![("ANTHROPIC_BASE_URL", brief.gateway_url.clone()), key]
}

fn argv(brief: &Brief, inherited: &Inherited) -> Result<Vec<String>, Error> {
    let mut argv = vec![text(&brief.program)?, "-p".to_owned(), launch::prompt_argument(brief)?];
    let mut option = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    option(&["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]);
    option(&["--setting-sources", inherited.sources]);
    option(&["--settings", &text(&brief.home.join(SETTINGS))?]);
    option(&["--strict-mcp-config"]);
    if inherited.servers {
        option(&["--mcp-config", &text(&brief.home.join(SERVERS))?]);
    }
    if let Some(model) = &brief.model {
        option(&["--model", model]);
    }
    match &brief.session {
        Session::Fresh { id } => option(&["--session-id", id]),
        Session::Resume { id } => option(&["--resume", id]),
    }
    Ok(argv)
}

struct Inherited {
    /// The value of `--setting-sources`.
    sources: &'static str,
    /// Whether there is a list of MCP servers.
    servers: bool,
}

/// Copies what the plan inherits into our settings and into the home.
fn inherited(brief: &Brief, settings: &mut Value, files: &mut Vec<(PathBuf, String)>) -> Result<Inherited, Error> {
    let mut inherited = Inherited { sources: "", servers: false };
    let mut servers = Map::new();
    for part in &brief.inherit {
        match part {
            Inherit::Hooks => {
                let project = inherit::read_json(&brief.workspace, ".claude/settings.json")?;
                if let Some(hooks) = project.as_ref().and_then(|project| project.get("hooks")) {
                    settings["hooks"] = hooks.clone();
                }
            }
            Inherit::Mcp(name) => {
                let server = inherit::mcp_server(&brief.workspace, ".mcp.json", "/mcpServers", name)?;
                servers.insert(name.clone(), server);
            }
            Inherit::Memory => {
                inherited.sources = "user";
                files.push((PathBuf::from(".claude/CLAUDE.md"), memory(brief)?));
            }
            Inherit::Skills => {
                inherited.sources = "user";
                for root in brief.user_home.iter().chain([&brief.workspace]) {
                    let skills = inherit::read_folder(root, ".claude/skills")?;
                    files.extend(
                        skills.into_iter().map(|(path, text)| (PathBuf::from(".claude/skills").join(path), text)),
                    );
                }
            }
        }
    }
    if !servers.is_empty() {
        inherited.servers = true;
        files.push((PathBuf::from(SERVERS), json!({ "mcpServers": servers }).to_string()));
    }
    if inherited.sources == "user" {
        // Memory and skills come with the home's settings, which an earlier attempt may have written.
        files.push((PathBuf::from(".claude/settings.json"), "{}".to_owned()));
    }
    Ok(inherited)
}

/// The person's memory, then the repository's by reference, so that it stays what the workspace holds.
fn memory(brief: &Brief) -> Result<String, Error> {
    let mut memory = String::new();
    if let Some(home) = &brief.user_home
        && let Some(own) = inherit::read_text(home, ".claude/CLAUDE.md")?
    {
        memory.push_str(own.trim_end());
        memory.push_str("\n\n");
    }
    for file in ["CLAUDE.md", ".claude/CLAUDE.md"] {
        if inherit::read_text(&brief.workspace, file)?.is_some() {
            memory.push('@');
            memory.push_str(&text(&brief.workspace.join(file))?);
            memory.push('\n');
        }
    }
    Ok(memory)
}
