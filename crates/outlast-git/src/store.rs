//! The store: our own bare repository, which borrows the user's objects and holds checkpoints, results and archives.
//!
//! Agents cannot write it. Everything reachable from its refs and not from a pin lies physically in it, so no garbage
//! collection of the user's can take it away. Refs are written by this crate alone, durably, after their objects.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gix::ObjectId;
use gix::bstr::ByteSlice;
use outlast_core::{AttemptId, Oid, RunId, TaskId};

use crate::emptied::ALTERNATES;
use crate::git::{Call, Git};
use crate::lock::Lock;
use crate::objects::{Indexer, ObjectFolder};
use crate::source::{Reader, Source as _};
use crate::{Error, Result, UserRepo, damage, durable, emptied, oid};

/// A store and the user's repository it borrows from.
#[derive(Clone)]
pub struct Store {
    git: Git,
    path: PathBuf,
    objects: ObjectFolder,
    /// What is known of its packs: begun anew where one is taken away.
    odb: Arc<Mutex<Arc<gix::odb::Store>>>,
}

/// From how many packs or loose objects on the store is packed anew when a run begins.
const PACKS_MAX: usize = 50;
const LOOSE_MAX: usize = 20_000;

/// How many packs a reader can know of: the store's own, those that runs add meanwhile, and the user's, where every landing
/// adds one.
const PACK_SLOTS: gix::odb::store::init::Slots =
    gix::odb::store::init::Slots::AsNeededByDiskState { multiplier: 2.0, minimum: 16_384 };

/// Nothing in it may ever be dropped, whoever asks git to (`git gc --prune=now`): an object that is written is there until
/// the ref that names it is.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = true\n\tlogallrefupdates = false\n\
                      [extensions]\n\tpreciousObjects = true\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
/// A branch that there never is: the store has no current one.
const HEAD: &[u8] = b"ref: refs/heads/none\n";
const PACKING: &str = "packing-";
/// Of the repository by which the store is packed anew.
const CONFIG_OF_PACKING: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";

impl Store {
    /// Opens the store at `path`, making it where it is missing.
    ///
    /// # Errors
    /// [`Error::StoreOfOther`] when it borrows from another repository; [`Error::Io`].
    pub fn open_or_init(path: &Path, user: &UserRepo) -> Result<Self> {
        let lender = user.objects_dir();
        let _lock = Lock::acquire(&path.with_extension("init-lock"))?;
        let alternates = path.join(ALTERNATES);
        match durable::read(&alternates)? {
            None if !path.join("objects").is_dir() => init(path, &lender)?,
            Some(text) if text == alternates_text(&[&lender]) => {}
            Some(text) if emptied::names_folders(&text) => {
                let found = text.trim_end().to_path_lossy().into_owned();
                return Err(Error::StoreOfOther { store: path.to_owned(), found, expected: lender });
            }
            // Where its state lies says whose it is: a file that says nothing, or that is gone, does not say otherwise.
            _ => {
                set_aside(&alternates)?;
                durable::write(&alternates, &alternates_text(&[&lender]), 0o644)?;
            }
        }
        let path = path.canonicalize().map_err(Error::io("open", path))?;
        // One of an earlier version let anybody drop what no ref names yet.
        if durable::read(&path.join("config"))?.as_deref() != Some(CONFIG.as_bytes()) {
            durable::write(&path.join("config"), CONFIG.as_bytes(), 0o644)?;
        }
        mend_head(&path)?;
        // Without it, git takes the folder for no repository.
        durable::create_dirs(&path.join("refs/heads"))?;
        // Attributes of the user's repository that are in no tree count in the store, too.
        let attributes = user.settings()?.info_attributes;
        if durable::read(&path.join("info/attributes"))?.unwrap_or_default() != attributes {
            durable::write(&path.join("info/attributes"), &attributes, 0o644)?;
        }
        let objects =
            ObjectFolder::new(path.join("objects"), Some(Indexer { git: user.git().clone(), git_dir: path.clone() }));
        let odb = Arc::new(Mutex::new(odb(&path)?));
        let store = Self { git: user.git().clone(), path, objects, odb };
        store.mend(user)?;
        Ok(store)
    }

    /// The folder of the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder tasks with needs borrow objects from: a sandbox must let them read it, and nothing else here.
    pub fn objects_dir(&self) -> &Path {
        self.objects.path()
    }

    /// The commit at the end of an attempt's checkpoints.
    ///
    /// # Errors
    /// The ref cannot be read.
    pub fn last_checkpoint(&self, attempt: &AttemptId) -> Result<Option<Oid>> {
        Ok(self.read_ref(&attempt_ref(attempt))?.map(oid::of))
    }

    /// The verified result of a task.
    ///
    /// # Errors
    /// The ref cannot be read.
    pub fn result(&self, run: &RunId, task: &TaskId) -> Result<Option<Oid>> {
        Ok(self.read_ref(&result_ref(run, task))?.map(oid::of))
    }

