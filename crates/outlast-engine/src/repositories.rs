//! The three kinds of repository, in the terms of runs and tasks. Everything here blocks.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_core::record::LandingCause;
use outlast_core::{AgentName, AttemptId, Oid, RunId, TaskId, Timestamp};
use outlast_git::{
    Aside, ByteSlice as _, Candidate, CandidateOutcome, CandidateSpec, Checkpoint, CheckpointSpec, Conflict,
    FILE_LIMIT_DEFAULT, Integration, Merged, Move, MoveOutcome, Removal, Scope, ScopeDiff, Spec, Store, TargetState,
    UserRepo, Workspace, quoted,
};
use outlast_process::survivors;

use crate::damaged_store::Looks;
use crate::emptied_refs;
use crate::error::Error;
use crate::home::RepoHome;
use crate::obstacle::Obstacle;

/// The user's repository and ours.
pub(crate) struct Repositories {
    user: UserRepo,
    store: Store,
    integration: Integration,
    home: RepoHome,
    /// The fingerprint of the repository's own settings when they were last looked at.
    settings: AtomicU64,
    pub(crate) looks: Mutex<Looks>,
}

/// What a base came to.
pub(crate) enum Base {
    /// The commit that a task starts from.
    Commit(Oid),
    /// The results that it needs do not merge; the paths, for people.
    Conflict(String),
}

/// What a candidate came to.
pub(crate) enum Candidacy {
    /// A commit that would land on the target's tip.
    Ready {
        /// The commit, its tree and its parent.
        candidate: Candidate,
        /// The target's tip; nothing where the target is new.
        old: Option<Oid>,
    },
    /// The target holds all of it already: by this commit.
    There(Oid),
    /// Nothing would land.
    Refused(LandingCause, String),
}

/// What of a task would land.
pub(crate) struct Landable<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) task: &'a TaskId,
    pub(crate) agent: &'a AgentName,
    pub(crate) target: &'a str,
    pub(crate) run_base: &'a Oid,
    /// The commits by which others of the run have landed.
    pub(crate) landed: &'a [Oid],
    pub(crate) base: &'a Oid,
    pub(crate) tree: &'a Oid,
    pub(crate) message: &'a str,
    pub(crate) at: Timestamp,
}

impl Repositories {
    pub(crate) fn open(home: &RepoHome, user: UserRepo) -> Result<Self, Error> {
        let store = Store::open_or_init(&home.store(), &user)?;
        emptied_refs::mend(&store, &home.journal())?;
        emptied_refs::forget_lost(&store, &home.journal())?;
        let settings = AtomicU64::new(user.config_fingerprint()?);
        let (integration, home) = (Integration::new(home.integration()), home.clone());
        Ok(Self { integration, user, store, home, settings, looks: Mutex::default() })
    }

    /// Whether somebody has changed the repository's own settings, which all its checkouts share, since this was last asked.
    pub(crate) fn settings_changed(&self) -> Result<bool, Error> {
        let now = self.user.config_fingerprint()?;
        Ok(self.settings.swap(now, Ordering::Relaxed) != now)
    }

    /// Checks that the user's repository and our store are where they were: somebody may have moved one, and put it back.
    pub(crate) fn is_there(&self) -> Result<(), Error> {
        match Obstacle::gone(&self.home) {
            Some(Obstacle::StoreGone(path)) => return Err(Error::StoreGone { path }),
            Some(Obstacle::RepositoryGone(path)) => return Err(Error::RepositoryGone { path }),
            _ => {}
        }
        // Of a checkout that is not the only one, the git folder may lie elsewhere.
        let path = self.user.root();
        if path.is_dir() { Ok(()) } else { Err(Error::RepositoryGone { path: path.to_owned() }) }
    }

    /// The folders of objects that a task's repository borrows: readable in its sandbox.
    pub(crate) fn borrowed_objects(&self) -> [PathBuf; 2] {
        [self.user.objects_dir(), self.store.objects_dir().to_owned()]
    }

    /// Finds out where a run starts from, and pins it.
    pub(crate) fn begin(&self, run: &RunId, target: &str) -> Result<Oid, Error> {
        // What lands is a commit in the user's name: without one, nothing need be started.
        self.user.user_identity()?;
        self.user.committer_identity()?;
        let base = match self.user.resolve_target(target)?.tip {
            Some(tip) => tip,
            None => self.user.head()?.commit,
        };
        self.user.pin_base(&self.store, run, &base)?;
        Ok(base)
    }

