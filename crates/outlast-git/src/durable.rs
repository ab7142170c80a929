//! Files that are there after a power cut: written aside, synced, renamed, and the folder synced.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Replaces the file at `path` by `bytes`; a reader sees the old file or the new one, also after a power cut.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    create_dirs(path.parent().unwrap_or(Path::new(".")))?;
    replace(path, bytes, mode)
}

/// As [`write`], of a file below `root`, which is not made: one that somebody moves away meanwhile is not begun anew in its place.
pub(crate) fn write_below(root: &Path, path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    create_dirs_below(root, path.parent().unwrap_or(root))?;
    replace(path, bytes, mode)
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut temp = tempfile::Builder::new()
        .prefix(".outlast-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .map_err(Error::io("write in", folder))?;
    temp.write_all(bytes).map_err(Error::io("write", path))?;
    temp.as_file().sync_all().map_err(Error::io("sync", path))?;
    temp.persist(path).map_err(|e| Error::io("write", path)(e.error))?;
    sync_dir(folder)
}

/// Makes `folder` and what is missing above it, and syncs every folder that got an entry.
pub(crate) fn create_dirs(folder: &Path) -> Result<()> {
    create_dirs_below(Path::new(""), folder)
}

/// The same, as far as `root`, which has to be there; the empty path always is.
fn create_dirs_below(root: &Path, folder: &Path) -> Result<()> {
    if folder.is_dir() || folder == root {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(root);
    create_dirs_below(root, parent)?;
    match std::fs::create_dir(folder) {
        Ok(()) if parent.as_os_str().is_empty() => Ok(()),
        Ok(()) => sync_dir(parent),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(Error::io("create", folder)(e)),
    }
}

/// Makes the names in `folder` survive a power cut.
pub(crate) fn sync_dir(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|f| f.sync_all()).map_err(Error::io("sync", folder))
}

/// How many syncs wait side by side: the file system serves those that come together with one write of its journal.
const SYNCS_AT_ONCE: usize = 8;

/// Makes the content of every file survive a power cut.
pub(crate) fn sync_files(files: &[&File]) -> std::io::Result<()> {
    let share = files.len().div_ceil(SYNCS_AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let sync = |files: &[&File]| files.iter().try_for_each(|file| file.sync_all());
        let mut shares = files.chunks(share);
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || sync(share))).collect();
        let done = sync(own);
        let lost = || Err(std::io::Error::other("a thread that syncs ended early"));
        others.into_iter().fold(done, |done, other| done.and(other.join().unwrap_or_else(|_| lost())))
    })
}

/// Reads a file of ours; `None` where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

/// Removes a file of ours, and is content when there is none.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_dir),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io("remove", path)(e)),
    }
}

/// The paths of all that is in a folder of ours; nothing where there is none.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(folder).and_then(|found| found.map(|entry| entry.map(|e| e.path())).collect());
    match all {
        Ok(paths) => Ok(paths),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io("read", folder)(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_moved_away_is_not_begun_anew_by_a_write_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("store.git");
        let file = root.join("refs/outlast/run/task/1");
        assert!(write_below(&root, &file, b"x", 0o644).is_err());
        assert!(!root.exists());
        std::fs::create_dir(&root).unwrap();
        write_below(&root, &file, b"x", 0o644).unwrap();
        write_below(&root, &root.join("HEAD"), b"y", 0o644).unwrap();
        assert_eq!(
            (read(&file).unwrap().unwrap(), read(&root.join("HEAD")).unwrap().unwrap()),
            (vec![b'x'], vec![b'y'])
        );
    }
}
