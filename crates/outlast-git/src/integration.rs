//! The integration worktree: one reused checkout of ours in which exactly what would land is verified.
//!
//! Its repository is the store, so no agent and no command in it decides how git runs. Ignored files persist from one
//! checkout to the next (build caches); everything else is exactly the commit.

use std::path::{Path, PathBuf};

use outlast_core::Oid;

use crate::fill::Fill;
use crate::lock::Lock;
use crate::workspace::include;
use crate::{Result, Store, UserRepo, durable, oid};

/// The integration worktree of a store.
#[derive(Debug, Clone)]
pub struct Integration {
    path: PathBuf,
}

impl Integration {
    /// Takes the folder at `path`, which no agent can write, as the integration worktree.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The worktree's root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes every file that is not ignored that of `commit`, brings what `.worktreeinclude` names, and tells the root.
    ///
    /// `trusted` is the run's pinned base: the user's filters run on it alone, when the worktree is first filled.
    ///
    /// # Errors
    /// Git fails, or the worktree cannot be written.
    pub fn checkout(&self, user: &UserRepo, store: &Store, trusted: &Oid, commit: &Oid) -> Result<PathBuf> {
        let admin = store.state().join("integration");
        let lock = Lock::acquire(&admin.join("lock"))?;
        let settings = user.settings()?;
        let index = admin.join("index");
        let fill = Fill { store, path: &self.path, settings: &settings, index: &index, lock: &lock };
        let commit = oid::parse(commit)?;
        if index.is_file() && self.path.is_dir() {
            fill.reset_to(commit)?;
        } else {
            durable::remove(&index)?;
            fill.populate(oid::parse(trusted)?, commit)?;
        }
        fill.clean()?;
        include::copy(user, &self.path)?;
        Ok(self.path.clone())
    }
}
