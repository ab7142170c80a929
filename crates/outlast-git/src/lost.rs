//! Objects that the store has lost: a crash of the machine leaves files without a byte where they were.
//!
//! Such a file is worse than none. Git takes its name for the object, in every repository that borrows from the store, and
//! does not write it there again. So it goes when the store is opened, and what it held is looked for once: in the user's
//! repository, and in each workspace, among the objects and the files. What nobody has is remembered, and told.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice as _;

use crate::objects::ObjectFolder;
use crate::source::Source as _;
use crate::{Error, Result, Store, UserRepo, Workspace, durable, emptied, oid};

/// What is looked for: written before the first of the empty files goes.
const SOUGHT: &str = "outlast/sought";
/// What was looked for and found nowhere; it stays, empty, when nothing needs any of that.
const LOST: &str = "outlast/lost";

/// The files that would hold what the store at `path` has lost and nobody has put back.
pub(crate) fn missing(path: &Path) -> Result<Vec<PathBuf>> {
    let mut ids = read(&path.join(SOUGHT))?;
    ids.extend(read(&path.join(LOST))?);
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let folder = ObjectFolder::new(path.join("objects"), None);
    let batch = folder.batch()?;
    Ok(ids.iter().filter(|id| !batch.holds(id)).map(|id| folder.loose(id)).collect())
}

impl Store {
    /// Takes the empty files among its objects away and puts back what they held, where anybody has it. Only for whoever
    /// opens the store, one at a time.
    pub(crate) fn mend(&self, user: &UserRepo) -> Result<()> {
        let sought = self.path().join(SOUGHT);
        let mut ids = read(&sought)?;
        let files = emptied::objects(self.path())?;
        let mut lost = read(&self.path().join(LOST))?;
        if !ids.is_empty() || !files.is_empty() {
            let (packs, loose): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_in_pack_folder(file));
            ids.extend(loose.iter().filter_map(|file| id_of(file)));
            for pack in packs.iter().filter(|file| has_ending(file, "pack")) {
                ids.extend(self.ids_of(pack));
            }
            write(&sought, &ids)?;
            for file in &packs {
                self.mend_pack(file)?;
            }
            for file in &loose {
                take_away(file)?;
            }
            self.put_back(user, &ids)?;
            lost.extend(ids);
        }
        if lost.is_empty() {
            return Ok(());
        }
        let batch = self.objects().batch()?;
        lost.retain(|id| !batch.holds(id));
        write(&self.path().join(LOST), &self.needed(user, lost, &|_| false)?)?;
        durable::remove(&sought)
    }

    /// Forgets what is lost and nothing but refs lead to that are over, by their names.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn forget_lost(&self, user: &UserRepo, is_over: &dyn Fn(&str) -> bool) -> Result<()> {
        let mut lost = read(&self.path().join(LOST))?;
        let batch = self.objects().batch()?;
        lost.retain(|id| !batch.holds(id));
        if lost.is_empty() { Ok(()) } else { write(&self.path().join(LOST), &self.needed(user, lost, is_over)?) }
    }

    /// Those of the lost objects that a ref of ours still leads to: without the others, their tasks have gone on.
    fn needed(
        &self,
        user: &UserRepo,
        lost: BTreeSet<ObjectId>,
        is_over: &dyn Fn(&str) -> bool,
    ) -> Result<BTreeSet<ObjectId>> {
        let mut tips = BTreeSet::new();
        let counts =
            |file: &PathBuf| file.strip_prefix(self.path()).ok().and_then(Path::to_str).is_none_or(|n| !is_over(n));
        for file in emptied::all_refs(self.path())?.into_iter().filter(counts) {
            let text = durable::read(&file)?.unwrap_or_default();
            // Where one says nothing that can be read, nobody can tell what it leads to.
            let Ok(id) = oid::parse_text(String::from_utf8_lossy(&text).trim()) else { return Ok(lost) };
            tips.insert(id);
        }
        let (gone, there): (Vec<_>, Vec<_>) = tips.into_iter().partition(|id| lost.contains(id));
        let pins = user.pins()?.into_iter().map(|id| format!("^{id}\n"));
        let asked: String = there.iter().map(|id| format!("{id}\n")).chain(pins).collect();
        let call = self.call().args(["rev-list", "--objects", "--missing=print", "--stdin"]).stdin(asked).run()?;
        if call.code() != Some(0) {
            return Ok(lost);
        }
        let missed =
            call.stdout().lines().filter_map(|line| oid::parse_text(line.strip_prefix(b"?")?.to_str().ok()?).ok());
        let missed: BTreeSet<ObjectId> = missed.chain(gone).collect();
        Ok(lost.into_iter().filter(|id| missed.contains(id)).collect())
    }

    /// Whether objects were ever lost: a record of what was kept may still name one.
    pub fn has_lost(&self) -> bool {
        self.path().join(LOST).exists()
    }

    /// Whether objects are missed that a ref leads to.
    ///
    /// # Errors
    /// A folder of the store cannot be read.
    pub fn misses_any(&self) -> Result<bool> {
        Ok(!missing(self.path())?.is_empty() || !emptied::refs(self.path())?.is_empty())
    }

    /// What a pack held, by its index.
    fn ids_of(&self, pack: &Path) -> Vec<ObjectId> {
        let index = gix::odb::pack::index::File::at(pack.with_extension("idx"), gix::hash::Kind::Sha1);
        index.map(|index| index.iter().map(|entry| entry.oid).collect()).unwrap_or_default()
    }

    /// Mends what belongs to a pack and holds no byte: an index is made anew, a pack without content goes with all that is
    /// beside it, and what only makes git faster goes.
    fn mend_pack(&self, file: &Path) -> Result<()> {
        if has_ending(file, "idx") {
            // Aside, where no git takes it for one that belongs to a pack.
            let made = self.state().join("made.idx");
            durable::remove(&made)?;
            let call = self.call().args(["index-pack", "-o"]).arg(&made).arg(file.with_extension("pack")).run()?;
            durable::remove(&made.with_extension("rev"))?;
            // Without its index, a pack that is damaged as well is none to git.
            return match call.code() {
                Some(0) => std::fs::rename(&made, file).map_err(Error::io("rename", &made)),
                _ => durable::remove(file),
            };
        }
        if has_ending(file, "pack") {
            for ending in ["idx", "rev", "bitmap", "keep"] {
                durable::remove(&file.with_extension(ending))?;
            }
        }
        durable::remove(file)
    }

    /// Puts objects back that the store has lost, from wherever they are.
    fn put_back(&self, user: &UserRepo, ids: &BTreeSet<ObjectId>) -> Result<()> {
        let reader = self.reader();
        let mut batch = self.objects().batch()?;
        let mut buf = Vec::new();
        for id in ids {
            if let Ok(Some(kind)) = reader.read(*id, &mut buf) {
                batch.put(kind, &buf)?;
            }
        }
        batch.finish()?;
        for workspace in self.whole_workspaces()? {
            match workspace.give_back(self, user, ids) {
                Err(error) if error.is_disk_full() => return Err(error),
                // A workspace that cannot be read has nothing to give, and is no reason for the store not to be opened.
                _ => {}
            }
        }
        Ok(())
    }
}