    /// Every ref of the store below `refs/outlast/`, with its commit.
    ///
    /// # Errors
    /// A ref cannot be read.
    pub fn refs(&self) -> Result<Vec<(String, Oid)>> {
        let mut found = Vec::new();
        for file in emptied::all_refs(&self.path)? {
            let named = damage::named_by(&file)?.zip(damage::name_of(&self.path, &file));
            found.extend(named.map(|(id, name)| (name.to_owned(), oid::of(id))));
        }
        Ok(found)
    }

    /// Packs the store into one file when it has become scattered; nothing is dropped, reachable or not.
    ///
    /// # Errors
    /// Git fails, or the store cannot be read.
    pub fn tidy(&self) -> Result<()> {
        let _lock = self.lock()?;
        // Git packs nothing anew that leads to what is lost.
        if self.misses_any()? {
            return Ok(());
        }
        let count = |folder: &str, ending: &str| {
            let names = std::fs::read_dir(self.objects.path().join(folder)).into_iter().flatten().flatten();
            names.filter(|entry| entry.file_name().as_encoded_bytes().ends_with(ending.as_bytes())).count()
        };
        // Ids are spread evenly, so that one of the 256 folders tells about all.
        if count("pack", ".pack") > PACKS_MAX || count("17", "") * 256 > LOOSE_MAX {
            self.pack_anew()?;
        }
        Ok(())
    }

