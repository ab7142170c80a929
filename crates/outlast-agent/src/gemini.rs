//! Gemini CLI.
//!
//! See [`crate::guard`] for how the repository's settings are kept out; ours are the home's, written at every launch.

use std::path::PathBuf;
use std::time::Duration;

use outlast_core::research::{Conversation, ResearchState};
use serde_json::{Value, json};

use crate::event::Summary;
use crate::launch::{self, Hold};
use crate::reader::Reader;
use crate::stream::gemini::Gemini as Stream;
use crate::verdict::{self, Exit, ExitStatus, Verdict};
use crate::{Adapter, Brief, Capabilities, Dialect, Error, Inherit, Kind, Launch, Session, guard, inherit, research};

/// The adapter of Gemini CLI.
pub(crate) struct Gemini;

impl Adapter for Gemini {
    fn kind(&self) -> Kind {
        Kind::Gemini
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            observed: "0.61.0",
            dialects: &[Dialect::Gemini],
            resume: true,
            session_id_fixed: true,
            login_shape: false,
            reports_usage: true,
            inherit: "memory (the repository's is always read), skills, mcp",
            strongest_layer: "the environment and the home's settings, the repository's hidden by a Node module",
            exit_trap: "the provider's status modulo 256; an answer cut cleanly is a success",
            resume_trap: "by working directory; every tool result is sent twice",
        }
    }

    fn hold(&self) -> Hold {
        Hold {
            // It closes after 60 s without a head.
            headers_wait: Some(Duration::from_secs(45)),
            preamble: String::new(),
            // A comment makes it discard the answer and ask again; an empty chunk does not.
            keep_alive: "data: {\"candidates\":[],\"usageMetadata\":{}}\n\n".to_owned(),
            period: Duration::from_secs(15),
            stream_marks: vec![":streamGenerateContent".to_owned()],
            buffer_whole: true,
        }
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, Error> {
        let mut env = launch::base_env(brief)?;
        for (name, value) in [
            ("GEMINI_API_KEY", brief.key.reveal()),
            ("GOOGLE_GEMINI_BASE_URL", &*brief.gateway_url),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            // Else it starts itself again, without the guard and as a second process.
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
        ] {
            env.insert(name.to_owned(), value.to_owned());
        }
        let mut settings = settings();
        let mut files = vec![guard::module(brief, ".gemini")?];
        inherit_into(brief, &mut settings, &mut files)?;
        files.push((PathBuf::from(".gemini/settings.json"), settings.to_string()));
        Ok(Launch {
            argv: argv(brief)?,
            env,
            files,
            read_paths: Vec::new(),
            execute_paths: launch::execute_paths(brief, true),
            dialect: Some(Dialect::Gemini),
            hold: self.hold(),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Stream::default())
    }

    fn research(&self, conversation: &Conversation) -> ResearchState {
        research::collect(conversation, &research::GEMINI)
    }

    fn judge(&self, exit: &Exit, summary: &Summary) -> Verdict {
        let mut summary = summary.clone();
        if let (Some((status @ None, _)), ExitStatus::Code(code)) = (&mut summary.provider_error, exit.status) {
            *status = status_behind(code);
        }
        verdict::judge(exit, &summary)
    }
}

/// The provider's status behind an exit code, which holds its lowest eight bits.
fn status_behind(code: i32) -> Option<u16> {
    [400_u16, 401, 403, 404, 429, 500, 502, 503, 529].into_iter().find(|status| i32::from(status & 0xff) == code)
}

fn argv(brief: &Brief) -> Result<Vec<String>, Error> {
    let mut argv = guard::argv(brief)?;
    let mut option = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    option(&["-p", &launch::prompt_argument(brief)?, "-o", "stream-json", "--yolo"]);
    if let Some(model) = &brief.model {
        option(&["-m", model]);
    }
    match &brief.session {
        Session::Fresh { id } => option(&["--session-id", id]),
        Session::Resume { id } => option(&["--resume", id]),
    }
    Ok(argv)
}

fn settings() -> Value {
    json!({
        "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        "hooksConfig": { "enabled": false },
        "skills": { "enabled": false },
        // No terminal can be had in the sandbox; it does without, but only after it has tried.
        "tools": { "shell": { "enableInteractiveShell": false } },
        "advanced": { "ignoreLocalEnv": true },
    })
}

fn inherit_into(brief: &Brief, settings: &mut Value, files: &mut Vec<(PathBuf, String)>) -> Result<(), Error> {
    for part in &brief.inherit {
        match part {
            Inherit::Memory => {
                if let Some(home) = &brief.user_home
                    && let Some(own) = inherit::read_text(home, ".gemini/GEMINI.md")?
                {
                    files.push((PathBuf::from(".gemini/GEMINI.md"), own));
                }
            }
            Inherit::Skills => settings["skills"]["enabled"] = json!(true),
            Inherit::Mcp(name) => {
                let server = inherit::mcp_server(&brief.workspace, ".gemini/settings.json", "/mcpServers", name)?;
                settings["mcpServers"][name.as_str()] = server;
            }
            Inherit::Hooks => {
                return Err(Error::InheritUnsupported { kind: Kind::Gemini.name(), entry: part.to_string() });
            }
        }
    }
    Ok(())
}
