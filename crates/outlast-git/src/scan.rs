//! Reading a whole working tree that an agent may be writing at the same time.
//!
//! The walk opens folder after folder without following a symlink, asks the cache about each file, and reads only what
//! changed; folders that were seen to hold what is known of them ([`ahead`]) it passes over. It starts no program, reads no
//! configuration of the agent's, and writes nothing in the tree. Of the agent's index it takes two things: what was added
//! counts although it is ignored, and what git was told not to have on disk (`git sparse-checkout`) is not gone.
//! A repository inside the tree is taken as plain files, never as a link to its commit.

mod absent;
pub(crate) mod ahead;
pub(crate) mod convert;
pub(crate) mod ignore;
pub(crate) mod index;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::time::SystemTime;

use gix::bstr::{BStr, BString, ByteSlice};
use nix::sys::stat::{FileStat, SFlag};

use crate::agent_index::known::Contents;
use crate::agent_repo::AgentRepo;
use crate::checkpoint::{Note, SkipReason};
use crate::inside::{self, Folder, Hint};
use crate::settings::Settings;
use crate::source::Reader;
use crate::tree::{Edits, Leaf, join};
use crate::{Error, Kind, Result};

use ahead::Ahead;
use convert::Converter;
use ignore::Ignores;
use index::{Index, Known, stat_to_keep};

/// How often a file is read anew when it changes while it is read.
const READS_MAX: usize = 3;
/// Most ignored paths that are named.
const IGNORED_MAX: usize = 1000;
/// Deepest folder that is walked into.
pub(crate) const DEPTH_MAX: usize = 256;

/// What a scan needs to know of its workspace.
pub(crate) struct Task<'a> {
    pub(crate) root: &'a Folder,
    pub(crate) settings: &'a Settings,
    pub(crate) index: &'a Index,
    pub(crate) reader: &'a Reader,
    /// Files of ours that are never taken, such as copied secrets.
    pub(crate) never: &'a std::collections::BTreeSet<BString>,
    /// Paths that count although an ignore pattern names them: the agent has committed or added them.
    pub(crate) forced: &'a std::collections::BTreeSet<BString>,
    /// How paths looked at creation where that differs from the base: no work of the agent's.
    pub(crate) dirt: &'a BTreeMap<BString, Option<Leaf>>,
    /// The agent's own repository, where there is one.
    pub(crate) agent: Option<Agent<'a>>,
    /// Largest new content that is taken, in bytes.
    pub(crate) limit: u64,
}

/// What a scan asks of the agent's repository.
#[derive(Clone, Copy)]
pub(crate) struct Agent<'a> {
    pub(crate) repo: &'a AgentRepo,
    /// Its index as read; the error says why it cannot be.
    pub(crate) index: &'a std::result::Result<Option<Contents>, String>,
}

/// What a scan found.
#[derive(Default)]
pub(crate) struct Found {
    /// What differs from the index's tree.
    pub(crate) edits: Edits,
    /// Stat data to remember.
    pub(crate) fresh: Vec<(BString, gix::index::entry::Stat)>,
    pub(crate) notes: Vec<Note>,
    /// Of each file that was read, its bytes on disk where a checkout of what is stored may write others.
    pub(crate) raw: Vec<(BString, Option<Leaf>)>,
    /// Folders without anything that a tree can hold, in which no other such folder lies.
    pub(crate) folders: Vec<BString>,
    pub(crate) settled: bool,
}

/// Where content goes: into the store, or nowhere but through the hash.
pub(crate) type Sink<'a> = dyn FnMut(&[u8]) -> Result<gix::ObjectId> + 'a;

struct Walk<'a, 'b> {
    task: &'a Task<'a>,
    sink: &'b mut Sink<'b>,
    converter: Converter<'a>,
    ignores: Ignores,
    /// What was seen before the walk.
    ahead: &'a Ahead,
    seen: Vec<bool>,
    /// Where the index most likely has the next file.
    next: usize,
    /// Files that were read, to be looked at once more at the end.
    read: Vec<(BString, FileStat)>,
    ignored: usize,
    /// How much was come across that a restored tree will have; a folder that adds nothing is empty.
    kept: usize,
    found: Found,
}

