//! Unix sockets in folders whose paths are longer than a socket's may be (107 bytes, unix(7)): reached through the opened
//! folder, which has a short name in `/proc`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// Opens a folder for [`within`]; no symbolic link is followed to it.
///
/// # Errors
/// It is not there, or no folder.
pub fn folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// The short path of a socket in an opened folder, for as long as that is open.
pub fn within(folder: &OwnedFd, name: impl AsRef<Path>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}
