//! Reading the index of a task's repository, which an agent can write: as data, every length and name checked.
//!
//! Not by the library that reads our own: that unpacks paths which repeat one another (version 4) without a limit, and a
//! small file may hold terabytes of them. It is the format of gitformat-index, versions 2 to 4. What only makes git faster
//! is passed over; an index that is split over two files is refused. Folders that it folds into one entry (a sparse index)
//! are unfolded, within limits of their own: a few trees that name one another may be any number of paths.

pub(crate) mod known;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};

use crate::Kind;
use crate::scan::{DEPTH_MAX, index::Index};
use crate::source::{Reader, Source};
use crate::tree::{self, Edits, Leaf};

/// Largest index that is read, in bytes: some two million paths.
pub(crate) const INDEX_LIMIT: u64 = 256 << 20;
/// Longest path (`PATH_MAX`), and how much all paths may come to once unpacked, in bytes.
const PATH_LEN_MAX: usize = 4096;
const PATHS_LEN_MAX: usize = 512 << 20;
/// Most paths, and most trees, that folded folders are unfolded to.
const UNFOLDED_MAX: usize = 4 << 20;
const TREES_MAX: usize = 1 << 18;
/// An entry up to its flags: ten words of stat data, an id, the flags.
const FIXED_LEN: usize = 62;
const CHECKSUM_LEN: usize = 20;
/// The mode of a folder that is folded.
const FOLDER_MODE: u32 = 0o040_000;

/// What is staged.
pub(crate) struct AgentIndex {
    /// All paths, one after the other.
    paths: Vec<u8>,
    /// In git's order: by path, then by stage.
    entries: Vec<Entry>,
}

struct Entry {
    start: usize,
    end: usize,
    stage: usize,
    leaf: Leaf,
    /// Only announced (`git add -N`): nothing of it is staged.
    is_empty: bool,
    /// Git leaves the file alone: it need not be on disk (`git sparse-checkout`, `git update-index --skip-worktree`).
    is_skipped: bool,
    /// Git does not look whether the file changed (`git update-index --assume-unchanged`).
    is_assumed: bool,
}

/// How an index differs from a tree.
#[derive(Default)]
pub(crate) struct Staged {
    /// What leads from the tree to what is staged, without paths that a merge left open.
    pub(crate) edits: Edits,
    /// Of the paths left open: the common base, ours and theirs.
    pub(crate) unmerged: [Edits; 3],
}

impl Staged {
    /// How many paths a merge left open.
    pub(crate) fn unmerged_count(&self) -> usize {
        let mut paths: Vec<&BString> = self.unmerged.iter().flat_map(Edits::keys).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.len()
    }

    /// The paths whose content is neither in the store nor in what it borrows from.
    pub(crate) fn only_here(&self, reader: &Reader) -> crate::Result<Vec<&BString>> {
        let (mut found, mut buf) = (Vec::new(), Vec::new());
        for (path, leaf) in self.unmerged.iter().chain([&self.edits]).flatten() {
            if let Some(leaf) = leaf
                && leaf.kind != Kind::Gitlink
                && reader.read(leaf.id, &mut buf)?.is_none()
            {
                found.push(path);
            }
        }
        Ok(found)
    }
}

type Parsed<T> = Result<T, &'static str>;

