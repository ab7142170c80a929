//! Objects that the store has lost: a crash of the machine leaves files without a byte where they were, or with garbage, or
//! none.
//!
//! A file that is damaged is worse than none. Git takes its name for the object, in every repository that borrows from the
//! store, and does not write it there again. So an empty one goes when the store is opened, and what it held is looked for
//! once: in the user's repository, and in each workspace, among the objects and the files. What nobody has is remembered, and
//! told. What can be found by reading everything alone is looked for when something has come to nothing, and set aside.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gix::ObjectId;

use crate::damage::Needed;
use crate::lock::Lock;
use crate::objects::ObjectFolder;
use crate::source::{Reader, Source as _};
use crate::store::{self, set_aside};
use crate::{Error, Result, Store, UserRepo, Workspace, damage, durable, emptied, oid};

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
    let (batch, reader) = (folder.batch()?, Reader::of(&store::odb(path)?));
    Ok(ids.iter().filter(|id| !batch.holds(id) && !reader.has(id)).map(|id| folder.loose(id)).collect())
}

impl Store {
    /// Takes the empty files among its objects away and puts back what they held, where anybody has it. Only for whoever
    /// opens the store, one at a time.
    pub(crate) fn mend(&self, user: &UserRepo) -> Result<()> {
        self.mend_with(user, &Needed::default())
    }

    fn mend_with(&self, user: &UserRepo, needed: &Needed) -> Result<()> {
        let sought = self.path().join(SOUGHT);
        let mut ids = read(&sought)?;
        let files = emptied::objects(self.path())?;
        let mut lost = read(&self.path().join(LOST))?;
        if !ids.is_empty() || !files.is_empty() {
            let (packs, loose): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| emptied::is_in_pack_folder(file));
            ids.extend(loose.iter().filter_map(|file| emptied::id_of(file)));
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
        write(&self.path().join(LOST), &self.needed(lost, needed, &|_| false)?)?;
        durable::remove(&sought)
    }

