//! What can go wrong in the testkit, one variant per remedy. It never swallows a cause.

use std::path::PathBuf;

/// The result of a fallible testkit call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of the testkit.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A script does not follow the step language; the author corrects the line.
    #[error("line {line} of the script, `{text}`: {why}")]
    Script {
        /// Line number, from 1.
        line: usize,
        /// The line as written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A script file is not valid TOML or JSON of the documented shape.
    #[error("script file {path}: {why}")]
    ScriptFile {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        why: String,
    },
    /// The command line or environment of a testkit program is wrong.
    #[error("usage: {0}")]
    Usage(String),
    /// A request or an answer is not valid in its dialect.
    #[error("not a {dialect} message: {why}")]
    Wire {
        /// The wire format that was expected.
        dialect: crate::wire::Dialect,
        /// What is wrong with it.
        why: String,
    },
    /// The other side answered with an error status.
    #[error("the provider answered {status}: {body}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The body of the answer.
        body: String,
        /// The seconds that the answer asks to wait.
        retry_after: Option<u64>,
    },
    /// The connection failed or was cut.
    #[error("connection to {address} failed: {why}")]
    Connection {
        /// Host and port.
        address: String,
        /// The cause.
        why: String,
    },
    /// An operation of the operating system failed.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A git command of a fixture failed.
    #[error("git {arguments} failed: {stderr}")]
    Git {
        /// The arguments, joined by spaces.
        arguments: String,
        /// What git printed on stderr.
        stderr: String,
    },
}

/// Adds what was attempted to an I/O error.
pub(crate) trait Attempt<T> {
    /// Names the attempted operation.
    fn attempting(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Attempt<T> for std::io::Result<T> {
    fn attempting(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Io { what: what(), source })
    }
}