impl AgentIndex {
    /// Reads an index, and the trees of folders that it folds from `trees`; the error says why it cannot be.
    pub(crate) fn parse(data: &[u8], trees: &dyn Source) -> Parsed<Self> {
        let data = data.len().checked_sub(CHECKSUM_LEN).map(|end| &data[..end]).ok_or("it is cut off")?;
        let mut at = Cursor { data, at: 0 };
        if at.take(4)? != b"DIRC" {
            return Err("it is no index");
        }
        let version = at.word()?;
        if !(2..=4).contains(&version) {
            return Err("its version is not known");
        }
        let mut index = Self { paths: Vec::new(), entries: Vec::new() };
        let mut last = (0, 0);
        let mut trees_left = TREES_MAX;
        for _ in 0..at.word()? {
            let (entry, mode) = index.entry(&mut at, version, last)?;
            last = (entry.start, entry.end);
            if mode == FOLDER_MODE {
                index.unfold(trees, entry.leaf.id, index.path(&entry).to_owned().as_bstr(), &mut trees_left)?;
            } else {
                index.push(entry)?;
            }
        }
        while at.at < data.len() {
            let name = at.take(4)?;
            let len = usize::try_from(at.word()?).map_err(|_| "it is cut off")?;
            at.take(len)?;
            // In lower case: who does not know it must not read on (gitformat-index).
            if !name[0].is_ascii_uppercase() && name != b"sdir" {
                return Err("it is split, or of a kind that is not known");
            }
        }
        Ok(index)
    }

    /// Reads one entry, whose path may go on from that of the one before; with its mode.
    fn entry(&mut self, at: &mut Cursor<'_>, version: u32, (from, to): (usize, usize)) -> Parsed<(Entry, u32)> {
        let begun = at.at;
        let fixed = at.take(FIXED_LEN)?;
        let mode = u32::from_be_bytes([fixed[24], fixed[25], fixed[26], fixed[27]]);
        let id = ObjectId::from_bytes_or_panic(&fixed[40..60]);
        let flags = u16::from_be_bytes([fixed[60], fixed[61]]);
        let (mut is_empty, mut is_skipped) = (false, false);
        if flags & 0x4000 != 0 {
            let extended = at.take(2)?;
            is_skipped = extended[0] & 0x40 != 0;
            is_empty = extended[0] & 0x20 != 0;
        }
        let start = self.paths.len();
        if version == 4 {
            let strip = at.varint()?;
            let end = to.checked_sub(strip).filter(|end| *end >= from).ok_or("a path in it is cut off")?;
            if end - from > PATH_LEN_MAX {
                return Err("a path in it is too long");
            }
            self.paths.extend_from_within(from..end);
        }
        let name = at.until_nul()?;
        self.paths.extend_from_slice(name);
        if version < 4 {
            // Filled up with zeros to a multiple of eight, the one that ends the name included.
            let len = at.at - begun;
            at.take(len.next_multiple_of(8) - len)?;
        }
        let end = self.paths.len();
        if end - start > PATH_LEN_MAX || end > PATHS_LEN_MAX {
            return Err("a path in it is too long");
        }
        let kind = match mode {
            0o100_644 | 0o100_664 => Kind::File,
            0o100_755 => Kind::Executable,
            0o120_000 => Kind::Link,
            // The commit of a folder that is folded is its tree.
            0o160_000 | FOLDER_MODE => Kind::Gitlink,
            _ => return Err("an entry in it is no file"),
        };
        let (stage, is_assumed) = (usize::from(flags >> 12 & 3), flags & 0x8000 != 0);
        let entry = Entry { start, end, stage, leaf: Leaf { kind, id }, is_empty, is_skipped, is_assumed };
        Ok((entry, mode))
    }