impl Workspace {
    /// Writes into the store what it has lost and this workspace has: for whoever has just made what the workspace began on
    /// anew, without which it could not be read.
    ///
    /// # Errors
    /// The workspace cannot be read, or the store not be written.
    pub fn give_back_lost(&self, store: &Store, user: &UserRepo) -> Result<()> {
        self.give_back(store, user, &read(&store.path().join(LOST))?)
    }

    /// Writes into the store what it lacks of these objects and of the tree as it is now. Without the objects of its last
    /// checkpoint, the cache of what was stored is worth nothing.
    fn give_back(&self, store: &Store, user: &UserRepo, ids: &BTreeSet<ObjectId>) -> Result<()> {
        let _lock = self.lock()?;
        self.give_objects(store, ids)?;
        let kept = self.keep_anew(store, user);
        self.forget_cache_of_lost(store)?;
        kept.map(drop)
    }
}

/// Removes a file that holds no byte; one that somebody has written anew meanwhile stays.
fn take_away(file: &Path) -> Result<()> {
    // The same name pattern as git's own for what is not whole yet.
    let aside = file.with_file_name(format!("tmp_obj_empty_{}", std::process::id()));
    match std::fs::rename(file, &aside) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("rename", file)(e)),
    }
    let size = aside.metadata().map_err(Error::io("read", &aside))?.len();
    if size > 0 { std::fs::rename(&aside, file).map_err(Error::io("rename", &aside)) } else { durable::remove(&aside) }
}

fn is_in_pack_folder(file: &Path) -> bool {
    file.parent().and_then(Path::file_name).is_some_and(|folder| folder == "pack")
}

fn has_ending(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|found| found == ending)
}

/// The object that a loose file is named after.
fn id_of(file: &Path) -> Option<ObjectId> {
    let (fan_out, rest) = (file.parent()?.file_name()?.to_str()?, file.file_name()?.to_str()?);
    oid::parse_text(&format!("{fan_out}{rest}")).ok()
}

fn read(path: &Path) -> Result<BTreeSet<ObjectId>> {
    let bytes = durable::read(path)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| oid::parse_text(line).ok()).collect())
}

fn write(path: &Path, ids: &BTreeSet<ObjectId>) -> Result<()> {
    let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
    durable::write(path, text.as_bytes(), 0o644)
}