    /// What a task starts from: the run's base with the results of its needs.
    pub(crate) fn base(&self, run_base: &Oid, needs: &[Oid]) -> Result<Base, Error> {
        Ok(match self.store.compose(&self.user, run_base, needs)? {
            Merged::Clean(commit) => Base::Commit(commit),
            Merged::Conflict(conflict) => Base::Conflict(paths(&conflict)),
        })
    }

    /// Sets the workspace of a task aside where it is damaged: before anything of the store is read to make it anew, so that
    /// it is told also where that has to be done again.
    pub(crate) fn set_aside(&self, id: &AttemptId) -> Result<Option<Aside>, Error> {
        let path = self.home.workspace(&id.run, &id.task);
        Ok(Workspace::set_aside(&self.store, &id.run, &id.task, &path, None)?)
    }

    /// The workspace of a task, made where there is none, brought back from `restore` where it is gone.
    pub(crate) fn workspace(
        &self,
        id: &AttemptId,
        base: &Oid,
        run_base: &Oid,
        restore: Option<Oid>,
    ) -> Result<Workspace, Error> {
        let spec = Spec {
            run: id.run.clone(),
            task: id.task.clone(),
            path: self.home.workspace(&id.run, &id.task),
            base: base.clone(),
            trusted: run_base.clone(),
            restore,
        };
        let workspace = Workspace::create(&self.user, &self.store, &spec)?;
        // Whoever worked in it before is gone, and may have been killed in the midst of a commit.
        let locks = workspace.unlock()?;
        if !locks.is_empty() {
            tracing::info!(attempt = ?id, ?locks, "locks of a git that was killed are removed from its workspace");
        }
        Ok(workspace)
    }

    /// Makes the repository of a task's workspace usable again after a crash, and names what was damaged in it: for whoever
    /// knows that no process is at work there.
    pub(crate) fn mend(&self, id: &AttemptId, kept: Option<&Oid>) -> Result<Vec<String>, Error> {
        let workspace = match Workspace::open(&self.store, &id.run, &id.task) {
            Err(outlast_git::Error::NoWorkspace { .. } | outlast_git::Error::DamagedWorkspace { .. }) => {
                return Ok(Vec::new());
            }
            workspace => workspace?,
        };
        Ok(workspace.mend(&self.store, &self.user, kept)?)
    }

    /// Keeps the tree of a task's workspace.
    pub(crate) fn checkpoint(
        &self,
        id: &AttemptId,
        parent: Option<Oid>,
        why: &str,
        at: Timestamp,
        only_if_changed: bool,
    ) -> Result<Checkpoint, Error> {
        let workspace = Workspace::open(&self.store, &id.run, &id.task)?;
        let spec = CheckpointSpec {
            attempt: id.clone(),
            parent,
            message: format!("{id}: {why}\n"),
            at,
            file_limit: FILE_LIMIT_DEFAULT,
            only_if_changed,
        };
        Ok(workspace.checkpoint(&self.store, &self.user, &spec)?)
    }

    /// Notes that what differs in a workspace from its last checkpoint was made by a command of the plan.
    pub(crate) fn note_made(&self, run: &RunId, task: &TaskId) -> Result<(), Error> {
        Ok(Workspace::open(&self.store, run, task)?.note_made(&self.store)?)
    }

    /// What of a change is in the task's scope. A task without `writes` may change anything.
    pub(crate) fn split(&self, base: &Oid, end: &Oid, writes: &[String]) -> Result<ScopeDiff, Error> {
        let scope = if writes.is_empty() { Scope::everything() } else { Scope::new(writes)? };
        Ok(self.store.scope_diff(base, end, &scope)?)
    }

    /// The tree of `base` with only what is in scope.
    pub(crate) fn in_scope_tree(&self, base: &Oid, split: &ScopeDiff) -> Result<Oid, Error> {
        Ok(self.store.in_scope_tree(base, split)?)
    }

    /// Keeps a verified tree as the task's result.
    pub(crate) fn keep_result(&self, id: &AttemptId, base: &Oid, tree: &Oid, at: Timestamp) -> Result<Oid, Error> {
        // Whoever takes it over by hand does so in their own name.
        let author = self.user.user_identity()?;
        Ok(self.store.keep_result(&id.run, &id.task, base, tree, &author, at)?)
    }

