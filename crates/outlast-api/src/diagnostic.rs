//! One shape for everything that went wrong: what happened, why, what to do.

use serde::{Deserialize, Serialize};

use crate::exit::ExitCode;

/// How grave it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing was done.
    Error,
    /// It goes on, and a person should know.
    Warning,
    /// It could be better.
    Hint,
}

/// Something that went wrong, told so that a person can act on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Names the kind, as `repository/no-commit`.
    pub code: String,
    /// How grave it is.
    pub severity: Severity,
    /// What happened: one sentence with the names and values.
    pub what: String,
    /// Why: the evidence, from the outermost cause to the innermost.
    pub why: Vec<String>,
    /// What to do: commands that can be pasted, or one sentence.
    pub fix: Vec<String>,
    /// What it is about: ids of runs, tasks, attempts and accounts.
    #[serde(default)]
    pub related: Vec<String>,
    /// What the process's exit code says.
    pub exit: ExitCode,
}

/// A command that failed, as `--json` says it: `outlast/error/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// `outlast/error/v1`.
    pub schema: String,
    /// What went wrong.
    pub error: Diagnostic,
    /// The number the process ends with.
    pub exit_code: u8,
}

impl Diagnostic {
    /// An error without evidence or advice yet.
    pub fn error(code: impl Into<String>, exit: ExitCode, what: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            severity: Severity::Error,
            what: what.into(),
            why: Vec::new(),
            fix: Vec::new(),
            related: Vec::new(),
            exit,
        }
    }

    /// Adds evidence.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }

    /// Names something it is about.
    #[must_use]
    pub fn about(mut self, id: impl Into<String>) -> Self {
        self.related.push(id.into());
        self
    }

    /// The object that `--json` prints.
    pub fn into_failure(self) -> Failure {
        Failure { schema: crate::schema("error"), exit_code: self.exit.number(), error: self }
    }

    /// Adds advice.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix.push(fix.into());
        self
    }
}
