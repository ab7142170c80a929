//! Misbehaviour on command. Each step does to the process what a broken agent does, for real.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::hands::{self, Done};
use crate::error::Attempt;
use crate::script::LocalStep;
use crate::{Error, Result};

/// What happens after a local step.
pub(super) enum Next {
    /// The agent goes on; the model is told this.
    Go(Done),
    /// The agent prints its result and ends with this code.
    End(u8),
}

/// What local steps have changed about the process.
pub(super) struct Local {
    /// How many arguments follow the subcommand's name, to find the way this program was called.
    own_args: usize,
    attempt: u32,
    /// The agent stays after its result.
    pub lingers: bool,
    /// While this lives, SIGTERM ends nothing.
    ignoring: Option<Signal>,
}

impl Local {
    pub(super) fn new(own_args: usize, attempt: u32) -> Self {
        Self { own_args, attempt, lingers: false, ignoring: None }
    }

    /// Performs a step. Needs a tokio runtime around it.
    pub(super) async fn perform(&mut self, step: &LocalStep) -> Result<Next> {
        let said = |text: &str| Ok(Next::Go(Done { text: text.to_owned(), failed: false }));
        match step {
            LocalStep::Die(code) => std::process::exit(*code),
            LocalStep::Exit(code) => Ok(Next::End(u8::try_from(*code).unwrap_or(1))),
            LocalStep::Hang => std::future::pending().await,
            LocalStep::Spin => loop {
                std::hint::spin_loop();
            },
            LocalStep::ForkDetached(command) => {
                self.fork_detached(command)?;
                said("detached")
            }
            LocalStep::IgnoreTerm => {
                self.ignoring = Some(signal(SignalKind::terminate()).attempting(|| "catching SIGTERM".to_owned())?);
                said("ignoring SIGTERM")
            }
            LocalStep::Linger => {
                self.lingers = true;
                said("lingering after the result")
            }
            LocalStep::Flood(bytes) => {
                flood(*bytes).attempting(|| "writing to stdout".to_owned())?;
                said("flooded")
            }
            LocalStep::ReadStdin => {
                let mut read = Vec::new();
                std::io::stdin().read_to_end(&mut read).attempting(|| "reading stdin".to_owned())?;
                said(&format!("read {} bytes of stdin", read.len()))
            }
            LocalStep::Sleep(seconds) => {
                tokio::time::sleep(Duration::try_from_secs_f64(*seconds).unwrap_or_default()).await;
                said("slept")
            }
            LocalStep::FailFirst { attempts, .. } if self.attempt <= *attempts => {
                eprintln!("attempt {} fails, as its script says", self.attempt);
                std::process::exit(1)
            }
            LocalStep::FromAttempt { attempt, .. } if self.attempt < *attempt => said("not in this attempt"),
            LocalStep::FailFirst { command, .. } | LocalStep::FromAttempt { command, .. } => {
                Ok(Next::Go(hands::run(command)))
            }
        }
    }

    /// Starts the intermediate process of a double fork: this program again, which leaves the command behind.
    fn fork_detached(&self, command: &str) -> Result<()> {
        let program = std::env::current_exe().attempting(|| "finding this program".to_owned())?;
        let mut called: Vec<OsString> = std::env::args_os().skip(1).collect();
        called.truncate(called.len().saturating_sub(self.own_args));
        let status = Command::new(program)
            .args(called)
            .arg("--detach")
            .arg(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .attempting(|| "starting a detached command".to_owned())?;
        if status.success() {
            Ok(())
        } else {
            Err(Error::Usage(format!("the detached command did not start: {status}")))
        }
    }
}

/// The second half of a double fork: a new session, a child in it, and an end without waiting.
pub(super) fn leave_behind(command: &str) -> Result<()> {
    nix::unistd::setsid().map_err(std::io::Error::from).attempting(|| "starting a session".to_owned())?;
    let child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .attempting(|| "starting the command".to_owned())?;
    // Not waited for: the child outlives this process and is adopted by another.
    drop(child);
    Ok(())
}

/// Prints one line of so many bytes.
fn flood(bytes: u64) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let chunk = [b'x'; 8192];
    let mut left = bytes;
    while left > 0 {
        let length = left.min(chunk.len() as u64);
        stdout.write_all(&chunk[..length as usize])?;
        left -= length;
    }
    stdout.write_all(b"\n")?;
    stdout.flush()
}