    /// The commit that would land, on the target's tip as it is now.
    pub(crate) fn candidate(&self, what: &Landable<'_>) -> Result<Candidacy, Error> {
        let old = self.user.resolve_target(what.target)?.tip;
        let spec = CandidateSpec {
            run: what.run.clone(),
            task: what.task.clone(),
            agent: what.agent.clone(),
            target_tip: old.clone().map_or_else(|| self.beginning(what.landed, what.run_base), Ok)?,
            base: what.base.clone(),
            result_tree: what.tree.clone(),
            message: what.message.to_owned(),
            author: self.user.user_identity()?,
            committer: self.user.committer_identity()?,
            at: what.at,
        };
        Ok(match self.user.candidate(&self.store, &spec)? {
            CandidateOutcome::Ready(candidate) => Candidacy::Ready { candidate, old },
            CandidateOutcome::Empty => match old {
                Some(tip) => Candidacy::There(self.held_by(what, &tip)?.unwrap_or(tip)),
                None => Candidacy::Refused(LandingCause::Empty, "the target holds all of it already".to_owned()),
            },
            CandidateOutcome::Conflict(conflict) => {
                Candidacy::Refused(LandingCause::Conflict, format!("does not merge in {}", paths(&conflict)))
            }
        })
    }

    /// Where a target begins that is not there: where it was, if it was made before and is gone since (people merge a run's
    /// branch and delete it), and otherwise where the run began.
    fn beginning(&self, landed: &[Oid], run_base: &Oid) -> Result<Oid, Error> {
        let newest = if landed.is_empty() { None } else { self.user.newest(landed, run_base)? };
        Ok(newest.unwrap_or_else(|| run_base.clone()))
    }

    /// The commit by which a target came to hold what a task changes; nothing where it was so before the run.
    fn held_by(&self, what: &Landable<'_>, tip: &Oid) -> Result<Option<Oid>, Error> {
        let changes = self.store.diff(what.base, what.tree)?;
        Ok(self.user.last_change(tip, what.run_base, changes.iter().map(|change| change.path.as_slice()))?)
    }

    /// Why a candidate must not land although it merges; nothing where it may.
    ///
    /// What a filter of the user's would have turned into something else is never put into the history as it is: the
    /// command that is told adds it through the filter, by the attributes of the person's own checkout.
    pub(crate) fn unfiltered(
        &self,
        run: &RunId,
        task: &TaskId,
        candidate: &Candidate,
    ) -> Result<Option<String>, Error> {
        let found = self.user.unfiltered(&self.store, &candidate.parent, &candidate.tree)?;
        let Some(first) = found.first() else { return Ok(None) };
        let more = found.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        let named: Vec<String> = found.iter().take(PATHS_NAMED).map(|file| quoted(&file.path.to_str_lossy())).collect();
        let (root, workspace) = (self.user.root().display().to_string(), self.home.workspace(run, task));
        Ok(Some(format!(
            "`{}`{more} goes through the filter `{}`, which is never run on an agent's work; to add it by hand: cd {} && \
             cp -i --parents -- {named} {root} && git -C {root} add -- {named}",
            first.path.to_str_lossy(),
            first.driver,
            quoted(&workspace.display().to_string()),
            named = named.join(" "),
            root = quoted(&root),
        )))
    }

    /// The commit by which a task is on the target already; none that has been reverted there since.
    pub(crate) fn landed(&self, run: &RunId, task: &TaskId, target: &str, since: &Oid) -> Result<Option<Oid>, Error> {
        let Some(commit) = self.user.landed_commit(run, task, target, since)? else { return Ok(None) };
        Ok(if self.user.is_reverted(&commit, target)? { None } else { Some(commit) })
    }

    /// Makes the integration worktree hold exactly this commit.
    pub(crate) fn integrate(&self, run_base: &Oid, commit: &Oid) -> Result<PathBuf, Error> {
        Ok(self.integration.checkout(&self.user, &self.store, run_base, commit)?)
    }

    /// Moves the target, or finds out that it was moved before a crash.
    pub(crate) fn move_target(
        &self,
        step: &Move,
        landed: &[Oid],
        run_base: &Oid,
    ) -> Result<Result<(), (LandingCause, String)>, Error> {
        match self.user.target_state(step)? {
            TargetState::Landed => {
                // Moved before a crash, which had no time for this.
                self.user.let_go(&step.run, &step.task)?;
                return Ok(Ok(()));
            }
            TargetState::Moved { tip } => {
                let tip = tip.map_or_else(|| "gone".to_owned(), |tip| format!("at {tip}"));
                return Ok(Err((LandingCause::TargetMoved, format!("`{}` is {tip} now", step.target))));
            }
            TargetState::AtOld => {}
        }
        let tree = self.store.tree(&step.new)?;
        let parent = step.old.clone().map_or_else(|| self.beginning(landed, run_base), Ok)?;
        let candidate = Candidate { commit: step.new.clone(), tree, parent };
        self.user.publish(&self.store, &step.run, &step.task, &candidate)?;
        Ok(match self.user.move_target(&self.store, step)? {
            MoveOutcome::Moved => Ok(()),
            MoveOutcome::NotAtOld { found } => {
                let found = found.map_or_else(|| "gone".to_owned(), |tip| format!("at {tip}"));
                Err((LandingCause::TargetMoved, format!("`{}` is {found} now", step.target)))
            }
            MoveOutcome::CheckedOut { command, why, .. } => {
                // The command is told whole, however long its path is: half of one is of no use.
                let what = format!("`{}` is checked out ({}); run: {command}", step.target, in_one_line(&why));
                Err((LandingCause::TargetCheckedOut, what))
            }
        })
    }

