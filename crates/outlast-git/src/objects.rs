//! Writing objects physically and durably into one object folder.
//!
//! An object counts as held only when it lies in this very folder, loose or packed: what is merely borrowed through
//! alternates can be pruned by its owner. A batch is synced before any name appears, and commits appear last, so that
//! an object that is seen is whole and everything it names is there.

use std::collections::{BTreeSet, HashSet};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::objs::{Kind, WriteTo};
use tempfile::TempPath;

use crate::copy::Sink;
use crate::git::Git;
use crate::pack::PackWriter;
use crate::{Error, Result, durable};

/// How many new objects get a file of their own; the rest of a batch goes into one pack, with one sync for all.
const LOOSE_MAX: usize = 64;

/// The object folder of a repository that we may write.
#[derive(Debug, Clone)]
pub(crate) struct ObjectFolder {
    path: PathBuf,
    indexer: Option<Indexer>,
}

/// Who indexes a pack for an object folder: git on the repository of ours that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Indexer {
    pub(crate) git: Git,
    pub(crate) git_dir: PathBuf,
}

impl ObjectFolder {
    /// The folder at `path`; without an indexer every object gets a file of its own.
    pub(crate) fn new(path: PathBuf, indexer: Option<Indexer>) -> Self {
        Self { path, indexer }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that holds an object of its own.
    pub(crate) fn loose(&self, id: &ObjectId) -> PathBuf {
        let hex = id.to_hex().to_string();
        let (fan_out, rest) = hex.split_at(2);
        self.path.join(fan_out).join(rest)
    }

    /// The indices of the packs that lie in this folder.
    fn packs(&self) -> Result<Vec<gix::odb::pack::index::File>> {
        let folder = self.path.join("pack");
        let names = match std::fs::read_dir(&folder) {
            Ok(names) => names,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", folder)(e)),
        };
        let mut packs = Vec::new();
        for name in names {
            let path = name.map_err(Error::io("read", &folder))?.path();
            // An index without a byte, or with garbage, names nothing, and what nobody finds by it is written again. Whoever
            // has to read what its pack holds meets with that.
            if path.extension().is_some_and(|e| e == "idx") {
                packs.extend(gix::odb::pack::index::File::at(&path, gix::hash::Kind::Sha1));
            }
        }
        Ok(packs)
    }

    /// Starts a batch of writes.
    pub(crate) fn batch(&self) -> Result<Batch<'_>> {
        Ok(Batch { folder: self, packs: self.packs()?, pending: Vec::new(), pack: None, known: HashSet::new() })
    }
}

struct Pending {
    id: ObjectId,
    kind: Kind,
    temp: TempPath,
    file: File,
}

/// Objects on their way into an object folder; dropped unfinished, it leaves nothing.
pub(crate) struct Batch<'a> {
    folder: &'a ObjectFolder,
    packs: Vec<gix::odb::pack::index::File>,
    pending: Vec<Pending>,
    pack: Option<PackWriter>,
    known: HashSet<ObjectId>,
}

impl Sink for Batch<'_> {
    fn holds(&self, id: &ObjectId) -> bool {
        Batch::holds(self, id)
    }

    fn put(&mut self, kind: Kind, data: &[u8]) -> Result<ObjectId> {
        Batch::put(self, kind, data)
    }
}

