//! What was typed. The help of every command is the doc comment beside it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Runs fleets of command-line coding agents on a git repository, so that no limit, crash or timeout makes one start over.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 100)]
pub(crate) struct Args {
    /// Print one JSON object (or JSON lines) instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Keep state here instead of the platform's state folder.
    #[arg(long, global = true, env = "OUTLAST_HOME", value_name = "DIR", hide_env_values = true)]
    pub(crate) home: Option<PathBuf>,
    /// Read the user's configuration from here.
    #[arg(long, global = true, env = "OUTLAST_CONFIG", value_name = "FILE", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// What to do; without it, list every run on this machine.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the main job on a made-up repository, with a scripted agent and provider: no key, no network.
    Demo(Demo),
    /// Write a commented outlast.toml for this repository, and list the agents and logins found.
    Init(Init),
    /// Check a plan before a token is spent.
    Check(Check),
    /// Run a plan to its end with live progress.
    Run(Run),
    /// Park the living agents of a run and start no more.
    Pause(RunSelection),
    /// Go on with a run, also after a crash or a reboot; where it goes on already, try now what waits for a limit.
    Resume(Resume),
    /// Try tasks again that were given up, with their work as it is, and go on with their run.
    Retry(Retry),
    /// Park the living agents of a run and end its engine.
    Stop(RunSelection),
    /// Show a run on one screen.
    Status(RunSelection),
    /// Show what happened to a task.
    Log(TaskSelection),
    /// Show what a task changed.
    Diff(Diff),
    /// Change what a run may spend, or show it.
    Budget(Budget),
    /// Land verified results on the run's target.
    Land(TaskSelection),
    /// Archive the work of tasks and give it up.
    Discard(TaskSelection),
    /// For agents, inside their attempt: note how far the task is.
    Progress(Progress),
    /// Run the gateway alone.
    Gateway(Gateway),
    /// Look at git, the repository, the agents and the logins, and say what to fix.
    Doctor(Doctor),
    /// List what can be removed, and remove it when asked.
    Clean(Clean),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
    /// The scripted provider that the demo and the tests use.
    #[command(name = "__provider", hide = true, disable_help_flag = true)]
    Provider {
        /// Handed on as they are.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// The scripted agent that the demo and the tests use.
    #[command(name = "__agent", hide = true, disable_help_flag = true)]
    Agent {
        /// Handed on as they are.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// `outlast demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Use this real CLI in place of the scripted agent: claude-code, codex, opencode, gemini, qwen or kimi.
    #[arg(long, value_name = "KIND")]
    pub(crate) agent: Option<String>,
    /// Keep the repository and the state, and say where they are.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// `outlast init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// Print the file instead of writing it.
    #[arg(long)]
    pub(crate) print: bool,
}

/// `outlast check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The plan: the name of a file or folder in plans/, or a path.
    pub(crate) plan: Option<String>,
    /// Print exactly what is sent to the agent of this task.
    #[arg(long, value_name = "TASK")]
    pub(crate) prompt: Option<String>,
}

/// `outlast run`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Run {
    /// The plan: the name of a file or folder in plans/, or a path; without it, the tasks of outlast.toml.
    pub(crate) plan: Option<String>,
    /// Approve the plan's commands and start without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Only these tasks: ids or globs.
    #[arg(long, value_name = "TASK", num_args = 1..)]
    pub(crate) only: Vec<String>,
    /// Use this agent for every task.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Work on this many tasks at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(outlast_config::CONCURRENCY_MAX)))]
    pub(crate) concurrency: Option<u32>,
    /// Spend this much US dollars at most, in place of what the plan says.
    #[arg(long, value_name = "USD", value_parser = usd_micros)]
    pub(crate) budget: Option<u64>,
    /// Start every task anew, also what has landed, waits to be landed, or is in a run that is not finished.
    #[arg(long)]
    pub(crate) again: bool,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave when everything that is left waits.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Start the run and leave; `outlast status` shows it.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Be the background process that `--detach` starts.
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
}

/// `outlast budget`.
#[derive(Debug, clap::Args)]
pub(crate) struct Budget {
    /// The run; without it, the newest.
    pub(crate) run: Option<String>,
    /// The most that the run may cost in all, in US dollars.
    #[arg(long, value_parser = usd_micros)]
    pub(crate) usd: Option<u64>,
    /// The most that the run may take in all; tokens read from a cache count a tenth.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) tokens: Option<u64>,
}

/// Which run.
#[derive(Debug, clap::Args)]
pub(crate) struct RunSelection {
    /// The run; without it, the newest that is neither over, paused nor stopped, or else the newest.
    pub(crate) run: Option<String>,
}

/// `outlast resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The run, or tasks of the newest that were given up and are tried again (as by `retry`); without it, the newest
    /// run that is not finished.
    #[arg(value_name = "RUN|TASK")]
    pub(crate) what: Vec<String>,
    /// Spend this much US dollars at most from now on, what is spent included.
    #[arg(long, value_name = "USD", value_parser = usd_micros)]
    pub(crate) budget: Option<u64>,
    /// Leave when everything that is left waits.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// `outlast retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// Which tasks.
    #[command(flatten)]
    pub(crate) selection: TaskSelection,
    /// Give them to this agent of the plan; the work stays, and it gets a note of what is known. Also for tasks that only wait.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Leave when everything that is left waits.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// Which tasks.
#[derive(Debug, clap::Args)]
pub(crate) struct TaskSelection {
    /// Ids, globs such as 'payment-*', or state:done.
    #[arg(required_unless_present = "all")]
    pub(crate) tasks: Vec<String>,
    /// Every task of the run.
    #[arg(long)]
    pub(crate) all: bool,
    /// The run; without it, the newest.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// `outlast diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// Which tasks.
    #[command(flatten)]
    pub(crate) selection: TaskSelection,
    /// Only how much of which file.
    #[arg(long)]
    pub(crate) stat: bool,
}

/// `outlast progress`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Progress {
    /// What to note; without it, what is noted is shown.
    #[command(subcommand)]
    pub(crate) what: Option<Noting>,
}

/// What an agent notes.
#[derive(Debug, Subcommand)]
pub(crate) enum Noting {
    /// Steps of the task are done.
    Done {
        /// Their names, as the task has them.
        #[arg(required = true, value_name = "STEP")]
        steps: Vec<String>,
    },
    /// Steps are left that were noted as done.
    Left {
        /// Their names, as the task has them.
        #[arg(required = true, value_name = "STEP")]
        steps: Vec<String>,
    },
    /// Whoever goes on with the task should know this.
    Note {
        /// One line of text.
        #[arg(required = true)]
        text: Vec<String>,
    },
}

/// `outlast gateway`.
#[derive(Debug, clap::Args)]
pub(crate) struct Gateway {
    /// Where to listen: a loopback address.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    pub(crate) listen: std::net::SocketAddr,
    /// The environment variable that holds the key which clients must show; without it, one is made and printed.
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
}

/// `outlast doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Ask no provider anything.
    #[arg(long)]
    pub(crate) offline: bool,
}

/// `outlast clean`.
#[derive(Debug, clap::Args)]
pub(crate) struct Clean {
    /// Only what belongs to this run.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Remove what is listed without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// US dollars as millionths.
fn usd_micros(text: &str) -> Result<u64, String> {
    let usd: f64 = text.parse().map_err(|_| "give a number such as 40 or 2.5".to_owned())?;
    outlast_config::usd_micros(usd).ok_or_else(|| "give a sum above zero, such as 40 or 2.5".to_owned())
}
