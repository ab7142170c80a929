//! The agent's command line and environment: `outlast __agent [GOAL_FILE]`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use super::{local, run};
use crate::error::Attempt;
use crate::wire::Dialect;
use crate::{Error, Result};

/// The wire formats by the names of the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DialectName {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// A scripted agent.
#[derive(Debug, Parser)]
#[command(
    name = "agent",
    about = "A scripted agent: talks to OUTLAST_GATEWAY_URL with OUTLAST_KEY, works in the current directory"
)]
pub(super) struct Options {
    /// The file with the goal
    #[arg(env = "OUTLAST_GOAL_FILE")]
    goal_file: Option<PathBuf>,
    /// The goal itself, in place of a file; what is said on --resume
    #[arg(long, short)]
    pub prompt: Option<String>,
    /// Goes on with a session of this agent; with none where it is empty, so that a template may always name it
    #[arg(long, value_name = "SESSION")]
    pub resume: Option<String>,
    /// The id of the new session
    #[arg(long)]
    pub session_id: Option<String>,
    /// The wire format
    #[arg(long, value_enum, default_value = "anthropic")]
    dialect: DialectName,
    /// The model's name
    #[arg(long, default_value = "scripted-1")]
    pub model: String,
    /// Asks for whole answers instead of streams
    #[arg(long)]
    pub no_stream: bool,
    /// Tries a failed request again this many times
    #[arg(long, default_value_t = 0)]
    pub retries: u32,
    /// Gives a request up that is not answered within so many milliseconds, as clients with a timeout do
    #[arg(long, value_name = "MS")]
    pub patience_ms: Option<u64>,
    /// Follows the script in the goal by itself, without a model
    #[arg(long)]
    pub no_llm: bool,
    /// A step (`hang`, `read-stdin`, `flood 100000`, …) performed before the first turn; may be repeated
    #[arg(long, value_name = "STEP")]
    pub before: Vec<String>,
    /// The base URL of the gateway
    #[arg(long, env = "OUTLAST_GATEWAY_URL", hide_env_values = true)]
    pub gateway_url: Option<String>,
    /// Runs a command in a new session and leaves it behind
    #[arg(long, hide = true, value_name = "COMMAND")]
    detach: Option<String>,
}

impl Options {
    pub(super) fn dialect(&self) -> Dialect {
        match self.dialect {
            DialectName::Anthropic => Dialect::Anthropic,
            DialectName::Responses => Dialect::Responses,
            DialectName::Chat => Dialect::Chat,
            DialectName::Gemini => Dialect::Gemini,
        }
    }

    /// What the user says first: the goal, and the note of an attempt before this one, if there is any.
    pub(super) fn opening(&self) -> Result<String> {
        let goal = self.goal()?;
        match std::env::var_os("OUTLAST_HANDOVER_FILE").map(PathBuf::from) {
            Some(path) if self.resume.is_none() => {
                let note =
                    std::fs::read_to_string(&path).attempting(|| format!("reading the note {}", path.display()))?;
                Ok(format!("{goal}\n\n{note}"))
            }
            _ => Ok(goal),
        }
    }

    /// The prompt, or the text of the goal file; on a resume a file is not read again.
    pub(super) fn goal(&self) -> Result<String> {
        if let Some(prompt) = &self.prompt {
            return Ok(prompt.clone());
        }
        if self.resume.is_some() {
            return Ok("Continue from where you left off.".to_owned());
        }
        let path =
            self.goal_file.as_ref().ok_or_else(|| Error::Usage("a goal file or --prompt is needed".to_owned()))?;
        std::fs::read_to_string(path).attempting(|| format!("reading the goal {}", path.display()))
    }
}

/// Runs the agent; `args` are the arguments after the subcommand's name.
///
/// Exit code 0 when it thinks it is done, 1 when anything failed, 2 for usage, or what a script step says.
pub fn main(args: &[OsString]) -> ExitCode {
    let mut options = match Options::try_parse_from(std::iter::once("agent".into()).chain(args.iter().cloned())) {
        Ok(options) => options,
        Err(error) => return crate::usage(&error),
    };
    options.resume = options.resume.filter(|session| !session.is_empty());
    let ended = match &options.detach {
        Some(command) => local::leave_behind(command).map(|()| 0),
        None => run::run(&options, args.len()),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("agent: {error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}
