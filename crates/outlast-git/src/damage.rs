//! What of a store holds garbage, and what of it is not there any more: told by reading all of it, which nobody does without
//! a reason. Nothing is changed here.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::objs::{Exists as _, Kind, TreeRefIter};
use outlast_core::Oid;

use crate::git::Git;
use crate::objects::{Batch, ObjectFolder};
use crate::source::{Reader, Source as _};
use crate::{Result, durable, emptied, oid, store};

/// What the store must have, whatever its refs say.
#[derive(Debug, Clone, Default)]
pub struct Needed {
    /// Commits that somebody goes by.
    pub commits: Vec<Oid>,
    /// Commits of the user's, which it never has: where their repository is another one, nothing of ours is lost.
    pub borrowed: Vec<Oid>,
}

/// Files that hold something else than they should.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// Those of single objects.
    pub(crate) loose: Vec<PathBuf>,
    /// The packs (`.pack`) that are damaged, or whose indices are, or which lack one of the two.
    pub(crate) packs: Vec<PathBuf>,
}

impl Garbage {
    pub(crate) fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.packs.is_empty()
    }
}

/// The files of the store at `path` that are damaged, as [`crate::emptied()`] tells those without a byte, and the files of the
/// objects that are gone and needed, also by a ref that does not pass for over by its name.
///
/// # Errors
/// The store cannot be read.
pub fn damaged(path: &Path, needed: &Needed, is_over: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = emptied::emptied(path)?;
    let garbage = garbage(&Git::locate()?, path)?;
    found.extend(garbage.loose);
    found.extend(garbage.packs.into_iter().map(|pack| culprit(&pack)));
    let mut tips = Vec::new();
    let refs = emptied::all_refs(path)?;
    let counts = |file: &&PathBuf| name_of(path, file).is_none_or(|name| !is_over(name));
    for file in refs.iter().filter(counts) {
        match named_by(file)? {
            Some(id) => tips.push(id),
            None => found.push(file.clone()),
        }
    }
    let lenders = path.join(emptied::ALTERNATES);
    if durable::read(&lenders)?.is_some_and(|text| emptied::names_folders(&text)) {
        let folder = ObjectFolder::new(path.join("objects"), None);
        let reader = Reader::of(&store::odb(path)?);
        found.extend(gone(&folder, &reader, tips, needed)?.iter().map(|id| folder.loose(id)));
    } else if path.join("objects").is_dir() {
        // Until it says again from where it borrows, nobody can tell what is gone.
        found.push(lenders);
    }
    // In the order in which they were found, each once: the first is the one that is named.
    let mut told = HashSet::new();
    found.retain(|file| told.insert(file.clone()));
    Ok(found)
}

/// What holds garbage among the objects and packs of the store at `path`.
pub(crate) fn garbage(git: &Git, path: &Path) -> Result<Garbage> {
    let mut found = Garbage::default();
    let mut packs = BTreeSet::new();
    for file in emptied::files_of_objects(path, |_| true)? {
        if emptied::is_in_pack_folder(&file) {
            let ending = file.extension().unwrap_or_default();
            if ending == "pack" || ending == "idx" {
                packs.insert(file.with_extension("pack"));
            }
        } else if let Some(id) = emptied::id_of(&file)
            && !is_object(&file, id)?
        {
            found.loose.push(file);
        }
    }
    for pack in packs {
        if !is_pack(git, path, &pack)? {
            found.packs.push(pack);
        }
    }
    Ok(found)
}

/// Whether git can read all of a pack by its index. It is asked outside of the store: nothing else counts.
fn is_pack(git: &Git, path: &Path, pack: &Path) -> Result<bool> {
    let index = pack.with_extension("idx");
    if !(pack.is_file() && index.is_file()) {
        // One that was packed anew meanwhile is neither of the two.
        return Ok(!pack.is_file() && !index.is_file());
    }
    let answer = git.in_store(path).env("GIT_DIR", "/dev/null").arg("verify-pack").arg(&index).run()?;
    match answer.code() {
        Some(0) => Ok(true),
        Some(_) => Ok(!pack.is_file() && !index.is_file()),
        None => Err(answer.into_error()),
    }
}

/// Of a damaged pack, the file to name.
fn culprit(pack: &Path) -> PathBuf {
    let index = pack.with_extension("idx");
    let is_index = || gix::odb::pack::index::File::at(&index, gix::hash::Kind::Sha1).is_ok();
    if pack.is_file() && !is_index() { index } else { pack.to_owned() }
}

