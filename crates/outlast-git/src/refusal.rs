//! The states of a user's repository in which outlast does not start: what, why, and what to do.
//!
//! A refusal changes nothing and loses nothing. The binary shows it with exit code 4.

use std::path::PathBuf;

use outlast_core::Oid;

use crate::word;

/// A state of the user's repository, or of git, that a person has to change first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No git program was found.
    #[error("git cannot be started as `{program}`: {why}")]
    GitMissing {
        /// The program that was tried.
        program: String,
        /// The system's answer.
        why: String,
    },
    /// The git program is older than outlast needs.
    #[error("git {found} is too old: outlast needs 2.39 or newer")]
    GitTooOld {
        /// The version found.
        found: String,
    },
    /// The folder lies in no repository.
    #[error("`{}` is not inside a git repository", .0.display())]
    NotARepository(PathBuf),
    /// The repository has no working tree.
    #[error("`{}` is a bare repository", .0.display())]
    Bare(PathBuf),
    /// HEAD points to a branch without a commit.
    #[error("the branch `{branch}` has no commit yet")]
    NoCommit {
        /// The branch that HEAD names.
        branch: String,
        /// Where HEAD was last: the branch had commits, or another one was left for it.
        was_at: Option<Oid>,
    },
    /// A rebase, merge or the like is not finished.
    #[error("a `git {what}` is in progress in `{}`", path.display())]
    InProgress {
        /// The command of git that is not finished, such as `rebase`.
        what: &'static str,
        /// The checkout.
        path: PathBuf,
    },
    /// History is cut off.
    #[error("`{}` is a shallow clone", .0.display())]
    Shallow(PathBuf),
    /// Objects are fetched on demand.
    #[error("`{}` is a partial clone", .0.display())]
    PartialClone(PathBuf),
    /// The tree contains submodules.
    #[error("the tree contains a submodule at `{path}`")]
    Submodule {
        /// The first submodule.
        path: String,
    },
    /// Object ids are SHA-256.
    #[error("`{}` uses SHA-256 object ids", .0.display())]
    Sha256(PathBuf),
    /// Refs are kept in a reftable.
    #[error("`{}` keeps its refs in a reftable", .0.display())]
    Reftable(PathBuf),
    /// The repository demands a feature outlast does not know.
    #[error("`{}` uses the extension `{name}`", path.display())]
    UnknownExtension {
        /// The repository.
        path: PathBuf,
        /// The extension's name in lower case.
        name: String,
    },
    /// Git itself does not want to work here.
    #[error("git refuses to work in `{}`: {stderr}", path.display())]
    GitRefused {
        /// The folder.
        path: PathBuf,
        /// What git said.
        stderr: String,
    },
    /// Commits could not be given an author.
    #[error("git does not know who you are: `{missing}` is not set")]
    NoIdentity {
        /// The first missing key.
        missing: &'static str,
    },
    /// A name cannot be a branch.
    #[error("`{0}` is no valid branch name")]
    BadTarget(String),
    /// A name is taken, or would be on some file systems.
    #[error("the branch `{wanted}` cannot exist beside `{existing}`")]
    TargetCollides {
        /// The branch to be made.
        wanted: String,
        /// The branch that is there.
        existing: String,
    },
    /// An object that should be the base is no commit.
    #[error("`{0}` is no commit of this repository")]
    NotACommit(String),
}

impl Refusal {
    /// The exit code of the program for every refusal.
    pub const EXIT_CODE: u8 = 4;

    /// The stable code for scripts and `outlast explain`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::GitMissing { .. } => "git-missing",
            Self::GitTooOld { .. } => "git-too-old",
            Self::NotARepository(_) => "not-a-repository",
            Self::Bare(_) => "bare-repository",
            Self::NoCommit { .. } => "no-commit",
            Self::InProgress { .. } => "operation-in-progress",
            Self::Shallow(_) => "shallow-clone",
            Self::PartialClone(_) => "partial-clone",
            Self::Submodule { .. } => "submodules",
            Self::Sha256(_) => "sha256-repository",
            Self::Reftable(_) => "reftable",
            Self::UnknownExtension { .. } => "unknown-extension",
            Self::GitRefused { .. } => "git-refused",
            Self::NoIdentity { .. } => "no-identity",
            Self::BadTarget(_) => "bad-target",
            Self::TargetCollides { .. } => "target-collides",
            Self::NotACommit(_) => "not-a-commit",
        }
    }

    /// Why outlast does not go on.
    pub fn why(&self) -> &'static str {
        match self {
            Self::GitMissing { .. } => "outlast works through git",
            Self::GitTooOld { .. } => {
                "in-memory merges and durable writes came with git 2.38 and 2.36, tested from 2.39"
            }
            Self::NotARepository(_) => "every task works on a branch of a repository",
            Self::Bare(_) => "plans, ignored files and landings need a checkout",
            Self::NoCommit { .. } | Self::NotACommit(_) => "every task starts from a commit",
            Self::InProgress { .. } => "the base of the tasks would be a half-finished state",
            Self::Shallow(_) | Self::PartialClone(_) => "tasks borrow objects, and here some of them are missing",
            Self::Submodule { .. } => "a task's workspace would lack the submodule's files",
            Self::Sha256(_) | Self::Reftable(_) | Self::UnknownExtension { .. } => {
                "outlast cannot read such a repository safely yet"
            }
            Self::GitRefused { .. } => "git's own safety checks count",
            Self::NoIdentity { .. } => "what lands is a commit in your name",
            Self::BadTarget(_) => "the landed commits go to a branch of that name",
            Self::TargetCollides { .. } => "git, or a disk that ignores case, can keep only one of the two",
        }
    }

    /// What a person can do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::GitMissing { .. } | Self::GitTooOld { .. } => {
                "install git 2.39 or newer, or name it in OUTLAST_GIT".to_owned()
            }
            Self::NotARepository(_) => {
                "change into a repository, or make one: git init && git add -A && git commit".to_owned()
            }
            Self::Bare(_) => "run outlast in a clone or a worktree of it".to_owned(),
            Self::NoCommit { was_at: None, .. } => "make a first commit: git add -A && git commit".to_owned(),
            Self::NoCommit { branch, was_at: Some(was_at) } => format!(
                "make a first commit: git add -A && git commit; or, if `{branch}` was deleted, bring it back where HEAD was \
                 last: git reset --soft {was_at}"
            ),
            Self::InProgress { what: "bisect", .. } => "end it: git bisect reset".to_owned(),
            Self::InProgress { what, .. } => {
                format!("finish it or give it up: git {what} --continue, or: git {what} --abort")
            }
            Self::Shallow(_) => "git fetch --unshallow".to_owned(),
            Self::PartialClone(_) => "make a full clone of it, and run outlast there".to_owned(),
            Self::Submodule { .. } => "choose a base without submodules; they are not supported yet".to_owned(),
            Self::Sha256(_) | Self::Reftable(_) | Self::UnknownExtension { .. } => {
                "make a clone in git's default format, and run outlast there".to_owned()
            }
            Self::GitRefused { .. } => "run `git status` there, and do what git says".to_owned(),
            Self::NoIdentity { missing } => format!("git config --global {missing} \"…\""),
            Self::BadTarget(_) => "choose another `target` in [run]".to_owned(),
            Self::TargetCollides { existing, .. } => format!(
                "rename that branch: git branch -m {existing} {existing}-branch; or, for a new run, choose another `target` in [run]",
                existing = word(existing)
            ),
            Self::NotACommit(_) => "name a branch or a commit that exists here".to_owned(),
        }
    }
}
