//! Files of a store that hold no byte, as a power cut or a full disk leaves them: each is an object, a pack or a ref less.

use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice as _;

use crate::{Result, durable, lost, oid};

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
    for (name, is_sound) in [("HEAD", is_head as fn(&[u8]) -> bool), (ALTERNATES, names_folders)] {
        let file = path.join(name);
        if durable::read(&file)?.is_some_and(|text| !is_sound(&text)) {
            found.push(file);
        }
    }
    Ok(found)
}

/// Whether a text is a `HEAD` that git takes: a ref, or a commit.
pub(crate) fn is_head(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    match text.strip_prefix(b"ref:").map(<[u8]>::trim_ascii) {
        Some(name) => name.starts_with(b"refs/") && gix::validate::reference::name(name.as_bstr()).is_ok(),
        None => ObjectId::from_hex(text).is_ok(),
    }
}

/// Whether a text names folders that objects are borrowed from: anything but a path of its own is garbage.
pub(crate) fn names_folders(text: &[u8]) -> bool {
    !text.is_empty() && text.ends_with(b"\n") && !text.contains(&0) && text.lines().all(|line| line.starts_with(b"/"))
}

/// Where a repository says from which other ones it borrows objects.
pub(crate) const ALTERNATES: &str = "objects/info/alternates";

/// The files of objects, and those that belong to packs, that hold no byte.
pub(crate) fn objects(path: &Path) -> Result<Vec<PathBuf>> {
    files_of_objects(path, is_empty)
}

/// The files of objects, and those that belong to packs, which are like this.
pub(crate) fn files_of_objects(path: &Path, is_so: fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in durable::entries(&path.join("objects"))? {
        let name = folder.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
        if name.len() == 2 || name == b"pack" {
            found.extend(durable::entries(&folder)?.into_iter().filter(|file| is_so(file) && is_kept(file)));
        }
    }
    Ok(found)
}

pub(crate) fn is_in_pack_folder(file: &Path) -> bool {
    file.parent().and_then(Path::file_name).is_some_and(|folder| folder == "pack")
}

/// The object that a loose file is named after.
pub(crate) fn id_of(file: &Path) -> Option<ObjectId> {
    let (fan_out, rest) = (file.parent()?.file_name()?.to_str()?, file.file_name()?.to_str()?);
    oid::parse_text(&format!("{fan_out}{rest}")).ok()
}

/// How long a ref of ours is: the digits of an id, and a newline.
const REF_LEN: u64 = 41;

/// The refs of ours that hold no byte, or, by their length alone, garbage.
pub(crate) fn refs(path: &Path) -> Result<Vec<PathBuf>> {
    let has_its_length =
        |file: &PathBuf| file.symlink_metadata().is_ok_and(|facts| !facts.is_file() || facts.len() == REF_LEN);
    Ok(all_refs(path)?.into_iter().filter(|file| !has_its_length(file)).collect())
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
            ("refs/outlast/r/t/2", "0123456789012345678901234567890123456789\n"),
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

    #[test]
    fn h15_a_head_a_ref_and_a_list_of_lenders_that_say_nothing_are_found_as_empty_ones_are() {
        let store = tempfile::tempdir().unwrap();
        let found = |name: &str, text: &str| {
            let file = store.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            let found = emptied(store.path()).unwrap();
            fs::remove_file(&file).unwrap();
            found == [file]
        };
        let id = "0123456789012345678901234567890123456789";
        for (name, sound) in [
            ("HEAD", "ref: refs/heads/none\n"),
            ("HEAD", id),
            (ALTERNATES, "/a/objects\n"),
            ("refs/outlast/r/t/1", &format!("{id}\n")),
        ] {
            assert!(!found(name, sound), "{name}: {sound:?}");
        }
        for name in ["HEAD", ALTERNATES, "refs/outlast/r/t/1"] {
            for garbage in ["", "garbage\n", "ref: \0\u{1}\n", "/a\0/objects\n"] {
                assert!(found(name, garbage), "{name}: {garbage:?}");
            }
        }
    }
}
