//! Codex CLI.
//!
//! Command-line overrides (`-c`) are its strongest layer for settings; the key is named there and given in the
//! environment. `$CODEX_HOME/.env` beats the process's environment, so it is written anew at every launch. A
//! repository's own configuration counts only in a trusted project: ours never is.

use std::path::PathBuf;

use outlast_core::research::{Conversation, ResearchState};
use serde_json::{Value, json};

use crate::launch::{self, Hold, text};
use crate::reader::Reader;
use crate::stream::codex::Codex as Stream;
use crate::{
    Adapter, Brief, Capabilities, Dialect, Error, Inherit, KeyShape, Kind, Launch, Session, inherit, research,
};

/// The adapter of Codex CLI.
pub(crate) struct Codex;

/// Its configuration folder below the home.
const FOLDER: &str = ".codex";

/// Settings that switch off what would leave the gateway (plugin catalogues, ChatGPT apps, metrics, update checks) and
/// the timer and counters that would end a held request: 10 hours of silence in a stream, 100 tries.
const SETTINGS: [&str; 14] = [
    "features.plugins=false",
    "features.remote_plugin=false",
    "features.apps=false",
    "analytics.enabled=false",
    "otel.exporter=\"none\"",
    "otel.metrics_exporter=\"none\"",
    "check_for_update_on_startup=false",
    "model_provider=\"outlast\"",
    "model_providers.outlast.name=\"outlast\"",
    "model_providers.outlast.wire_api=\"responses\"",
    "model_providers.outlast.stream_idle_timeout_ms=36000000",
    "model_providers.outlast.request_max_retries=100",
    "model_providers.outlast.stream_max_retries=100",
    "approval_policy=\"never\"",
];

impl Adapter for Codex {
    fn kind(&self) -> Kind {
        Kind::Codex
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            observed: "0.171.0",
            dialects: &[Dialect::Responses],
            resume: true,
            session_id_fixed: false,
            login_shape: true,
            reports_usage: true,
            inherit: "memory, skills",
            strongest_layer: "`-c` on the command line, the key in `$CODEX_HOME/.env`; the project is never trusted",
            exit_trap: "1 without a `turn.failed` after SIGINT; 0 though a command was refused by its own sandbox",
            resume_trap: "a copied home still writes into the original's sessions: copy `sessions/` alone",
        }
    }

    fn hold(&self) -> Hold {
        Hold::silent()
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, Error> {
        let mut env = launch::base_env(brief)?;
        env.insert("CODEX_HOME".to_owned(), text(&brief.home.join(FOLDER))?);
        let mut files =
            vec![(PathBuf::from(".codex/config.toml"), String::new()), (PathBuf::from(".codex/.env"), dot_env(brief))];
        if brief.key_shape == KeyShape::Login {
            files.push((PathBuf::from(".codex/auth.json"), login(brief).to_string()));
        }
        let argv = argv(brief, &inherited(brief, &mut files)?)?;
        Ok(Launch {
            argv,
            env,
            files,
            read_paths: Vec::new(),
            execute_paths: launch::execute_paths(brief, false),
            dialect: Some(Dialect::Responses),
            hold: self.hold(),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Stream::default())
    }

    fn research(&self, conversation: &Conversation) -> ResearchState {
        research::collect(conversation, &research::CODEX)
    }
}

fn argv(brief: &Brief, inherited: &[&str]) -> Result<Vec<String>, Error> {
    let workspace = text(&brief.workspace)?;
    let mut argv = vec![text(&brief.program)?];
    let mut option = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    option(&[
        "exec",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-git-repo-check",
        "-C",
        &workspace,
    ]);
    if let Some(model) = &brief.model {
        option(&["-m", model]);
    }
    for setting in SETTINGS.iter().chain(inherited) {
        option(&["-c", setting]);
    }
    let url = json!(format!("{}/v1", brief.gateway_url));
    option(&["-c", &format!("model_providers.outlast.base_url={url}")]);
    match brief.key_shape {
        KeyShape::ApiKey => option(&["-c", "model_providers.outlast.env_key=\"OUTLAST_KEY\""]),
        KeyShape::Login => option(&[
            "-c",
            "model_providers.outlast.requires_openai_auth=true",
            "-c",
            &format!("chatgpt_base_url={url}"),
        ]),
    }
    // In a project marked as untrusted not even instructions and skills are read; unmarked, its settings are not.
    if !brief.inherit.iter().any(|part| matches!(part, Inherit::Memory | Inherit::Skills)) {
        option(&["-c", &format!("projects={{{}={{trust_level=\"untrusted\"}}}}", json!(workspace))]);
    }
    if let Session::Resume { id } = &brief.session {
        option(&["resume", id]);
    }
    argv.push(launch::prompt_argument(brief)?);
    Ok(argv)
}

/// Our `$CODEX_HOME/.env`: the key again, and no proxy.
fn dot_env(brief: &Brief) -> String {
    let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let mut text = format!("OUTLAST_KEY={}\n", brief.key.reveal());
    proxies.iter().for_each(|name| text.push_str(&format!("{name}=\n")));
    text
}

/// The name of the account in the made-up login; the gateway puts the real one in its place.
const ACCOUNT: &str = "outlast";
/// An unsigned identity token that names that account and expires in 2100: Codex reads it and never checks it. Its
/// parts are `{"alg":"none"}`, `{"exp":4102444800,"https://api.openai.com/auth":{"chatgpt_account_id":"outlast"}}` and `{}`.
const IDENTITY: &str = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6eyJjaGF0Z3B0X2FjY291bnRfaWQiOiJvdXRsYXN0In19.e30";

/// A login whose access token is the attempt's key. It was refreshed in the future, so that no refresh is ever tried.
fn login(brief: &Brief) -> Value {
    json!({
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": null,
        "tokens": {
            "id_token": IDENTITY,
            "access_token": brief.key.reveal(),
            "refresh_token": "none",
            "account_id": ACCOUNT,
        },
        "last_refresh": "2099-01-01T00:00:00Z",
    })
}

/// The overrides for what the plan inherits; a part that is not named is switched off.
fn inherited(brief: &Brief, files: &mut Vec<(PathBuf, String)>) -> Result<Vec<&'static str>, Error> {
    let mut settings = Vec::new();
    if !brief.inherit.contains(&Inherit::Memory) {
        settings.push("project_doc_max_bytes=0");
    }
    if !brief.inherit.contains(&Inherit::Skills) {
        settings.push("skills.include_instructions=false");
    }
    for part in &brief.inherit {
        match part {
            Inherit::Memory => {
                if let Some(home) = &brief.user_home
                    && let Some(own) = inherit::read_text(home, ".codex/AGENTS.md")?
                {
                    files.push((PathBuf::from(".codex/AGENTS.md"), own));
                }
            }
            Inherit::Skills => {
                if let Some(home) = &brief.user_home {
                    let skills = inherit::read_folder(home, ".codex/skills")?;
                    files.extend(
                        skills.into_iter().map(|(path, text)| (PathBuf::from(".codex/skills").join(path), text)),
                    );
                }
            }
            Inherit::Hooks | Inherit::Mcp(_) => {
                return Err(Error::InheritUnsupported { kind: Kind::Codex.name(), entry: part.to_string() });
            }
        }
    }
    Ok(settings)
}
