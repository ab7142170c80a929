//! Reading a task's repository, which an agent can write: its HEAD, its refs and its objects, as data only.
//!
//! Its configuration is never read, no git runs on it, nothing in it is mapped into memory (a truncated
//! mapping kills the reader), and every object is checked against its id.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use gix::objs::Kind;

use crate::agent_index::known::{Contents, Stamp};
use crate::agent_index::{AgentIndex, INDEX_LIMIT};
use crate::inside::{Folder, Hint};
use crate::scan::index::Index;
use crate::source::{Reader, Source};
use crate::{Error, Result, oid};

/// The index's name.
const INDEX: &str = "index";
/// Largest object of an agent's commit that is copied, in bytes.
const OBJECT_LIMIT: u64 = 512 << 20;
/// How much of its packs is copied in all, in bytes: none of them where they hold more.
const PACKS_LIMIT: u64 = 2 << 30;
/// How many files of packs are copied, for the same reason.
const PACK_FILES_MAX: usize = 4096;
/// Largest `packed-refs` that is read, in bytes.
const PACKED_REFS_LIMIT: u64 = 64 << 20;
/// How many tags may name one another.
const TAGS_MAX: usize = 8;
/// Most commits of HEAD's past that are looked at: an agent can write any number of lines there.
const BEEN_AT_MAX: usize = 1_000;
/// Where in a workspace the worktrees of its repository keep what is theirs alone, and submodules their repositories.
pub(crate) const LINKED: &str = ".git/worktrees";
pub(crate) const SUBMODULES: &str = ".git/modules";
/// Deepest folder below `refs/` that is looked into.
const REF_DEPTH_MAX: usize = 16;

/// An agent's repository.
pub(crate) struct AgentRepo {
    /// Where HEAD and the index are.
    git_dir: Folder,
    /// Where refs and objects are: the same, but for a linked worktree.
    common_dir: Folder,
    reader: Reader,
    /// A private copy of its packs, made when an object is found nowhere else.
    packs: OnceCell<Option<(tempfile::TempDir, gix::odb::Handle)>>,
    scratch: PathBuf,
}

impl AgentRepo {
    /// Opens the repository in the working tree `root`; `None` where its `.git` is no folder any more.
    pub(crate) fn open(root: &Folder, reader: Reader, scratch: PathBuf) -> Option<Self> {
        let git_dir = root.folder(b".git".as_bstr()).ok()?;
        let common_dir = git_dir.descend(BStr::new("")).ok()?;
        Some(Self { git_dir, common_dir, reader, packs: OnceCell::new(), scratch })
    }

    /// The repository as its linked worktree of this name sees it; `None` where there is none.
    pub(crate) fn linked(&self, name: &str) -> Option<Self> {
        let git_dir = self.git_dir.descend(format!("worktrees/{name}").as_bytes().as_bstr()).ok()?;
        let common_dir = self.common_dir.descend(BStr::new("")).ok()?;
        let (reader, scratch) = (self.reader.clone(), self.scratch.clone());
        Some(Self { git_dir, common_dir, reader, packs: OnceCell::new(), scratch })
    }

    /// Tells whether its refs are files: only those are read.
    pub(crate) fn has_plain_refs(&self) -> bool {
        self.common_dir.stat(b"reftable".as_bstr()).is_err()
    }

    /// The commit HEAD stands for; `None` when there is none or it cannot be told.
    pub(crate) fn head(&self) -> Option<ObjectId> {
        let text = self.head_text()?;
        match text.strip_prefix(b"ref:") {
            Some(name) => self.resolve(name.trim_ascii().as_bstr()),
            None => ObjectId::from_hex(&text).ok(),
        }
    }

    /// The branch HEAD names, such as `outlast/payment-client`, whether it has a commit yet or not.
    pub(crate) fn branch(&self) -> Option<String> {
        let text = self.head_text()?;
        let name = text.strip_prefix(b"ref:")?.trim_ascii();
        gix::validate::reference::name(name.as_bstr()).ok()?;
        name.strip_prefix(b"refs/heads/")?.to_str().ok().map(str::to_owned)
    }

    fn head_text(&self) -> Option<Vec<u8>> {
        Some(self.git_dir.read(b"HEAD".as_bstr(), 4096).ok()?.trim_ascii().to_owned())
    }

