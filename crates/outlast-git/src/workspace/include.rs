//! `.worktreeinclude`: files git ignores that a task needs all the same, such as `.env.local`, copied from the checkout.
//!
//! The file has gitignore syntax; only what git also ignores is copied, and only its owner may read it there. A symlink is copied as a symlink when it stays
//! in the tree, and left out otherwise; nothing is written through a link.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use gix::bstr::{BStr, BString, ByteSlice};
use nix::sys::stat::SFlag;

use crate::inside::{self, Folder};
use crate::scope::leaves_tree;
use crate::{Error, Result, UserRepo};

/// What was copied and what was not.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) copied: Vec<Vec<u8>>,
    pub(crate) left_out: Vec<Vec<u8>>,
}

/// Copies what the checkout's `.worktreeinclude` names into the tree at `to`.
pub(crate) fn copy(user: &UserRepo, to: &Path) -> Result<Copied> {
    let mut result = Copied::default();
    let named = named(user)?;
    if named.is_empty() {
        return Ok(result);
    }
    let source = Folder::root(user.root()).map_err(Error::io("open", user.root()))?;
    for path in named {
        let copied =
            copy_one(&source, to, path.as_bstr()).map_err(Error::io("copy to", to.join(path.to_path_lossy())))?;
        if copied { result.copied.push(path.into()) } else { result.left_out.push(path.into()) }
    }
    Ok(result)
}

/// What the checkout's `.worktreeinclude` names; nothing where there is none.
pub(crate) fn named(user: &UserRepo) -> Result<Vec<BString>> {
    let list = user.root().join(".worktreeinclude");
    if list.is_file() { named_and_ignored(user, &list) } else { Ok(Vec::new()) }
}

/// The untracked files that both the list and the ignore rules name.
fn named_and_ignored(user: &UserRepo, list: &Path) -> Result<Vec<BString>> {
    let mut from = std::ffi::OsString::from("--exclude-from=");
    from.push(list);
    let named = user.git().in_checkout(user.root()).args(["ls-files", "-z", "--others", "--ignored"]).arg(from).ok()?;
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let answer = user.git().in_checkout(user.root()).args(["check-ignore", "-z", "--stdin"]).stdin(named).run()?;
    match answer.code() {
        // 1: none of them is ignored (git-check-ignore).
        Some(0 | 1) => Ok(answer.stdout().split_str("\0").filter(|p| !p.is_empty()).map(BString::from).collect()),
        _ => Err(answer.into_error()),
    }
}

/// Copies one file or link; tells whether it could be.
fn copy_one(source: &Folder, to: &Path, path: &BStr) -> io::Result<bool> {
    let (folders, name) = path.rsplit_once_str("/").unwrap_or((b"", path));
    let Ok(folder) = source.descend(folders.as_bstr()) else { return Ok(false) };
    let name = name.as_bstr();
    let stat = folder.stat(name)?;
    match inside::kind(&stat) {
        SFlag::S_IFREG => {
            let file = folder.file(name)?;
            // What git ignores and a task needs all the same is mostly a key or a password, under whatever name.
            let mode = 0o600 | file.metadata()?.mode() & 0o100;
            let bytes = folder.read(name, u64::MAX - 1)?;
            inside::write_inside(to, path, &bytes, mode)?;
            std::fs::set_permissions(to.join(path.to_path_lossy()), std::fs::Permissions::from_mode(mode))?;
            Ok(true)
        }
        SFlag::S_IFLNK => {
            let target = folder.link(name)?;
            if leaves_tree(path, target.as_bytes().as_bstr()) {
                return Ok(false);
            }
            let (folder, name) = Folder::root(to)?.parent_of(path)?;
            folder.make_link(name, &target)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}