    /// Packs everything into one file. The store refuses that to everybody, so it is asked of a passing repository with the
    /// same objects and refs.
    fn pack_anew(&self) -> Result<()> {
        let state = self.state();
        durable::create_dirs(&state)?;
        let names = std::fs::read_dir(&state).map_err(Error::io("read", &state))?.flatten();
        // Left by a kill.
        for old in names.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PACKING.as_bytes())) {
            std::fs::remove_dir_all(old.path()).map_err(Error::io("remove", old.path()))?;
        }
        let passing =
            tempfile::Builder::new().prefix(PACKING).tempdir_in(&state).map_err(Error::io("create in", &state))?;
        let at = |name: &str| passing.path().join(name);
        std::fs::create_dir(at("objects")).map_err(Error::io("create", at("objects")))?;
        std::os::unix::fs::symlink(self.path.join("refs"), at("refs")).map_err(Error::io("create", at("refs")))?;
        for (name, text) in [("HEAD", "ref: refs/heads/none\n"), ("config", CONFIG_OF_PACKING)] {
            std::fs::write(at(name), text).map_err(Error::io("write", at(name)))?;
        }
        let call = self.git.in_store(passing.path()).env("GIT_OBJECT_DIRECTORY", self.objects.path());
        call.args(["repack", "-a", "-d", "-l", "-q", "--keep-unreachable"]).ok()?;
        Ok(())
    }

    /// Waits for the one lock under which the user's repository and shared parts of the store are written.
    pub(crate) fn lock(&self) -> Result<Lock> {
        Lock::acquire(&self.state().join("lock"))
    }

    pub(crate) fn call(&self) -> Call {
        // Where it cannot be written, git says so.
        drop(mend_head(&self.path));
        self.git.in_store(&self.path)
    }

    pub(crate) fn objects(&self) -> &ObjectFolder {
        &self.objects
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::of(&self.odb.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has whoever reads from now on look at what is there: a pack that was taken away is held open, and read on, otherwise.
    pub(crate) fn read_anew(&self) -> Result<()> {
        let fresh = odb(&self.path)?;
        *self.odb.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Our own files beside git's.
    pub(crate) fn state(&self) -> PathBuf {
        self.path.join("outlast")
    }

    fn tips_file(&self, run: &RunId) -> PathBuf {
        self.state().join("runs").join(run.as_str()).join("tips")
    }

    /// The `packed-refs` text that every workspace of a run shows.
    pub(crate) fn tips(&self, run: &RunId) -> Result<Option<Vec<u8>>> {
        durable::read(&self.tips_file(run))
    }

    pub(crate) fn keep_tips(&self, run: &RunId, text: &str) -> Result<()> {
        durable::write_below(&self.path, &self.tips_file(run), text.as_bytes(), 0o644)
    }

    pub(crate) fn read_ref(&self, name: &str) -> Result<Option<ObjectId>> {
        // A file without a byte, or with garbage, names nothing, and is written over.
        damage::named_by(&self.path.join(name))
    }

    /// The refs of ours that hold no byte, or by their length garbage: a crash has left them so.
    ///
    /// # Errors
    /// A folder of the store cannot be read.
    pub fn empty_refs(&self) -> Result<Vec<String>> {
        let name = |path: PathBuf| Some(path.strip_prefix(&self.path).ok()?.to_str()?.to_owned());
        Ok(emptied::refs(&self.path)?.into_iter().filter_map(name).collect())
    }

    /// Those, and others that hold no id, and so have to be read.
    ///
    /// # Errors
    /// A ref cannot be read.
    pub fn damaged_refs(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for file in emptied::all_refs(&self.path)? {
            if damage::named_by(&file)?.is_none() {
                found.extend(damage::name_of(&self.path, &file).map(str::to_owned));
            }
        }
        Ok(found)
    }

    /// Whether there is a ref of this name, whatever it holds.
    pub fn has_ref(&self, name: &str) -> bool {
        self.path.join(name).is_file()
    }

    /// Writes a ref that is damaged or gone anew: what it is known to have held, or what its own name says. One of which nothing
    /// is known goes: whoever has to keep something under it does so again.
    ///
    /// # Errors
    /// The ref cannot be written or removed.
    pub fn mend_ref(&self, name: &str, held: Option<&Oid>) -> Result<()> {
        // What is archived is kept under its own id.
        let named = name.rsplit('/').next().and_then(|last| oid::parse_text(last).ok());
        let id = held.map(oid::parse).transpose()?.or(named);
        match id.filter(|id| self.reader().commit(*id).is_ok()) {
            Some(id) => self.set_ref(name, id),
            // Garbage in it would be an id to nobody: nothing of it is worth being kept.
            None => durable::remove(&self.path.join(name)),
        }
    }

    /// Points a ref at a commit, durably; its objects must be finished before.
    pub(crate) fn set_ref(&self, name: &str, id: ObjectId) -> Result<()> {
        if self.read_ref(name)? == Some(id) {
            return Ok(());
        }
        durable::write_below(&self.path, &self.path.join(name), format!("{id}\n").as_bytes(), 0o644)
    }
}

/// What git knows of the objects of the store at `path`, and of those that it borrows.
pub(crate) fn odb(path: &Path) -> Result<Arc<gix::odb::Store>> {
    let options = gix::odb::store::init::Options { slots: PACK_SLOTS, ..Default::default() };
    gix::odb::Store::at_opts(path.join("objects"), gix::hash::Kind::Sha1, &mut std::iter::empty(), options)
        .map(Arc::new)
        .map_err(Error::io("open", path))
}

/// Gives a file that holds something, and not what it should, another name beside its own: `NAME.damaged`, or with a number.
pub(crate) fn set_aside(file: &Path) -> Result<()> {
    if !file.symlink_metadata().is_ok_and(|facts| facts.len() > 0) {
        return Ok(());
    }
    let named = |number: u32| {
        let mut name = file.as_os_str().to_owned();
        name.push(if number == 1 { ".damaged".to_owned() } else { format!(".{number}.damaged") });
        PathBuf::from(name)
    };
    let free = (1..=u32::MAX).map(named).find(|place| place.symlink_metadata().is_err());
    match std::fs::rename(file, free.unwrap_or_else(|| named(1))) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        renamed => {
            renamed.map_err(Error::io("rename", file))?;
            file.parent().map_or(Ok(()), durable::sync_dir)
        }
    }
}

/// Makes a `HEAD` anew that git makes nothing of: nothing goes by what it says, and git takes a folder without it for no
/// repository.
fn mend_head(store: &Path) -> Result<()> {
    // One that somebody has moved away is not begun anew in its place.
    if !store.join("objects").is_dir() {
        return Ok(());
    }
    let head = store.join("HEAD");
    if durable::read(&head)?.is_some_and(|text| emptied::is_head(&text)) {
        return Ok(());
    }
    set_aside(&head)?;
    durable::write_below(store, &head, HEAD, 0o644)
}

/// The ref that an attempt's checkpoints move forward.
pub fn attempt_ref(attempt: &AttemptId) -> String {
    format!("refs/outlast/{}/{}/{}", attempt.run, attempt.task.slug(), attempt.number)
}

/// The ref of a task's verified result.
pub fn result_ref(run: &RunId, task: &TaskId) -> String {
    format!("refs/outlast/{run}/{}/result", task.slug())
}

/// The content of `objects/info/alternates` for these object folders.
pub(crate) fn alternates_text(folders: &[&Path]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = Vec::new();
    for folder in folders {
        text.extend_from_slice(folder.as_os_str().as_bytes());
        text.push(b'\n');
    }
    text
}

/// Makes the bare repository under another name and renames it into place.
fn init(path: &Path, lender: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    durable::create_dirs(parent)?;
    let temp = tempfile::Builder::new().prefix(".store-").tempdir_in(parent).map_err(Error::io("create in", parent))?;
    for folder in ["objects/info", "objects/pack", "refs/heads", "info", "outlast"] {
        durable::create_dirs(&temp.path().join(folder))?;
    }
    // All at once, so that no object has to wait for a folder of its own to be made durable.
    for fan_out in 0..=255 {
        let folder = temp.path().join(format!("objects/{fan_out:02x}"));
        std::fs::create_dir(&folder).map_err(Error::io("create", folder))?;
    }
    durable::sync_dir(&temp.path().join("objects"))?;
    durable::write(&temp.path().join(ALTERNATES), &alternates_text(&[lender]), 0o644)?;
    durable::write(&temp.path().join("config"), CONFIG.as_bytes(), 0o644)?;
    durable::write(&temp.path().join("HEAD"), HEAD, 0o644)?;
    let made = temp.keep();
    std::fs::rename(&made, path).map_err(Error::io("create", path))?;
    durable::sync_dir(parent)
}