/// Walks the tree, of which something was seen ahead, and hands every changed content to `sink`.
pub(crate) fn scan<'a>(task: &'a Task<'a>, ahead: &'a Ahead, sink: &mut Sink<'_>) -> Result<Found> {
    let mut walk = Walk {
        task,
        sink,
        converter: Converter::new(task.root, task.settings),
        ignores: Ignores::new(&task.settings.excludes),
        ahead,
        seen: vec![false; task.index.len()],
        next: 0,
        read: Vec::new(),
        ignored: 0,
        kept: 0,
        found: Found { settled: true, ..Found::default() },
    };
    let root = task.root.descend(BStr::new("")).map_err(Error::io("open", "."))?;
    walk.folder(&root, BStr::new(""), false, 0)?;
    walk.look_again();
    walk.deletions();
    walk.absent()?;
    Ok(walk.found)
}

impl Walk<'_, '_> {
    fn folder(&mut self, folder: &Folder, path: &BStr, ignored: bool, depth: usize) -> Result<()> {
        let Ok(names) = folder.names() else {
            self.keep(path, SkipReason::Unreadable);
            return Ok(());
        };
        let kept_before = self.kept;
        let has_ignores = names.iter().any(|(name, _)| name == ".gitignore");
        if has_ignores {
            self.ignores.enter(folder, path);
        }
        for (name, hint) in names {
            let name = BStr::new(name.as_bytes());
            if name == ".git" {
                if !path.is_empty() {
                    self.found.notes.push(Note::NestedRepository(path.to_owned()));
                }
                continue;
            }
            let full = join(path, name);
            if hint == Hint::Folder {
                if self.is_whole(&full) {
                    continue;
                }
                self.enter(folder, name, &full, ignored, depth)?;
                continue;
            }
            if hint == Hint::Other && self.is_unchanged(&full) {
                continue;
            }
            match folder.stat(name) {
                Ok(stat) if inside::kind(&stat) == SFlag::S_IFDIR => self.enter(folder, name, &full, ignored, depth)?,
                Ok(stat) => self.leaf(folder, name, full, &stat, ignored)?,
                // Gone since it was listed: a deletion like any other.
                Err(_) => self.found.settled = false,
            }
        }
        if has_ignores {
            self.ignores.leave();
        }
        if self.kept == kept_before && !ignored && !path.is_empty() {
            self.found.folders.push(path.to_owned());
            self.kept += 1;
        }
        Ok(())
    }

    /// Tells whether a file that is there was found unchanged ahead of the walk, and counts it as seen.
    fn is_unchanged(&mut self, path: &BString) -> bool {
        let Some((at, _)) = self.task.index.get(path.as_bstr(), self.next) else { return false };
        if !self.ahead.is_unchanged(at) {
            return false;
        }
        self.seen[at] = true;
        self.next = at + 1;
        self.kept += 1;
        true
    }

    /// Tells whether a folder was found to hold exactly what is known ahead of the walk, and counts all of it as seen.
    fn is_whole(&mut self, path: &BString) -> bool {
        let range = self.task.index.beneath(path.as_bstr());
        if !self.ahead.is_whole(path, range.clone()) {
            return false;
        }
        self.seen[range.clone()].fill(true);
        self.next = range.end;
        self.kept += range.len();
        true
    }