    /// The lock of a checkout that holds the target.
    pub(crate) fn checkout_lock(&self, target: &str) -> Result<Option<PathBuf>, Error> {
        Ok(self.user.checkout_lock(target)?)
    }

    /// Of what was kept last of a task that began on `base`, and before that, the newest that is whole. It is read: what is
    /// damaged and was not met with yet is told.
    pub(crate) fn newest_whole(&self, last: Option<&Oid>, base: &Oid) -> Result<Option<Oid>, Error> {
        let Some(last) = last else { return Ok(None) };
        if !self.store.has_lost() {
            self.store.diff(base, last)?;
        }
        Ok(self.store.newest_whole(last, base)?)
    }

    /// Keeps everything of a task under a ref and removes its workspace.
    ///
    /// What cannot be kept (a file above the limit, a pipe, a damaged commit) stays where it is, in the workspace, and
    /// `clean` says why: giving a task up needs no more than that nothing of it is lost.
    /// A damaged workspace is set aside: it is told where. One that `stays` holds work that git ignores.
    pub(crate) fn discard(
        &self,
        run: &RunId,
        task: &TaskId,
        last: Option<&Oid>,
        stays: bool,
    ) -> Result<Option<Aside>, Error> {
        self.user.let_go(run, task)?;
        if let Some(aside) = Workspace::set_aside(&self.store, run, task, &self.home.workspace(run, task), last)? {
            return Ok(Some(aside));
        }
        let workspace = match Workspace::open(&self.store, run, task) {
            Ok(workspace) => workspace,
            Err(outlast_git::Error::NoWorkspace { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let archived = workspace.archive(&self.store, &self.user, last);
        let removed = archived.and_then(|_| match stays {
            true => Ok(()),
            false => workspace.remove(&self.store, &self.user, &Removal::Safe { users: &users }),
        });
        match removed {
            Err(
                outlast_git::Error::Object { .. }
                | outlast_git::Error::Unpinned { .. }
                | outlast_git::Error::InUse { .. },
            ) => Ok(None),
            other => {
                other?;
                Ok(None)
            }
        }
    }

    /// Where their state is.
    pub(crate) const fn home(&self) -> &RepoHome {
        &self.home
    }

    /// The user's repository.
    pub(crate) const fn user(&self) -> &UserRepo {
        &self.user
    }

    /// Our own repository.
    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }
}

/// How many paths of a conflict are named.
const PATHS_NAMED: usize = 5;

/// What git says of a checkout that it does not touch, in one line: its first sentence, and the files that are listed below
/// that, a tab before each.
fn in_one_line(said: &str) -> String {
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").or(first.strip_prefix("fatal: ")).unwrap_or(first).trim_end();
    let files: Vec<&str> = lines.map_while(|line| line.strip_prefix('\t')).collect();
    if files.is_empty() {
        return first.to_owned();
    }
    let mut named: Vec<String> = files.iter().take(PATHS_NAMED).map(|path| format!("`{path}`")).collect();
    if files.len() > PATHS_NAMED {
        named.push(format!("{} more", files.len() - PATHS_NAMED));
    }
    format!("{}: {}", first.trim_end_matches([':', ' ']), named.join(", "))
}

/// The paths of a conflict, for people.
fn paths(conflict: &Conflict) -> String {
    let mut named: Vec<String> =
        conflict.paths.iter().take(PATHS_NAMED).map(|path| format!("`{}`", path.to_str_lossy())).collect();
    if conflict.paths.len() > PATHS_NAMED {
        named.push(format!("{} more", conflict.paths.len() - PATHS_NAMED));
    }
    named.join(", ")
}

/// Who works in a folder, one phrase each.
pub(crate) fn users(workspace: &Path) -> Vec<String> {
    // No process has an empty marker, so only what is in the folder is found.
    let found = survivors("", workspace).unwrap_or_default();
    found.into_iter().map(|survivor| format!("process {}", survivor.pid)).collect()
}
