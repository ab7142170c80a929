//! Files of a store that hold no byte, as a power cut or a full disk leaves them: each is an object, a pack or a ref less.

use std::path::{Path, PathBuf};

use crate::{Result, durable, lost};

/// The files of the store at `path` that hold no byte and should: objects and packs first, then refs, then its `HEAD` and
/// where it borrows from. Objects that were taken away for that and are held by nobody since are among them.
///
/// # Errors
/// A folder of the store cannot be read.
pub fn emptied(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = objects(path)?;
    found.extend(lost::missing(path)?);
    found.sort();
    found.dedup();
    found.extend(refs(path)?);
    found.extend([path.join("HEAD"), path.join(ALTERNATES)].into_iter().filter(|file| is_empty(file)));
    Ok(found)
}

/// Where a repository says from which other ones it borrows objects.
pub(crate) const ALTERNATES: &str = "objects/info/alternates";

/// The files of objects, and those that belong to packs, that hold no byte.
pub(crate) fn objects(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in durable::entries(&path.join("objects"))? {
        let name = folder.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
        if name.len() == 2 || name == b"pack" {
            found.extend(durable::entries(&folder)?.into_iter().filter(|file| is_empty(file) && is_kept(file)));
        }
    }
    Ok(found)
}

/// The refs of ours that hold no byte.
pub(crate) fn refs(path: &Path) -> Result<Vec<PathBuf>> {
    Ok(all_refs(path)?.into_iter().filter(|file| is_empty(file)).collect())
}

/// The files of all refs of ours: none of them is ever packed.
pub(crate) fn all_refs(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![path.join("refs/outlast")];
    while let Some(folder) = folders.pop() {
        for entry in durable::entries(&folder)? {
            match entry.symlink_metadata() {
                Ok(facts) if facts.is_dir() => folders.push(entry),
                _ if is_kept(&entry) => found.push(entry),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_empty(file: &Path) -> bool {
    file.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.len() == 0)
}

/// Whether a file has its name for good: one that is still being written, by git or by us, is nobody's loss.
fn is_kept(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
    let is_passing = name.starts_with(b"tmp_") || name.starts_with(b".") || name.ends_with(b".lock");
    // `git repack` marks packs by files without content.
    let is_mark = [&b".keep"[..], b".promisor", b".mtimes"].iter().any(|end| name.ends_with(end));
    !is_passing && !is_mark
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn h15_what_holds_no_byte_is_found_and_what_is_being_written_is_not() {
        let store = tempfile::tempdir().unwrap();
        let at = |name: &str| store.path().join(name);
        for (name, text) in [
            ("objects/ab/cd", ""),
            ("objects/ab/ef", "x"),
            ("objects/ab/tmp_obj_1", ""),
            ("objects/info/alternates", ""),
            ("objects/pack/pack-1.pack", ""),
            ("objects/pack/pack-1.keep", ""),
            ("refs/outlast/r/t/1", ""),
            ("refs/outlast/r/t/2", "x"),
            ("refs/outlast/r/t/.outlast-1", ""),
            ("HEAD", ""),
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        }
        let found = emptied(store.path()).unwrap();
        let wanted =
            ["objects/ab/cd", "objects/pack/pack-1.pack", "refs/outlast/r/t/1", "HEAD", "objects/info/alternates"];
        assert_eq!(found, wanted.map(at));
        fs::write(at("HEAD"), "ref: refs/heads/none\n").unwrap();
        assert_eq!(emptied(store.path()).unwrap().len(), 4);
    }
}