impl Batch<'_> {
    /// Tells whether the object lies physically in this folder, or will with this batch.
    pub(crate) fn holds(&self, id: &ObjectId) -> bool {
        // A file without a byte is what a power cut leaves of one, and no object: it is written anew.
        let is_loose = || std::fs::metadata(self.folder.loose(id)).is_ok_and(|file| file.is_file() && file.len() > 0);
        self.known.contains(id) || is_loose() || self.packs.iter().any(|p| p.lookup(id).is_some())
    }

    /// Adds an object, unless this folder holds it already.
    pub(crate) fn put(&mut self, kind: Kind, data: &[u8]) -> Result<ObjectId> {
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, data).map_err(|e| Error::object("new", e))?;
        if self.holds(&id) {
            return Ok(id);
        }
        if self.pending.len() >= LOOSE_MAX && self.folder.indexer.is_some() {
            self.put_in_pack(kind, data)?;
        } else {
            self.put_loose(id, kind, data)?;
        }
        self.known.insert(id);
        Ok(id)
    }

    fn put_in_pack(&mut self, kind: Kind, data: &[u8]) -> Result<()> {
        let mut pack = match self.pack.take() {
            Some(pack) => pack,
            None => PackWriter::new(&self.folder.path)?,
        };
        pack.add(kind, data)?;
        self.pack = Some(pack);
        Ok(())
    }

    fn put_loose(&mut self, id: ObjectId, kind: Kind, data: &[u8]) -> Result<()> {
        let path = self.folder.loose(&id);
        let fan_out = path.parent().unwrap_or(&self.folder.path);
        self.make_fan_out(fan_out)?;
        // The same name pattern as git's own, so that `git prune` clears what a crash leaves.
        let temp = tempfile::Builder::new()
            .prefix("tmp_obj_")
            .permissions(Permissions::from_mode(0o444))
            .tempfile_in(fan_out)
            .map_err(Error::io("write in", fan_out))?;
        let mut out = gix::zlib::stream::deflate::Write::new(temp, gix::zlib::Compression::BEST_SPEED);
        out.write_all(&gix::objs::encode::loose_header(kind, data.len() as u64))
            .and_then(|()| out.write_all(data))
            .and_then(|()| out.flush())
            .map_err(Error::io("write", &path))?;
        let (file, temp) = out.into_inner().into_parts();
        self.pending.push(Pending { id, kind, temp, file });
        Ok(())
    }

    /// Adds a tree or commit.
    pub(crate) fn put_object(&mut self, kind: Kind, object: &dyn WriteTo) -> Result<ObjectId> {
        let mut data = Vec::new();
        object.write_to(&mut data).map_err(|e| Error::object("new", e))?;
        self.put(kind, &data)
    }

    /// A folder for the first two digits, with the permissions of the object folder (a shared one stays shared).
    fn make_fan_out(&self, fan_out: &Path) -> Result<()> {
        match std::fs::create_dir(fan_out) {
            Ok(()) => {
                let like = std::fs::metadata(&self.folder.path).map_err(Error::io("read", &self.folder.path))?;
                std::fs::set_permissions(fan_out, like.permissions()).map_err(Error::io("create", fan_out))?;
                durable::sync_dir(&self.folder.path)
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(Error::io("create", fan_out)(e)),
        }
    }

    /// Makes every object of this batch visible and durable, commits after all they may name.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { folder, pending, pack, .. } = self;
        let files: Vec<&File> = pending.iter().map(|object| &object.file).collect();
        durable::sync_files(&files).map_err(Error::io("sync", &folder.path))?;
        let (commits, others): (Vec<_>, Vec<_>) = pending.into_iter().partition(|p| p.kind == Kind::Commit);
        folder.show(others)?;
        if let (Some(pack), Some(indexer)) = (pack, &folder.indexer) {
            indexer.index(pack)?;
        }
        folder.show(commits)
    }
}

impl ObjectFolder {
    /// Gives synced objects their names, durably.
    fn show(&self, objects: Vec<Pending>) -> Result<()> {
        let mut folders = BTreeSet::new();
        for Pending { id, temp, .. } in objects {
            let path = self.loose(&id);
            temp.persist(&path).map_err(|e| Error::io("write", &path)(e.error))?;
            folders.extend(path.parent().map(Path::to_owned));
        }
        let opened = folders.iter().map(|f| File::open(f).map_err(Error::io("open", f))).collect::<Result<Vec<_>>>()?;
        durable::sync_files(&opened.iter().collect::<Vec<_>>()).map_err(Error::io("sync", &self.path))
    }
}

impl Indexer {
    /// Has git check the pack, index it and store both durably.
    fn index(&self, pack: PackWriter) -> Result<()> {
        let (_temp, input) = pack.end()?;
        self.git.in_store(&self.git_dir).args(["index-pack", "--stdin"]).input(input).ok()?;
        Ok(())
    }
}
