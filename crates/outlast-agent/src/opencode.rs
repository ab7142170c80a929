//! OpenCode.
//!
//! Its configuration comes whole through `OPENCODE_CONFIG_CONTENT`; a repository's own (settings, agents, plugins, all of
//! which could move requests or run code) is switched off. The prompt goes in through standard input: as an argument
//! it would be put in quotes, and its words read as numbers or options.

use std::path::PathBuf;

use outlast_core::research::{Conversation, ResearchState};
use serde_json::{Map, Value, json};

use crate::launch::{self, Hold, text};
use crate::reader::Reader;
use crate::stream::opencode::OpenCode as Stream;
use crate::{Adapter, Brief, Capabilities, Dialect, Error, Inherit, Kind, Launch, Session, inherit, research};

/// The adapter of OpenCode.
pub(crate) struct OpenCode;

/// The prompt's file below the home.
const PROMPT: &str = "outlast-prompt.md";

/// What keeps it from asking the npm registry, at every start, for a package that only plugins need: a folder of packages
/// that is there, and a lock that names it (observed with 1.18.33).
const INSTALLED: [(&str, &str); 2] = [
    (".config/opencode/node_modules/.keep", ""),
    (".config/opencode/package-lock.json", r#"{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}"#),
];

/// Starts a program with a file as its standard input. Program and arguments are the shell's own arguments, the file
/// comes through a variable: nothing of them is ever read as shell text.
const WITH_INPUT: &str = r#"exec "$0" "$@" < "$OUTLAST_PROMPT_FILE""#;

/// Variables that switch off what would leave the gateway or come from the repository.
const SWITCHES: [&str; 8] = [
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_PURE",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_SHARE",
    "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT",
];

impl Adapter for OpenCode {
    fn kind(&self) -> Kind {
        Kind::OpenCode
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            observed: "1.18.33",
            dialects: &[Dialect::Chat],
            resume: true,
            session_id_fixed: false,
            login_shape: false,
            reports_usage: true,
            inherit: "memory, skills, mcp",
            strongest_layer: "`OPENCODE_CONFIG_CONTENT`, the project's configuration and plugins switched off",
            exit_trap: "none seen: a failed request is an `error` event and 1",
            resume_trap: "in another working directory it answers and never exits",
        }
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn hold(&self) -> Hold {
        Hold::silent()
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, Error> {
        let model = brief.model.as_ref().ok_or(Error::ModelMissing { kind: Kind::OpenCode.name() })?;
        let mut config = config(brief, model);
        let mut files = vec![
            (PathBuf::from(".config/opencode/opencode.json"), "{}".to_owned()),
            (PathBuf::from(PROMPT), launch::prompt_argument(brief)?),
        ];
        files.extend(INSTALLED.map(|(path, text)| (PathBuf::from(path), text.to_owned())));
        inherit_into(brief, &mut config, &mut files)?;
        let mut env = launch::base_env(brief)?;
        env.extend(SWITCHES.map(|name| (name.to_owned(), "1".to_owned())));
        if !brief.inherit.contains(&Inherit::Skills) {
            env.insert("OPENCODE_DISABLE_EXTERNAL_SKILLS".to_owned(), "1".to_owned());
        }
        env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), config.to_string());
        env.insert("OUTLAST_PROMPT_FILE".to_owned(), text(&brief.home.join(PROMPT))?);
        let mut argv: Vec<String> = ["/bin/sh", "-c", WITH_INPUT].map(str::to_owned).to_vec();
        argv.extend([text(&brief.program)?, "run".to_owned(), "--format".to_owned(), "json".to_owned()]);
        if let Session::Resume { id } = &brief.session {
            argv.extend(["--session".to_owned(), id.clone()]);
        }
        Ok(Launch {
            argv,
            env,
            files,
            read_paths: Vec::new(),
            execute_paths: launch::execute_paths(brief, false),
            dialect: Some(Dialect::Chat),
            hold: self.hold(),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Stream::default())
    }

    fn research(&self, conversation: &Conversation) -> ResearchState {
        research::collect(conversation, &research::OPENCODE)
    }
}

/// Its whole configuration: one provider, no title request, and no timer that would end a held request.
fn config(brief: &Brief, model: &str) -> Value {
    // The window only decides when it starts to summarise; the gateway's models have at least this much.
    let mut models = Map::new();
    models.insert(
        model.to_owned(),
        json!({ "name": model, "tool_call": true, "limit": { "context": 200_000, "output": 32_000 } }),
    );
    let name = format!("outlast/{model}");
    json!({
        "autoupdate": false,
        "share": "disabled",
        // Its own record of the tree, a git call per turn: the checkpoints are ours.
        "snapshot": false,
        "permission": "allow",
        "model": name,
        "small_model": name,
        "enabled_providers": ["outlast"],
        "agent": { "title": { "disable": true } },
        "provider": { "outlast": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "outlast",
            "options": {
                "baseURL": format!("{}/v1", brief.gateway_url),
                "apiKey": "{env:OUTLAST_KEY}",
                "timeout": false,
                "headerTimeout": false,
                "chunkTimeout": false,
            },
            "models": models,
        } },
    })
}

/// Adds what the plan inherits.
fn inherit_into(brief: &Brief, config: &mut Value, files: &mut Vec<(PathBuf, String)>) -> Result<(), Error> {
    for part in &brief.inherit {
        match part {
            Inherit::Memory => {
                let mut instructions = Vec::new();
                for file in ["AGENTS.md", "CLAUDE.md"] {
                    if inherit::read_text(&brief.workspace, file)?.is_some() {
                        instructions.push(text(&brief.workspace.join(file))?);
                        break;
                    }
                }
                config["instructions"] = json!(instructions);
                if let Some(home) = &brief.user_home
                    && let Some(own) = inherit::read_text(home, ".config/opencode/AGENTS.md")?
                {
                    files.push((PathBuf::from(".config/opencode/AGENTS.md"), own));
                }
            }
            // Switched on by leaving its switch out.
            Inherit::Skills => {}
            Inherit::Mcp(name) => {
                let server = inherit::mcp_server(&brief.workspace, "opencode.json", "/mcp", name)?;
                config["mcp"][name.as_str()] = server;
            }
            Inherit::Hooks => {
                return Err(Error::InheritUnsupported { kind: Kind::OpenCode.name(), entry: part.to_string() });
            }
        }
    }
    Ok(())
}