/// Whether a file is the object that it is named after: one stream of zlib, with nothing behind it, whose content has that id.
/// One that is gone meanwhile is nobody's garbage.
fn is_object(file: &Path, id: ObjectId) -> Result<bool> {
    let Some(bytes) = durable::read(file)? else { return Ok(true) };
    let (mut state, mut hasher) = (gix::zlib::Decompress::new(), gix::hash::hasher(gix::hash::Kind::Sha1));
    let mut out = vec![0; 64 << 10];
    let at = |total: u64| usize::try_from(total).unwrap_or(usize::MAX);
    loop {
        let (read, written) = (at(state.total_in()), at(state.total_out()));
        let rest = bytes.get(read..).unwrap_or_default();
        let Ok(status) = state.decompress(rest, &mut out, gix::zlib::FlushDecompress::None) else { return Ok(false) };
        let more = at(state.total_out()) - written;
        hasher.update(&out[..more]);
        if status == gix::zlib::Status::StreamEnd {
            break;
        }
        if more == 0 && at(state.total_in()) == read {
            return Ok(false);
        }
    }
    Ok(at(state.total_in()) == bytes.len() && hasher.try_finalize().is_ok_and(|found| found == id))
}

/// What these commits lead to, and those that are needed, that is neither in the folder nor at whom it borrows from.
pub(crate) fn gone(
    folder: &ObjectFolder,
    reader: &Reader,
    mut tips: Vec<ObjectId>,
    needed: &Needed,
) -> Result<BTreeSet<ObjectId>> {
    let parsed = |ids: &[Oid]| ids.iter().filter_map(|id| oid::parse(id).ok()).collect::<Vec<_>>();
    let seen = parsed(&needed.borrowed).into_iter().collect();
    let mut walk = Walk { own: folder.batch()?, reader, goes_back: true, seen, gone: BTreeSet::new() };
    tips.extend(parsed(&needed.commits));
    walk.from(tips);
    Ok(walk.gone)
}

/// Whether all is there that these commits and trees lead to, whatever came before a commit.
pub(crate) fn is_whole(folder: &ObjectFolder, reader: &Reader, roots: Vec<ObjectId>) -> Result<bool> {
    let mut walk = Walk { own: folder.batch()?, reader, goes_back: false, seen: HashSet::new(), gone: BTreeSet::new() };
    walk.from(roots);
    Ok(walk.gone.is_empty())
}

/// A walk over what lies in a folder. What is borrowed is looked into no further: its owner has what it leads to.
struct Walk<'a> {
    own: Batch<'a>,
    reader: &'a Reader,
    /// Whether it goes on to the parents of commits.
    goes_back: bool,
    seen: HashSet<ObjectId>,
    gone: BTreeSet<ObjectId>,
}

impl Walk<'_> {
    fn from(&mut self, mut todo: Vec<ObjectId>) {
        let mut buf = Vec::new();
        while let Some(id) = todo.pop() {
            if id == oid::empty_tree() || !self.is_own_and_new(id) {
                continue;
            }
            match self.reader.read(id, &mut buf) {
                Ok(Some(Kind::Commit)) => match self.reader.commit(id) {
                    Ok((tree, parents)) => {
                        todo.push(tree);
                        todo.extend(parents.into_iter().filter(|_| self.goes_back));
                    }
                    Err(_) => drop(self.gone.insert(id)),
                },
                Ok(Some(Kind::Tree)) => {
                    for entry in TreeRefIter::from_bytes(&buf, gix::hash::Kind::Sha1).flatten() {
                        let below = entry.oid.to_owned();
                        if entry.mode.is_tree() {
                            todo.push(below);
                        } else if !entry.mode.is_commit() {
                            self.is_own_and_new(below);
                        }
                    }
                }
                Ok(Some(_)) => {}
                // Garbage, and so nobody's object.
                Ok(None) | Err(_) => drop(self.gone.insert(id)),
            }
        }
    }

    /// Whether it lies in the folder and was not met before. What lies nowhere is noted.
    fn is_own_and_new(&mut self, id: ObjectId) -> bool {
        if !self.seen.insert(id) {
            return false;
        }
        let is_own = self.own.holds(&id);
        if !is_own && !self.reader.has(&id) {
            self.gone.insert(id);
        }
        is_own
    }
}

/// What a ref says; nothing where that is no id.
pub(crate) fn named_by(file: &Path) -> Result<Option<ObjectId>> {
    let text = durable::read(file)?.unwrap_or_default();
    Ok(oid::parse_text(String::from_utf8_lossy(&text).trim()).ok())
}

/// The name of a ref by its file.
pub(crate) fn name_of<'a>(store: &Path, file: &'a Path) -> Option<&'a str> {
    file.strip_prefix(store).ok().and_then(Path::to_str)
}

impl Reader {
    /// Whether an object is there, whatever it holds.
    pub(crate) fn has(&self, id: &gix::oid) -> bool {
        self.0.exists(id)
    }
}
