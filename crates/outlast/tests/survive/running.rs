//! A command of the binary while it runs: its lines as they come, signals to it, and its end, all within a limit.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Longer than anything here takes on a busy machine with two cores.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// A command that has been started.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    stdout: Option<JoinHandle<String>>,
    limit: Instant,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines() {
                // Whoever has stopped listening has seen enough.
                if line.is_err() || sender.send(line.unwrap_or_default()).is_err() {
                    break;
                }
            }
        });
        let mut pipe = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text).unwrap_or_default()
        });
        Self { child, lines, seen: Vec::new(), stdout: Some(stdout), limit: Instant::now() + LIMIT }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits for a line on standard error that holds all of these.
    #[track_caller]
    pub(crate) fn until(&mut self, parts: &[&str]) -> String {
        loop {
            let left = self.limit.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if parts.iter().all(|part| line.contains(part)) {
                        return line;
                    }
                }
                Err(why) => panic!("{parts:?} was never said ({why}):\n{}", self.seen.join("\n")),
            }
        }
    }

    /// Waits until the command has ended, or this long; whether it has ended.
    pub(crate) fn ended_within(&mut self, moment: Duration) -> bool {
        let until = Instant::now() + moment;
        loop {
            // Standard error closes with the process: nothing else holds it.
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(crate) fn kill_9(self) -> Ran {
        // It may have ended by itself just before.
        kill(Pid::from_raw(self.pid()), Signal::SIGKILL).unwrap_or_default();
        self.end()
    }

    /// Waits until it has ended.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ran {
        let left = self.limit.saturating_duration_since(Instant::now());
        if !self.ended_within(left) {
            kill(Pid::from_raw(self.pid()), Signal::SIGKILL).unwrap_or_default();
            panic!("it did not end within {LIMIT:?}:\n{}", self.seen.join("\n"));
        }
        let status = self.child.wait().unwrap();
        let stdout = self.stdout.take().map(|reader| reader.join().unwrap()).unwrap_or_default();
        Ran { status, stdout, stderr: std::mem::take(&mut self.seen).join("\n") }
    }
}

impl Drop for Running {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

impl Ran {
    /// Its exit code; nothing where a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Whether SIGKILL ended it.
    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(Signal::SIGKILL as i32)
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that standard error or output says this.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        let said = self.stderr.contains(text) || self.stdout.contains(text);
        assert!(said, "{text:?} is missing in\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }
}