    fn enter(&mut self, parent: &Folder, name: &BStr, path: &BString, ignored: bool, depth: usize) -> Result<()> {
        let ignored = ignored || self.ignores.matches(path.as_bstr(), true);
        let has_tracked = self.task.index.has_beneath(path.as_bstr()) || beneath(self.task.forced, path);
        if ignored && !has_tracked {
            self.note_ignored(path.as_bstr(), true);
            return Ok(());
        }
        if depth >= DEPTH_MAX || !storable(name) {
            self.keep(path.as_bstr(), SkipReason::Unstorable);
            return Ok(());
        }
        match parent.folder(name) {
            Ok(folder) => self.folder(&folder, path.as_bstr(), ignored, depth + 1),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                self.keep(path.as_bstr(), SkipReason::Unreadable);
                Ok(())
            }
            Err(_) => {
                self.found.settled = false;
                Ok(())
            }
        }
    }

    fn leaf(&mut self, folder: &Folder, name: &BStr, path: BString, stat: &FileStat, ignored: bool) -> Result<()> {
        let known = self.task.index.get(path.as_bstr(), self.next);
        if let Some((at, known)) = known {
            self.seen[at] = true;
            self.next = at + 1;
            self.kept += 1;
            if known.is_unchanged(stat) {
                return Ok(());
            }
        } else if self.task.never.contains(&path) {
            return Ok(());
        } else if !self.task.forced.contains(&path) && (ignored || self.ignores.matches(path.as_bstr(), false)) {
            self.note_ignored(path.as_bstr(), false);
            return Ok(());
        } else if !storable(name) {
            self.skip(path, SkipReason::Unstorable);
            return Ok(());
        }
        let known = known.map(|(_, known)| known);
        match inside::kind(stat) {
            SFlag::S_IFREG => self.file(folder, name, path, known),
            SFlag::S_IFLNK => self.link(folder, name, path, stat, known),
            _ => {
                self.skip(path, SkipReason::NotAFile);
                Ok(())
            }
        }
    }

    fn link(
        &mut self,
        folder: &Folder,
        name: &BStr,
        path: BString,
        stat: &FileStat,
        known: Option<Known>,
    ) -> Result<()> {
        let Ok(target) = folder.link(name) else {
            self.found.settled = false;
            return Ok(());
        };
        let id = (self.sink)(target.as_bytes())?;
        let stat = stat_to_keep(stat, SystemTime::now());
        self.take(path, Leaf { kind: Kind::Link, id }, stat, known);
        Ok(())
    }

    fn file(&mut self, folder: &Folder, name: &BStr, path: BString, known: Option<Known>) -> Result<()> {
        for _ in 0..READS_MAX {
            let (data, before, after) = match read_once(folder, name, self.task.limit) {
                Ok(Some(read)) => read,
                Ok(None) => {
                    let bytes = folder.stat(name).map_or(0, |s| u64::try_from(s.st_size).unwrap_or(0));
                    self.skip(path, SkipReason::TooLarge { bytes });
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    self.skip(path, SkipReason::Unreadable);
                    return Ok(());
                }
                // Replaced or removed between listing and opening.
                Err(_) => continue,
            };
            if !same(&before, &after) {
                continue;
            }
            let read_at = SystemTime::now();
            let previous = known.map(|k| k.leaf.id);
            let converted = self.converter.convert(path.as_bstr(), &data, previous, self.task.reader)?;
            let id = self.stored(converted.as_deref().unwrap_or(&data), known)?;
            let kind = if before.st_mode & 0o100 != 0 { Kind::Executable } else { Kind::File };
            let is_raw = converted.is_some() || !self.converter.comes_back(path.as_bstr(), &data);
            let raw = if is_raw { Some(Leaf { kind, id: (self.sink)(&data)? }) } else { None };
            self.found.raw.push((path.clone(), raw));
            self.read.push((path.clone(), before));
            self.take(path, Leaf { kind, id }, stat_to_keep(&before, read_at), known);
            return Ok(());
        }
        self.found.settled = false;
        Ok(())
    }

    /// The id of what a file is stored as. What is known of it already is where it is safe, and is not written again: a file
    /// that changed just before it was last looked at is read once more although it is the same.
    fn stored(&mut self, bytes: &[u8], known: Option<Known>) -> Result<gix::ObjectId> {
        if let Some(Known { leaf, .. }) = known {
            let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, bytes)
                .map_err(|e| Error::object("new", e))?;
            if id == leaf.id {
                return Ok(id);
            }
        }
        (self.sink)(bytes)
    }

    /// Takes over what stands at a path now.
    fn take(&mut self, path: BString, leaf: Leaf, stat: gix::index::entry::Stat, known: Option<Known>) {
        self.kept += 1;
        let is_dirt = self.task.dirt.get(&path) == Some(&Some(leaf));
        if is_dirt {
            return;
        }
        if known.is_none_or(|k| k.leaf != leaf) {
            self.found.edits.insert(path.clone(), Some(leaf));
        }
        self.found.fresh.push((path, stat));
    }

    fn skip(&mut self, path: BString, reason: SkipReason) {
        self.found.notes.push(Note::Skipped { path, reason });
    }

    /// Leaves everything at and beneath a path as it was, and says so.
    fn keep(&mut self, path: &BStr, reason: SkipReason) {
        self.kept += 1;
        let mut prefix = path.to_owned();
        prefix.push(b'/');
        for at in 0..self.seen.len() {
            if path.is_empty() || self.task.index.path(at).starts_with(&prefix) {
                self.seen[at] = true;
            }
        }
        self.skip(path.to_owned(), reason);
    }

    fn note_ignored(&mut self, path: &BStr, is_folder: bool) {
        self.ignored += 1;
        if self.ignored <= IGNORED_MAX {
            let mut path = path.to_owned();
            if is_folder {
                path.push(b'/');
            }
            self.found.notes.push(Note::Ignored(path));
        }
    }

    /// A file that was read early may have changed by the end of the walk; then the whole is no one state of the tree.
    fn look_again(&mut self) {
        for (path, before) in std::mem::take(&mut self.read) {
            let (folder, name) = path.rsplit_once_str("/").unwrap_or((b"", path.as_ref()));
            let now = self.task.root.descend(folder.as_bstr()).and_then(|f| f.stat(name.as_bstr()));
            if !now.is_ok_and(|now| same(&before, &now)) {
                self.found.settled = false;
            }
        }
    }

    fn deletions(&mut self) {
        for (at, seen) in self.seen.iter().enumerate() {
            let path = self.task.index.path(at);
            if !seen && self.task.dirt.get(path) != Some(&None) {
                self.found.edits.entry(path.to_owned()).or_insert(None);
            }
        }
    }
}

