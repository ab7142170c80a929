//! The branch that landings go to: its name, its tip, and who has it checked out.

use std::path::PathBuf;

use gix::bstr::{BString, ByteSlice};
use outlast_core::Oid;

use crate::{Error, Refusal, Result, UserRepo, durable, oid};

/// A branch that landings go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The short name, such as `outlast/migrate-7f3a`.
    pub name: String,
    /// Its tip; `None` while the branch does not exist.
    pub tip: Option<Oid>,
}

impl Target {
    /// The full ref name.
    pub fn full_name(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

/// A checkout of the user's repository that holds a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The root of the checkout.
    pub path: PathBuf,
    /// Why git cannot move the branch there, such as a `rebase` of it while HEAD is elsewhere.
    pub busy: Option<&'static str>,
    /// Whether somebody has locked it, so that git keeps what it has of it although its folder is gone.
    pub is_locked: bool,
}

/// Why git cannot move the branch of a worktree that is not there.
pub(crate) const FOLDER_GONE: &str = "worktree whose folder is gone";

impl UserRepo {
    /// Checks that `name` can be a branch here beside those that exist, and finds its tip.
    ///
    /// # Errors
    /// [`Refusal::BadTarget`] and [`Refusal::TargetCollides`].
    pub fn resolve_target(&self, name: &str) -> Result<Target> {
        let full = format!("refs/heads/{name}");
        if name.is_empty()
            || name.starts_with('-')
            || gix::validate::reference::name(full.as_bytes().as_bstr()).is_err()
        {
            return Err(Refusal::BadTarget(name.to_owned()).into());
        }
        let folded = fold(name);
        for existing in self.branches()? {
            let other = fold(&existing);
            let same_on_some_disks = folded == other && existing != name;
            let one_in_the_other = is_folder_of(&other, &folded) || is_folder_of(&folded, &other);
            if same_on_some_disks || one_in_the_other || folder_differs_in_case(name, &existing) {
                return Err(Refusal::TargetCollides { wanted: name.to_owned(), existing }.into());
            }
        }
        Ok(Target { name: name.to_owned(), tip: self.ref_tip(&full)?.map(oid::of) })
    }

    fn branches(&self) -> Result<Vec<String>> {
        let listed =
            self.git().in_checkout(self.root()).args(["for-each-ref", "--format=%(refname)", "refs/heads"]).ok()?;
        let lines = String::from_utf8_lossy(&listed).into_owned();
        Ok(lines.lines().filter_map(|l| l.strip_prefix("refs/heads/")).map(str::to_owned).collect())
    }

    /// The roots of every checkout of this repository, and of the repository itself where it has none of its own.
    ///
    /// # Errors
    /// Git fails.
    pub fn worktrees(&self) -> Result<Vec<PathBuf>> {
        Ok(self.listed_worktrees()?.into_iter().map(|(path, _)| path).collect())
    }

    /// Each worktree as git lists it: its path, and what is said of it.
    fn listed_worktrees(&self) -> Result<Vec<(PathBuf, Vec<BString>)>> {
        let listed = self.git().in_checkout(self.root()).args(["worktree", "list", "--porcelain", "-z"]).ok()?;
        let mut worktrees = Vec::new();
        // An empty line ends each worktree; with -z that is two NULs.
        for block in listed.split_str("\0\0").filter(|b| !b.is_empty()) {
            let mut fields = block.split_str("\0");
            let Some(path) = fields.next().and_then(|f| f.strip_prefix(b"worktree ")) else { continue };
            let path = path.to_path().map_err(|e| Error::State { path: self.root().to_owned(), why: e.to_string() })?;
            worktrees.push((path.to_owned(), fields.map(BString::from).collect()));
        }
        Ok(worktrees)
    }

    /// The checkouts that hold the branch `name`, those in the middle of a rebase or bisect of it included.
    ///
    /// # Errors
    /// Git fails, or a file of a worktree cannot be read.
    pub fn holders(&self, name: &str) -> Result<Vec<Worktree>> {
        let full = format!("refs/heads/{name}");
        let mut holders = Vec::new();
        for (path, fields) in self.listed_worktrees()? {
            if fields.contains(&BString::from(format!("branch {full}"))) {
                let busy = (!path.is_dir()).then_some(FOLDER_GONE);
                let is_locked = fields.iter().any(|field| field.starts_with(b"locked"));
                holders.push(Worktree { path, busy, is_locked });
            } else if let Some(busy) = self.busy_with(&path, &full)? {
                holders.push(Worktree { path, busy: Some(busy), is_locked: false });
            }
        }
        Ok(holders)
    }

    /// What keeps the branch `full` busy in the worktree at `path` although its HEAD is detached.
    fn busy_with(&self, path: &std::path::Path, full: &str) -> Result<Option<&'static str>> {
        let dot_git = path.join(".git");
        let git_dir = match durable::read(&dot_git) {
            Ok(Some(text)) => match text.strip_prefix(b"gitdir:") {
                Some(target) => path.join(target.trim_ascii().to_path_lossy()),
                None => return Ok(None),
            },
            _ if dot_git.is_dir() => dot_git,
            _ => return Ok(None),
        };
        let notes =
            [("rebase-merge/head-name", "rebase"), ("rebase-apply/head-name", "rebase"), ("BISECT_START", "bisect")];
        for (file, what) in notes {
            let text = durable::read(&git_dir.join(file))?.unwrap_or_default();
            let named = text.trim_ascii();
            if named == full.as_bytes() || Some(named) == full.strip_prefix("refs/heads/").map(str::as_bytes) {
                return Ok(Some(what));
            }
        }
        Ok(None)
    }
}

fn fold(name: &str) -> String {
    name.to_lowercase()
}

/// Tells whether a branch named `folder` keeps one named `name` from existing.
fn is_folder_of(folder: &str, name: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Tells whether two names share a leading folder but for its case: a disk that ignores case keeps one folder.
fn folder_differs_in_case(a: &str, b: &str) -> bool {
    let folders = |name: &str| {
        name.rsplit_once('/').map(|(f, _)| f.split('/').map(str::to_owned).collect::<Vec<_>>()).unwrap_or_default()
    };
    for (x, y) in folders(a).iter().zip(folders(b).iter()) {
        if fold(x) != fold(y) {
            return false;
        }
        if x != y {
            return true;
        }
    }
    false
}
