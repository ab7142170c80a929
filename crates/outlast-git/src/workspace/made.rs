//! What a command of a plan has made in a workspace: caches and outputs of a check, which nobody has worked for.
//!
//! The check of a task's work comes after its last checkpoint, with no process of its agent alive. Whatever differs from that
//! checkpoint right afterwards was made by the check, and is noted byte for byte. What still is as noted when the workspace is
//! to go holds nobody's work; what anybody has changed since does, as everything else that is in no checkpoint.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::tree::{Edits, Leaf};
use crate::{Result, Store, Workspace, durable};

/// What differed from the last checkpoint when a command had ended.
pub(super) struct Made(BTreeSet<Vec<u8>>);

impl Made {
    /// What is noted; nothing where nothing is.
    pub(super) fn load(admin: &Path) -> Result<Self> {
        let bytes = durable::read(&file(admin))?.unwrap_or_default();
        Ok(Self(bytes.split(|&byte| byte == 0).filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()))
    }

    /// What of these is not as it was noted.
    pub(super) fn without<'a>(&self, edits: &'a Edits) -> impl Iterator<Item = &'a gix::bstr::BString> {
        edits.iter().filter(|(path, leaf)| !self.0.contains(&line(path, leaf.as_ref()))).map(|(path, _)| path)
    }
}

impl Workspace {
    /// Notes that whatever differs from the last checkpoint was made by a command of the plan and by nobody else: for whoever
    /// has just run one, with nobody else at work here since that checkpoint.
    ///
    /// # Errors
    /// The tree or the store cannot be read, or the note not written.
    pub fn note_made(&self, store: &Store) -> Result<()> {
        let _lock = self.lock()?;
        let mut bytes = Vec::new();
        for (path, leaf) in &self.seen(store)?.found.edits {
            bytes.extend_from_slice(&line(path, leaf.as_ref()));
            bytes.push(0);
        }
        match bytes.is_empty() {
            true => durable::remove(&file(&self.admin)),
            false => durable::write(&file(&self.admin), &bytes, 0o600),
        }
    }
}

/// A path and what is there, as a line that no other edit has.
fn line(path: &[u8], leaf: Option<&Leaf>) -> Vec<u8> {
    let what = leaf.map_or_else(|| "gone".to_owned(), |leaf| format!("{:?} {}", leaf.kind, leaf.id));
    [what.as_bytes(), b" ", path].concat()
}

fn file(admin: &Path) -> PathBuf {
    admin.join("made")
}
