//! The cache of a scan: which content each path had, and the file's stat data when it was read.
//!
//! It is git's index format, so that the one git writes when it fills a workspace is the first cache. The file's name
//! carries the id of the tree that its entries make up, so that content and meaning cannot come apart. It is a cache:
//! lost or damaged, it is rebuilt from that tree, and every file is read again.

use std::io::Write;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::BStr;
use gix::index::entry::{Flags, Mode, Stat, stat::Time};
use gix::index::{File as IndexFile, State};
use nix::sys::stat::FileStat;

use crate::source::Reader;
use crate::tree::{Edits, Leaf};
use crate::{Error, Kind, Result};

/// A file that changed less than this before it was read may change again within the same tick of the clock that
/// stamps it; its stat data is then not worth remembering.
const TICK_NS: i128 = 100_000_000;

/// A scan's cache.
pub(crate) struct Index {
    folder: PathBuf,
    state: State,
    tree: ObjectId,
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
        let found = newest(folder)?;
        let tree = found.as_ref().map_or(tree, |(_, id)| *id);
        if let Some((path, _)) = found
            && let Ok(file) = IndexFile::at(path, gix::hash::Kind::Sha1, true, gix::index::decode::Options::default())
        {
            return Ok(Self { folder: folder.to_owned(), state: file.into_parts().0, tree });
        }
        Self::of_tree(folder, reader, tree)
    }

    /// An empty one of `tree`: every file is read.
    pub(crate) fn of_tree(folder: &Path, reader: &Reader, tree: ObjectId) -> Result<Self> {
        let state = State::from_tree(&tree, &reader.0, gix::validate::path::component::Options::default())
            .map_err(|e| Error::object(tree, e))?;
        Ok(Self { folder: folder.to_owned(), state, tree })
    }

    /// Forgets what is kept in `folder` where its tree does not pass.
    pub(crate) fn forget_unless(folder: &Path, passes: impl Fn(ObjectId) -> bool) -> Result<()> {
        all(folder)?
            .into_iter()
            .filter(|(_, tree)| !passes(*tree))
            .try_for_each(|(path, _)| crate::durable::remove(&path))
    }

    /// Opens the newest cache in `folder`; without one that can be read, an empty one, of the tree without entries.
    pub(crate) fn open_or_empty(folder: &Path) -> Result<Self> {
        if let Some((path, tree)) = newest(folder)?
            && let Ok(file) = IndexFile::at(path, gix::hash::Kind::Sha1, true, gix::index::decode::Options::default())
        {
            return Ok(Self { folder: folder.to_owned(), state: file.into_parts().0, tree });
        }
        let state = State::new(gix::hash::Kind::Sha1);
        Ok(Self { folder: folder.to_owned(), state, tree: crate::oid::empty_tree() })
    }

    /// The tree that the entries make up.
    pub(crate) fn tree(&self) -> ObjectId {
        self.tree
    }

    /// What is known of a path; `hint` is the place that is looked at first, which a walk in order mostly gets right.
    pub(crate) fn get(&self, path: &BStr, hint: usize) -> Option<(usize, Known)> {
        let is_hinted = self.state.entries().get(hint).is_some_and(|entry| entry.path(&self.state) == path);
        let at = if is_hinted { hint } else { self.state.entry_index_by_path(path).ok()? };
        let entry = &self.state.entries()[at];
        let stamp = self.state.timestamp();
        let (secs, nanos) = (stamp.unix_seconds(), stamp.nanoseconds());
        let racy = (i64::from(entry.stat.mtime.secs), entry.stat.mtime.nsecs) >= (secs, nanos);
        Some((at, Known { leaf: leaf_of(entry), stat: entry.stat, racy }))
    }

    /// Tells whether any path lies beneath `folder`.
    pub(crate) fn has_beneath(&self, folder: &BStr) -> bool {
        let mut prefix = folder.to_owned();
        prefix.push(b'/');
        self.state.prefixed_entries_range(prefix.as_ref()).is_some_and(|range| !range.is_empty())
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
    pub(crate) fn save(mut self, tree: ObjectId, edits: &Edits, fresh: &[(gix::bstr::BString, Stat)]) -> Result<()> {
        if tree == self.tree && fresh.is_empty() && edits.is_empty() && Self::path_for(&self.folder, tree).exists() {
            return Ok(());
        }
        self.state.remove_entries(|_, path, _| edits.contains_key(path));
        for (path, leaf) in edits.iter().filter_map(|(path, leaf)| leaf.map(|leaf| (path, leaf))) {
            let mode = match leaf.kind {
                Kind::File => Mode::FILE,
                Kind::Executable => Mode::FILE_EXECUTABLE,
                Kind::Link => Mode::SYMLINK,
                Kind::Gitlink => Mode::COMMIT,
            };
            self.state.dangerously_push_entry(Stat::default(), leaf.id, Flags::empty(), mode, path.as_ref());
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
        for old in all(&self.folder)?.into_iter().filter(|(p, _)| *p != path) {
            std::fs::remove_file(&old.0).map_err(Error::io("remove", old.0))?;
        }
        Ok(())
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

/// After a crash between writing one cache and removing the other there are two; each is true, the newer is better.
fn newest(folder: &Path) -> Result<Option<(PathBuf, ObjectId)>> {
    let changed = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    Ok(all(folder)?.into_iter().max_by_key(|(path, _)| changed(path)))
}
