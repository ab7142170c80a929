//! What no work of a run goes on without, and is not there: room on the disk, the user's repository, our own store, the copy
//! of its plan.
//!
//! Nobody is at fault then, and everything waits. Whoever looks finds it as an engine does, without asking one: it is no
//! record, since there may be no room for one.

use std::path::{Path, PathBuf};

use outlast_api::{Diagnostic, ExitCode};
use outlast_core::RunId;
use outlast_core::run::{Mode, Run};
use outlast_git::quoted;

use crate::error::Error;
use crate::home::RepoHome;
use crate::plans::load_plan;
use crate::room::{Full, full};

/// The cause of what waits for room on the disk that holds the state.
pub const DISK_FULL: &str = "disk_full";
/// The cause of what waits for the user's repository.
pub const REPOSITORY_GONE: &str = "repository_gone";
/// The cause of what waits for our own store.
pub const STORE_GONE: &str = "store_gone";
/// The cause of what waits for the copy of a plan.
pub const PLAN_DAMAGED: &str = "plan_damaged";

/// What is in the way of everything that a run has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The disk that holds the state is full.
    DiskFull(Full),
    /// The user's repository is not where it was: its git folder was there.
    RepositoryGone(PathBuf),
    /// Our store, with all that was kept, is not where it was.
    StoreGone(PathBuf),
    /// The copy of its plan that a run goes by is damaged or gone.
    PlanDamaged {
        /// The copy.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Obstacle {
    /// What is in the way of the runs of a repository, known by its folder in the home.
    pub fn of(home: &RepoHome) -> Option<Self> {
        Self::gone(home).or_else(|| full(home.root()).map(Self::DiskFull))
    }

    /// What is in the way of one run whose engine is gone: the next one needs the copy of its plan, too.
    pub(crate) fn of_run(home: &RepoHome, run: &Run) -> Option<Self> {
        Self::of(home).or_else(|| match load_plan(home, &run.spec.plan) {
            Err(Error::PlanDamaged { path, why }) if !matches!(run.mode, Mode::Finished(_)) => {
                Some(Self::PlanDamaged { path, why })
            }
            _ => None,
        })
    }

    /// The same, but for a full disk: nothing can even be looked at then.
    pub fn gone(home: &RepoHome) -> Option<Self> {
        // One that has lost the list of what it borrows, and nothing else, is mended by whoever opens it.
        let store = home.store();
        let is_one = || store.join("config").is_file() && store.join("objects").is_dir();
        if !(store.join("objects/info/alternates").is_file() || is_one()) {
            return Some(Self::StoreGone(store));
        }
        home.lender().filter(|common_dir| !is_git_folder(common_dir)).map(Self::RepositoryGone)
    }

    /// Its name in `status`.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::DiskFull(_) => DISK_FULL,
            Self::RepositoryGone(_) => REPOSITORY_GONE,
            Self::StoreGone(_) => STORE_GONE,
            Self::PlanDamaged { .. } => PLAN_DAMAGED,
        }
    }

    /// What it is, and when things go on, in one line.
    pub fn detail(&self) -> String {
        match self {
            Self::DiskFull(Full { folder, free, floor }) => {
                format!("the disk is full: {free} are free in {}; it goes on when {floor} are", folder.display())
            }
            Self::RepositoryGone(path) => {
                format!("the repository {} is not there any more; it goes on when it is back", checkout(path).display())
            }
            Self::PlanDamaged { path, why } => {
                format!("the copy of its plan that the run goes by, {}, is damaged: {why}", path.display())
            }
            Self::StoreGone(path) => {
                format!(
                    "{}, with what agents have done, is not there any more; it goes on when it is back",
                    path.display()
                )
            }
        }
    }

    /// The commands that help; where the repository is found to be now, if it is.
    pub fn fixes(&self, found: Option<&Path>) -> Vec<String> {
        let word = |path: &Path| quoted(&path.display().to_string());
        match self {
            Self::DiskFull(full) => vec![format!("df -h {}", word(&full.folder)), "outlast clean".to_owned()],
            Self::RepositoryGone(path) => {
                let there = found.map_or_else(|| "WHERE_IT_IS_NOW".to_owned(), |found| word(checkout(found)));
                match (path.ends_with(".git"), checkout(path).is_dir()) {
                    // The checkout is there, its git folder alone is not.
                    (true, true) if found.is_none() => {
                        vec![format!("mv {there} {}    # its git folder, or one from a backup", word(path))]
                    }
                    _ => vec![format!("mv {there} {}    # a repository is known by where it is", word(checkout(path)))],
                }
            }
            Self::PlanDamaged { .. } => self.told(None, None).fix,
            Self::StoreGone(path) => vec![format!("mv WHERE_IT_IS_NOW {}    # or a copy from a backup", word(path))],
        }
    }

    /// What is said to whoever leaves, or asks for what cannot be done.
    pub fn told(&self, run: Option<&RunId>, found: Option<&Path>) -> Diagnostic {
        let (code, exit, what) = match self {
            Self::DiskFull(full) => return crate::diagnose::not_all_kept(&full.folder),
            Self::PlanDamaged { path, why } => {
                let damaged = Error::PlanDamaged { path: path.clone(), why: why.clone() };
                return crate::diagnose::diagnostic(&damaged).because(NOTHING_LOST);
            }
            Self::RepositoryGone(path) => {
                let what = format!("the repository {} is not there any more", checkout(path).display());
                (crate::diagnose::REPOSITORY_GONE, ExitCode::Repository, what)
            }
            Self::StoreGone(path) => {
                let what = format!("{}, with what agents have done, is not there any more", path.display());
                (crate::diagnose::STORE_GONE, ExitCode::Host, what)
            }
        };
        let told = Diagnostic::error(code, exit, what).because(NOTHING_LOST);
        let told = self.fixes(found).into_iter().fold(told, Diagnostic::fix);
        match run {
            Some(run) => told
                .about(run.to_string())
                .fix(format!("outlast resume {run}    # once it is back: goes on where it was")),
            None => told.fix("outlast resume    # once it is back: goes on where it was"),
        }
    }
}

/// What holds of whatever waits for something that nobody who works for a run is to blame for.
pub(crate) const NOTHING_LOST: &str =
    "what its agents did last is in their workspaces; nothing is lost, no task has failed and no try is used";

/// The folder that people know a repository by, from its git folder.
pub fn checkout(common_dir: &Path) -> &Path {
    common_dir.parent().filter(|_| common_dir.ends_with(".git")).unwrap_or(common_dir)
}

/// Whether a folder holds what every git folder does.
pub(crate) fn is_git_folder(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir()
}
