//! Filling a working tree from a commit through git, which knows the user's line ends and filters.
//!
//! Git runs with the store as its repository and an index of ours. The user's filters run only while the tree is filled
//! from a commit of the user's own; what agents changed on top of it is written without any program, because a filter
//! may well be a script in the tree.

use std::path::Path;

use gix::ObjectId;

use crate::git::Call;
use crate::lock::Lock;
use crate::settings::Settings;
use crate::{Error, Result, Store, durable};

/// A working tree to fill.
pub(crate) struct Fill<'a> {
    pub(crate) store: &'a Store,
    pub(crate) path: &'a Path,
    pub(crate) settings: &'a Settings,
    pub(crate) index: &'a Path,
    /// Held while git writes, by git too.
    pub(crate) lock: &'a Lock,
}

impl Fill<'_> {
    /// Fills a tree that no filter has run on yet: first from `trusted`, a commit of the user's, then from `commit`.
    pub(crate) fn populate(&self, trusted: ObjectId, commit: ObjectId) -> Result<()> {
        self.read_tree(trusted, self.settings.conversion.iter())?;
        if commit == trusted { Ok(()) } else { self.reset_to(commit) }
    }

    /// Makes every tracked file that of `commit`, starting no program.
    pub(crate) fn reset_to(&self, commit: ObjectId) -> Result<()> {
        self.read_tree(commit, self.settings.without_programs())
    }

    fn read_tree<'b>(&self, commit: ObjectId, config: impl Iterator<Item = &'b (String, String)>) -> Result<()> {
        // Whoever held this lock file is gone: our own lock is held.
        let stale = self.index.with_file_name(format!("{}.lock", self.index.file_name().unwrap_or_default().display()));
        durable::remove(&stale)?;
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut call = self.call()?.config("checkout.workers", workers.to_string());
        for (key, value) in config {
            call = call.config(key, value);
        }
        call.args(["read-tree", "--reset", "-u", "--no-recurse-submodules"]).arg(commit.to_string()).ok()?;
        Ok(())
    }

    /// Removes what is neither tracked nor ignored.
    pub(crate) fn clean(&self) -> Result<()> {
        let excludes = self.index.with_file_name("excludes");
        durable::write(&excludes, &self.settings.excludes, 0o600)?;
        self.call()?.config("core.excludesFile", excludes).args(["clean", "-ffdq"]).ok()?;
        Ok(())
    }

    fn call(&self) -> Result<Call> {
        let attributes = self.index.with_file_name("attributes");
        if durable::read(&attributes)?.as_deref() != Some(self.settings.global_attributes.as_slice()) {
            durable::write(&attributes, &self.settings.global_attributes, 0o600)?;
        }
        std::fs::create_dir_all(self.path).map_err(Error::io("create", self.path))?;
        let call = self.store.call().env("GIT_WORK_TREE", self.path).env("GIT_INDEX_FILE", self.index);
        call.config("core.attributesFile", attributes).holding(self.lock)
    }
}