    /// A plain file of its `.git`, by a path of folders; `None` where there is none that can be read.
    pub(crate) fn file(&self, path: &str, limit: u64) -> Option<Vec<u8>> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.git_dir.descend(folder.as_bytes().as_bstr()).ok()?;
        folder.read(name.as_bytes().as_bstr(), limit).ok()
    }

    /// What lies in a folder of its `.git`.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let names = self.git_dir.folder(folder.as_bytes().as_bstr()).and_then(|folder| folder.names());
        names.unwrap_or_default().into_iter().filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    /// Whether a plain file of its `.git` is there, however large.
    pub(crate) fn has_file(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.git_dir.descend(folder.as_bytes().as_bstr());
        folder.and_then(|folder| folder.file(name.as_bytes().as_bstr())).is_ok()
    }

    /// Its index; `None` where there is none. The error says why it cannot be read.
    pub(crate) fn index(&self) -> std::result::Result<Option<AgentIndex>, String> {
        match self.git_dir.read(INDEX.as_bytes().as_bstr(), INDEX_LIMIT) {
            Ok(data) => AgentIndex::parse(&data, self).map(Some).map_err(str::to_owned),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.to_string()),
        }
    }

    /// As [`AgentRepo::index`], or what is known of it in `admin` while the file stays the same, beside what `cache` knows.
    pub(crate) fn staged(&self, admin: &Path, cache: &Index) -> std::result::Result<Option<Contents>, String> {
        // Told before it is read: what is written meanwhile gives the file another stamp than this.
        let stamp = self.git_dir.file(INDEX.as_bytes().as_bstr()).ok().and_then(|file| Stamp::of(&file));
        if let Some(known) = stamp.as_ref().and_then(|stamp| Contents::known(admin, stamp, &self.reader, cache)) {
            return Ok(Some(known));
        }
        Ok(self.index()?.map(|index| Contents::Read { index, stamp }))
    }

    /// The commit that an id stands for, through tags.
    pub(crate) fn commit_of(&self, id: ObjectId) -> Result<ObjectId> {
        let (mut at, mut buf) = (id, Vec::new());
        for _ in 0..TAGS_MAX {
            match self.read(at, &mut buf)? {
                Some(Kind::Commit) => return Ok(at),
                Some(Kind::Tag) => {
                    let tag = gix::objs::TagRef::from_bytes(&buf, gix::hash::Kind::Sha1);
                    at = tag.map_err(|e| Error::object(at, e))?.target();
                }
                Some(other) => return Err(Error::object(id, format!("it stands for a {other}"))),
                None => return Err(Error::object(at, "it is missing")),
            }
        }
        Err(Error::object(id, "it is a tag of a tag of too many tags"))
    }

    fn resolve(&self, name: &BStr) -> Option<ObjectId> {
        gix::validate::reference::name(name).ok()?;
        let (folder, file) = name.rsplit_once_str("/")?;
        let loose = self.common_dir.descend(folder.as_bstr()).and_then(|f| f.read(file.as_bstr(), 4096));
        match loose {
            Ok(text) => ObjectId::from_hex(text.trim_ascii()).ok(),
            Err(_) => self.packed().remove(&name.to_string()),
        }
    }

    fn packed(&self) -> BTreeMap<String, ObjectId> {
        parse_packed(&self.common_dir.read(b"packed-refs".as_bstr(), PACKED_REFS_LIMIT).unwrap_or_default())
    }

    /// Every ref, loose before packed, symbolic ones left out.
    pub(crate) fn refs(&self) -> BTreeMap<String, ObjectId> {
        let mut refs = self.packed();
        if let Ok(folder) = self.common_dir.folder(b"refs".as_bstr()) {
            loose_refs(&folder, "refs", 0, &mut refs);
        }
        refs
    }

    /// Every commit the reflog of the stash names: all stash entries but the newest live only there.
    pub(crate) fn stashes(&self) -> Vec<ObjectId> {
        self.logged("logs/refs", "stash")
    }

    /// The commits at which HEAD has been, newest first: what was reset, amended or left while detached lives only there.
    pub(crate) fn been_at(&self) -> Vec<ObjectId> {
        let mut commits = self.logged("logs", "HEAD");
        commits.reverse();
        commits.truncate(BEEN_AT_MAX);
        commits
    }

    /// Whether this is a commit that is here and neither in the store nor in the user's repository: a reflog also names
    /// what is long gone.
    pub(crate) fn has_alone(&self, id: ObjectId) -> bool {
        let mut buf = Vec::new();
        let is_elsewhere = self.reader.read(id, &mut buf).is_ok_and(|kind| kind.is_some());
        !is_elsewhere && self.read(id, &mut buf).is_ok_and(|kind| kind == Some(Kind::Commit))
    }

    /// What a ref has led to, newest first.
    pub(crate) fn logged_as(&self, name: &str) -> Vec<ObjectId> {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let mut commits = self.logged(&format!("logs/{folder}"), file);
        commits.reverse();
        commits.truncate(BEEN_AT_MAX);
        commits
    }

    /// What the lines of a reflog lead to, oldest first.
    fn logged(&self, folder: &str, name: &str) -> Vec<ObjectId> {
        let folder = self.git_dir.descend(folder.as_bytes().as_bstr());
        let log = folder.and_then(|folder| folder.read(name.as_bytes().as_bstr(), PACKED_REFS_LIMIT));
        let new_id = |line: &[u8]| line.split_str(" ").nth(1).and_then(|id| ObjectId::from_hex(id).ok());
        log.unwrap_or_default().lines().filter_map(new_id).collect()
    }

    fn loose(&self, id: ObjectId, buf: &mut Vec<u8>) -> Result<Option<Kind>> {
        let hex = id.to_hex().to_string();
        let path = format!("objects/{}", &hex[..2]);
        let read = self
            .common_dir
            .descend(path.as_bytes().as_bstr())
            .and_then(|f| f.read(hex.as_bytes()[2..].as_bstr(), OBJECT_LIMIT));
        match read {
            Ok(compressed) => Ok(Some(inflate(id, &compressed, buf)?)),
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Err(Error::object(id, "it is too large")),
            Err(_) => Ok(None),
        }
    }

    /// The copied packs as an object database; `None` when there are none.
    fn packs(&self) -> Result<Option<&gix::odb::Handle>> {
        if self.packs.get().is_none() {
            let made = self.copy_packs()?;
            self.packs.get_or_init(|| made);
        }
        Ok(self.packs.get().and_then(Option::as_ref).map(|(_, handle)| handle))
    }

    /// Copies its packs to where it cannot change them. They are as large as the agent made them, so what is too much is
    /// refused before anything is copied, and again while it is.
    fn copy_packs(&self) -> Result<Option<(tempfile::TempDir, gix::odb::Handle)>> {
        let failed = |e: io::Error| Error::io("copy packs to", &self.scratch)(e);
        let Ok(folder) = self.common_dir.descend(b"objects/pack".as_bstr()) else { return Ok(None) };
        let mut files = Vec::new();
        let mut bytes: u64 = 0;
        for (name, _) in folder.names().map_err(failed)? {
            let raw = name.as_encoded_bytes();
            if !raw.ends_with(b".pack") && !raw.ends_with(b".idx") {
                continue;
            }
            // A pipe or a link under such a name is no pack, and would be none at the next try either.
            let Some(size) = folder.file(raw.as_bstr()).ok().and_then(|file| Some(file.metadata().ok()?.len())) else {
                continue;
            };
            bytes = bytes.saturating_add(size);
            files.push(name);
            if bytes > PACKS_LIMIT || files.len() > PACK_FILES_MAX {
                return Err(too_much(bytes, files.len()));
            }
        }
        if files.is_empty() {
            return Ok(None);
        }
        std::fs::create_dir_all(&self.scratch).map_err(failed)?;
        let copy = tempfile::Builder::new().prefix("packs-").tempdir_in(&self.scratch).map_err(failed)?;
        std::fs::create_dir_all(copy.path().join("pack")).map_err(failed)?;
        let mut left = PACKS_LIMIT;
        for name in &files {
            let Ok(from) = folder.file(name.as_encoded_bytes().as_bstr()) else { continue };
            let mut to = std::fs::File::create(copy.path().join("pack").join(name)).map_err(failed)?;
            // It may have grown since.
            let copied = io::copy(&mut from.take(left.saturating_add(1)), &mut to).map_err(failed)?;
            left = left.checked_sub(copied).ok_or_else(|| too_much(PACKS_LIMIT.saturating_add(1), files.len()))?;
        }
        // What a small pack says of the size of its objects may be anything.
        let alloc_limit_bytes = usize::try_from(OBJECT_LIMIT).ok();
        let options = gix::odb::store::init::Options { alloc_limit_bytes, ..Default::default() };
        let handle = gix::odb::at_opts(copy.path(), gix::hash::Kind::Sha1, None, options).map_err(failed)?;
        Ok(Some((copy, handle)))
    }
}

