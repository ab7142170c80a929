//! Kimi CLI, the one in Python (`kimi-cli` on PyPI). Its last release that works is 1.51.0: the one after it, 1.52.0, only
//! prints that it is no longer maintained, and ends with 0.
//!
//! Observed with 1.51.0 and Python 3.13.0, over loopback (with Python 3.12.1 it breaks at its start):
//!
//! - Settings. It reads none from a repository, and no `.env` of its own; a library of it (FastMCP) reads `.env` in the
//!   working directory, for variables that begin with `FASTMCP_`. `KIMI_BASE_URL` and `KIMI_API_KEY` beat the file given
//!   with `--config-file`. Everything it keeps is in `KIMI_SHARE_DIR`; servers in `mcp.json` there start unasked unless a
//!   file of servers is named.
//! - Instructions (`AGENTS.md`, `.kimi/AGENTS.md`) and skills are read from the repository, with no switch: an agent file
//!   puts an empty text in the place of the first, and `--skills-dir` a folder in the place of the second.
//! - Sessions. `--session ID` takes up the session of this id and working directory, and begins a new one where there is
//!   none, without a word: so a small script looks for the session first. An answer and its results are written when all
//!   of its tools have ended: a kill in a tool loses that answer.
//! - Requests. One a turn and none beside them, `POST …/chat/completions` as a stream. After 600 s without a byte, with or
//!   without a head, it asks again; comments in a stream kept it waiting for 705 s. By default it asks nine times after a
//!   429 or a 500, as `retry-after` says, and three times after a 529. After a broken answer it asks once: the second one in
//!   a turn ends it, however many tries are set. What had come of the first stays in what it prints, in front of the whole
//!   one. An answer that ends in the middle without a fault of the connection is taken for whole. 401, 403 and an error
//!   within a stream end it.
//! - Tools. Its own for writing makes no folder; `Grep` needs `rg` on the `PATH`, else it tries to fetch one; a command
//!   ends after a minute unless the model asks for up to five.
//! - Its end. 0 done, 1 failed, 75 a failure that may pass (a 500, a broken connection). The error is plain text on standard
//!   output. It reports no tokens. SIGTERM and SIGKILL in a command end it at once and leave the command alive; SIGINT ends
//!   both, with 1 and `Interrupted by user`.

use std::path::PathBuf;
use std::time::Duration;

use outlast_core::Class;
use outlast_core::research::{Conversation, ResearchState};
use serde_json::{Value, json};

use crate::event::Summary;
use crate::launch::{self, Hold, text};
use crate::reader::Reader;
use crate::stream::kimi::Kimi as Stream;
use crate::verdict::{self, Exit, Verdict};
use crate::{Adapter, Brief, Capabilities, Dialect, Error, Inherit, Kind, Launch, Session, inherit, python, research};

/// The adapter of Kimi CLI.
pub(crate) struct Kimi;

/// What stands before a session's id in the line that our script prints.
pub(crate) const SESSION_MARK: &str = "outlast session ";

/// Names the session and starts the program. Program, id and arguments are the shell's own arguments: nothing of them is
/// ever read as shell text. The line goes to standard error, where it is no sign of a start.
const FRESH: &str = r#"echo "outlast session $1" >&2; shift; exec "$0" "$@""#;

/// As [`FRESH`], where the session is there and knows its task.
const RESUMED: &str = r#"grep -qs '"role":"user"' "$KIMI_SHARE_DIR"/sessions/*/"$1"/context.jsonl || { echo "Session not found: $1" >&2; exit 1; }
echo "outlast session $1" >&2; shift; exec "$0" "$@""#;

/// What is ours below the home.
const CONFIG: &str = ".kimi/outlast-config.json";
const AGENT: &str = ".kimi/outlast-agent.yaml";
const SERVERS: &str = ".kimi/outlast-mcp.json";
const NO_SKILLS: &str = ".kimi/outlast-no-skills";

/// Tools that are left out: nobody answers a question or approves a plan, and requests of a sub-agent cannot be told from
/// those of the task.
const LEFT_OUT: [&str; 4] = [
    "kimi_cli.tools.agent:Agent",
    "kimi_cli.tools.ask_user:AskUserQuestion",
    "kimi_cli.tools.plan:ExitPlanMode",
    "kimi_cli.tools.plan.enter:EnterPlanMode",
];

/// What is to be known of 1.52.0.
pub(crate) const RETIRED: &str =
    "this release of kimi-cli does nothing but say that it is no longer maintained; the last one that works is 1.51.0";
/// The command that brings the last one that works.
pub(crate) const INSTALL: &str = "uv tool install --force kimi-cli==1.51.0";

/// Whether it is all that 1.52.0 has to say.
pub(crate) fn is_retired(printed: &str) -> bool {
    printed.contains("kimi-cli is no longer maintained")
}

