//! Setting a damaged workspace aside: what its record says cannot be read, so nobody can tell what of it is kept.
//!
//! Nothing of it is removed. Its tree and its record get other names beside their own, and its place is free for a new one.

use std::path::{Path, PathBuf};

use outlast_core::{Oid, RunId, TaskId};

use crate::lock::Lock;
use crate::workspace::remove::archive_ref;
use crate::workspace::{admin_folder, load_meta, marker_file};
use crate::{Error, Result, Store, Workspace, durable, oid};

/// Where the parts of a damaged workspace are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// Its working tree; nothing where that was gone.
    pub tree: Option<PathBuf>,
    /// What outlast remembered about it, as far as it is there.
    pub record: PathBuf,
}

impl Workspace {
    /// Sets the workspace of a task aside that was made at `path`, where its record is damaged or gone; nothing where it is
    /// whole, was never made, or never was finished. What was kept of it last, `last`, is then kept under
    /// `refs/outlast/archive/<run>/<task>/`, as [`Workspace::archive`] does.
    ///
    /// # Errors
    /// It cannot be read or renamed.
    pub fn set_aside(
        store: &Store,
        run: &RunId,
        task: &TaskId,
        path: &Path,
        last: Option<&Oid>,
    ) -> Result<Option<Aside>> {
        let admin = admin_folder(store, run, task);
        let _lock = Lock::acquire(&admin.with_extension("lock"))?;
        let aside = if_damaged(&admin, path)?;
        if let Some(last) = last.filter(|_| aside.is_some()) {
            store.set_ref(&archive_ref(run, task, last), oid::parse(last)?)?;
        }
        Ok(aside)
    }
}

/// As [`Workspace::set_aside`], for whoever has the lock.
pub(super) fn if_damaged(admin: &Path, path: &Path) -> Result<Option<Aside>> {
    let has_tree = path.symlink_metadata().is_ok();
    match load_meta(admin) {
        // A folder of ours without record and marker had one; what stands at a path without such a folder is not ours. A marker
        // of another path says nothing of what stands at this one.
        Ok(None) if admin.is_dir() && has_tree && !is_marked(admin, path)? => {}
        Ok(_) => return Ok(None),
        Err(Error::DamagedWorkspace { .. }) => {}
        Err(error) => return Err(error),
    }
    let is_free =
        |number: &u32| [path, admin].into_iter().all(|place| named(place, *number).symlink_metadata().is_err());
    let number = (1..=u32::MAX).find(is_free).unwrap_or(u32::MAX);
    let (tree, record) = (named(path, number), named(admin, number));
    // The tree goes first: one that is left without a record would be taken for a stranger's.
    if has_tree {
        rename(path, &tree)?;
    }
    rename(admin, &record)?;
    Ok(Some(Aside { tree: has_tree.then_some(tree), record }))
}

/// Whether the marker of a creation says that what stands at a path is half of something.
pub(super) fn is_marked(admin: &Path, path: &Path) -> Result<bool> {
    Ok(durable::read(&marker_file(admin))?.is_some_and(|marked| marked == path.as_os_str().as_encoded_bytes()))
}

/// The name of what is set aside of `path` for the `number`-th time. No slug has a `~` in it, so no task is called like this.
fn named(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("~damaged-{number}"));
    PathBuf::from(name)
}

/// The trees that were set aside in the place of a workspace, oldest first.
pub fn trees_aside(path: &Path) -> Vec<PathBuf> {
    (1..).map(|number| named(path, number)).take_while(|tree| tree.symlink_metadata().is_ok()).collect()
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).map_err(Error::io("rename", from))?;
    from.parent().map_or(Ok(()), durable::sync_dir)
}
