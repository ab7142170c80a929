//! A session: the conversation so far, on disk after every step, as the real CLIs keep it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Attempt;
use crate::wire::Item;
use crate::{Error, Result, digest};

/// A conversation and its id.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Session {
    pub id: String,
    pub model: String,
    pub items: Vec<Item>,
}

/// The folder of the agent in the user's home.
pub(super) fn home() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").ok_or_else(|| Error::Usage("HOME is not set".to_owned()))?;
    Ok(PathBuf::from(home).join(".scripted-agent"))
}

impl Session {
    /// A new session; without an id one is made up.
    pub(super) fn new(id: Option<String>, model: &str) -> Self {
        let id = id.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            digest(format!("{}/{}", std::process::id(), now.as_nanos()).as_bytes())
        });
        Self { id, model: model.to_owned(), items: Vec::new() }
    }

    /// Reads a session back; a tool call that was cut off gets a result that says so.
    pub(super) fn load(home: &Path, id: &str) -> Result<Self> {
        let path = file(home, id);
        if !path.exists() {
            return Err(Error::Usage(format!("No conversation found with session ID: {id}")));
        }
        let text = std::fs::read_to_string(&path).attempting(|| format!("reading {}", path.display()))?;
        let mut session: Self =
            serde_json::from_str(&text).map_err(|error| Error::ScriptFile { path, why: error.to_string() })?;
        if let Some(Item::Call(call)) = session.items.last() {
            let result = Item::Result {
                id: call.id.clone(),
                name: call.name.clone(),
                text: "[Tool execution was interrupted]".to_owned(),
            };
            session.items.push(result);
        }
        Ok(session)
    }

    /// Adds to the conversation and writes it down; the file is whole at every instant.
    pub(super) fn push(&mut self, home: &Path, items: impl IntoIterator<Item = Item>) -> Result<()> {
        self.items.extend(items);
        std::fs::create_dir_all(home).attempting(|| format!("creating {}", home.display()))?;
        let path = file(home, &self.id);
        let part = path.with_extension("part");
        let text = serde_json::to_string(self)
            .map_err(std::io::Error::other)
            .attempting(|| "writing the session".to_owned())?;
        std::fs::write(&part, text).attempting(|| format!("writing {}", part.display()))?;
        std::fs::rename(&part, &path).attempting(|| format!("writing {}", path.display()))
    }
}

fn file(home: &Path, id: &str) -> PathBuf {
    home.join(format!("{id}.json"))
}