    fn push(&mut self, entry: Entry) -> Parsed<()> {
        if let Some(last) = self.entries.last()
            && (self.path(last), last.stage) >= (self.path(&entry), entry.stage)
        {
            return Err("its entries are not in order");
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Adds every path of a tree that stands for the folder `prefix`, which ends in `/`.
    fn unfold(&mut self, trees: &dyn Source, tree: ObjectId, prefix: &BStr, left: &mut usize) -> Parsed<()> {
        *left = left.checked_sub(1).ok_or("folders in it hold too much")?;
        if prefix.find_iter("/").count() > DEPTH_MAX {
            return Err("folders in it hold too much");
        }
        let unreadable = "a folder in it cannot be read";
        let mut names: Vec<_> = tree::entries(trees, tree).map_err(|_| unreadable)?.into_iter().collect();
        // A folder stands where its name with the slash does.
        names.sort_by_cached_key(|(name, (mode, _))| {
            [name.as_slice(), if mode.is_tree() { b"/" } else { b"" }].concat()
        });
        for (name, (mode, id)) in names {
            let start = self.paths.len();
            self.paths.extend_from_slice(prefix);
            self.paths.extend_from_slice(&name);
            let end = self.paths.len();
            if end - start > PATH_LEN_MAX || end > PATHS_LEN_MAX || self.entries.len() > UNFOLDED_MAX {
                return Err("folders in it hold too much");
            }
            let Some(leaf) = Leaf::of(mode, id) else {
                self.paths.push(b'/');
                let folder = self.paths[start..].to_owned();
                self.unfold(trees, id, folder.as_bstr(), left)?;
                continue;
            };
            self.push(Entry { start, end, stage: 0, leaf, is_empty: false, is_skipped: true, is_assumed: false })?;
        }
        Ok(())
    }

    /// Every path that `cache` does not know, announced ones (`git add -N`) too.
    pub(crate) fn added(&self, cache: &Index) -> Vec<BString> {
        let mut next = 0;
        let mut added = Vec::new();
        for entry in &self.entries {
            let path = self.path(entry);
            match cache.get(path, next) {
                Some((at, _)) => next = at + 1,
                None => added.push(path.to_owned()),
            }
        }
        added
    }

    /// What git leaves alone, on disk or not, in order.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&BStr, Leaf)> {
        let skipped = self.entries.iter().filter(|entry| entry.is_skipped && entry.stage == 0 && !entry.is_empty);
        skipped.map(|entry| (self.path(entry), entry.leaf))
    }

    /// What git takes for unchanged without a look.
    pub(crate) fn assumed(&self) -> impl Iterator<Item = &BStr> {
        self.entries.iter().filter(|entry| entry.is_assumed && entry.stage == 0).map(|entry| self.path(entry))
    }

    /// Whether it is a tree, and says nothing that a tree does not.
    fn is_plain(&self) -> bool {
        let says_more = |e: &Entry| e.stage > 0 || e.is_empty || e.is_skipped || e.is_assumed;
        !self.entries.iter().any(says_more)
    }

    fn path(&self, entry: &Entry) -> &BStr {
        self.paths[entry.start..entry.end].as_bstr()
    }

    /// How it differs from the tree that `cache` knows.
    pub(crate) fn against(&self, cache: &Index) -> Staged {
        let mut staged = Staged::default();
        let mut at = 0;
        for entry in self.entries.iter().filter(|entry| !entry.is_empty) {
            let path = self.path(entry);
            if let Some(side) = entry.stage.checked_sub(1) {
                staged.unmerged[side].insert(path.to_owned(), Some(entry.leaf));
                continue;
            }
            while at < cache.len() && cache.path(at) < path {
                staged.edits.insert(cache.path(at).to_owned(), None);
                at += 1;
            }
            let known = (at < cache.len() && cache.path(at) == path).then(|| cache.leaf(at));
            at += usize::from(known.is_some());
            if known != Some(entry.leaf) {
                staged.edits.insert(path.to_owned(), Some(entry.leaf));
            }
        }
        staged.edits.extend((at..cache.len()).map(|at| (cache.path(at).to_owned(), None)));
        staged
    }
}

struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Parsed<&'a [u8]> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.data.len()).ok_or("it is cut off")?;
        let taken = &self.data[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn word(&mut self) -> Parsed<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// The bytes up to the next zero, which is passed over.
    fn until_nul(&mut self) -> Parsed<&'a [u8]> {
        let len = self.data[self.at..].find_byte(0).ok_or("it is cut off")?;
        let name = self.take(len)?;
        self.take(1)?;
        Ok(name)
    }

