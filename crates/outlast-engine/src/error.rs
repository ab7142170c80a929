//! What can go wrong in the engine, by what helps.

use std::io;
use std::path::{Path, PathBuf};

use crate::home::Holder;
use crate::room::Space;

/// Why the engine could not do something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another engine works in this home.
    #[error("{}", running(.0.as_ref()))]
    EngineRunning(Option<Holder>),
    /// The copy of a plan that a run goes by is damaged, or gone.
    #[error("the copy of its plan that a run goes by, {}, is damaged: {why}", path.display())]
    PlanDamaged {
        /// The copy.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of ours could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The journal refused.
    #[error(transparent)]
    Journal(#[from] outlast_journal::Error),
    /// The journal holds something that this version does not understand.
    #[error("record {revision} of {stream} cannot be read: {why}")]
    Unreadable {
        /// The stream.
        stream: String,
        /// Its place there.
        revision: u64,
        /// Why.
        why: String,
    },
    /// Git refused.
    #[error(transparent)]
    Git(#[from] outlast_git::Error),
    /// A process could not be started or reached.
    #[error(transparent)]
    Process(#[from] outlast_process::Error),
    /// An agent cannot be launched.
    #[error(transparent)]
    Agent(#[from] outlast_agent::Error),
    /// An agent's program is not on this host.
    #[error("`{program}` is not on the PATH")]
    AgentMissing {
        /// What was looked for.
        program: String,
    },
    /// The plan has no agent of this name.
    #[error("the plan has no agent `{agent}`; it has {known}")]
    AgentUnknown {
        /// The name that was given.
        agent: String,
        /// The names that it has.
        known: String,
    },
    /// An agent is to use no model in particular, and chooses none by itself.
    #[error("agent `{agent}` needs a model: {kind} chooses none by itself")]
    ModelMissing {
        /// Which agent.
        agent: outlast_core::AgentName,
        /// Its kind.
        kind: &'static str,
    },
    /// No account that an agent may use is for the model it is to ask for.
    #[error("agent `{agent}` is to use the model `{model}`, and no account it may use is for that")]
    ModelNotAllowed {
        /// Which agent.
        agent: outlast_core::AgentName,
        /// The model.
        model: String,
        /// What its accounts are for.
        accounts: String,
    },
    /// Nobody pays for an agent.
    #[error("agent `{agent}` has no account to use")]
    NoAccount {
        /// Which agent.
        agent: outlast_core::AgentName,
    },
    /// Processes of an attempt that is over do not end.
    #[error("{processes} processes of attempt {attempt} do not end")]
    Alive {
        /// Which attempt.
        attempt: outlast_core::AttemptId,
        /// How many.
        processes: usize,
    },
    /// The disk that holds the state is all but full.
    #[error("no room to work: {free} are free in {folder}")]
    NoRoom {
        /// Where the state is.
        folder: PathBuf,
        /// What is left.
        free: Space,
    },
    /// No file may become as large as those are that every run needs.
    #[error("no file may become larger here than {limit} (`ulimit -f`), and a run needs larger ones")]
    FileSize {
        /// How large one may be.
        limit: Space,
    },
    /// The user's repository is not where it was.
    #[error("the repository {} is not there any more: put it back, and its tasks go on", path.display())]
    RepositoryGone {
        /// Where it was.
        path: PathBuf,
    },
    /// Our own store is not where it was.
    #[error("{}, with what agents have done, is not there any more: put it back, and its tasks go on", path.display())]
    StoreGone {
        /// Where it was.
        path: PathBuf,
    },
    /// The journal is not where it was: whatever is put on record now is lost with the file that was removed.
    #[error("the journal {} was removed while the engine was at work: what had not landed is lost with it", path.display())]
    HomeGone {
        /// Where it was.
        path: PathBuf,
    },
    /// The journal is not there, and all else of the runs that it told of is.
    #[error("the journal {} is gone, and the rest of what its runs left is there", path.display())]
    JournalGone {
        /// Where it was.
        path: PathBuf,
    },
    /// The gateway could not start.
    #[error(transparent)]
    Gateway(#[from] outlast_gateway::Error),
    /// A command was refused by the core.
    #[error(transparent)]
    Rejected(#[from] outlast_core::admit::Rejection),
    /// The engine is on its way out.
    #[error("the engine has stopped")]
    Stopped,
    /// What a turn before this one has done is still being kept.
    #[error("what it has done before is still being kept")]
    Busy,
    /// A command of a plan was ended because nobody waits for it any more: it runs again when its run goes on.
    #[error("it was ended, and runs again when the run goes on")]
    Ended,
    /// A command of a plan says neither that it passes nor that it does not: nobody is at fault.
    #[error("nothing was shown in {times} runs, lost with what looks after them or without room: `{command}`")]
    Unshown {
        /// As it stands in the plan.
        command: String,
        /// How often it was run in a row.
        times: u32,
    },
    /// A defect.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    pub(crate) fn at(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }

    /// Whether an operation that came to nothing for it is tried again by this engine.
    pub(crate) const fn is_tried_again(&self) -> bool {
        !matches!(self, Self::Ended | Self::Stopped | Self::Busy)
    }

    /// Whether the disk is full, or a file may not become as large as it has to (`ulimit -f`).
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::File { source, .. } => {
                use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
                matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
            }
            Self::Git(error) => error.is_disk_full(),
            Self::NoRoom { .. } | Self::Journal(outlast_journal::Error::NoSpace { .. }) => true,
            _ => false,
        }
    }
}

/// Who is in the way of an engine.
fn running(holder: Option<&Holder>) -> String {
    match holder {
        Some(Holder { pid, is_gateway: true, .. }) => format!("a gateway is already running (process {pid})"),
        Some(Holder { pid, repository, .. }) => {
            format!("an engine is already running (process {pid}, repository {})", repository.display())
        }
        None => "an engine is already running".to_owned(),
    }
}
