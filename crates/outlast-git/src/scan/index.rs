//! The cache of a scan: which content each path had, and the file's stat data when it was read.
//!
//! It is git's index format, so that the one git writes when it fills a workspace is the first cache. The file's name
//! carries the id of the tree that its entries make up, so that content and meaning cannot come apart. It is a cache:
//! lost or damaged, it is rebuilt from that tree, and every file is read again.
//!
//! Writing one of a large tree takes longer than a turn may, so that what differs from the last whole one is mostly kept
//! beside it ([`since`]).

mod since;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::{BStr, BString};
use gix::index::entry::{Flags, Mode, Stat, stat::Time};
use gix::index::{File as IndexFile, State};
use nix::sys::stat::FileStat;

use crate::source::Reader;
use crate::tree::{Edits, Leaf};
use crate::{Error, Kind, Result};

use since::Since;

/// A file that changed less than this before it was read may change again within the same tick of the clock that
/// stamps it; its stat data is then not worth remembering.
const TICK_NS: i128 = 100_000_000;

/// A scan's cache.
pub(crate) struct Index {
    folder: PathBuf,
    state: State,
    tree: ObjectId,
    /// What stands in a file, and what was kept beside that.
    kept: Option<Since>,
}

/// What the cache knows of a path.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) leaf: Leaf,
    stat: Stat,
    racy: bool,
}

impl Known {
    /// Tells whether the file still is as it was read.
    pub(crate) fn is_unchanged(&self, now: &FileStat) -> bool {
        !self.racy && self.stat.mtime.secs != 0 && self.stat == stat_of(now)
    }
}

impl Index {
    /// Where git writes the first cache, for this tree.
    pub(crate) fn path_for(folder: &Path, tree: ObjectId) -> PathBuf {
        folder.join(format!("index-{tree}"))
    }

    /// Opens the newest cache in `folder`; without one, makes an empty one of `tree`.
    pub(crate) fn open(folder: &Path, reader: &Reader, tree: ObjectId) -> Result<Self> {
        match Self::newest(folder)? {
            Newest::Read(index) => Ok(*index),
            Newest::Damaged(tree) => Self::of_tree(folder, reader, tree),
            Newest::None => Self::of_tree(folder, reader, tree),
        }
    }

    /// An empty one of `tree`: every file is read.
    pub(crate) fn of_tree(folder: &Path, reader: &Reader, tree: ObjectId) -> Result<Self> {
        let state = State::from_tree(&tree, &reader.0, gix::validate::path::component::Options::default())
            .map_err(|e| Error::object(tree, e))?;
        Ok(Self { folder: folder.to_owned(), state, tree, kept: None })
    }

    /// Forgets what is kept in `folder` where its tree does not pass.
    pub(crate) fn forget_unless(folder: &Path, passes: impl Fn(ObjectId) -> bool) -> Result<()> {
        let whole = all(folder)?.into_iter().filter(|(_, tree)| !passes(*tree)).map(|(path, _)| path);
        let since = since::all(folder)?.into_iter().filter(|at| !passes(at.of) || !passes(at.tree)).map(|at| at.path);
        whole.chain(since).try_for_each(|path| crate::durable::remove(&path))
    }

    /// Opens the newest cache in `folder`; without one that can be read, an empty one, of the tree without entries.
    pub(crate) fn open_or_empty(folder: &Path) -> Result<Self> {
        if let Newest::Read(index) = Self::newest(folder)? {
            return Ok(*index);
        }
        let state = State::new(gix::hash::Kind::Sha1);
        Ok(Self { folder: folder.to_owned(), state, tree: crate::oid::empty_tree(), kept: None })
    }