    /// A number as pack files have offsets: seven bits a byte, each but the last one more than it says.
    fn varint(&mut self) -> Parsed<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1).filter(|v| *v < PATHS_LEN_MAX).ok_or("a path in it is too long")?;
            value = (value << 7) + usize::from(byte & 127);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An index of version 2 with these paths.
    fn index(paths: &[(&str, u16)]) -> Vec<u8> {
        let mut data = b"DIRC\0\0\0\x02".to_vec();
        data.extend(u32::try_from(paths.len()).unwrap().to_be_bytes());
        for (path, stage) in paths {
            let begun = data.len();
            data.extend([0; 24]);
            data.extend(0o100_644_u32.to_be_bytes());
            data.extend([0; 12]);
            data.extend([7; 20]);
            data.extend((stage << 12 | u16::try_from(path.len()).unwrap()).to_be_bytes());
            data.extend(path.as_bytes());
            data.push(0);
            data.resize(begun + (data.len() - begun).next_multiple_of(8), 0);
        }
        data.extend([0; CHECKSUM_LEN]);
        data
    }

    fn error(data: &[u8]) -> &'static str {
        AgentIndex::parse(data, &Bomb).err().unwrap_or("none")
    }

    /// Trees without end: whatever is asked for has ten folders, which are all the same.
    struct Bomb;

    impl Source for Bomb {
        fn read(&self, id: ObjectId, buf: &mut Vec<u8>) -> crate::Result<Option<gix::objs::Kind>> {
            buf.clear();
            for name in 0..10 {
                buf.extend_from_slice(format!("40000 {name}\0").as_bytes());
                buf.extend_from_slice(id.as_slice());
            }
            Ok(Some(gix::objs::Kind::Tree))
        }
    }

    #[test]
    fn whatever_lies_about_itself_is_refused() {
        let sound = index(&[("a", 0), ("b/c", 1), ("b/c", 2)]);
        assert_eq!(AgentIndex::parse(&sound, &Bomb).unwrap().entries.len(), 3);
        assert_eq!(error(b""), "it is cut off");
        assert_eq!(error(&[b"DIRX".as_slice(), &sound[4..]].concat()), "it is no index");
        let mut many = sound.clone();
        many[8..12].copy_from_slice(&[255; 4]);
        assert_eq!(error(&many), "it is cut off");
        assert_eq!(error(&index(&[("b", 0), ("a", 0)])), "its entries are not in order");
        assert_eq!(error(&index(&[("a", 0), ("a", 0)])), "its entries are not in order");
        assert_eq!(error(&index(&[(&"x/".repeat(2049)[..4095], 0)])), "none");
        let split = [&sound[..sound.len() - 20], b"link\0\0\0\x14", &[0; 40]].concat();
        assert_eq!(error(&split), "it is split, or of a kind that is not known");
        let known = [&sound[..sound.len() - 20], b"TREE\0\0\0\x02", &[0; 22]].concat();
        assert_eq!(error(&known), "none");
    }

    #[test]
    fn paths_that_grow_out_of_little_are_not_unpacked_without_end() {
        // Version 4: each path repeats the one before and adds a little, so that little data is many long paths.
        let mut data = b"DIRC\0\0\0\x04".to_vec();
        data.extend(1_000_000_u32.to_be_bytes());
        for _ in 0..1_000_000 {
            data.extend([0; 24]);
            data.extend(0o100_644_u32.to_be_bytes());
            data.extend([0; 34]);
            data.extend(b"\0x\0");
        }
        data.extend([0; CHECKSUM_LEN]);
        assert_eq!(error(&data), "a path in it is too long");
    }

    #[test]
    fn folders_that_are_folded_are_not_unfolded_without_end() {
        let mut data = index(&[("docs/", 0)]);
        data[12 + 24..12 + 28].copy_from_slice(&FOLDER_MODE.to_be_bytes());
        assert_eq!(error(&data), "folders in it hold too much");
    }

    proptest! {
        #[test]
        fn nothing_that_an_agent_writes_there_stops_the_reader(cut in 0_usize..400, at in 0_usize..400, byte: u8) {
            let mut data = index(&[("a", 0), ("b/c", 1), ("b/c", 2), ("d", 0)]);
            data.truncate(data.len() - cut.min(data.len()));
            if let Some(changed) = data.get_mut(at) {
                *changed = byte;
            }
            let _ = AgentIndex::parse(&data, &Bomb).is_ok();
        }
    }
}
