//! What the store and the workspaces hold, for commands that look or tidy up and need no engine.

use std::path::PathBuf;

use outlast_core::run::Run;
use outlast_core::task::Task;
use outlast_core::{AttemptId, Core, Oid, RunId, TaskId};
use outlast_git::{Kind, Pinned, Removal, SetAside, UserRepo, Workspace};

use crate::error::Error;
use crate::home::RepoHome;
use crate::notes;
use crate::repositories::{Repositories, users};

/// The repositories of one home, opened to be looked at.
pub struct Kept {
    git: Repositories,
    home: RepoHome,
}

/// One changed path, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The path; bytes that are no text are replaced.
    pub path: String,
    /// `added`, `modified`, `deleted` or `type_changed`.
    pub kind: &'static str,
    /// Whether it may land.
    pub in_scope: bool,
    /// Whether it is in a worktree that the agent has made in its workspace.
    pub in_worktree: bool,
    /// Lines added and removed, where it is text.
    pub lines: Option<(u64, u64)>,
}

/// A task's folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Whose.
    pub run: RunId,
    /// Whose.
    pub task: TaskId,
    /// The working tree.
    pub path: PathBuf,
    /// How large the working tree is.
    pub bytes: u64,
}

impl Kept {
    /// Opens the store of a repository.
    ///
    /// # Errors
    /// Where there is none, or it is another repository's.
    pub fn open(home: &RepoHome, repository: UserRepo) -> Result<Self, Error> {
        Ok(Self { git: Repositories::open(home, repository)?, home: home.clone() })
    }

    /// Looks all of the store through, sets aside what is damaged and puts back what anybody still has of that. Whether there
    /// was anything.
    ///
    /// # Errors
    /// Where the store cannot be read or written.
    pub fn look_through(&self, core: &Core) -> Result<bool, Error> {
        self.git.look_through(core)
    }

