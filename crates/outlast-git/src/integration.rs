//! The integration worktree: one reused checkout of ours in which exactly what would land is verified.
//!
//! It is filled with the store as repository, so no agent and no command in it decides how git runs. Ignored files persist from one
//! checkout to the next (build caches); everything else is exactly the commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use outlast_core::Oid;

use crate::fill::Fill;
use crate::lock::Lock;
use crate::workspace::restore::Head;
use crate::workspace::skeleton::Skeleton;
use crate::workspace::{include, remove};
use crate::{Error, Result, Store, UserRepo, durable, oid};

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
    /// The commands run there find a small repository of their own, made anew each time, whose HEAD is `commit`.
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
        let is_filled = index.is_file() && self.path.is_dir() && Self::reset(&fill, commit)?;
        if !is_filled {
            durable::remove(&index)?;
            fill.populate(oid::parse(trusted)?, commit)?;
        }
        fill.clean()?;
        include::copy(user, &self.path)?;
        // What the last verify left there as its repository must not serve the next one.
        let git_dir = self.path.join(".git");
        remove::remove_tree(&git_dir)?;
        let head = Head { branch: Some("outlast/integration".to_owned()), commit: Some(commit) };
        Skeleton { path: &self.path, settings: &settings, head: &head, refs: &BTreeMap::new(), tips: b"" }
            .write(user, store)?;
        let own_index = git_dir.join("index");
        std::fs::copy(&index, &own_index).map_err(Error::io("write", own_index))?;
        Ok(self.path.clone())
    }

    /// Whether it could be changed to another commit. Its index is ours and made from commits alone: one that a crash has damaged
    /// is made anew, as it is for the first time.
    fn reset(fill: &Fill<'_>, commit: ObjectId) -> Result<bool> {
        match fill.reset_to(commit) {
            Ok(()) => Ok(true),
            Err(error) if error.is_disk_full() => Err(error),
            // Whatever else it fails by, filling it meets as well, and tells.
            Err(_) => Ok(false),
        }
    }
}