    /// Reads the newest cache in `folder`.
    fn newest(folder: &Path) -> Result<Newest> {
        // After a crash between writing one cache and removing the other there are two; each is true, the newer is better.
        let changed = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
        let Some((path, of)) = all(folder)?.into_iter().max_by_key(|(path, _)| changed(path)) else {
            return Ok(Newest::None);
        };
        let beside = since::all(folder)?.into_iter().filter(|at| at.of == of).max_by_key(|at| changed(&at.path));
        let options = gix::index::decode::Options::default();
        let Ok(file) = IndexFile::at(path, gix::hash::Kind::Sha1, true, options) else {
            return Ok(Newest::Damaged(beside.map_or(of, |at| at.tree)));
        };
        let mut index = Self { folder: folder.to_owned(), state: file.into_parts().0, tree: of, kept: None };
        let mut kept = Since::of(of);
        // One that is damaged is as good as none: the whole one knows less, and that is true.
        if let Some(at) = beside
            && let Some((stamped, read)) = since::read(&at)
        {
            read.lay_over(&mut index.state, &stamped);
            index.tree = at.tree;
            kept = read;
        }
        index.kept = Some(kept);
        Ok(Newest::Read(Box::new(index)))
    }

    /// The tree that the entries make up.
    pub(crate) fn tree(&self) -> ObjectId {
        self.tree
    }

    /// What is known of a path; `hint` is the place that is looked at first, which a walk in order mostly gets right.
    pub(crate) fn get(&self, path: &BStr, hint: usize) -> Option<(usize, Known)> {
        let is_hinted = self.state.entries().get(hint).is_some_and(|entry| entry.path(&self.state) == path);
        let at = if is_hinted { hint } else { self.state.entry_index_by_path(path).ok()? };
        Some((at, self.known(at)))
    }

    /// What is known of the path at a place.
    pub(crate) fn known(&self, at: usize) -> Known {
        let entry = &self.state.entries()[at];
        Known { leaf: leaf_of(entry), stat: entry.stat, racy: is_racy(&self.state, entry) }
    }

    /// The places of all paths beneath `folder`, which lie side by side.
    pub(crate) fn beneath(&self, folder: &BStr) -> Range<usize> {
        let mut prefix = folder.to_owned();
        prefix.push(b'/');
        self.state.prefixed_entries_range(prefix.as_ref()).unwrap_or_default()
    }

    /// Tells whether any path lies beneath `folder`.
    pub(crate) fn has_beneath(&self, folder: &BStr) -> bool {
        !self.beneath(folder).is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.state.entries().len()
    }

    pub(crate) fn path(&self, at: usize) -> &BStr {
        self.state.entries()[at].path(&self.state)
    }

    pub(crate) fn leaf(&self, at: usize) -> Leaf {
        leaf_of(&self.state.entries()[at])
    }

    /// Takes over what a scan found, and keeps it for the next one under the name of `tree`.
    pub(crate) fn save(mut self, tree: ObjectId, edits: &Edits, fresh: &[(BString, Stat)]) -> Result<()> {
        let kept = self.kept.take().filter(|kept| kept.is_there(&self.folder, self.tree));
        if tree == self.tree && fresh.is_empty() && edits.is_empty() && kept.is_some() {
            return Ok(());
        }
        let leaf_at = |path: &BStr| self.state.entry_index_by_path(path).ok().map(|at| self.leaf(at));
        if let Some(kept) = kept.and_then(|kept| kept.with(edits, fresh, leaf_at, self.len())) {
            return kept.write(&self.folder, tree);
        }
        self.state.remove_entries(|_, path, _| edits.contains_key(path));
        for (path, leaf) in edits.iter().filter_map(|(path, leaf)| leaf.map(|leaf| (path, leaf))) {
            self.state.dangerously_push_entry(Stat::default(), leaf.id, Flags::empty(), mode_of(leaf), path.as_ref());
        }
        self.state.sort_entries();
        for (path, stat) in fresh {
            if let Ok(at) = self.state.entry_index_by_path(path.as_ref()) {
                self.state.entries_mut()[at].stat = *stat;
            }
        }
        self.write(tree)
    }

