//! The `.git` folder of a repository that lies in a workspace's tree: no checkpoint has it in its tree, since no git
//! would check it out, so it is kept beside it, file by file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};

use crate::checkpoint::Note;
use crate::inside::Folder;
use crate::objects::Batch;
use crate::scan::index::Index;
use crate::scan::{self, Found, Sink};
use crate::settings::Settings;
use crate::source::Reader;
use crate::tree;
use crate::{Error, Result};

/// What is kept of one repository.
pub(crate) struct Nested {
    /// Where it lies.
    pub(crate) path: BString,
    /// The tree of its `.git`.
    pub(crate) files: ObjectId,
    /// The empty folders of its `.git`, without some of which git takes it for none.
    pub(crate) folders: Vec<BString>,
    cache: Index,
    found: Found,
}

/// Where what was read of nested repositories is remembered.
fn caches(admin: &Path) -> PathBuf {
    admin.join("nested")
}

fn cache(admin: &Path, path: &BStr) -> PathBuf {
    caches(admin).join(format!("{:016x}", outlast_core::hash::fnv1a(path)))
}

/// Reads the `.git` of the repository at `path`; `None` where that is no folder. The error in the middle says why it
/// cannot be kept whole: half a repository is none.
pub(crate) fn keep(
    root: &Folder,
    path: &BStr,
    admin: &Path,
    reader: &Reader,
    batch: &mut Batch<'_>,
    limit: u64,
) -> Result<Option<std::result::Result<Nested, String>>> {
    let put = &mut |data: &[u8]| batch.put(gix::objs::Kind::Blob, data);
    let Some((cache, found)) = read(root, path, admin, reader, limit, put)? else { return Ok(None) };
    if let Some(path) = skipped(&found) {
        return Ok(Some(Err(format!("`{path}` in it cannot be kept"))));
    }
    let files = tree::edit(reader, batch, cache.tree(), &found.edits)?;
    let folders = found.folders.clone();
    Ok(Some(Ok(Nested { path: path.to_owned(), files, folders, cache, found })))
}

/// Whether the last checkpoint holds the `.git` of the repository at `path` as it is now; also where that is no folder.
pub(crate) fn is_kept(root: &Folder, path: &BStr, admin: &Path, reader: &Reader, limit: u64) -> Result<bool> {
    let hash = &mut |data: &[u8]| {
        gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, data).map_err(|e| Error::object("new", e))
    };
    let read = read(root, path, admin, reader, limit, hash)?;
    Ok(read.is_none_or(|(_, found)| found.edits.is_empty() && skipped(&found).is_none()))
}

fn read(
    root: &Folder,
    path: &BStr,
    admin: &Path,
    reader: &Reader,
    limit: u64,
    sink: &mut Sink<'_>,
) -> Result<Option<(Index, Found)>> {
    let Ok(folder) = root.descend(path).and_then(|folder| folder.folder(b".git".as_bstr())) else { return Ok(None) };
    let place = cache(admin, path);
    std::fs::create_dir_all(&place).map_err(Error::io("create", &place))?;
    let cache = Index::open_or_empty(&place)?;
    let nothing = BTreeSet::new();
    let task = scan::Task {
        root: &folder,
        settings: &Settings::default(),
        index: &cache,
        reader,
        never: &nothing,
        forced: &nothing,
        dirt: &BTreeMap::new(),
        agent: None,
        limit,
    };
    let found = scan::scan(&task, sink)?;
    Ok(Some((cache, found)))
}

/// A file that was not taken.
fn skipped(found: &Found) -> Option<&BString> {
    found.notes.iter().find_map(|note| match note {
        Note::Skipped { path, .. } => Some(path),
        _ => None,
    })
}

/// Remembers what was read, once it is durable, and forgets what is not there any more: what no checkpoint names, a
/// garbage collection takes.
pub(crate) fn remember(admin: &Path, nested: Vec<Nested>) -> Result<()> {
    let used: BTreeSet<PathBuf> = nested.iter().map(|each| cache(admin, each.path.as_bstr())).collect();
    for each in nested {
        each.cache.save(each.files, &each.found.edits, &each.found.fresh)?;
    }
    let folder = caches(admin);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("read", folder)(e)),
    };
    for entry in entries {
        let path = entry.map_err(Error::io("read", &folder))?.path();
        if !used.contains(&path) {
            std::fs::remove_dir_all(&path).map_err(Error::io("remove", path))?;
        }
    }
    Ok(())
}
