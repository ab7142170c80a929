//! Leaving a run to an engine of its own: the same command once more, in the background and without a terminal.
//!
//! Whoever starts it returns when it holds the lock of the home and the run is on record, or tells why it could not: the
//! background process says either in one line on its standard output, which is a pipe until then.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outlast_api::{Diagnostic, ExitCode, Failure as Told};
use outlast_core::RunId;
use serde::{Deserialize, Serialize};

use crate::commands::say;
use crate::failure::Failure;
use crate::places::Places;
use crate::typed::{Given, as_given};

/// What the background process says of itself once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    /// It is an engine, and works on this run.
    Ready {
        /// The run.
        run: String,
    },
    /// It could not begin.
    Failed(Box<Told>),
}

/// Starts this very command in the background and waits until its engine works on the run.
pub(crate) fn run(places: &Places) -> Result<RunId, Failure> {
    let (mut child, word, log) = begun(places).map_err(|error| cannot(&error))?;
    let kept = match word {
        Some(Word::Ready { run }) => {
            let kept = places.home.root().join(format!("{run}.log"));
            fs::rename(&log, &kept).map_err(|error| cannot(&error))?;
            say(&format!("{run} goes on in process {}; its output is in {}", child.id(), kept.display()));
            say(&format!("outlast status {run}"));
            return Ok(RunId::new(run));
        }
        Some(Word::Failed(told)) => {
            child.wait().map_err(|error| cannot(&error))?;
            Err(told.error.into())
        }
        None => Err(vanished(&mut child, &log)),
    };
    // What it said there is what is told here.
    fs::remove_file(&log).map_err(|error| cannot(&error))?;
    kept
}

/// The background process, what it said of itself, and where its output goes.
fn begun(places: &Places) -> io::Result<(Child, Option<Word>, PathBuf)> {
    let root = places.home.root();
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let log = root.join(format!("detached-{}.log", std::process::id()));
    let output = OpenOptions::new().create(true).append(true).mode(0o600).open(&log)?;
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--json");
    let arguments = arguments.map(|argument| if argument == "--detach" { "--detached".into() } else { argument });
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .current_dir(&places.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(output)
        // A terminal's Ctrl-C reaches its foreground group: this one is its own.
        .process_group(0)
        .spawn()?;
    let mut line = String::new();
    if let Some(pipe) = child.stdout.take() {
        BufReader::new(pipe).read_line(&mut line)?;
    }
    Ok((child, serde_json::from_str(&line).ok(), log))
}

/// It ended without a word, as something that was killed does.
fn vanished(child: &mut Child, log: &Path) -> Failure {
    let how = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    let said = fs::read_to_string(log).unwrap_or_default();
    let last = said.lines().last().map_or_else(String::new, |last| format!(": {last}"));
    Diagnostic::error("engine/gone", ExitCode::Host, "the engine in the background ended before it worked on the run")
        .because(format!("{how}{last}"))
        .fix("outlast status    # shows whether the run is on record")
        .fix(format!("{}    # stays with it", as_given("--detach", Given::Without)))
        .into()
}

/// Says, in the background process, that its engine works on the run. From here on its output goes to its log.
pub(crate) fn ready(run: &RunId) -> Result<(), Failure> {
    tell(&Word::Ready { run: run.to_string() });
    nix::unistd::dup2_stdout(io::stderr()).map_err(|errno| cannot(&errno.into()))
}

/// Says, in the background process, why it could not begin.
pub(crate) fn failed(failure: &Failure) {
    tell(&Word::Failed(Box::new(failure.diagnostic().clone().into_failure())));
}

fn tell(word: &Word) {
    let text = serde_json::to_string(word).unwrap_or_default();
    let mut stdout = io::stdout();
    // Whoever waited for it may have gone: the run is on record all the same.
    drop(writeln!(stdout, "{text}").and_then(|()| stdout.flush()));
}

fn cannot(error: &io::Error) -> Failure {
    Diagnostic::error("host/cannot", ExitCode::Host, error.to_string()).into()
}
