//! Taking a workspace away: only what is saved elsewhere goes, and only when nobody works in it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use outlast_core::{Oid, RunId, TaskId};

use crate::agent_index::known::Contents;
use crate::agent_repo::AgentRepo;
use crate::beside::left;
use crate::checkpoint::{FILE_LIMIT_DEFAULT, Note};
use crate::copy::{Safe, copy_history};
use crate::inside::Folder;
use crate::raw::Raw;
use crate::scan::{self, Found, ahead::Ahead, index::Index};
use crate::source::{Reader, Source};
use crate::tree::Leaf;
use crate::workspace::made::Made;
use crate::workspace::{Meta, Workspace, create, load_meta, marker_file};
use crate::{Error, Result, Store, UserRepo, durable, oid};

/// Whether everything in a workspace is saved in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinned {
    /// All of it is.
    Yes,
    /// These things are not, one phrase each.
    No(Vec<String>),
}

/// What a workspace must be the same as, to be kept elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Its last checkpoint.
    Checkpoint,
    /// Anything that the store holds: of one that is set aside nobody knows any more which checkpoint was its last.
    Content,
}

/// How a workspace is removed.
pub enum Removal<'a> {
    /// Only when everything is pinned and `users` names nobody.
    Safe {
        /// Who has the folder as working folder or has a file in it open, one phrase each.
        users: &'a dyn Fn(&Path) -> Vec<String>,
    },
    /// Whatever is in it: a person said so.
    Forced,
}

/// A workspace in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Its path.
    pub path: PathBuf,
    /// How much it takes on disk, in bytes; 0 when it is gone.
    pub bytes: u64,
    /// Its record is damaged: the task is told by its slug, the path is that of the record, and the size as well.
    pub is_damaged: bool,
}

/// A workspace as it was found, and what it was compared with.
pub(super) struct Seen {
    reader: Reader,
    root: Folder,
    index: Index,
    agent: Option<AgentRepo>,
    staged: std::result::Result<Option<Contents>, String>,
    pub(super) found: Found,
}

impl Workspace {
    /// Tells whether the tree as it is now, and every commit of the agent's, is saved in the store.
    ///
    /// # Errors
    /// The tree or the store cannot be read.
    pub fn pinned(&self, store: &Store, user: &UserRepo) -> Result<Pinned> {
        let _lock = self.lock()?;
        self.pinned_now(store, user, Measure::Checkpoint)
    }

    pub(super) fn pinned_now(&self, store: &Store, user: &UserRepo, measure: Measure) -> Result<Pinned> {
        let Seen { reader, root, index, agent, staged, found } = self.seen(store)?;
        let batch = store.objects().batch()?;
        let mut open: Vec<String> = match measure {
            Measure::Checkpoint => {
                let made = Made::load(&self.admin)?;
                made.without(&found.edits).map(|path| format!("`{path}` differs from the last checkpoint")).collect()
            }
            Measure::Content => {
                let is_kept = |leaf: &Option<Leaf>| leaf.is_none_or(|leaf| batch.holds(&leaf.id));
                let edits = found.edits.iter().filter(|(_, leaf)| !is_kept(leaf));
                edits.map(|(path, _)| format!("`{path}` is kept nowhere else")).collect()
            }
        };
        if measure == Measure::Checkpoint
            && open.is_empty()
            && Raw::load(&self.admin)?.updated(&found) != Raw::load(&self.admin)?
        {
            open.push("the line ends or the encoding of a file differ from the last checkpoint".to_owned());
        }
        open.extend(found.notes.iter().filter_map(|note| match note {
            Note::Skipped { path, .. } => Some(format!("`{path}` is in no checkpoint")),
            _ => None,
        }));
        for note in &found.notes {
            if let Note::NestedRepository(path) = note
                && !self.repositories(&root, &reader, FILE_LIMIT_DEFAULT).is_kept(path.as_ref())?
            {
                open.push(format!("`{path}/.git` differs from the last checkpoint"));
            }
        }
        if let Ok(Some(staged)) = &staged {
            for path in staged.against(&index).only_here(&reader)? {
                open.push(format!("what is staged of `{path}` is in no checkpoint"));
            }
        }
        if agent.as_ref().is_some_and(|agent| !agent.has_plain_refs()) {
            open.push("its repository keeps refs in a format that is not read".to_owned());
        }
        for (name, id) in self.own_tips(store, user, agent.as_ref())? {
            if !batch.holds(&id) {
                open.push(format!("commit {id} of {name} is not in the store"));
            }
        }
        if let Some(agent) = &agent {
            let only_here = agent.been_at().into_iter().filter(|id| !batch.holds(id) && agent.has_alone(*id));
            open.extend(only_here.map(|id| format!("commit {id}, at which HEAD has been, is not in the store")));
        }
        Ok(if open.is_empty() { Pinned::Yes } else { Pinned::No(open) })
    }

