//! Files that a filter driver stands between: how they look on disk is remembered, because no checkpoint runs a filter.

use std::collections::BTreeMap;

use gix::bstr::{BStr, ByteSlice};

use crate::inside::Folder;
use crate::scan::convert::Converter;
use crate::scan::index::Index;
use crate::settings::Settings;
use crate::tree::{Edits, Leaf};
use crate::{Error, Result};

/// Counts the files with a filter by driver, and adds to `dirt` those whose bytes on disk are not those of the tree.
pub(super) fn find(
    root: &Folder,
    settings: &Settings,
    index: &Index,
    dirt: &mut Edits,
) -> Result<BTreeMap<String, usize>> {
    let mut converter = Converter::new(root, settings);
    let mut counts = BTreeMap::new();
    for at in 0..index.len() {
        let path = index.path(at);
        let Some(driver) = converter.filter(path) else { continue };
        *counts.entry(driver).or_default() += 1;
        let Some((_, known)) = index.get(path, at) else { continue };
        let (folder, name) = path.rsplit_once_str("/").unwrap_or((b"", path));
        let read = root.descend(folder.as_bstr()).and_then(|f| f.read(BStr::new(name), u64::MAX - 1));
        let Ok(data) = read else { continue };
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, &data)
            .map_err(|e| Error::object("new", e))?;
        if id != known.leaf.id {
            dirt.insert(path.to_owned(), Some(Leaf { kind: known.leaf.kind, id }));
        }
    }
    Ok(counts)
}
