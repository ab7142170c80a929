//! What of a folder everybody may read: the parts of it that its owner has not shut to others.
//!
//! To a program that runs as the owner of such files the file system shuts nothing: as root it reads the password hashes
//! and the host's private keys. The kernel's sandbox only ever adds, so what is shut is left out by naming the rest.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How old a survey may be: what is shut later in a folder that was open is not seen by a running agent's sandbox either.
const SURVEY_AGE_MAX: Duration = Duration::from_secs(60);

/// The parts of folders that were surveyed ahead, and when. A process that forks others surveys for all of them: a walk
/// through a thousand files would be most of what a launch costs.
static SURVEYED: Mutex<Option<Surveyed>> = Mutex::new(None);

/// When folders were surveyed, and their parts.
type Surveyed = (Instant, BTreeMap<PathBuf, Vec<Part>>);

/// Surveys `folders` for this process and all that it forks, unless that was done a short while ago.
pub(crate) fn survey_ahead(folders: &[PathBuf]) {
    let mut surveyed = SURVEYED.lock().unwrap_or_else(PoisonError::into_inner);
    if surveyed.as_ref().is_none_or(|(at, _)| at.elapsed() > SURVEY_AGE_MAX) {
        *surveyed = Some((Instant::now(), folders.iter().map(|folder| (folder.clone(), parts_now(folder))).collect()));
    }
}

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
    let surveyed = SURVEYED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = surveyed.as_ref().and_then(|(_, parts)| parts.get(folder)).cloned();
    known.unwrap_or_else(|| parts_now(folder))
}

fn parts_now(folder: &Path) -> Vec<Part> {
    let is_open = folder.metadata().is_ok_and(|found| found.is_dir() && is_open(&found));
    match survey(folder) {
        Ok(found) if is_open => found.unwrap_or_else(|| vec![Part::Whole(folder.to_owned())]),
        _ => Vec::new(),
    }
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