/// Reads a file whole, with its stat data before and after; `None` when it is larger than `limit`.
fn read_once(folder: &Folder, name: &BStr, limit: u64) -> io::Result<Option<(Vec<u8>, FileStat, FileStat)>> {
    let file = folder.file(name)?;
    let before = nix::sys::stat::fstat(&file)?;
    let mut data = Vec::with_capacity(usize::try_from(before.st_size).unwrap_or(0).min(1 << 24));
    (&file).take(limit.saturating_add(1)).read_to_end(&mut data)?;
    if data.len() as u64 > limit {
        return Ok(None);
    }
    let after = nix::sys::stat::fstat(&file)?;
    Ok(Some((data, before, after)))
}

fn same(a: &FileStat, b: &FileStat) -> bool {
    let key = |s: &FileStat| (s.st_ino, s.st_size, s.st_mtime, s.st_mtime_nsec, s.st_ctime, s.st_ctime_nsec);
    key(a) == key(b)
}

/// Tells whether git would ever check out a path component of this name again.
pub(crate) fn storable(name: &BStr) -> bool {
    let options =
        gix::validate::path::component::Options { protect_windows: false, protect_hfs: true, protect_ntfs: true };
    gix::validate::path::component(name, None, options).is_ok()
}

fn beneath(paths: &std::collections::BTreeSet<BString>, folder: &BString) -> bool {
    let mut prefix = folder.clone();
    prefix.push(b'/');
    paths.range(prefix.clone()..).next().is_some_and(|p| p.starts_with(&prefix))
}
