//! What is left of damaged workspaces: what was set aside, which goes once all of it is kept elsewhere, and the records that
//! cannot be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_core::{Oid, RunId, TaskId};

use crate::workspace::remove::{Measure, folders, remove_tree};
use crate::workspace::{Meta, Report, load_meta};
use crate::{Error, Pinned, Result, Store, UserRepo, Workspace};

/// What of a name says that it was set aside.
const ASIDE: &str = "~damaged-";

/// A damaged workspace that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The run.
    pub run: RunId,
    /// The task, told by its slug.
    pub task: TaskId,
    /// Which of those of this task.
    pub number: u32,
    /// Its working tree, where there is one.
    pub tree: Option<PathBuf>,
    /// What outlast remembered about it, as far as it is there.
    pub record: Option<PathBuf>,
}

/// Everything that was set aside of the workspaces in `trees`, by the records in the store at `store` as well.
///
/// # Errors
/// A folder cannot be read.
pub fn set_aside(store: &Path, trees: &Path) -> Result<Vec<SetAside>> {
    let mut found: BTreeMap<(RunId, TaskId, u32), SetAside> = BTreeMap::new();
    for (root, ending, is_tree) in [(records(store), ".d", false), (trees.to_owned(), "", true)] {
        for run in folders(&root)? {
            for path in folders(&run)? {
                let Some((task, number)) = parsed(&name(&path), ending) else { continue };
                let key = (RunId::new(name(&run)), task, number);
                let (run, task, number) = key.clone();
                let aside = found.entry(key).or_insert(SetAside { run, task, number, tree: None, record: None });
                *(if is_tree { &mut aside.tree } else { &mut aside.record }) = Some(path);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The records of workspaces that cannot be read: run, slug of the task, and the folder.
///
/// # Errors
/// A folder cannot be read.
pub fn damaged_records(store: &Path) -> Result<Vec<(RunId, TaskId, PathBuf)>> {
    let mut found = Vec::new();
    for run in folders(&records(store))? {
        for admin in folders(&run)? {
            let is_record = admin.extension().is_some_and(|extension| extension == "d");
            if is_record && matches!(load_meta(&admin), Err(Error::DamagedWorkspace { .. })) {
                let task = admin.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                found.push((RunId::new(name(&run)), TaskId::new(task), admin));
            }
        }
    }
    found.sort();
    Ok(found)
}

impl SetAside {
    /// Where it is: its tree, or what is left of its record.
    pub fn place(&self) -> Option<&Path> {
        self.tree.as_deref().or(self.record.as_deref())
    }

    /// Whether all of it is in the store. `base` is a commit that its task started from.
    ///
    /// # Errors
    /// The tree or the store cannot be read.
    pub fn pinned(&self, store: &Store, user: &UserRepo, base: &Oid) -> Result<Pinned> {
        let Some(tree) = &self.tree else { return Ok(Pinned::Yes) };
        // In the place of a record that is gone: it says that nothing is known.
        let nothing = tempfile::tempdir_in(store.state()).map_err(Error::io("create in", store.state()))?;
        let meta = Meta {
            run: self.run.clone(),
            task: self.task.clone(),
            path: tree.clone(),
            base: base.clone(),
            branch: String::new(),
            settings: user.settings()?,
            dirt: Vec::new(),
            report: Report::default(),
        };
        let admin = self.record.clone().unwrap_or_else(|| nothing.path().to_owned());
        Workspace { admin, meta, aside: None, restored: None }.pinned_now(store, user, Measure::Content)
    }

    /// Removes it.
    ///
    /// # Errors
    /// Something of it cannot be removed.
    pub fn remove(&self) -> Result<()> {
        // The tree last: without its record it is still found.
        self.record.iter().chain(&self.tree).try_for_each(|path| remove_tree(path))
    }
}

fn records(store: &Path) -> PathBuf {
    store.join("outlast/workspaces")
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn parsed(name: &str, ending: &str) -> Option<(TaskId, u32)> {
    let (task, number) = name.rsplit_once(ASIDE)?;
    Some((TaskId::new(task.strip_suffix(ending)?), number.parse().ok()?))
}
