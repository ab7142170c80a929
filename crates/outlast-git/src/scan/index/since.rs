//! What differs from a whole cache, kept beside it: a turn changes a few files of a tree that may have a hundred thousand.
//!
//! It is an index as well, of the paths that differ alone; one with an id of zeros is gone. Its name carries the id of the
//! tree that the whole cache stands for, and of the one that both stand for together. Damaged (it has a checksum), it is
//! passed over: the whole cache is true without it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::{File as IndexFile, State};

use super::{Index, is_racy, leaf_of, mode_of};
use crate::tree::{Edits, Leaf};
use crate::{Error, Result, oid};

/// Most paths that are kept so, and which part of all they may be: beyond, the whole is written anew.
const PATHS_MAX: usize = 1000;
const PART_MAX: usize = 8;

const PREFIX: &str = "since-";

/// What differs from a whole cache.
pub(super) struct Since {
    of: ObjectId,
    /// What each path is, and its stat data; nothing where it is gone.
    paths: BTreeMap<BString, Option<(Leaf, Stat)>>,
}

/// Where one is kept.
pub(super) struct At {
    pub(super) path: PathBuf,
    pub(super) of: ObjectId,
    pub(super) tree: ObjectId,
}

impl Since {
    /// Nothing, beside the whole cache of a tree.
    pub(super) fn of(tree: ObjectId) -> Self {
        Self { of: tree, paths: BTreeMap::new() }
    }

    /// Whether this and what it stands beside are on disk.
    pub(super) fn is_there(&self, folder: &Path, tree: ObjectId) -> bool {
        let is_kept = self.paths.is_empty() || file(folder, self.of, tree).exists();
        is_kept && Index::path_for(folder, self.of).exists()
    }

    /// The same with what a scan found; nothing where that is too much, `len` being how many paths there are in all.
    pub(super) fn with(
        mut self,
        edits: &Edits,
        fresh: &[(BString, Stat)],
        leaf_at: impl Fn(&BStr) -> Option<Leaf>,
        len: usize,
    ) -> Option<Self> {
        for (path, leaf) in edits {
            self.paths.insert(path.clone(), leaf.map(|leaf| (leaf, Stat::default())));
        }
        for (path, stat) in fresh {
            let leaf = match edits.get(path) {
                Some(leaf) => *leaf,
                None => leaf_at(path.as_ref()),
            };
            if let Some(leaf) = leaf {
                self.paths.insert(path.clone(), Some((leaf, *stat)));
            }
        }
        (self.paths.len() <= PATHS_MAX.min(len / PART_MAX)).then_some(self)
    }

    /// Lays it over the whole cache, whose stat data then counts as that which was read at `stamped`'s time.
    pub(super) fn lay_over(&self, state: &mut State, stamped: &State) {
        let racy: Vec<usize> =
            state.entries().iter().enumerate().filter(|(_, e)| is_racy(state, e)).map(|(at, _)| at).collect();
        for at in racy {
            state.entries_mut()[at].stat = Stat::default();
        }
        state.set_timestamp(stamped.timestamp());
        let mut gone = BTreeSet::new();
        let mut new = Vec::new();
        for (path, is) in &self.paths {
            match (state.entry_index_by_path(path.as_ref()), is) {
                (Ok(at), Some((leaf, stat))) => {
                    let entry = &mut state.entries_mut()[at];
                    (entry.id, entry.mode, entry.stat) = (leaf.id, mode_of(*leaf), *stat);
                }
                (Ok(_), None) => drop(gone.insert(path.as_bstr())),
                (Err(_), Some((leaf, stat))) => new.push((path, *leaf, *stat)),
                (Err(_), None) => {}
            }
        }
        if !gone.is_empty() {
            state.remove_entries(|_, path, _| gone.contains(path));
        }
        if !new.is_empty() {
            for (path, leaf, stat) in new {
                state.dangerously_push_entry(stat, leaf.id, Flags::empty(), mode_of(leaf), path.as_ref());
            }
            state.sort_entries();
        }
    }

    /// Keeps it under the name of `tree`, in the place of the one before.
    pub(super) fn write(self, folder: &Path, tree: ObjectId) -> Result<()> {
        let mut state = State::new(gix::hash::Kind::Sha1);
        for (path, is) in &self.paths {
            let (leaf, stat) = match is {
                Some((leaf, stat)) => (Some(*leaf), *stat),
                None => (None, Stat::default()),
            };
            let (id, mode) =
                leaf.map_or((ObjectId::null(gix::hash::Kind::Sha1), Mode::FILE), |leaf| (leaf.id, mode_of(leaf)));
            state.dangerously_push_entry(stat, id, Flags::empty(), mode, path.as_ref());
        }
        let path = file(folder, self.of, tree);
        let mut bytes = Vec::new();
        let options = gix::index::write::Options { extensions: gix::index::write::Extensions::None, skip_hash: false };
        IndexFile::from_state(state, &path)
            .write_to(&mut bytes, options)
            .map_err(|e| Error::State { path: path.clone(), why: e.to_string() })?;
        let mut temp = tempfile::NamedTempFile::new_in(folder).map_err(Error::io("write in", folder))?;
        std::io::Write::write_all(&mut temp, &bytes).map_err(Error::io("write", &path))?;
        // Not synced: torn or lost in a crash of the machine, it is passed over, and the whole cache is true without it.
        temp.persist(&path).map_err(|e| Error::io("write", &path)(e.error))?;
        for old in all(folder)?.into_iter().filter(|old| old.path != path) {
            std::fs::remove_file(&old.path).map_err(Error::io("remove", old.path))?;
        }
        Ok(())
    }
}

/// Reads one, with the times of its file; nothing where it is damaged.
pub(super) fn read(at: &At) -> Option<(State, Since)> {
    let options = gix::index::decode::Options::default();
    let file = IndexFile::at(&at.path, gix::hash::Kind::Sha1, false, options).ok()?;
    // Zeros in its place pass for one that was not wanted: they are what a crash leaves.
    file.checksum()?;
    let state = file.into_parts().0;
    let is = |entry: &gix::index::Entry| (!entry.id.is_null()).then(|| (leaf_of(entry), entry.stat));
    let paths = state.entries().iter().map(|entry| (entry.path(&state).to_owned(), is(entry))).collect();
    Some((state, Since { of: at.of, paths }))
}

fn file(folder: &Path, of: ObjectId, tree: ObjectId) -> PathBuf {
    folder.join(format!("{PREFIX}{of}-{tree}"))
}

/// Those in a folder.
pub(super) fn all(folder: &Path) -> Result<Vec<At>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?;
        let name = entry.file_name();
        let ids = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if let Some((of, tree)) = ids
            && let (Ok(of), Ok(tree)) = (oid::parse_text(of), oid::parse_text(tree))
        {
            found.push(At { path: entry.path(), of, tree });
        }
    }
    Ok(found)
}
