//! What an adapter asks for: program, environment, files and permissions of one attempt.
//!
//! Plain data. The environment is complete: it is built from nothing, holds no proxy variable (Qwen Code ignores
//! `NO_PROXY`, so its loopback requests would leave through the proxy), and what the plan adds is laid under what
//! outlast sets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Brief, Dialect, Error, discover};

/// Stands for the port of the shim's listener in the address an agent is given.
///
/// The shim replaces it when it has bound the port.
pub const PORT: &str = "{port}";

/// How one attempt is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments. World-readable while the agent runs, so never a key.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Files put into the home before the start, mode 0600, replacing what is there: path below the home and content.
    pub files: Vec<(PathBuf, String)>,
    /// What the agent must be able to read besides workspace, home and system folders.
    pub read_paths: Vec<PathBuf>,
    /// What the agent must be able to read and execute besides the system folders.
    pub execute_paths: Vec<PathBuf>,
    /// The wire format of its requests; `None` for any.
    pub dialect: Option<Dialect>,
    /// How its requests are held.
    pub hold: Hold,
}

/// How long an agent's request may wait and what keeps it waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// How long the answer's head may stay away; `None` for as long as it takes.
    pub headers_wait: Option<Duration>,
    /// Bytes sent right after a head that was sent ahead of the answer.
    pub preamble: String,
    /// Bytes sent while the answer has not begun.
    pub keep_alive: String,
    /// Time between two keep-alives.
    pub period: Duration,
    /// What marks a request for an event stream in its path, query or body.
    pub stream_marks: Vec<String>,
    /// Whether the CLI dies of a cut, so that an answer may only reach it whole.
    pub buffer_whole: bool,
}

impl Hold {
    /// A hold of any length without a byte, for clients whose own timers a launch can switch off.
    pub fn silent() -> Self {
        Self {
            headers_wait: None,
            preamble: String::new(),
            keep_alive: String::new(),
            period: Duration::from_secs(15),
            stream_marks: Vec::new(),
            buffer_whole: false,
        }
    }
}

/// The variables every agent gets.
///
/// # Errors
/// [`Error::VariableReserved`] when the plan allows through a name that decides where requests go, and
/// [`Error::PathNotText`].
pub(crate) fn base_env(brief: &Brief) -> Result<BTreeMap<String, String>, Error> {
    let mut env = BTreeMap::new();
    for (name, value) in &brief.extra_env {
        refuse_reserved(name)?;
        env.insert(name.clone(), value.clone());
    }
    let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
    set("PATH", brief.path.clone());
    set("HOME", text(&brief.home)?);
    set("TMPDIR", text(&brief.temp)?);
    set("TERM", "dumb".to_owned());
    set("LANG", "C.UTF-8".to_owned());
    set("OUTLAST_RUN", brief.run.to_string());
    set("OUTLAST_TASK", brief.task.to_string());
    set("OUTLAST_ATTEMPT", brief.attempt.clone());
    set("OUTLAST_GOAL_FILE", text(&brief.goal_file)?);
    set("OUTLAST_PROGRESS_FILE", text(&brief.progress_file)?);
    set("OUTLAST_GATEWAY_URL", brief.gateway_url.clone());
    set("OUTLAST_KEY", brief.key.reveal().to_owned());
    if let Some(file) = &brief.handover_file {
        set("OUTLAST_HANDOVER_FILE", text(file)?);
    }
    Ok(env)
}

/// Prefixes of variables that only outlast sets: its own, and those by which a CLI finds provider, login or settings.
const RESERVED_PREFIXES: [&str; 17] = [
    "OUTLAST_",
    "ANTHROPIC_",
    "CLAUDE_",
    "CODEX_",
    "OPENAI_",
    "OPENCODE_",
    "GEMINI_",
    "GOOGLE_",
    "QWEN_",
    "DASHSCOPE_",
    "KIMI_",
    "FASTMCP_",
    "CODE_ASSIST_",
    "NODE_TLS_",
    "BUN_",
    "LD_",
    "DYLD_",
];

/// Whole names that only outlast sets.
const RESERVED_NAMES: [&str; 10] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "TERM",
    "LANG",
    "API_TIMEOUT_MS",
    "API_FORCE_IDLE_TIMEOUT",
    "AWS_BEARER_TOKEN_BEDROCK",
    "NODE_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
];

fn refuse_reserved(name: &str) -> Result<(), Error> {
    let upper = name.to_ascii_uppercase();
    let reserved = RESERVED_NAMES.contains(&upper.as_str())
        || upper.ends_with("_PROXY")
        || RESERVED_PREFIXES.iter().any(|prefix| upper.starts_with(prefix));
    if reserved { Err(Error::VariableReserved { name: name.to_owned() }) } else { Ok(()) }
}

/// Refuses the few names that an agent of kind `command` may not set either.
///
/// # Errors
/// [`Error::VariableReserved`].
pub(crate) fn refuse_own(name: &str) -> Result<(), Error> {
    let upper = name.to_ascii_uppercase();
    let own =
        upper.starts_with("OUTLAST_") || upper.ends_with("_PROXY") || matches!(&*upper, "PATH" | "HOME" | "TMPDIR");
    if own { Err(Error::VariableReserved { name: name.to_owned() }) } else { Ok(()) }
}

/// What of the file system a CLI's program is made of, `node` included where it is a script.
pub(crate) fn execute_paths(brief: &Brief, needs_node: bool) -> Vec<PathBuf> {
    let mut paths = vec![discover::install_root(&brief.program)];
    if needs_node
        && let Some(node) = discover::on_path("node", &brief.path)
        && let Some(folder) = node.parent()
        && !paths.iter().any(|path| folder.starts_with(path))
    {
        paths.push(folder.to_owned());
    }
    paths
}

/// A path as text.
///
/// # Errors
/// [`Error::PathNotText`].
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::PathNotText { path: path.to_owned() })
}

/// Longest prompt handed over as an argument, in bytes: Linux refuses one argument of 128 KiB or more (`execve(2)`).
const PROMPT_ARGUMENT_MAX: usize = 96 * 1024;

/// The prompt as one argument: itself, or a sentence that names the file it is in, where it is too long, or holds what
/// the shim would take for the place of its port, or a NUL, which an agent may have left in its notes.
///
/// # Errors
/// [`Error::PathNotText`].
pub(crate) fn prompt_argument(brief: &Brief) -> Result<String, Error> {
    if brief.prompt.len() > PROMPT_ARGUMENT_MAX || brief.prompt.contains(PORT) || brief.prompt.contains('\0') {
        let file = text(&brief.goal_file)?;
        return Ok(format!(
            "Your task is described in the file {file}. Read that file completely, then do what it says."
        ));
    }
    // A leading dash would be taken for an option.
    Ok(if brief.prompt.starts_with('-') { format!("\n{}", brief.prompt) } else { brief.prompt.clone() })
}
