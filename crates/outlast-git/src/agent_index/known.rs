//! What an agent's index came to when it was last read, for as long as the file stays the same: most turns stage nothing, and
//! to read the index of a large tree and compare it with that tree takes a fifth of a checkpoint.
//!
//! Only one that is a tree and nothing else is remembered: nothing left open by a merge, only announced, or left alone by git.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::Stat;

use super::{AgentIndex, Staged};
use crate::scan::index::{Index, stat_to_keep};
use crate::source::Reader;
use crate::tree::{self, Edits, Leaf};
use crate::{Error, Result, oid};

/// The file's name.
const NAME: &str = "staged";

/// What is staged, as far as a checkpoint asks.
pub(crate) enum Contents {
    /// As it was read.
    Read {
        /// All of it.
        index: AgentIndex,
        /// The file that it was read from; nothing where that may change without a trace.
        stamp: Option<Stamp>,
    },
    /// How the tree that it is known to be differs from the one that the scan's cache knows.
    Known(Edits),
}

/// By what a file is taken for the same one, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(String);

impl Stamp {
    /// That of a file as it is now; nothing where it changed so short a while ago that it may change again unseen.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let stat = nix::sys::stat::fstat(file).ok()?;
        let Stat { mtime, ctime, dev, ino, uid, gid, size } = stat_to_keep(&stat, SystemTime::now());
        let words = [mtime.secs, mtime.nsecs, ctime.secs, ctime.nsecs, dev, ino, uid, gid, size];
        (mtime.secs != 0).then(|| Self(words.map(|word| word.to_string()).join(" ")))
    }
}

impl Contents {
    /// What is known of the index that this is the stamp of, beside what `cache` knows.
    pub(crate) fn known(admin: &Path, stamp: &Stamp, reader: &Reader, cache: &Index) -> Option<Self> {
        let text = std::fs::read_to_string(file(admin)).ok()?;
        let (of, tree) = text.strip_suffix('\n')?.rsplit_once(' ')?;
        let tree = oid::parse_text(tree).ok().filter(|_| of == stamp.0)?;
        // What cannot be read any more is read anew from the index.
        tree::edits_between(reader, cache.tree(), tree).ok().map(Self::Known)
    }

    /// Remembers that it is `tree`, as which it was stored, and nothing else, if that is so.
    pub(crate) fn remember(&self, admin: &Path, reader: &Reader, cache: &Index, tree: ObjectId) -> Result<()> {
        let Self::Read { index, stamp: Some(stamp) } = self else { return Ok(()) };
        let is_that = |edits: Edits| edits == index.against(cache).edits;
        // What cannot be read is not remembered: the checkpoint stands without.
        if !index.is_plain() || !tree::edits_between(reader, cache.tree(), tree).is_ok_and(is_that) {
            return Ok(());
        }
        let path = file(admin);
        let mut temp = tempfile::NamedTempFile::new_in(admin).map_err(Error::io("write in", admin))?;
        // Torn or lost in a crash, it is no stamp, and the index is read.
        std::io::Write::write_all(&mut temp, format!("{} {tree}\n", stamp.0).as_bytes())
            .map_err(Error::io("write", &path))?;
        temp.persist(&path).map(drop).map_err(|e| Error::io("write", &path)(e.error))
    }

    /// See [`AgentIndex::added`].
    pub(crate) fn added(&self, cache: &Index) -> Vec<BString> {
        match self {
            Self::Read { index, .. } => index.added(cache),
            Self::Known(edits) => {
                let is_there = edits.iter().filter(|(_, leaf)| leaf.is_some()).map(|(path, _)| path);
                is_there.filter(|path| cache.get(path.as_bstr(), 0).is_none()).cloned().collect()
            }
        }
    }

    /// See [`AgentIndex::skipped`].
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&BStr, Leaf)> {
        self.read().into_iter().flat_map(AgentIndex::skipped)
    }

    /// See [`AgentIndex::assumed`].
    pub(crate) fn assumed(&self) -> impl Iterator<Item = &BStr> {
        self.read().into_iter().flat_map(AgentIndex::assumed)
    }

    /// See [`AgentIndex::against`].
    pub(crate) fn against(&self, cache: &Index) -> Staged {
        match self {
            Self::Read { index, .. } => index.against(cache),
            Self::Known(edits) => Staged { edits: edits.clone(), ..Staged::default() },
        }
    }

    const fn read(&self) -> Option<&AgentIndex> {
        match self {
            Self::Read { index, .. } => Some(index),
            Self::Known(_) => None,
        }
    }
}

fn file(admin: &Path) -> PathBuf {
    admin.join(NAME)
}
