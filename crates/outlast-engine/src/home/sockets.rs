//! Where a home's sockets lie: a short private folder under the temp folder, which the home remembers by a symbolic link.
//!
//! A Unix socket's path holds 107 bytes at most (unix(7)), whatever the home's own path is. It is remembered, since the shims
//! of a killed engine wait there for the next one, which may be started with another temp folder.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Makes the folder that `link` leads to, where it is not there and ours alone; the same one as before where that can be.
pub(super) fn make(link: &Path) -> Result<(), Error> {
    let remembered = fs::read_link(link).ok();
    if let Some(folder) = &remembered
        && make_again(folder)
    {
        return Ok(());
    }
    // Whatever lies at a path that anybody could guess may be somebody else's.
    let folder = nix::unistd::mkdtemp(&std::env::temp_dir().join("outlast-XXXXXX"))
        .map_err(|errno| Error::at(&std::env::temp_dir(), errno.into()))?;
    let made = link.with_extension("new");
    match fs::remove_file(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::at(&made, error)),
        _ => {}
    }
    symlink(&folder, &made).and_then(|()| fs::rename(&made, link)).map_err(|source| Error::at(link, source))
}

/// The folder behind the link; the link itself where there is none yet.
pub(super) fn folder(link: &Path) -> PathBuf {
    fs::read_link(link).unwrap_or_else(|_| link.to_owned())
}

/// Whether the folder is there, and nobody else's.
fn make_again(folder: &Path) -> bool {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => folder.symlink_metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw() && found.mode() & 0o077 == 0
        }),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_same_folder_is_used_as_long_as_it_is_ours_alone() {
        let home = tempfile::tempdir().unwrap();
        let link = home.path().join("sockets");
        make(&link).unwrap();
        let first = folder(&link);
        assert_eq!(first.metadata().unwrap().permissions().mode() & 0o777, 0o700);

        // Cleared away by something that tidies the temp folder: whoever waits there would wait for ever at another place.
        fs::remove_dir(&first).unwrap();
        make(&link).unwrap();
        assert_eq!(folder(&link), first);

        // Somebody else was quicker, and can look into it.
        fs::set_permissions(&first, fs::Permissions::from_mode(0o777)).unwrap();
        make(&link).unwrap();
        let second = folder(&link);
        assert_ne!(second, first);
        for folder in [first, second] {
            fs::remove_dir(folder).unwrap();
        }
    }
}
