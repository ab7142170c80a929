//! Qwen Code.
//!
//! See [`crate::guard`] for how the repository's settings are kept out; ours are the home's, written at every launch.

use std::path::PathBuf;
use std::time::Duration;

use outlast_core::research::{Conversation, ResearchState};
use serde_json::{Map, Value, json};

use crate::launch::{self, Hold, text};
use crate::reader::Reader;
use crate::stream::messages::Messages;
use crate::{Adapter, Brief, Capabilities, Dialect, Error, Inherit, Kind, Launch, Session, guard, inherit, research};

/// The adapter of Qwen Code.
pub(crate) struct Qwen;

/// Our list of MCP servers below the home.
const SERVERS: &str = ".qwen/outlast-mcp.json";

impl Adapter for Qwen {
    fn kind(&self) -> Kind {
        Kind::Qwen
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            observed: "0.15.10",
            dialects: &[Dialect::Chat],
            resume: true,
            session_id_fixed: true,
            login_shape: false,
            reports_usage: true,
            inherit: "memory, skills, mcp",
            strongest_layer: "the environment and the home's settings, the repository's hidden by a Node module",
            exit_trap: "0 and a success for a failed request: only its text begins with `[API Error`",
            resume_trap: "by working directory; a kill loses the last calls",
        }
    }

    fn hold(&self) -> Hold {
        Hold {
            keep_alive: ": wait\n\n".to_owned(),
            period: Duration::from_secs(15),
            buffer_whole: true,
            ..Hold::silent()
        }
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, Error> {
        let mut env = launch::base_env(brief)?;
        let url = format!("{}/v1", brief.gateway_url);
        for (name, value) in [
            ("OPENAI_API_KEY", brief.key.reveal()),
            ("OPENAI_BASE_URL", &*url),
            // 10 hours: its own timer ends a request after 2 minutes.
            ("QWEN_CODE_API_TIMEOUT_MS", "36000000"),
            // Else it starts itself again, without the guard and as a second process.
            ("QWEN_CODE_NO_RELAUNCH", "true"),
        ] {
            env.insert(name.to_owned(), value.to_owned());
        }
        if let Some(model) = &brief.model {
            env.insert("OPENAI_MODEL".to_owned(), model.clone());
        }
        let mut settings = settings();
        let mut files = vec![guard::module(brief, ".qwen")?];
        let servers = inherit_into(brief, &mut settings, &mut files)?;
        files.push((PathBuf::from(".qwen/settings.json"), settings.to_string()));
        Ok(Launch {
            argv: argv(brief, servers)?,
            env,
            files,
            read_paths: Vec::new(),
            execute_paths: launch::execute_paths(brief, true),
            dialect: Some(Dialect::Chat),
            hold: self.hold(),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Messages::qwen())
    }

    fn research(&self, conversation: &Conversation) -> ResearchState {
        research::collect(conversation, &research::QWEN)
    }
}

fn argv(brief: &Brief, servers: bool) -> Result<Vec<String>, Error> {
    let mut argv = guard::argv(brief)?;
    let mut option = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    option(&["-p", &launch::prompt_argument(brief)?, "--auth-type", "openai", "-o", "stream-json", "--yolo"]);
    if servers {
        option(&["--mcp-config", &text(&brief.home.join(SERVERS))?]);
    }
    match &brief.session {
        Session::Fresh { id } => option(&["--session-id", id]),
        Session::Resume { id } => option(&["--resume", id]),
    }
    Ok(argv)
}

fn settings() -> Value {
    json!({
        "security": { "auth": { "selectedType": "openai" }, "folderTrust": { "enabled": false } },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false },
        "disableAllHooks": true,
        // No terminal can be had in the sandbox, and it does not do without one by itself.
        "tools": { "shell": { "enableInteractiveShell": false } },
        // Each of them sends requests of its own after the task's.
        "memory": { "enableManagedAutoMemory": false, "enableManagedAutoDream": false, "enableAutoSkill": false },
        // A name that no repository has: an empty list would mean the default.
        "context": { "fileName": ["outlast-no-memory"] },
    })
}

/// Adds what the plan inherits; tells whether there is a list of MCP servers.
fn inherit_into(brief: &Brief, settings: &mut Value, files: &mut Vec<(PathBuf, String)>) -> Result<bool, Error> {
    let mut servers = Map::new();
    for part in &brief.inherit {
        match part {
            Inherit::Memory => {
                settings["context"] = json!({ "fileName": ["QWEN.md", "AGENTS.md"] });
                if let Some(home) = &brief.user_home
                    && let Some(own) = inherit::read_text(home, ".qwen/QWEN.md")?
                {
                    files.push((PathBuf::from(".qwen/QWEN.md"), own));
                }
            }
            // Switched on by the guard, which then lets their folder be listed.
            Inherit::Skills => {}
            Inherit::Mcp(name) => {
                let server = inherit::mcp_server(&brief.workspace, ".qwen/settings.json", "/mcpServers", name)?;
                servers.insert(name.clone(), server);
            }
            Inherit::Hooks => {
                return Err(Error::InheritUnsupported { kind: Kind::Qwen.name(), entry: part.to_string() });
            }
        }
    }
    if servers.is_empty() {
        return Ok(false);
    }
    files.push((PathBuf::from(SERVERS), json!({ "mcpServers": servers }).to_string()));
    Ok(true)
}
