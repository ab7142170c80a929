//! What one scripted turn makes the agent do. Data only: performing an action is the agent's part.

use std::fmt;

/// Something the agent must do with one of its tools.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Creates or replaces a file.
    Write {
        /// Path, relative to the agent's working directory.
        path: String,
        /// The whole new text.
        text: String,
    },
    /// Adds text to the end of a file.
    Append {
        /// Path, relative to the agent's working directory.
        path: String,
        /// The text to add.
        text: String,
    },
    /// Replaces the first occurrence of a text in a file.
    Edit {
        /// Path, relative to the agent's working directory.
        path: String,
        /// The text to find.
        old: String,
        /// Its replacement.
        new: String,
    },
    /// Reads a file.
    Read {
        /// Path, relative to the agent's working directory.
        path: String,
    },
    /// Runs a shell command.
    Run {
        /// Passed verbatim to `sh -c` or to the agent's own shell tool.
        command: String,
    },
    /// A misbehaviour that the scripted agent performs itself.
    Local(LocalStep),
}

impl Action {
    /// The file that it writes, appends to or edits.
    pub fn changes(&self) -> Option<&str> {
        match self {
            Self::Write { path, .. } | Self::Append { path, .. } | Self::Edit { path, .. } => Some(path),
            Self::Read { .. } | Self::Run { .. } | Self::Local(_) => None,
        }
    }
}

/// A misbehaviour of an agent process, on command.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalStep {
    /// Kills itself at once with this exit code, printing no result.
    Die(i32),
    /// Prints its result and ends with this exit code.
    Exit(i32),
    /// Stops doing anything, for ever.
    Hang,
    /// Uses a whole CPU, for ever.
    Spin,
    /// Starts a command in a session of its own, detached by a double fork.
    ForkDetached(String),
    /// Survives SIGTERM from here on.
    IgnoreTerm,
    /// Prints its result and then never exits.
    Linger,
    /// Prints one line of this many bytes on stdout.
    Flood(u64),
    /// Waits for the end of stdin.
    ReadStdin,
    /// Waits this many seconds.
    Sleep(f64),
    /// Exits with 1 during the first `attempts` attempts, runs the command in later ones.
    FailFirst {
        /// How many attempts fail.
        attempts: u32,
        /// What runs afterwards.
        command: String,
    },
    /// Runs the command from this attempt on, and does nothing in earlier ones.
    FromAttempt {
        /// The first attempt (counted from 1) that runs it.
        attempt: u32,
        /// What runs.
        command: String,
    },
}

impl fmt::Display for LocalStep {
    /// Writes the step as a line of the step language.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Die(code) => write!(f, "die {code}"),
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Hang => f.write_str("hang"),
            Self::Spin => f.write_str("spin"),
            Self::ForkDetached(command) => write!(f, "fork-detached {}", quoted(command)),
            Self::IgnoreTerm => f.write_str("ignore-term"),
            Self::Linger => f.write_str("linger"),
            Self::Flood(bytes) => write!(f, "flood {bytes}"),
            Self::ReadStdin => f.write_str("read-stdin"),
            Self::Sleep(seconds) => write!(f, "sleep {seconds}"),
            Self::FailFirst { attempts, command } => write!(f, "fail-first {attempts} {}", quoted(command)),
            Self::FromAttempt { attempt, command } => write!(f, "from-attempt {attempt} {}", quoted(command)),
        }
    }
}