    fn write(mut self, tree: ObjectId) -> Result<()> {
        let path = Self::path_for(&self.folder, tree);
        self.state.remove_tree();
        let mut temp = tempfile::NamedTempFile::new_in(&self.folder).map_err(Error::io("write in", &self.folder))?;
        let file = IndexFile::from_state(self.state, &path);
        let options = gix::index::write::Options { extensions: gix::index::write::Extensions::None, skip_hash: true };
        let mut out = std::io::BufWriter::with_capacity(1 << 16, temp.as_file_mut());
        file.write_to(&mut out, options).map_err(|e| Error::State { path: path.clone(), why: e.to_string() })?;
        out.flush().map_err(Error::io("write", &path))?;
        drop(out);
        // Without a checksum, which costs more than the sync, a torn file must never get the name.
        temp.as_file().sync_data().map_err(Error::io("sync", &path))?;
        temp.persist(&path).map_err(|e| Error::io("write", &path)(e.error))?;
        let whole = all(&self.folder)?.into_iter().map(|(path, _)| path).filter(|old| *old != path);
        let since = since::all(&self.folder)?.into_iter().map(|at| at.path);
        for old in whole.chain(since) {
            std::fs::remove_file(&old).map_err(Error::io("remove", old))?;
        }
        Ok(())
    }
}

/// What a folder of caches holds.
enum Newest {
    None,
    /// One that cannot be read; this was its tree.
    Damaged(ObjectId),
    Read(Box<Index>),
}

/// Whether a file may have changed after it was read, without that being seen by its times.
fn is_racy(state: &State, entry: &gix::index::Entry) -> bool {
    let stamp = state.timestamp();
    (i64::from(entry.stat.mtime.secs), entry.stat.mtime.nsecs) >= (stamp.unix_seconds(), stamp.nanoseconds())
}

fn mode_of(leaf: Leaf) -> Mode {
    match leaf.kind {
        Kind::File => Mode::FILE,
        Kind::Executable => Mode::FILE_EXECUTABLE,
        Kind::Link => Mode::SYMLINK,
        Kind::Gitlink => Mode::COMMIT,
    }
}

fn leaf_of(entry: &gix::index::Entry) -> Leaf {
    let kind = match entry.mode {
        Mode::FILE => Kind::File,
        Mode::FILE_EXECUTABLE => Kind::Executable,
        Mode::SYMLINK => Kind::Link,
        _ => Kind::Gitlink,
    };
    Leaf { kind, id: entry.id }
}

/// The stat data to remember for a file read at `read_at`; all zero when the file is too fresh to trust it.
pub(crate) fn stat_to_keep(stat: &FileStat, read_at: std::time::SystemTime) -> Stat {
    let since_epoch = read_at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let read_ns = i128::try_from(since_epoch.as_nanos()).unwrap_or(i128::MAX);
    let changed_ns = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
    if read_ns - changed_ns < TICK_NS { Stat::default() } else { stat_of(stat) }
}

/// Stat data as an index keeps it: every field cut to 32 bits (git's index format).
fn stat_of(stat: &FileStat) -> Stat {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index format keeps the low 32 bits"
    )]
    Stat {
        mtime: Time { secs: stat.st_mtime as u32, nsecs: stat.st_mtime_nsec as u32 },
        ctime: Time { secs: stat.st_ctime as u32, nsecs: stat.st_ctime_nsec as u32 },
        dev: stat.st_dev as u32,
        ino: stat.st_ino as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size as u32,
    }
}

fn all(folder: &Path) -> Result<Vec<(PathBuf, ObjectId)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?;
        let name = entry.file_name();
        if let Some(id) =
            name.to_str().and_then(|n| n.strip_prefix("index-")).and_then(|hex| crate::oid::parse_text(hex).ok())
        {
            found.push((entry.path(), id));
        }
    }
    Ok(found)
}
