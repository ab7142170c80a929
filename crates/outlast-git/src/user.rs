//! The user's repository: found, checked, and read.
//!
//! What is written here is written by two operations only: pins (`refs/outlast/base/`) and a landing. Everything else
//! reads.

mod locks;
mod looks;
mod open;
mod pins;
mod targets;

use std::path::{Path, PathBuf};

use gix::ObjectId;
use outlast_core::Oid;

use crate::git::Git;
use crate::settings::{Config, Settings};
use crate::{Error, Refusal, Result, durable, oid};

pub use locks::until_let_go;
pub use looks::has_object;
pub use pins::pinned_runs;
pub(crate) use targets::FOLDER_GONE;
pub use targets::{Target, Worktree};

/// A repository of the user's in a state that outlast works on.
#[derive(Debug, Clone)]
pub struct UserRepo {
    git: Git,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    config: Config,
}

/// Where the user's checkout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit.
    pub commit: Oid,
    /// The branch, such as `main`; `None` when HEAD is detached.
    pub branch: Option<String>,
}

/// In whose name landed commits are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl UserRepo {
    /// Finds the repository around `path` and refuses every state that outlast does not work on.
    ///
    /// # Errors
    /// [`Error::Refused`] with what, why and what to do; [`Error::Io`] when a file cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(Git::locate()?, path)
    }

    /// The same with a git program of the caller's choice.
    ///
    /// # Errors
    /// As [`UserRepo::open`].
    pub fn open_with(git: Git, path: &Path) -> Result<Self> {
        open::open(git, path)
    }

    /// The git folder, shared by all worktrees, of the repository around `path`, in whatever state that is; nothing where
    /// there is none.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn around(path: &Path) -> Result<Option<PathBuf>> {
        open::around(path)
    }

    /// The root of the user's checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git folder shared by all worktrees of the repository.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The folder tasks borrow objects from: a sandbox must let them read it.
    pub fn objects_dir(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// The git program in use.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Where HEAD is now.
    ///
    /// # Errors
    /// [`Refusal::NoCommit`] when the branch has no commit.
    pub fn head(&self) -> Result<Head> {
        let repo = self.gix()?;
        let unreadable = |e: gix::Error| self.refused(e);
        let branch = repo.head_name().map_err(unreadable)?;
        let short = branch.as_ref().map(|b| b.shorten().to_string());
        let Ok(commit) = repo.head_id() else {
            let was_at = self.head_was_at()?.filter(|id| repo.has_object(*id)).map(oid::of);
            return Err(Refusal::NoCommit { branch: short.unwrap_or_else(|| "HEAD".to_owned()), was_at }.into());
        };
        Ok(Head { commit: oid::of(commit.detach()), branch: short })
    }

    /// The last commit that HEAD was at, from its reflog.
    fn head_was_at(&self) -> Result<Option<ObjectId>> {
        let log = durable::read(&self.git_dir.join("logs/HEAD"))?.unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        // Each line is: the id before, the id after (zeros where there is none any more), who, when, why.
        let mut ids = log.lines().rev().filter_map(|line| oid::parse_text(line.split(' ').nth(1)?).ok());
        Ok(ids.find(|id| !id.is_null()))
    }

    /// In whose name commits land, as git has it: `GIT_AUTHOR_*` of this process, else `author.*`, else `user.*`.
    ///
    /// # Errors
    /// [`Refusal::NoIdentity`]: outlast does not guess.
    pub fn user_identity(&self) -> Result<Identity> {
        self.identity("AUTHOR", "author", |name| std::env::var(name).ok())
    }

    /// Who commits what lands: `GIT_COMMITTER_*` of this process, else `committer.*`, else `user.*`.
    ///
    /// # Errors
    /// As [`UserRepo::user_identity`].
    pub fn committer_identity(&self) -> Result<Identity> {
        self.identity("COMMITTER", "committer", |name| std::env::var(name).ok())
    }

    fn identity(&self, role: &str, section: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Identity> {
        let some = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        let set = |key: &str| self.config.get(key).and_then(some);
        let get = |part: &str, user: &'static str| {
            variable(&format!("GIT_{role}_{}", part.to_ascii_uppercase()))
                .and_then(|text| some(&text))
                .or_else(|| set(&format!("{section}.{part}")))
                .or_else(|| set(user))
        };
        let name = get("name", "user.name").ok_or(Refusal::NoIdentity { missing: "user.name" })?;
        // Of the address alone, git takes the last resort that every mail program knows.
        let email = get("email", "user.email").or_else(|| variable("EMAIL").and_then(|text| some(&text)));
        Ok(Identity { name, email: email.ok_or(Refusal::NoIdentity { missing: "user.email" })? })
    }

    /// A value of the user's configuration; the key's section and name are in lower case.
    pub(crate) fn config_value(&self, key: &str) -> Option<&str> {
        self.config.get(key)
    }

    /// A fingerprint of the repository's own configuration file, which tells whether anyone changed it meanwhile.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn config_fingerprint(&self) -> Result<u64> {
        Ok(outlast_core::hash::fnv1a(&durable::read(&self.common_dir.join("config"))?.unwrap_or_default()))
    }

    /// The hooks folder the user configured, when it is relative to the checkout and so may be missing elsewhere.
    pub(crate) fn relative_hooks(&self) -> Option<&str> {
        self.config.get("core.hookspath").filter(|path| !path.is_empty() && !path.starts_with(['/', '~']))
    }

    /// How trees become files here.
    pub(crate) fn settings(&self) -> Result<Settings> {
        Settings::load(&self.git, &self.config, &self.root, &self.common_dir)
    }

    /// The commit that a name of any kind resolves to, such as a branch, a tag or an id.
    ///
    /// # Errors
    /// [`Refusal::NotACommit`].
    pub fn resolve_commit(&self, name: &str) -> Result<Oid> {
        let asked = format!("{name}^{{commit}}");
        let answer = self
            .git
            .in_checkout(&self.root)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(asked)
            .read()?;
        let said = String::from_utf8_lossy(answer.stdout()).trim().to_owned();
        if answer.code() == Some(0) { Ok(Oid::new(said)) } else { Err(Refusal::NotACommit(name.to_owned()).into()) }
    }

    /// Opens the repository in process, without any configuration but its own, which is the user's.
    pub(crate) fn gix(&self) -> Result<gix::Repository> {
        let options = gix::open::Options::isolated().with(gix::sec::Trust::Full).open_path_as_is(true);
        gix::open_opts(&self.git_dir, options).map_err(|e| self.refused(e))
    }

    /// The tip of a full ref name.
    pub(crate) fn ref_tip(&self, full: &str) -> Result<Option<ObjectId>> {
        let repo = self.gix()?;
        let found = repo.try_find_reference(full).map_err(|e| self.refused(e))?;
        found.map(|mut r| r.peel_to_id().map(gix::Id::detach).map_err(|e| self.refused(e))).transpose()
    }

    fn refused(&self, why: impl std::fmt::Display) -> Error {
        Refusal::GitRefused { path: self.root.clone(), stderr: why.to_string() }.into()
    }
}

#[cfg(test)]
mod tests;