    /// Reads all of the store, sets aside what holds garbage, and puts back what that held and what is gone, where anybody has
    /// it: for whoever has met with damage. Whether there was anything.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn look_through(&self, user: &UserRepo, needed: &Needed) -> Result<bool> {
        let _alone = Lock::acquire(&self.path().with_extension("init-lock"))?;
        let file = self.path().join(SOUGHT);
        let mut sought = read(&file)?;
        let had_lenders = self.mend_lenders(user)?;
        let had_empty = !emptied::objects(self.path())?.is_empty();
        let garbage = damage::garbage(self.git(), self.path())?;
        if !garbage.is_empty() {
            sought.extend(garbage.loose.iter().filter_map(|file| emptied::id_of(file)));
            for pack in &garbage.packs {
                sought.extend(self.ids_of(pack));
            }
            write(&file, &sought)?;
            garbage.loose.iter().try_for_each(|file| set_aside(file))?;
            garbage.packs.iter().try_for_each(|pack| self.mend_damaged_pack(pack))?;
            self.read_anew()?;
        }
        let mut tips = Vec::new();
        for file in emptied::all_refs(self.path())? {
            tips.extend(damage::named_by(&file)?);
        }
        // What was looked for before is nowhere.
        let known = read(&self.path().join(LOST))?;
        let mut gone = damage::gone(self.objects(), &self.reader(), tips, needed)?;
        gone.retain(|id| !known.contains(id));
        if !had_empty && garbage.is_empty() && gone.is_empty() {
            return Ok(!had_lenders);
        }
        sought.extend(gone);
        write(&file, &sought)?;
        self.mend_with(user, needed)?;
        self.read_anew()?;
        Ok(true)
    }

    /// Writes anew from where the store borrows, where its file is gone or says nothing; whether it said that.
    fn mend_lenders(&self, user: &UserRepo) -> Result<bool> {
        let file = self.path().join(emptied::ALTERNATES);
        if durable::read(&file)?.is_some_and(|text| emptied::names_folders(&text)) {
            return Ok(true);
        }
        set_aside(&file)?;
        durable::write(&file, &store::alternates_text(&[&user.objects_dir()]), 0o644)?;
        self.read_anew()?;
        Ok(false)
    }

    /// Forgets what is lost and neither needed nor led to but by refs that are over, by their names.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn forget_lost(&self, needed: &Needed, is_over: &dyn Fn(&str) -> bool) -> Result<()> {
        let mut lost = read(&self.path().join(LOST))?;
        let batch = self.objects().batch()?;
        lost.retain(|id| !batch.holds(id));
        if lost.is_empty() { Ok(()) } else { write(&self.path().join(LOST), &self.needed(lost, needed, is_over)?) }
    }

    /// Those of the lost objects that a ref of ours, or what is needed, still leads to: without the others, their tasks have
    /// gone on.
    fn needed(
        &self,
        lost: BTreeSet<ObjectId>,
        needed: &Needed,
        is_over: &dyn Fn(&str) -> bool,
    ) -> Result<BTreeSet<ObjectId>> {
        let mut tips = Vec::new();
        let counts = |file: &PathBuf| damage::name_of(self.path(), file).is_none_or(|name| !is_over(name));
        for file in emptied::all_refs(self.path())?.into_iter().filter(counts) {
            // Where one says nothing that can be read, nobody can tell what it leads to.
            let Some(id) = damage::named_by(&file)? else { return Ok(lost) };
            tips.push(id);
        }
        let gone = damage::gone(self.objects(), &self.reader(), tips, needed)?;
        Ok(lost.into_iter().filter(|id| gone.contains(id)).collect())
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
            // Without its index, a pack that is damaged as well is none to git.
            return if self.index_anew(&file.with_extension("pack"))? { Ok(()) } else { durable::remove(file) };
        }
        if has_ending(file, "pack") {
            for ending in ["idx", "rev", "bitmap", "keep"] {
                durable::remove(&file.with_extension(ending))?;
            }
        }
        durable::remove(file)
    }

    /// Makes the index of a pack anew, if the pack is sound. A damaged index is set aside.
    fn index_anew(&self, pack: &Path) -> Result<bool> {
        // Aside, where no git takes it for one that belongs to a pack.
        let made = self.state().join("made.idx");
        durable::remove(&made)?;
        // Outside of the store: what else it holds may be damaged, too.
        let call = self.call().env("GIT_DIR", "/dev/null").args(["index-pack", "-o"]).arg(&made).arg(pack).run()?;
        durable::remove(&made.with_extension("rev"))?;
        if call.code() != Some(0) {
            return Ok(false);
        }
        // Both say again what the pack says.
        durable::remove(&pack.with_extension("rev"))?;
        let index = pack.with_extension("idx");
        set_aside(&index)?;
        std::fs::rename(&made, &index).map_err(Error::io("rename", &made))?;
        Ok(true)
    }

    /// Mends a pack that is damaged, or whose index is: where only that is, it is made anew. Otherwise the pack is set aside,
    /// and what can be read of it is written again.
    fn mend_damaged_pack(&self, pack: &Path) -> Result<()> {
        if pack.is_file() && self.index_anew(pack)? {
            return Ok(());
        }
        let index = pack.with_extension("idx");
        let opened = (
            gix::odb::pack::data::File::at(pack, gix::hash::Kind::Sha1),
            gix::odb::pack::index::File::at(&index, gix::hash::Kind::Sha1),
        );
        for ending in ["idx", "pack", "rev", "bitmap"] {
            set_aside(&pack.with_extension(ending))?;
        }
        let (Ok(pack), Ok(index)) = opened else { return Ok(()) };
        self.salvage(&gix::odb::pack::Bundle { pack, index })
    }

    /// Writes each object of a damaged pack anew that is still whole in it.
    fn salvage(&self, pack: &gix::odb::pack::Bundle) -> Result<()> {
        let mut batch = self.objects().batch()?;
        let (mut buf, mut inflate) = (Vec::new(), gix::zlib::Inflate::default());
        for at in 0..pack.index.num_objects() {
            let id = pack.index.oid_at_index(at).to_owned();
            let read = pack.get_object_by_index(at, &mut buf, &mut inflate, &mut gix::odb::pack::cache::Never);
            let Ok((found, _)) = read else { continue };
            let (kind, data) = (found.kind, found.data);
            if gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, data).is_ok_and(|real| real == id) {
                batch.put(kind, data)?;
            }
        }
        batch.finish()
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

fn has_ending(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|found| found == ending)
}

fn read(path: &Path) -> Result<BTreeSet<ObjectId>> {
    let bytes = durable::read(path)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| oid::parse_text(line).ok()).collect())
}

fn write(path: &Path, ids: &BTreeSet<ObjectId>) -> Result<()> {
    let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
    durable::write(path, text.as_bytes(), 0o644)
}
