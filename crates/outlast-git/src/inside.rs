//! Files inside a tree that an agent can write: opened step by step, never through a symlink.
//!
//! An agent may swap a folder for a symlink at any moment, or leave a pipe where a file is expected. Every step here
//! is relative to an open folder and refuses to follow a link, and opening never waits.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::bstr::{BStr, ByteSlice};
use nix::dir::Type;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// What a directory entry is, as far as the file system says without another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hint {
    Folder,
    Other,
    Unknown,
}

const FOLDER: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl Folder {
    /// Opens the root itself; the way to it is ours and may contain links.
    pub(crate) fn root(path: &Path) -> io::Result<Self> {
        Ok(Self(nix::fcntl::open(path, FOLDER, Mode::empty())?))
    }

    /// Opens the folder `name` in this one.
    pub(crate) fn folder(&self, name: &BStr) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name.as_bytes(), FOLDER, Mode::empty())?))
    }

    /// Opens the folder at a relative path, one component after the other.
    pub(crate) fn descend(&self, path: &BStr) -> io::Result<Self> {
        let mut at = Self(self.0.try_clone()?);
        for part in components(path) {
            at = at.folder(checked(part)?)?;
        }
        Ok(at)
    }

    pub(crate) fn stat(&self, name: &BStr) -> io::Result<FileStat> {
        Ok(fstatat(&self.0, name.as_bytes(), AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Whether anything stands at a relative path, as far as can be told without following a link.
    pub(crate) fn has(&self, path: &BStr) -> bool {
        let Ok((folders, name)) = split(path) else { return false };
        self.descend(folders.as_bstr()).is_ok_and(|folder| folder.stat(name.as_bstr()).is_ok())
    }

    /// Removes a file or link at a relative path, and the folders that this leaves empty; what is not there is no error.
    pub(crate) fn remove(&self, path: &BStr) -> io::Result<()> {
        let (folders, name) = split(path)?;
        let mut way = vec![Self(self.0.try_clone()?)];
        let names: Vec<&[u8]> = components(folders.as_bstr()).collect();
        for part in &names {
            let Some(at) = way.last() else { break };
            match at.folder(checked(part)?) {
                Ok(next) => way.push(next),
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        let mut gone = (checked(name)?.as_bytes(), UnlinkatFlags::NoRemoveDir);
        for (depth, folder) in way.iter().enumerate().rev() {
            match unlinkat(&folder.0, gone.0, gone.1) {
                Ok(()) | Err(nix::errno::Errno::ENOENT) => {}
                Err(_) if matches!(gone.1, UnlinkatFlags::RemoveDir) => break,
                Err(errno) => return Err(errno.into()),
            }
            let Some(above) = depth.checked_sub(1) else { break };
            gone = (names[above], UnlinkatFlags::RemoveDir);
        }
        Ok(())
    }

    /// Removes a file or link of this name, and nothing else.
    pub(crate) fn unlink(&self, name: &BStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name.as_bytes(), UnlinkatFlags::NoRemoveDir)?)
    }

    pub(crate) fn link(&self, name: &BStr) -> io::Result<OsString> {
        Ok(readlinkat(&self.0, name.as_bytes())?)
    }

    /// Opens a plain file for reading; anything else is an error, and nothing blocks.
    pub(crate) fn file(&self, name: &BStr) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.0, name.as_bytes(), flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Reads a plain file of at most `limit` bytes.
    pub(crate) fn read(&self, name: &BStr, limit: u64) -> io::Result<Vec<u8>> {
        let file = self.file(name)?;
        // Room for all of it at once: a large file is copied again and again where its room grows with it.
        let len = usize::try_from(file.metadata()?.len().min(limit)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(len + 1);
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    /// The names in this folder in byte order, without `.` and `..`.
    pub(crate) fn names(&self) -> io::Result<Vec<(OsString, Hint)>> {
        // A duplicate shares its position with the original, which is only ever read here, once, from the start.
        let mut dir = nix::dir::Dir::from_fd(self.0.try_clone()?)?;
        let mut names = Vec::new();
        for entry in dir.iter() {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let hint = match entry.file_type() {
                Some(Type::Directory) => Hint::Folder,
                Some(_) => Hint::Other,
                None => Hint::Unknown,
            };
            names.push((OsStr::from_bytes(name.to_bytes()).to_owned(), hint));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens the folder `name`, making it where it is missing.
    fn make(&self, name: &BStr) -> io::Result<Self> {
        match mkdirat(&self.0, name.as_bytes(), Mode::from_bits_truncate(0o755)) {
            Ok(()) | Err(nix::errno::Errno::EEXIST) => self.folder(name),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes the folder at a relative path, and those on the way.
    pub(crate) fn make_all(&self, path: &BStr) -> io::Result<()> {
        let (folder, name) = self.parent_of(path)?;
        folder.make(name).map(|_| ())
    }

    /// Writes a file beside and renames it into place, so that whatever stood there is replaced and never followed.
    fn replace(&self, name: &BStr, bytes: &[u8], mode: u32) -> io::Result<()> {
        let temp = format!(".outlast-{}-{:016x}", std::process::id(), outlast_core::hash::fnv1a(name));
        match unlinkat(&self.0, temp.as_str(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(nix::errno::Errno::ENOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.0, temp.as_str(), flags, Mode::from_bits_truncate(mode))?);
        file.write_all(bytes)?;
        Ok(renameat(&self.0, temp.as_str(), &self.0, name.as_bytes())?)
    }

    /// Makes a symlink, in the place of another file or link if need be.
    pub(crate) fn make_link(&self, name: &BStr, target: &OsStr) -> io::Result<()> {
        if self.link(name).is_ok_and(|there| there == target) {
            return Ok(());
        }
        match unlinkat(&self.0, name.as_bytes(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(nix::errno::Errno::ENOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(nix::unistd::symlinkat(target, &self.0, name.as_bytes())?)
    }

    /// Opens the folder that holds the last component of `path`, making folders on the way, and names that component.
    pub(crate) fn parent_of<'a>(&self, path: &'a BStr) -> io::Result<(Self, &'a BStr)> {
        let (folders, name) = split(path)?;
        let mut at = Self(self.0.try_clone()?);
        for part in components(folders.as_bstr()) {
            at = at.make(checked(part)?)?;
        }
        Ok((at, checked(name)?))
    }
}

/// The file type bits.
pub(crate) fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// The folder and the name of a relative path.
fn split(path: &BStr) -> io::Result<(&[u8], &[u8])> {
    if path.starts_with(b"/") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(path.rsplit_once_str("/").unwrap_or((b"", path)))
}

/// The folders of a relative path; none for the root itself.
fn components(path: &BStr) -> impl Iterator<Item = &[u8]> {
    let is_root = path.is_empty();
    path.split_str("/").filter(move |_| !is_root)
}

fn checked(part: &[u8]) -> io::Result<&BStr> {
    if part.is_empty() || part == b"." || part == b".." {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(part.as_bstr())
}

/// Reads a plain file at a relative path inside `root`, following no symlink below it; `None` where there is none.
///
/// # Errors
/// The file cannot be read, is no plain file, or is larger than `limit` bytes.
pub fn read_inside(root: &Path, path: &BStr, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let (folders, name) = split(path)?;
    let found = Folder::root(root)?.descend(folders.as_bstr()).and_then(|f| f.read(checked(name)?, limit));
    match found {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Writes a file at a relative path inside `root`, making folders, and following no symlink below `root`.
///
/// A symlink that stands at `path` itself is replaced by the file; one that stands for a folder on the way is an error.
///
/// # Errors
/// The path is not relative and plain, or the system refuses.
pub fn write_inside(root: &Path, path: &BStr, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (folder, name) = Folder::root(root)?.parent_of(path)?;
    folder.replace(name, bytes, mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g05_g07_g08_no_write_leaves_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, outside) = (dir.path().join("wt1"), dir.path().join("wt10"));
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("esc")).unwrap();
        std::os::unix::fs::symlink(outside.join("absent"), tree.join("REPORT.md")).unwrap();

        for path in ["esc/x", "../wt10/x", "/etc/x", "a/../../wt10/x", ""] {
            assert!(write_inside(&tree, path.into(), b"x", 0o644).is_err(), "{path}");
        }
        write_inside(&tree, "REPORT.md".into(), b"mine", 0o600).unwrap();
        assert_eq!(read_inside(&tree, "REPORT.md".into(), 10).unwrap().unwrap(), b"mine");
        assert!(read_inside(&tree, "esc/x".into(), 10).is_err());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_pipe_or_a_huge_file_does_not_stop_a_reader() {
        let dir = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&dir.path().join("HEAD"), Mode::S_IRWXU).unwrap();
        std::fs::write(dir.path().join("big"), [0; 100]).unwrap();
        assert!(read_inside(dir.path(), "HEAD".into(), 10).is_err());
        assert!(read_inside(dir.path(), "big".into(), 99).is_err());
        assert_eq!(read_inside(dir.path(), "none".into(), 10).unwrap(), None);
    }
}
