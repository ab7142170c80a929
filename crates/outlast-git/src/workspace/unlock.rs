//! The locks that a killed git has left in a workspace's own repository: with them, nobody's git commits there any more.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

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
        // What is no folder is no repository of ours: nothing is followed out of the workspace.
        let Ok(git) = Folder::root(self.path()).and_then(|root| root.folder(b".git".as_bstr())) else {
            return Ok(Vec::new());
        };
        let mut locks = locks_in(&git, b"".as_bstr());
        if let Ok(refs) = git.folder(b"refs".as_bstr()) {
            below(&refs, b"refs/".as_bstr(), DEPTH_MAX, &mut locks);
        }
        for lock in &locks {
            git.remove(lock.as_bstr())
                .map_err(Error::io("remove", &self.path().join(".git").join(OsStr::from_bytes(lock))))?;
        }
        Ok(locks)
    }
}

fn below(folder: &Folder, prefix: &BStr, depth: usize, locks: &mut Vec<BString>) {
    locks.extend(locks_in(folder, prefix));
    for (name, hint) in folder.names().unwrap_or_default() {
        let name = name.as_bytes().as_bstr();
        if hint != Hint::Other
            && depth > 0
            && let Ok(next) = folder.folder(name)
        {
            below(&next, [prefix.as_bytes(), name.as_bytes(), b"/"].concat().as_bstr(), depth - 1, locks);
        }
    }
}

fn locks_in(folder: &Folder, prefix: &BStr) -> Vec<BString> {
    let names = folder.names().unwrap_or_default();
    let locks = names.into_iter().filter(|(name, hint)| *hint != Hint::Folder && name.as_bytes().ends_with(b".lock"));
    locks.map(|(name, _)| [prefix.as_bytes(), name.as_bytes()].concat().into()).collect()
}
