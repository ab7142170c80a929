//! What of a folder everybody may read: the parts of it that its owner has not shut to others.
//!
//! To a program that runs as the owner of such files the file system shuts nothing: as root it reads the password hashes
//! and the host's private keys. The kernel's sandbox only ever adds, so what is shut is left out by naming the rest.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A part of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A file, or a folder in which nothing is shut: all of it may be read.
    Whole(PathBuf),
    /// A folder in which something is shut: its names may be read, and the parts of it that are named beside.
    Names(PathBuf),
}

/// The parts of `folder` that others than its owner may read. What cannot be looked at is left out.
///
/// Symbolic links are no parts: what they lead to is judged where it is.
pub(crate) fn parts(folder: &Path) -> Vec<Part> {
    let is_open = folder.metadata().is_ok_and(|found| found.is_dir() && is_open(&found));
    match survey(folder) {
        Ok(found) if is_open => found.unwrap_or_else(|| vec![Part::Whole(folder.to_owned())]),
        _ => Vec::new(),
    }
}

/// All that lies beside `folder`: what else is in the folders above it. Symbolic links are left out.
///
/// # Errors
/// A folder above that cannot be listed.
pub(crate) fn beside(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for within in folder.ancestors().collect::<Vec<_>>().windows(2) {
        let [inner, outer] = within else { continue };
        for entry in outer.read_dir()? {
            let entry = entry?;
            if entry.path() != *inner && !entry.file_type()?.is_symlink() {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// The parts of a folder; `None` where nothing beneath it is shut.
fn survey(folder: &Path) -> io::Result<Option<Vec<Part>>> {
    let (mut parts, mut is_whole) = (vec![Part::Names(folder.to_owned())], true);
    for entry in folder.read_dir()? {
        let entry = entry?;
        let (path, found) = (entry.path(), entry.metadata()?);
        if found.is_symlink() {
            continue;
        }
        if !is_open(&found) {
            is_whole = false;
        } else if !found.is_dir() {
            parts.push(Part::Whole(path));
        } else {
            match survey(&path) {
                Ok(None) => parts.push(Part::Whole(path)),
                Ok(Some(below)) => {
                    is_whole = false;
                    parts.extend(below);
                }
                Err(_) => is_whole = false,
            }
        }
    }
    Ok((!is_whole).then_some(parts))
}

fn is_open(found: &Metadata) -> bool {
    let wanted = if found.is_dir() { 0o005 } else { 0o004 };
    found.mode() & wanted == wanted
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn shut(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_lies_beside_is_all_but_the_way_and_links() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["a/b/c", "a/d", "e"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("a/b/f"), "").unwrap();
        symlink("e", dir.path().join("link")).unwrap();
        let within: Vec<_> = beside(&dir.path().join("a/b/c")).unwrap();
        let mut names: Vec<_> = within.iter().filter_map(|path| path.strip_prefix(dir.path()).ok()).collect();
        names.sort();
        assert_eq!(names, ["a/b/f", "a/d", "e"].map(Path::new));
        let dev = Path::new("/dev");
        assert!(within.iter().any(|path| path == dev) && !within.iter().any(|path| dir.path().starts_with(path)));
    }

    #[test]
    fn only_folders_that_hold_something_shut_are_taken_apart() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        shut(dir.path(), 0o755);
        for folder in ["ssl/certs/more", "ssl/private", "plain"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["passwd", "shadow", "ssl/certs/more/a.pem", "ssl/private/key.pem", "ssl/conf", "plain/x"] {
            fs::write(at(file), "").unwrap();
            shut(&at(file), 0o644);
        }
        symlink("shadow", at("link")).unwrap();
        assert_eq!(parts(dir.path()), [Part::Whole(dir.path().to_owned())]);

        shut(&at("shadow"), 0o640);
        shut(&at("ssl/private"), 0o710);
        let mut found = parts(dir.path());
        found.sort();
        let whole = ["passwd", "plain", "ssl/certs", "ssl/conf"].map(|name| Part::Whole(at(name)));
        assert_eq!(found[..4], whole);
        assert_eq!(found[4..], [Part::Names(dir.path().to_owned()), Part::Names(at("ssl"))]);

        shut(dir.path(), 0o700);
        assert_eq!(parts(dir.path()), []);
        assert_eq!(parts(&at("none")), []);
    }
}
