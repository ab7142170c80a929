//! Making a workspace, so that a crash at any point leaves nothing a second call cannot mend.
//!
//! A marker is written before the path appears and removed after the workspace is whole. An agent starts only then: a
//! path with a marker holds nothing of an agent's and is made anew; one whose record is damaged or gone is set aside; a path
//! of which nothing is known is not ours.

use std::collections::BTreeMap;
use std::path::Path;

use gix::ObjectId;

use crate::agent_repo::AgentRepo;
use crate::fill::Fill;
use crate::lock::Lock;
use crate::scan::{self, ahead::Ahead, index::Index};
use crate::source::Source;
use crate::workspace::restore::{Head, Restored};
use crate::workspace::skeleton::Skeleton;
use crate::workspace::{
    Dirt, Meta, Report, Spec, Workspace, admin_folder, aside, filters, include, load_meta, marker_file, remove,
    save_meta, skeleton,
};
use crate::{Error, Result, Store, UserRepo, durable, oid};

impl Workspace {
    /// Makes the workspace of a task, or finds it when it is there already.
    ///
    /// The run must be pinned ([`UserRepo::pin_base`]). A workspace of the same task from another base is replaced when
    /// everything in it is saved elsewhere. One whose record is damaged or gone is set aside first ([`Workspace::aside`]).
    ///
    /// # Errors
    /// [`Error::InsideRepository`]; [`Error::Occupied`] when something that is not ours stands at the path; [`Error::Unpinned`] when a workspace
    /// from another base holds unsaved work; [`Error::Git`] when the tree cannot be filled.
    pub fn create(user: &UserRepo, store: &Store, spec: &Spec) -> Result<Self> {
        let real = spec.path.ancestors().find_map(|above| above.canonicalize().ok());
        if real.is_some_and(|real| real.starts_with(user.root())) {
            return Err(Error::InsideRepository { path: spec.path.clone(), root: user.root().to_owned() });
        }
        let admin = admin_folder(store, &spec.run, &spec.task);
        let lock = Lock::acquire(&admin.with_extension("lock"))?;
        let aside = aside::if_damaged(&admin, &spec.path)?;
        if let Some(meta) = load_meta(&admin)? {
            let workspace = Self { admin: admin.clone(), meta, aside: None, restored: None };
            let is_there = workspace.meta.path.join(".git").is_dir();
            if is_there && workspace.meta.base == spec.base && workspace.meta.path == spec.path {
                return Ok(workspace);
            }
            if workspace.meta.path.exists() {
                remove::replace_if_pinned(&workspace, store, user)?;
            }
            forget(&admin)?;
        }
        let marker = marker_file(&admin);
        // Garbage in it may name anything: only what is to be made here is removed.
        if aside::is_marked(&admin, &spec.path)? {
            remove::remove_tree(&spec.path)?;
        }
        if spec.path.symlink_metadata().is_ok() {
            return Err(Error::Occupied(spec.path.clone()));
        }
        durable::write(&marker, path_bytes(&spec.path), 0o600)?;
        let restored = spec.restore.as_ref().map(|asked| store.newest_whole(asked, &spec.base)).transpose()?.flatten();
        let restored = restored.as_ref().map(oid::parse).transpose()?;
        let meta = make(user, store, spec, restored, &admin, &lock)?;
        save_meta(&admin, &meta)?;
        durable::remove(&marker)?;
        Ok(Self { admin, meta, aside, restored })
    }
}

/// Forgets a workspace whose path is gone.
pub(super) fn forget(admin: &Path) -> Result<()> {
    match std::fs::remove_dir_all(admin) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io("remove", admin)(e)),
    }
}

fn make(
    user: &UserRepo,
    store: &Store,
    spec: &Spec,
    restore: Option<ObjectId>,
    admin: &Path,
    lock: &Lock,
) -> Result<Meta> {
    let reader = store.reader();
    let base = oid::parse(&spec.base)?;
    let files = restore.unwrap_or(base);
    let restored = restore.map(|files| Restored::load(&reader, files)).transpose()?;
    let mut meta = Meta {
        run: spec.run.clone(),
        task: spec.task.clone(),
        path: spec.path.clone(),
        base: spec.base.clone(),
        branch: format!("outlast/{}", spec.task.slug()),
        settings: user.settings()?,
        dirt: Vec::new(),
        report: Report::default(),
    };
    std::fs::create_dir_all(&spec.path).map_err(Error::io("create", &spec.path))?;
    let tips = store.tips(&spec.run)?.unwrap_or_default();
    let (head, refs, staged) = match &restored {
        None => (Head { branch: Some(meta.branch.clone()), commit: Some(base) }, BTreeMap::new(), None),
        Some(restored) => (restored.head(base, &meta.branch)?, restored.refs()?, restored.index()?),
    };
    let tree = reader.tree_of(files)?;
    let staged = match (staged, head.commit) {
        (Some(staged), _) => staged,
        (None, Some(head)) => reader.tree_of(head)?,
        (None, None) => oid::empty_tree(),
    };
    Skeleton { path: &spec.path, settings: &meta.settings, head: &head, refs: &refs, tips: &tips }
        .write(user, store)?;

    let index = Index::path_for(admin, tree);
    let fill = Fill { store, path: &spec.path, settings: &meta.settings, index: &index, lock };
    fill.populate(oid::parse(&spec.trusted)?, files)?;
    skeleton::share_index(store, &spec.path, &index, (staged != tree).then_some(staged))?;
    if let Some(restored) = restored {
        restored.bring_back(store, &spec.path)?;
    }

    let copied = include::copy(user, &spec.path)?;
    meta.report.included = copied.copied;
    meta.report.not_included = copied.left_out;
    let workspace = Workspace { admin: admin.to_owned(), meta, aside: None, restored: None };
    let dirt = baseline(&workspace, store)?;
    let mut meta = workspace.meta;
    meta.report.filtered = dirt.filtered;
    meta.report.dirty = dirt.paths.len();
    meta.dirt = dirt.paths;
    meta.report.hooks_absent = user.relative_hooks().filter(|path| !spec.path.join(path).is_dir()).map(str::to_owned);
    Ok(meta)
}

struct Baseline {
    paths: Vec<Dirt>,
    filtered: std::collections::BTreeMap<String, usize>,
}

/// Looks at the fresh tree once: whatever differs from the commit now is not the agent's doing.
fn baseline(workspace: &Workspace, store: &Store) -> Result<Baseline> {
    let reader = store.reader();
    let root = workspace.root()?;
    let base_tree = reader.tree_of(oid::parse(&workspace.meta.base)?)?;
    let index = Index::open(&workspace.admin, &reader, base_tree)?;
    let mut hash = |data: &[u8]| {
        gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, data).map_err(|e| Error::object("new", e))
    };
    let agent = AgentRepo::open(&root, reader.clone(), workspace.admin.join("packs"));
    let staged = agent.as_ref().map_or(Ok(None), |agent| agent.staged(&workspace.admin, &index));
    let seen = agent.as_ref().map(|repo| scan::Agent { repo, index: &staged });
    let found = workspace.scan(&root, &index, &Ahead::look(&root, &index), &reader, seen, None, u64::MAX, &mut hash)?;
    let mut edits = found.edits;
    let filtered = filters::find(&root, &workspace.meta.settings, &index, &mut edits)?;
    let paths = edits.into_iter().map(|(path, leaf)| Dirt::new(path, leaf)).collect();
    Ok(Baseline { paths, filtered })
}

fn path_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}
