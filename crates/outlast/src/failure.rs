//! A command that could not do what was asked: one diagnostic, told as text or as JSON, and its exit code.

use std::io::Write as _;
use std::process::ExitCode;

use outlast_api::Diagnostic;

use crate::{logfile, text};

/// What the system says of a disk that takes no more.
const DISK_FULL: &str = "No space left on device";

/// What it says of a file that may not become larger.
const TOO_LARGE: &str = "File too large";

/// What a diagnostic tells.
fn texts(told: &Diagnostic) -> impl Iterator<Item = &String> {
    std::iter::once(&told.what).chain(&told.why)
}

/// Why a command could not do what was asked.
#[derive(Debug, Clone)]
pub(crate) struct Failure(Box<Diagnostic>);

impl Failure {
    /// Tells it on standard error (or as JSON on standard output) and says how the process ends.
    pub(crate) fn report(mut self, json: bool) -> ExitCode {
        if self.0.exit == outlast_api::ExitCode::Defect {
            tracing::error!(code = %self.0.code, why = ?self.0.why, "{}", self.0.what);
            if let Some(log) = logfile::place().filter(|log| log.exists()) {
                self = self.fix(format!("report it, with `outlast doctor --json` and the end of {}", log.display()));
            }
        }
        let code = ExitCode::from(self.0.exit.number());
        // Room or inodes: the system has one word for both.
        if texts(&self.0).any(|text| text.contains(DISK_FULL)) && self.0.fix.is_empty() {
            self = self
                .fix("df -h; df -i    # which disk has no room, or no inodes, left; free some, then: the same again");
        }
        if texts(&self.0).any(|text| text.contains(TOO_LARGE)) && self.0.fix.is_empty() {
            self = self.fix("ulimit -f unlimited    # in the shell that starts it, then: the same again");
        }
        // A closed pipe must not turn one failure into another.
        let told = if json {
            match serde_json::to_string(&self.0.into_failure()) {
                Ok(text) => writeln!(std::io::stdout(), "{text}"),
                Err(_) => Ok(()),
            }
        } else {
            write!(anstream::stderr(), "{}", text::diagnostic(&self.0))
        };
        drop(told);
        code
    }

    /// Adds advice.
    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self(Box::new(self.0.fix(fix)))
    }

    /// What there is to tell.
    pub(crate) const fn diagnostic(&self) -> &Diagnostic {
        &self.0
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(Box::new(diagnostic))
    }
}

impl From<outlast_engine::Error> for Failure {
    fn from(error: outlast_engine::Error) -> Self {
        outlast_engine::diagnostic(&error).into()
    }
}