fn too_much(bytes: u64, files: usize) -> Error {
    let limits = format!("more than {PACKS_LIMIT} bytes or {PACK_FILES_MAX} files are not copied");
    Error::object("in a pack", format!("the repository has {bytes} bytes or more in {files} files of packs; {limits}"))
}

impl Source for AgentRepo {
    fn read(&self, id: ObjectId, buf: &mut Vec<u8>) -> Result<Option<Kind>> {
        if let Some(kind) = self.reader.read(id, buf)? {
            return Ok(Some(kind));
        }
        if let Some(kind) = self.loose(id, buf)? {
            return Ok(Some(kind));
        }
        let Some(packs) = self.packs()? else { return Ok(None) };
        let found = gix::objs::Find::try_find(packs, &id, buf).map_err(|e| Error::object(id, e))?;
        let Some(kind) = found.map(|data| data.kind) else { return Ok(None) };
        check(id, kind, buf)?;
        Ok(Some(kind))
    }
}

/// The refs that a `packed-refs` file names.
pub(crate) fn parse_packed(text: &[u8]) -> BTreeMap<String, ObjectId> {
    let line = |line: &[u8]| {
        let (id, name) = line.split_once_str(" ")?;
        Some((name.to_str().ok()?.to_owned(), ObjectId::from_hex(id).ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn loose_refs(folder: &Folder, prefix: &str, depth: usize, refs: &mut BTreeMap<String, ObjectId>) {
    if depth > REF_DEPTH_MAX {
        return;
    }
    for (name, hint) in folder.names().unwrap_or_default() {
        let Some(text) = name.to_str() else { continue };
        let full = format!("{prefix}/{text}");
        let name = text.as_bytes().as_bstr();
        if hint != Hint::Other
            && let Ok(below) = folder.folder(name)
        {
            loose_refs(&below, &full, depth + 1, refs);
        } else if let Some(id) = folder.read(name, 4096).ok().and_then(|t| ObjectId::from_hex(t.trim_ascii()).ok()) {
            refs.insert(full, id);
        }
    }
}

/// Unpacks a loose object and checks it against its id.
fn inflate(id: ObjectId, compressed: &[u8], buf: &mut Vec<u8>) -> Result<Kind> {
    let mut state = gix::zlib::Decompress::new();
    let mut head = [0_u8; 64];
    let mut input = compressed;
    let corrupt = |e: &dyn std::fmt::Display| Error::object(id, format!("it cannot be unpacked: {e}"));
    let got = gix::zlib::stream::inflate::read(&mut input, &mut state, &mut head).map_err(|e| corrupt(&e))?;
    let (kind, size, header) = gix::objs::decode::loose_header(&head[..got]).map_err(|e| corrupt(&e))?;
    if size > OBJECT_LIMIT {
        return Err(Error::object(id, format!("it has {size} bytes, more than {OBJECT_LIMIT}")));
    }
    let size = usize::try_from(size).map_err(|e| corrupt(&e))?;
    let first = &head[header..got];
    if first.len() > size {
        return Err(Error::object(id, "it is longer than it says"));
    }
    buf.clear();
    buf.resize(size, 0);
    buf[..first.len()].copy_from_slice(first);
    let mut filled = first.len();
    while filled < size {
        let more =
            gix::zlib::stream::inflate::read(&mut input, &mut state, &mut buf[filled..]).map_err(|e| corrupt(&e))?;
        if more == 0 {
            return Err(Error::object(id, "it is shorter than it says"));
        }
        filled += more;
    }
    check(id, kind, buf)?;
    Ok(kind)
}

fn check(id: ObjectId, kind: Kind, data: &[u8]) -> Result<()> {
    let real = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, data).map_err(|e| Error::object(id, e))?;
    if real == id { Ok(()) } else { Err(Error::object(id, format!("its content is that of {}", oid::of(real)))) }
}
