//! A workspace: a task's working tree and its own small repository, which borrows the user's objects.
//!
//! The agent owns everything below its path. What outlast must remember about it (base, cache, what was copied in) lies
//! in the store's state folder, out of the agent's reach.

mod anew;
mod aside;
mod create;
mod filters;
pub(crate) mod include;
mod leftover;
mod made;
mod mend;
pub(crate) mod remove;
pub(crate) mod restore;
pub(crate) mod skeleton;
mod unlock;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::BString;
use outlast_core::{Oid, RunId, TaskId};
use serde::{Deserialize, Serialize};

use crate::inside::Folder;
use crate::lock::Lock;
use crate::settings::Settings;
use crate::source::Reader;
use crate::tree::Leaf;
use crate::{Error, Kind, Result, Store, durable, nested, oid};

pub use aside::{Aside, trees_aside};
pub use leftover::{SetAside, damaged_records, set_aside};
pub use remove::{Listed, Pinned, Removal, size_of};

/// What workspace to make.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The run.
    pub run: RunId,
    /// The task; its slug names the agent's branch.
    pub task: TaskId,
    /// Where: an absolute path outside the user's repository, stable for the task's whole life.
    pub path: PathBuf,
    /// The commit the task starts from: the run's base, or what [`Store::compose`] made.
    pub base: Oid,
    /// The commit of the user's whose filters may run while the tree is filled: the run's pinned base.
    pub trusted: Oid,
    /// A checkpoint to bring back when the workspace is not there any more; where it is lost, one before it.
    pub restore: Option<Oid>,
}

/// A task's workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub(crate) admin: PathBuf,
    pub(crate) meta: Meta,
    /// What stood in its place, damaged, when it was made just now.
    pub(crate) aside: Option<Aside>,
    /// The checkpoint that it was brought back from just now.
    pub(crate) restored: Option<ObjectId>,
}

/// What a person should know about a new workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Files copied from the user's checkout because `.worktreeinclude` names them.
    pub included: Vec<Vec<u8>>,
    /// Files that `.worktreeinclude` names and that were not copied: symlinks that leave the tree, or what is no file.
    pub not_included: Vec<Vec<u8>>,
    /// The hooks folder that the user configured and that this tree does not have.
    pub hooks_absent: Option<String>,
    /// How many files have a filter driver, by driver; those of `lfs` are pointer files.
    pub filtered: std::collections::BTreeMap<String, usize>,
    /// How many paths differed from the base right after creation: not the agent's doing.
    pub dirty: usize,
}

/// What outlast remembers about a workspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) run: RunId,
    pub(crate) task: TaskId,
    pub(crate) path: PathBuf,
    pub(crate) base: Oid,
    pub(crate) branch: String,
    pub(crate) settings: Settings,
    pub(crate) dirt: Vec<Dirt>,
    pub(crate) report: Report,
}

impl Meta {
    /// The copied files, which no checkpoint takes.
    pub(crate) fn included(&self) -> BTreeSet<BString> {
        self.report.included.iter().cloned().map(BString::from).collect()
    }
}

/// A path that differed from the base right after creation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dirt {
    pub(crate) path: Vec<u8>,
    /// What stood there: kind and content; `None` when nothing did.
    pub(crate) found: Option<(DirtKind, Oid)>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DirtKind {
    File,
    Executable,
    Link,
}

impl Dirt {
    pub(crate) fn new(path: BString, leaf: Option<Leaf>) -> Self {
        let found = leaf.map(|leaf| {
            let kind = match leaf.kind {
                Kind::File | Kind::Gitlink => DirtKind::File,
                Kind::Executable => DirtKind::Executable,
                Kind::Link => DirtKind::Link,
            };
            (kind, oid::of(leaf.id))
        });
        Self { path: path.into(), found }
    }

    pub(crate) fn leaf(&self) -> Result<Option<Leaf>> {
        let Some((kind, id)) = &self.found else { return Ok(None) };
        let kind = match kind {
            DirtKind::File => Kind::File,
            DirtKind::Executable => Kind::Executable,
            DirtKind::Link => Kind::Link,
        };
        Ok(Some(Leaf { kind, id: oid::parse(id)? }))
    }
}

impl Workspace {
    /// Finds the workspace of a task.
    ///
    /// # Errors
    /// [`Error::NoWorkspace`], also when its creation never finished; [`Error::DamagedWorkspace`].
    pub fn open(store: &Store, run: &RunId, task: &TaskId) -> Result<Self> {
        let admin = admin_folder(store, run, task);
        let missing = || Error::NoWorkspace { run: run.to_string(), task: task.to_string() };
        let meta = load_meta(&admin)?.ok_or_else(missing)?;
        Ok(Self { admin, meta, aside: None, restored: None })
    }

    /// The root of the working tree.
    pub fn path(&self) -> &Path {
        &self.meta.path
    }

    /// The commit the task started from.
    pub fn base(&self) -> &Oid {
        &self.meta.base
    }

    /// The agent's branch, such as `outlast/payment-client`.
    pub fn branch(&self) -> &str {
        &self.meta.branch
    }

    /// What was noted at creation.
    pub fn report(&self) -> &Report {
        &self.meta.report
    }

    /// Where the damaged workspace is kept in whose place this one was made just now.
    pub fn aside(&self) -> Option<&Aside> {
        self.aside.as_ref()
    }

    /// The checkpoint that it was brought back from when it was made just now: the newest one that is whole, of that which was
    /// asked for and those before it.
    pub fn restored(&self) -> Option<Oid> {
        self.restored.map(oid::of)
    }

    /// Where repositories in its tree are looked for.
    pub(crate) fn repositories<'a>(&'a self, root: &'a Folder, reader: &'a Reader, limit: u64) -> nested::Tree<'a> {
        nested::Tree { root, path: &self.meta.path, admin: &self.admin, reader, limit }
    }

    pub(crate) fn lock(&self) -> Result<Lock> {
        Lock::acquire(&self.admin.with_extension("lock"))
    }
}

/// Where outlast keeps what it remembers about a workspace.
pub(crate) fn admin_folder(store: &Store, run: &RunId, task: &TaskId) -> PathBuf {
    // The suffix keeps `a.lock`, the lock of task `a`, apart from a task of that name.
    store.state().join("workspaces").join(run.as_str()).join(format!("{}.d", task.slug()))
}

fn meta_file(admin: &Path) -> PathBuf {
    admin.join("workspace.json")
}

fn marker_file(admin: &Path) -> PathBuf {
    admin.join("creating")
}

fn load_meta(admin: &Path) -> Result<Option<Meta>> {
    let path = meta_file(admin);
    let Some(bytes) = durable::read(&path)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| Error::DamagedWorkspace { path, why: e.to_string() })
}

fn save_meta(admin: &Path, meta: &Meta) -> Result<()> {
    let path = meta_file(admin);
    let bytes = serde_json::to_vec_pretty(meta).map_err(|e| Error::State { path: path.clone(), why: e.to_string() })?;
    durable::write(&path, &bytes, 0o600)
}
