//! What can go wrong in a repository, one variant per remedy.

use std::path::PathBuf;

use crate::Refusal;

/// The result of an operation on a repository.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of an operation on a repository.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user's repository is in a state outlast does not work on; the person must act first.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The operating system refused to read or write a file.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io {
        /// The verb, such as `write`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The git program ended with a failure that no caller expects.
    #[error("`git {command}` failed ({status}): {stderr}")]
    Git {
        /// The subcommand and its arguments.
        command: String,
        /// The exit status as text.
        status: String,
        /// What git wrote to standard error.
        stderr: String,
    },
    /// An object is missing or is not what it should be; the repository needs a repair.
    #[error("object {oid} cannot be used: {why}")]
    Object {
        /// The object's id.
        oid: String,
        /// What is wrong with it.
        why: String,
    },
    /// A text is no object id of this repository.
    #[error("`{0}` is no SHA-1 object id")]
    BadOid(String),
    /// A run's name cannot be part of a ref.
    #[error("`{0}` cannot name a run: it is reserved or not safe in a ref")]
    BadRun(String),
    /// A glob of a scope cannot be read.
    #[error("the glob `{glob}` of the scope cannot be read: {why}")]
    BadGlob {
        /// The glob as written.
        glob: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store folder belongs to another repository.
    #[error("the store `{}` borrows from `{}`, not from `{}`", store.display(), found.display(), expected.display())]
    StoreOfOther {
        /// The store.
        store: PathBuf,
        /// The object folder it borrows from.
        found: PathBuf,
        /// The object folder it was expected to borrow from.
        expected: PathBuf,
    },
    /// A workspace would lie inside the user's repository, where tools and `git add` find it.
    #[error("the workspace `{}` would lie inside the repository `{}`", path.display(), root.display())]
    InsideRepository {
        /// The place of the workspace.
        path: PathBuf,
        /// The root of the user's checkout.
        root: PathBuf,
    },
    /// Something that outlast did not make is at the place of a workspace.
    #[error("`{}` exists and is no workspace of this task; move it away", .0.display())]
    Occupied(PathBuf),
    /// There is no workspace for this task.
    #[error("task `{task}` of run `{run}` has no workspace")]
    NoWorkspace {
        /// The run.
        run: String,
        /// The task.
        task: String,
    },
    /// What outlast remembers about a workspace is damaged: nobody can tell what of it is kept.
    #[error("its record `{}` is damaged ({why}), so nobody can tell what of it is kept: look into it, and remove it by hand", path.display())]
    DamagedWorkspace {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A workspace holds work that no checkpoint holds.
    #[error("`{}` holds work that is saved nowhere else: {}", path.display(), what.join("; "))]
    Unpinned {
        /// The workspace.
        path: PathBuf,
        /// What is not saved, one phrase each.
        what: Vec<String>,
    },
    /// A process still works in a workspace that should be removed.
    #[error("`{}` is in use: {}", path.display(), by.join("; "))]
    InUse {
        /// The workspace.
        path: PathBuf,
        /// Who uses it, one phrase each.
        by: Vec<String>,
    },
    /// A state file of outlast is damaged.
    #[error("the state file `{}` is damaged: {why}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// Tells whether the disk is full, or a file may not become as large as it has to: the run waits, and nothing has half
    /// happened.
    pub fn is_disk_full(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        const SAID: [&str; 3] = ["No space left on device", "Disk quota exceeded", "File too large"];
        match self {
            Self::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge),
            // strerror(3) in the C locale, which every git of ours runs in.
            Self::Git { stderr, .. } => SAID.iter().any(|said| stderr.contains(said)),
            _ => false,
        }
    }

    /// Wraps a failed file operation: `what` is the verb.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }

    /// Wraps the reason why an object cannot be used.
    pub(crate) fn object(oid: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self::Object { oid: oid.to_string(), why: why.to_string() }
    }
}
