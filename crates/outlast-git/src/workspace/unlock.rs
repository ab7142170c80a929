//! The locks that a killed git has left in a workspace's own repository: with them, nobody's git commits there any more.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::{BStr, BString, ByteSlice as _};

use crate::inside::{Folder, Hint};
use crate::{Error, Result, Workspace};

/// How deep a ref may lie in folders: an agent makes what it likes.
const DEPTH_MAX: usize = 32;

impl Workspace {
    /// Removes the locks of git in its repository, and names them. Only for whoever knows that no process is at work in it.
    ///
    /// # Errors
    /// One of them cannot be removed.
    pub fn unlock(&self) -> Result<Vec<BString>> {
        unlocked(self.path()).map_err(Error::io("remove the locks in", self.path()))
    }
}

fn unlocked(tree: &Path) -> io::Result<Vec<BString>> {
    let mut locks = Vec::new();
    // What is no folder is no repository of ours: nothing is followed out of the workspace.
    let Ok(git) = Folder::root(tree).and_then(|root| root.folder(b".git".as_bstr())) else { return Ok(locks) };
    locks_in(&git, b"".as_bstr(), &mut locks)?;
    if let Ok(refs) = git.folder(b"refs".as_bstr()) {
        below(&refs, b"refs/".as_bstr(), DEPTH_MAX, &mut locks)?;
    }
    Ok(locks)
}

fn below(folder: &Folder, prefix: &BStr, depth: usize, locks: &mut Vec<BString>) -> io::Result<()> {
    locks_in(folder, prefix, locks)?;
    for (name, hint) in folder.names().unwrap_or_default() {
        let name = name.as_bytes().as_bstr();
        if hint != Hint::Other
            && depth > 0
            && let Ok(next) = folder.folder(name)
        {
            below(&next, [prefix.as_bytes(), name.as_bytes(), b"/"].concat().as_bstr(), depth - 1, locks)?;
        }
    }
    Ok(())
}

/// The folder stays, also where that leaves nothing in it: without `refs`, git takes a repository for none.
fn locks_in(folder: &Folder, prefix: &BStr, locks: &mut Vec<BString>) -> io::Result<()> {
    for (name, hint) in folder.names().unwrap_or_default() {
        if hint != Hint::Folder && name.as_bytes().ends_with(b".lock") {
            folder.unlink(name.as_bytes().as_bstr())?;
            locks.push([prefix.as_bytes(), name.as_bytes()].concat().into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn e01_locks_go_and_all_else_stays_also_where_a_link_leads() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::create_dir_all(at(".git/refs/heads/outlast")).unwrap();
        fs::create_dir(at("theirs")).unwrap();
        let locks = [".git/HEAD.lock", ".git/index.lock", ".git/refs/heads/outlast/one.lock"];
        for file in locks.iter().chain(&[".git/HEAD", "theirs/index.lock"]) {
            fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink(at("theirs"), at(".git/refs/elsewhere")).unwrap();
        let named = locks.map(|lock| BString::from(lock.strip_prefix(".git/").unwrap()));
        assert_eq!(unlocked(tree.path()).unwrap(), named);
        assert!(locks.iter().all(|lock| !at(lock).exists()));
        assert!(at(".git/refs/heads/outlast").is_dir() && at(".git/HEAD").is_file());
        assert!(at("theirs/index.lock").is_file(), "a link is not followed");
        // A repository that is a link is none of ours.
        fs::rename(at(".git"), at("git")).unwrap();
        std::os::unix::fs::symlink(at("theirs"), at(".git")).unwrap();
        assert!(unlocked(tree.path()).unwrap().is_empty() && at("theirs/index.lock").is_file());
    }
}
