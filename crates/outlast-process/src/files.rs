//! The files of a launch, in its attempt folder: who they are, and how they are read and written.
//!
//! Secrets may be in them (environment, templates): every one is made with mode 0600, and no symbolic link is followed.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::error::{Error, Result};
use crate::exit::ExitRecord;
use crate::launch_file::Launch;
use crate::shim_id::ShimFile;
use crate::spec::{PORT_PLACEHOLDER, TemplateFile};

const PRIVATE: u32 = 0o600;

/// The launch: its spec, written by the engine; who the shim is, written before the program starts; how the program ended,
/// there once the tree is empty.
pub const LAUNCH: &str = "launch.jsonl";
/// The program's standard output; absent while nothing was written to it.
pub const STDOUT: &str = "stdout";
/// The program's standard error; absent while nothing was written to it.
pub const STDERR: &str = "stderr";
/// Where the shim listens for engines, while it lives. What is left of it afterwards stays until the folder goes: to remove
/// thousands of files makes some file systems slow at making new ones.
pub const CONTROL: &str = "control";
/// What the shim itself had to say; absent in a good run.
pub const SHIM_LOG: &str = "shim.err";

/// Waits out a launch that an engine, killed since, has asked for: afterwards its shim is on file, or never will be.
///
/// Whoever asks for a launch in the folder itself waits for the answer instead. Blocks for about as long as a fork takes.
///
/// # Errors
/// [`Error::File`] or [`Error::System`].
pub fn settle_launches(attempt_dir: &Path) -> Result<()> {
    if attempt_dir.is_dir() { lock_launches(attempt_dir).map(drop) } else { Ok(()) }
}

/// Holds off everyone else who looks at launches in this folder, until it is dropped; also in children of this process.
pub(crate) fn lock_launches(attempt_dir: &Path) -> Result<Flock<File>> {
    // The folder itself: a file to be locked would be one more to make at each launch.
    let mut folder = File::open(attempt_dir).map_err(Error::file("open", attempt_dir))?;
    loop {
        match Flock::lock(folder, FlockArg::LockExclusive) {
            Ok(lock) => return Ok(lock),
            Err((unlocked, Errno::EINTR)) => folder = unlocked,
            Err((_, errno)) => return Err(Error::system("lock the launches of a folder")(errno)),
        }
    }
}

/// Reads who runs in `attempt_dir`; `None` when no shim got that far.
///
/// # Errors
/// [`Error::File`] or [`Error::Format`].
pub fn load_shim(attempt_dir: &Path) -> Result<Option<ShimFile>> {
    Ok(Launch::read(attempt_dir)?.shim)
}

/// Reads how the program in `attempt_dir` ended; `None` while it runs, and for ever when its shim was killed.
///
/// # Errors
/// [`Error::File`] or [`Error::Format`].
pub fn load_exit(attempt_dir: &Path) -> Result<Option<ExitRecord>> {
    Ok(Launch::read(attempt_dir)?.exit)
}

/// Removes what an earlier launch left in the same folder, so that none of it can be taken for this launch's.
pub(crate) fn clear(attempt_dir: &Path) -> Result<()> {
    for name in [LAUNCH, STDOUT, STDERR, SHIM_LOG, CONTROL] {
        let path = attempt_dir.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::file("remove", &path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Adds a line to the shim's log; where even that fails, nothing can be told.
pub(crate) fn log(attempt_dir: &Path, line: &dyn Display) {
    let path = attempt_dir.join(SHIM_LOG);
    let file = OpenOptions::new().append(true).create(true).mode(PRIVATE).custom_flags(libc::O_NOFOLLOW).open(path);
    drop(file.and_then(|mut file| writeln!(file, "{line}")));
}

/// Makes a new, empty file of ours; one that is there already is emptied.
pub(crate) fn create_plainly(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(PRIVATE).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Makes a new, empty file of ours where there is none.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).mode(PRIVATE).open(path)
}

/// Writes one template file beneath its root, refusing any symbolic link on the way: the folders may hold what an
/// earlier attempt left there, and the writer is not sandboxed.
pub(crate) fn write_template(template: &TemplateFile, port: Option<u16>) -> Result<()> {
    let whole = template.root.join(&template.path);
    let refused = |errno: Errno| Error::file("write the template file", &whole)(errno.into());
    let folder = open_folder_beneath(&template.root, &template.path).map_err(refused)?;
    let name = template.path.file_name().ok_or(Errno::EINVAL).map_err(refused)?;
    match unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(refused(errno)),
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(&folder, name, flags, Mode::from_bits_truncate(PRIVATE)).map_err(refused)?;
    let text =
        port.map_or_else(|| template.text.clone(), |port| template.text.replace(PORT_PLACEHOLDER, &port.to_string()));
    File::from(file).write_all(text.as_bytes()).map_err(Error::file("write the template file", &whole))
}

fn open_folder_beneath(root: &Path, path: &Path) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut folder = openat(nix::fcntl::AT_FDCWD, root, flags, Mode::empty())?;
    for part in path.parent().map(PathBuf::from).unwrap_or_default().components() {
        match mkdirat(folder.as_fd(), part.as_os_str(), Mode::from_bits_truncate(0o700)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno),
        }
        folder = openat(&folder, part.as_os_str(), flags | OFlag::O_NOFOLLOW, Mode::empty())?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn template(root: &Path, path: &str) -> TemplateFile {
        TemplateFile { root: root.to_owned(), path: path.into(), text: "url = http://127.0.0.1:{port}/".to_owned() }
    }

    #[test]
    fn a_template_replaces_an_old_file_and_is_private() {
        let root = tempfile::tempdir().unwrap();
        for port in [80, 81] {
            write_template(&template(root.path(), "a/b/settings"), Some(port)).unwrap();
        }
        let written = root.path().join("a/b/settings");
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "url = http://127.0.0.1:81/");
        assert_eq!(written.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_planted_link_never_leads_a_template_outside() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("victim"), "kept").unwrap();
        symlink(outside.path(), root.path().join("folder")).unwrap();
        symlink(outside.path().join("victim"), root.path().join("file")).unwrap();
        assert!(write_template(&template(root.path(), "folder/victim"), None).is_err());
        write_template(&template(root.path(), "file"), None).unwrap();
        assert_eq!(std::fs::read_to_string(outside.path().join("victim")).unwrap(), "kept");
    }
}