    /// The workspace as it is now, against its last checkpoint. Nothing is stored.
    pub(super) fn seen(&self, store: &Store) -> Result<Seen> {
        let reader = store.reader();
        let base = oid::parse(&self.meta.base)?;
        let root = self.root()?;
        let index = Index::open(&self.admin, &reader, reader.tree_of(base)?)?;
        let mut hash = |data: &[u8]| {
            gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, data)
                .map_err(|e| Error::object("new", e))
        };
        let agent = AgentRepo::open(&root, reader.clone(), self.admin.join("packs"));
        let batch = store.objects().batch()?;
        let head = agent.as_ref().and_then(AgentRepo::head).filter(|head| batch.holds(head));
        let staged = agent.as_ref().map_or(Ok(None), |agent| agent.staged(&self.admin, &index));
        let of_agent = agent.as_ref().map(|repo| scan::Agent { repo, index: &staged });
        let found = self.scan(
            &root,
            &index,
            &Ahead::look(&root, &index),
            &reader,
            of_agent,
            head,
            FILE_LIMIT_DEFAULT,
            &mut hash,
        )?;
        Ok(Seen { reader, root, index, agent, staged, found })
    }

    /// The commits of the agent's repository that are not the user's: branches, tags, HEAD, stash entries, and what was left
    /// on a detached HEAD.
    fn own_tips(&self, store: &Store, user: &UserRepo, agent: Option<&AgentRepo>) -> Result<Vec<(String, ObjectId)>> {
        let Some(agent) = agent else { return Ok(Vec::new()) };
        let mut tips: Vec<(String, ObjectId)> = agent.refs().into_iter().collect();
        tips.extend(agent.head().map(|id| ("HEAD".to_owned(), id)));
        for name in agent.names("worktrees") {
            let head = agent.linked(&name).and_then(|worktree| worktree.head());
            tips.extend(head.map(|id| (format!("the worktree `{name}`"), id)));
        }
        tips.extend(agent.stashes().into_iter().map(|id| ("stash".to_owned(), id)));
        let left = left::all(agent).into_iter().filter(|id| !user.holds(&oid::of(*id)));
        tips.extend(left.map(|id| ("a detached HEAD".to_owned(), id)));
        let shown = String::from_utf8_lossy(&store.tips(&self.meta.run)?.unwrap_or_default()).into_owned();
        let base = oid::parse(&self.meta.base)?;
        let pins = user.pins()?;
        tips.retain(|(_, id)| *id != base && !pins.contains(id) && !shown.contains(&id.to_string()));
        Ok(tips)
    }

    /// Copies everything the agent committed anywhere into the store and keeps it, with the checkpoint `last`, under
    /// `refs/outlast/archive/<run>/<task>/`: a discarded task can be brought back.
    ///
    /// # Errors
    /// A commit of the agent's is damaged, or the store cannot be written.
    pub fn archive(&self, store: &Store, user: &UserRepo, last: Option<&Oid>) -> Result<Vec<Oid>> {
        let _lock = self.lock()?;
        let root = self.root()?;
        let agent = AgentRepo::open(&root, store.reader(), self.admin.join("packs"));
        let mut kept: Vec<ObjectId> = last.map(oid::parse).transpose()?.into_iter().collect();
        if let Some(agent) = &agent {
            let mut batch = store.objects().batch()?;
            let mut safe = Safe::new(oid::parse(&self.meta.base)?, user);
            for (_, id) in self.own_tips(store, user, Some(agent))? {
                let mut buf = Vec::new();
                // A tag object of the agent's is kept as the commit it stands for.
                if agent.read(id, &mut buf)? == Some(gix::objs::Kind::Commit) {
                    copy_history(agent, &mut batch, id, &mut safe)?;
                    kept.push(id);
                }
            }
            // Newest first: what lies before one that is copied is copied with it, and needs no ref of its own.
            for id in agent.been_at() {
                if !batch.holds(&id) && agent.has_alone(id) {
                    copy_history(agent, &mut batch, id, &mut safe)?;
                    kept.push(id);
                }
            }
            batch.finish()?;
        }
        kept.sort_unstable();
        kept.dedup();
        for id in &kept {
            store.set_ref(&archive_ref(&self.meta.run, &self.meta.task, &oid::of(*id)), *id)?;
        }
        Ok(kept.into_iter().map(oid::of).collect())
    }

    /// Removes the workspace. What the agent committed beside its HEAD is saved by [`Workspace::archive`], called first.
    ///
    /// # Errors
    /// [`Error::Unpinned`] and [`Error::InUse`] unless forced; [`Error::Io`].
    pub fn remove(self, store: &Store, user: &UserRepo, how: &Removal<'_>) -> Result<()> {
        let _lock = self.lock()?;
        let path = &self.meta.path;
        if let Removal::Safe { users } = how
            && path.exists()
        {
            if let Pinned::No(what) = self.pinned_now(store, user, Measure::Checkpoint)? {
                return Err(Error::Unpinned { path: path.clone(), what });
            }
            let by = users(path);
            if !by.is_empty() {
                return Err(Error::InUse { path: path.clone(), by });
            }
        }
        // From here on the path is half of something: the marker of a creation says so to whoever comes next.
        use std::os::unix::ffi::OsStrExt;
        durable::write(&marker_file(&self.admin), path.as_os_str().as_bytes(), 0o600)?;
        durable::remove(&super::meta_file(&self.admin))?;
        remove_tree(path)?;
        create::forget(&self.admin)
    }
}

