//! Leaving a run to an engine of its own: the same program, as `resume`, in a session without a terminal.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use outlast_api::{Diagnostic, ExitCode};
use outlast_core::RunId;

use crate::commands::say;
use crate::failure::Failure;
use crate::places::Places;

/// Starts `outlast resume RUN` in the background and returns at once.
pub(crate) fn resume(places: &Places, run: &RunId) -> Result<ExitCode, Failure> {
    let cannot =
        |error: std::io::Error| Failure::from(Diagnostic::error("host/cannot", ExitCode::Host, error.to_string()));
    let log = places.home.root().join(format!("{run}.log"));
    let output = OpenOptions::new().create(true).append(true).open(&log).map_err(cannot)?;
    let errors = output.try_clone().map_err(cannot)?;
    let child = Command::new(std::env::current_exe().map_err(cannot)?)
        .arg("--home")
        .arg(places.home.root())
        .arg("--config")
        .arg(&places.config)
        .args(["resume", run.as_str()])
        .current_dir(&places.cwd)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        // A terminal's Ctrl-C reaches its foreground group: this one is its own.
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    say(&format!("{run} goes on in process {}; its output is in {}", child.id(), log.display()));
    say(&format!("outlast status {run}"));
    Ok(ExitCode::Ok)
}
