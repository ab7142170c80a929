//! What an adapter is told about one attempt. Plain data: whoever fills it in has resolved every path.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use outlast_core::{RunId, TaskId};
use sha2::{Digest, Sha256};

use crate::Error;

/// Everything a launch is built from.
#[derive(Debug, Clone)]
pub struct Brief {
    /// The agent's program: the real file, links followed (see [`crate::discover`]). Unused by the kind `command`.
    pub program: PathBuf,
    /// The home of this task and agent kind; it exists, and outlives the attempt.
    pub home: PathBuf,
    /// The folder for temporary files.
    pub temp: PathBuf,
    /// The task's working tree, the agent's working directory.
    pub workspace: PathBuf,
    /// The person's own home, read (never written) for what `inherit` names; `None` leaves the person's part out.
    pub user_home: Option<PathBuf>,
    /// Base address without a trailing slash, such as `http://127.0.0.1:{port}`; see [`crate::launch::PORT`].
    pub gateway_url: String,
    /// The attempt's key: the only credential an agent ever gets.
    pub key: Key,
    /// The shape in which the agent is handed the key.
    pub key_shape: KeyShape,
    /// The model asked for; `None` leaves the choice to the CLI.
    pub model: Option<String>,
    /// What the agent is told.
    pub prompt: String,
    /// The task's goal as its author wrote it.
    pub goal: String,
    /// A file that holds the prompt, readable by the agent.
    pub goal_file: PathBuf,
    /// Whether a session begins or goes on.
    pub session: Session,
    /// The attempt's label, unique on this machine: it marks the attempt's processes.
    pub attempt: String,
    /// The run the task belongs to.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// What of the repository's and the person's own agent settings stays on.
    pub inherit: Vec<Inherit>,
    /// Variables the plan allows through.
    pub extra_env: BTreeMap<String, String>,
    /// The `PATH` the agent gets.
    pub path: String,
    /// Where the agent notes finished steps, one name per line.
    pub progress_file: PathBuf,
    /// The note left by an earlier attempt, if there is one.
    pub handover_file: Option<PathBuf>,
    /// Program and arguments with placeholders, for the kind `command`.
    pub command: Vec<String>,
    /// Variables with placeholders, for the kind `command`.
    pub command_env: BTreeMap<String, String>,
}

/// An attempt's key; its value never shows in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key as text, for the agent's environment and its settings file only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// How the attempt's key is dressed: some CLIs send other requests with a login than with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// As an API key.
    ApiKey,
    /// As the login of a subscription.
    Login,
}

/// Whether a session of the CLI begins or goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Session {
    /// A new session, with this id where the CLI lets it be chosen; see [`session_uuid`].
    Fresh {
        /// A UUID.
        id: String,
    },
    /// An earlier session goes on.
    Resume {
        /// The id the CLI reported for it.
        id: String,
    },
}

/// A part of the repository's or the person's own agent settings that a plan keeps on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inherit {
    /// Instruction files, such as `CLAUDE.md` or `AGENTS.md`.
    Memory,
    /// Skills.
    Skills,
    /// The repository's hooks.
    Hooks,
    /// The repository's MCP server of this name.
    Mcp(String),
}

impl Inherit {
    /// Reads an `inherit` entry of a plan.
    ///
    /// # Errors
    /// [`Error::InheritUnknown`] when it is none of the known ones.
    pub fn parse(entry: &str) -> Result<Self, Error> {
        match entry.split_once(':') {
            Some(("mcp", name)) if !name.is_empty() => Ok(Self::Mcp(name.to_owned())),
            None if entry == "memory" => Ok(Self::Memory),
            None if entry == "skills" => Ok(Self::Skills),
            None if entry == "hooks" => Ok(Self::Hooks),
            _ => Err(Error::InheritUnknown { entry: entry.to_owned() }),
        }
    }
}

impl fmt::Display for Inherit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Skills => f.write_str("skills"),
            Self::Hooks => f.write_str("hooks"),
            Self::Mcp(name) => write!(f, "mcp:{name}"),
        }
    }
}

/// A UUID derived from a seed, the same every time: the core has no randomness to draw one from.
///
/// Its version is 5 (RFC 9562, a hash of a name): Qwen Code accepts none above.
pub fn session_uuid(seed: &[u8]) -> String {
    let digest = Sha256::digest(seed);
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x50;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_uuid_is_well_formed_stable_and_its_seeds_own() {
        let id = session_uuid(b"seed, t.1");
        assert_eq!(id, session_uuid(b"seed, t.1"));
        assert_ne!(id, session_uuid(b"seed, t.2"));
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert!(id.split('-').nth(2).is_some_and(|part| part.starts_with('5')));
    }

    #[test]
    fn inherit_entries_read_back_as_written_and_others_are_refused() {
        for entry in ["memory", "skills", "hooks", "mcp:git-hub"] {
            assert_eq!(Inherit::parse(entry).unwrap().to_string(), entry);
        }
        for entry in ["", "mcp", "mcp:", "Memory", "plugins", "hooks:all"] {
            assert!(matches!(Inherit::parse(entry), Err(Error::InheritUnknown { .. })), "{entry:?}");
        }
    }

    #[test]
    fn a_key_never_shows_in_debug_output() {
        assert!(!format!("{:?}", Key::new("sk-canary")).contains("canary"));
    }
}