impl Adapter for Kimi {
    fn kind(&self) -> Kind {
        Kind::Kimi
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            observed: "1.51.0 (1.52.0 does nothing)",
            dialects: &[Dialect::Chat],
            resume: true,
            session_id_fixed: true,
            login_shape: false,
            reports_usage: false,
            inherit: "memory, skills",
            strongest_layer: "the environment; its settings, servers and agent in files named on the command line",
            exit_trap: "75 for a failure that may pass; an error is plain text among its output; an answer cut cleanly is a success",
            resume_trap: "by working directory; one that is not there would begin anew without a word; a kill loses the last answer",
        }
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn hold(&self) -> Hold {
        Hold {
            // It asks again after 10 minutes without a head.
            headers_wait: Some(Duration::from_secs(300)),
            preamble: String::new(),
            keep_alive: ": wait\n\n".to_owned(),
            period: Duration::from_secs(15),
            stream_marks: vec!["\"stream\":true".to_owned(), "\"stream\": true".to_owned()],
            buffer_whole: true,
        }
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, Error> {
        let model = brief.model.as_ref().ok_or(Error::ModelMissing { kind: Kind::Kimi.name() })?;
        let url = format!("{}/v1", brief.gateway_url);
        let mut env = launch::base_env(brief)?;
        for (name, value) in [
            ("KIMI_SHARE_DIR", &*text(&brief.home.join(".kimi"))?),
            ("KIMI_BASE_URL", &*url),
            ("KIMI_API_KEY", brief.key.reveal()),
            ("KIMI_MODEL_NAME", model),
            // Else it asks for as many as are left in the model's window, which not every provider grants.
            ("KIMI_MODEL_MAX_COMPLETION_TOKENS", "32000"),
            ("KIMI_DISABLE_TELEMETRY", "1"),
            // No file: a library's settings would be read from the repository's `.env`.
            ("FASTMCP_ENV_FILE", "/dev/null"),
        ] {
            env.insert(name.to_owned(), value.to_owned());
        }
        let mut files = vec![
            (PathBuf::from(CONFIG), config(brief, model, &url).to_string()),
            (PathBuf::from(AGENT), agent(brief).to_string()),
            (PathBuf::from(SERVERS), json!({ "mcpServers": {} }).to_string()),
        ];
        inherit_into(brief, &mut files)?;
        Ok(Launch {
            argv: argv(brief)?,
            env,
            files,
            read_paths: Vec::new(),
            execute_paths: python::execute_paths(brief),
            dialect: Some(Dialect::Chat),
            hold: self.hold(),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Stream::default())
    }

    fn research(&self, conversation: &Conversation) -> ResearchState {
        research::collect(conversation, &research::KIMI)
    }

    fn judge(&self, exit: &Exit, summary: &Summary) -> Verdict {
        if let Some((false, said)) = &summary.result
            && is_retired(said)
        {
            return verdict::failed(Class::Startup, format!("{RETIRED}: {INSTALL}"));
        }
        let mut summary = summary.clone();
        if summary.turns == 0 {
            // Named by our script, not by the CLI.
            summary.session = None;
        }
        verdict::judge(exit, &summary)
    }
}

fn argv(brief: &Brief) -> Result<Vec<String>, Error> {
    let in_home = |file: &str| text(&brief.home.join(file));
    let (script, id) = match &brief.session {
        Session::Fresh { id } => (FRESH, id),
        Session::Resume { id } => (RESUMED, id),
    };
    let mut program = python::argv(brief)?.into_iter();
    let mut argv: Vec<String> = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    argv.extend(program.next());
    argv.push(id.clone());
    argv.extend(program);
    let mut option = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    option(&["--print", "--output-format", "stream-json", "--session", id, "--config-file", &in_home(CONFIG)?]);
    option(&["--agent-file", &in_home(AGENT)?, "--mcp-config-file", &in_home(SERVERS)?]);
    if !brief.inherit.contains(&Inherit::Skills) {
        option(&["--skills-dir", &in_home(NO_SKILLS)?]);
    }
    option(&["--prompt", &launch::prompt_argument(brief)?]);
    Ok(argv)
}

fn config(brief: &Brief, model: &str, url: &str) -> Value {
    json!({
        "default_model": "outlast",
        // Only of a model that is known to: others are asked without a word about it.
        "default_thinking": true,
        "telemetry": false,
        // What nobody at the keyboard means is in the prompt.
        "skip_afk_prompt_injection": true,
        // The window only decides when it starts to summarise; the gateway's models have at least this much.
        "models": { "outlast": { "provider": "outlast", "model": model, "max_context_size": 200_000 } },
        "providers": { "outlast": { "type": "kimi", "base_url": url, "api_key": brief.key.reveal() } },
        "loop_control": { "max_retries_per_step": 100, "max_steps_per_turn": 100_000 },
    })
}

/// Its own agent but for what is left out; JSON is YAML.
fn agent(brief: &Brief) -> Value {
    let mut agent = json!({ "extend": "default", "exclude_tools": LEFT_OUT });
    if !brief.inherit.contains(&Inherit::Memory) {
        agent["system_prompt_args"] = json!({ "KIMI_AGENTS_MD": "" });
    }
    json!({ "version": 1, "agent": agent })
}

/// Adds what the plan inherits.
fn inherit_into(brief: &Brief, files: &mut Vec<(PathBuf, String)>) -> Result<(), Error> {
    for part in &brief.inherit {
        match part {
            // Left in by the agent file.
            Inherit::Memory => {}
            Inherit::Skills => {
                if let Some(home) = &brief.user_home {
                    let skills = inherit::read_folder(home, ".kimi/skills")?;
                    files.extend(
                        skills.into_iter().map(|(path, text)| (PathBuf::from(".kimi/skills").join(path), text)),
                    );
                }
            }
            Inherit::Hooks | Inherit::Mcp(_) => {
                return Err(Error::InheritUnsupported { kind: Kind::Kimi.name(), entry: part.to_string() });
            }
        }
    }
    if !brief.inherit.contains(&Inherit::Skills) {
        files.push((PathBuf::from(NO_SKILLS).join(".keep"), String::new()));
    }
    Ok(())
}