    /// What differs between two commits, and what of it is in scope.
    ///
    /// # Errors
    /// Where the store does not hold them.
    pub fn changes(&self, base: &Oid, end: &Oid, writes: &[String]) -> Result<Vec<Changed>, Error> {
        let split = self.git.split(base, end, writes)?;
        let outside = split.out_of_scope.iter().chain(split.blocked.iter().map(|(change, _)| change));
        let all = split.in_scope.iter().map(|change| (change, true, false));
        let all = all.chain(outside.map(|change| (change, false, false)));
        let all = all.chain(split.in_worktrees.iter().map(|change| (change, false, true)));
        let counts = self.git.store().line_counts(base, end)?;
        let changed = |(change, in_scope, in_worktree): (&outlast_git::Change, bool, bool)| {
            let path = change.path_lossy();
            Changed { lines: counts.get(&path).copied(), path, kind: kind(change), in_scope, in_worktree }
        };
        let mut changes: Vec<Changed> = all.map(changed).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// The patch between two commits, as git prints it.
    ///
    /// # Errors
    /// Where git fails.
    pub fn patch(&self, base: &Oid, end: &Oid) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.git.store().patch(base, end)?).into_owned())
    }

    /// Every workspace there is.
    ///
    /// # Errors
    /// Where they cannot be listed.
    pub fn rooms(&self) -> Result<Vec<Room>, Error> {
        let listed = self.git.store().workspaces()?.into_iter();
        Ok(listed
            .map(|l| {
                // The record would say where its tree is; it is where trees of its name are.
                let path = if l.is_damaged { self.home.workspace(&l.run, &l.task) } else { l.path };
                let bytes = if l.is_damaged { outlast_git::size_of(&path) } else { l.bytes };
                Room { run: l.run, task: l.task, path, bytes }
            })
            .collect())
    }

    /// Every damaged workspace that was set aside.
    ///
    /// # Errors
    /// Where they cannot be listed.
    pub fn set_aside(&self) -> Result<Vec<SetAside>, Error> {
        Ok(outlast_git::set_aside(&self.home.store(), &self.home.workspaces())?)
    }

    /// What of one that was set aside is kept nowhere else, or who works in it, for people; nothing where it can go.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn unsaved_aside(&self, aside: &SetAside, base: &Oid) -> Result<Option<String>, Error> {
        if let Pinned::No(what) = aside.pinned(self.git.store(), self.git.user(), base)? {
            return Ok(what.into_iter().next());
        }
        let user = aside.tree.iter().flat_map(|tree| users(tree)).next();
        Ok(user.map(|user| format!("{user} works in it")))
    }

    /// Keeps under refs what an agent committed beside its HEAD; what cannot be kept, [`Kept::unsaved`] tells.
    ///
    /// # Errors
    /// Where it cannot be read, or the store cannot be written.
    pub fn keep_commits(&self, room: &Room) -> Result<(), Error> {
        let workspace = Workspace::open(self.git.store(), &room.run, &room.task)?;
        match workspace.archive(self.git.store(), self.git.user(), None) {
            Ok(_) | Err(outlast_git::Error::Object { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What of a workspace is kept nowhere else, for people; nothing where all of it is.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn unsaved(&self, room: &Room) -> Result<Option<String>, Error> {
        self.unsaved_of(&room.run, &room.task)
    }

    fn unsaved_of(&self, run: &RunId, task: &TaskId) -> Result<Option<String>, Error> {
        let workspace = Workspace::open(self.git.store(), run, task)?;
        Ok(match workspace.pinned(self.git.store(), self.git.user())? {
            Pinned::Yes => None,
            Pinned::No(what) => Some(what.first().cloned().unwrap_or_else(|| "it holds unsaved work".to_owned())),
        })
    }

    /// What of a task's work git ignores, and its workspace alone holds, for people; nothing where there is none.
    pub fn ignored_work(&self, run: &Run, task: &Task) -> Option<String> {
        crate::left_out::ignored_work(&self.home, run, task)
    }

    /// Who works in a workspace, for people; nothing where nobody does.
    pub fn in_use(&self, room: &Room) -> Option<String> {
        users(&room.path).first().map(|user| format!("{user} works in it"))
    }

    /// The ref under which the work of a discarded task is kept, as its last attempt left it; nothing where it never began.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn archive(&self, last: &AttemptId) -> Result<Option<String>, Error> {
        let store = self.git.store();
        let folder = format!("refs/outlast/archive/{}/{}/", last.run, last.task.slug());
        let end = store.last_checkpoint(last)?.map(|commit| format!("{folder}{commit}"));
        let kept: Vec<String> = store.refs()?.into_iter().map(|(name, _)| name).collect();
        let of_the_end = kept.iter().find(|name| Some(*name) == end.as_ref());
        Ok(of_the_end.or_else(|| kept.iter().find(|name| name.starts_with(&folder))).cloned())
    }

    /// What of the work of a discarded task could not be kept, in words, since our store has lost it.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn lost(&self, run: &Run, task: &Task) -> Result<Option<String>, Error> {
        let last = AttemptId { run: run.id.clone(), task: task.id.clone(), number: task.attempts };
        let Some(last) = self.git.store().last_checkpoint(&last)?.or_else(|| task.checkpoint.clone()) else {
            return Ok(None);
        };
        let whole = self.git.store().newest_whole(&last, task.base.as_ref().unwrap_or(&run.spec.base))?;
        Ok((whole.as_ref() != Some(&last)).then(|| notes::lost_of_given_up(&last, whole.as_ref())))
    }

    /// Why the workspace of a task that is discarded is still there; nothing where it is gone.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn stays(&self, run: &RunId, task: &TaskId) -> Result<Option<String>, Error> {
        let path = self.home.workspace(run, task);
        if !path.is_dir() {
            let damaged = |tree: PathBuf| format!("{}: its record was damaged; it is yours to remove", tree.display());
            return Ok(outlast_git::trees_aside(&path).pop().map(damaged));
        }
        let why = match self.unsaved_of(run, task)? {
            Some(why) => why,
            None => match users(&path).first() {
                Some(user) => format!("{user} works in it"),
                None => "it can go now: outlast clean".to_owned(),
            },
        };
        Ok(Some(format!("{}: {why}", path.display())))
    }

    /// Removes a workspace, and the home and temporary files of its task.
    ///
    /// # Errors
    /// Where something in it is kept nowhere else, or is in use.
    pub fn remove(&self, room: &Room) -> Result<(), Error> {
        let workspace = Workspace::open(self.git.store(), &room.run, &room.task)?;
        workspace.remove(self.git.store(), self.git.user(), &Removal::Safe { users: &users })?;
        self.git.user().let_go(&room.run, &room.task)?;
        self.remove_homes(&room.run, &room.task)
    }

    /// The home and temporary files of a task whose workspace is gone: a clean that was killed leaves them, and no list
    /// of workspaces names them.
    pub fn homes(&self, run: &RunId, task: &TaskId) -> Vec<PathBuf> {
        let found = self.folders(run, task).into_iter().filter(|folder| folder.is_dir());
        if self.home.workspace(run, task).is_dir() { Vec::new() } else { found.collect() }
    }

    /// Removes the home and temporary files of a task.
    ///
    /// # Errors
    /// Where one of them cannot be removed.
    pub fn remove_homes(&self, run: &RunId, task: &TaskId) -> Result<(), Error> {
        for folder in self.folders(run, task) {
            match std::fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::at(&folder, error)),
                _ => {}
            }
        }
        Ok(())
    }

    fn folders(&self, run: &RunId, task: &TaskId) -> [PathBuf; 2] {
        [self.home.task_home(run, task), self.home.temp(run, task)]
    }
}

fn kind(change: &outlast_git::Change) -> &'static str {
    let is_file = |kind: Kind| matches!(kind, Kind::File | Kind::Executable);
    match (&change.old, &change.new) {
        (None, _) => "added",
        (_, None) => "deleted",
        (Some(old), Some(new)) if is_file(old.kind) != is_file(new.kind) => "type_changed",
        _ => "modified",
    }
}