/// Where a commit of a task is kept that was given up.
pub(super) fn archive_ref(run: &RunId, task: &TaskId, commit: &Oid) -> String {
    format!("refs/outlast/archive/{run}/{}/{commit}", task.slug())
}

/// Removes a workspace that stands where another one of the same task should be made.
pub(super) fn replace_if_pinned(workspace: &Workspace, store: &Store, user: &UserRepo) -> Result<()> {
    match workspace.pinned_now(store, user, Measure::Checkpoint)? {
        Pinned::Yes => remove_tree(&workspace.meta.path),
        Pinned::No(what) => Err(Error::Unpinned { path: workspace.meta.path.clone(), what }),
    }
}

/// Removes a tree or file, also where its owner took away the permission to; a symlink is removed, never followed.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    let remove = || match path.symlink_metadata()?.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    };
    let attempt = || match remove() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    match attempt() {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            make_removable(path);
            attempt().map_err(Error::io("remove", path))
        }
        other => other.map_err(Error::io("remove", path)),
    }
}

/// Gives the owner all permissions on every folder; what cannot be changed shows when the removal fails.
fn make_removable(folder: &Path) {
    if !folder.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        return;
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).ok();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        make_removable(&entry.path());
    }
}

impl Store {
    /// Every workspace of every run, with its size; not what was set aside.
    ///
    /// # Errors
    /// The state folder cannot be read.
    pub fn workspaces(&self) -> Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for run in folders(&self.state().join("workspaces"))? {
            for admin in folders(&run)? {
                if admin.extension().is_none_or(|extension| extension != "d") {
                    continue;
                }
                listed.extend(match load_meta(&admin) {
                    Ok(meta) => meta.map(of_record),
                    Err(Error::DamagedWorkspace { .. }) => Some(damaged(&run, admin)),
                    Err(error) => return Err(error),
                });
            }
        }
        listed.sort_by(|a, b| (&a.run, &a.task).cmp(&(&b.run, &b.task)));
        Ok(listed)
    }
}

impl Store {
    /// Every workspace whose record can be read, of every run.
    pub(crate) fn whole_workspaces(&self) -> Result<Vec<Workspace>> {
        let mut found = Vec::new();
        for run in folders(&self.state().join("workspaces"))? {
            for admin in folders(&run)? {
                let is_one = admin.extension().is_some_and(|extension| extension == "d");
                if is_one && let Ok(Some(meta)) = load_meta(&admin) {
                    found.push(Workspace { admin, meta, aside: None, restored: None });
                }
            }
        }
        Ok(found)
    }
}

fn of_record(meta: Meta) -> Listed {
    Listed { bytes: size_of(&meta.path), run: meta.run, task: meta.task, path: meta.path, is_damaged: false }
}

/// A workspace of which its folders alone tell.
fn damaged(run: &Path, admin: PathBuf) -> Listed {
    let name = |name: Option<&std::ffi::OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    let (run, task) = (RunId::new(name(run.file_name())), TaskId::new(name(admin.file_stem())));
    Listed { run, task, bytes: size_of(&admin), path: admin, is_damaged: true }
}

pub(super) fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::io("read", path))?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

/// The space a tree takes on disk, in bytes; what cannot be read counts as nothing.
pub fn size_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    let own = meta.blocks() * 512;
    if !meta.is_dir() {
        return own;
    }
    own + std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| size_of(&e.path())).sum::<u64>()
}
