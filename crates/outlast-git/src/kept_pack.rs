//! What lands, as one pack in the user's repository that says it must be kept.
//!
//! A `git gc --prune=now` that looked at the refs before a landing began drops whatever lies there loose and was named by
//! none of them, however late it gets to it: a ref that came meanwhile does not hold it back. A pack with a `.keep` beside
//! it is left alone by all of git (gitrepository-layout), from before it can be seen until the mark is taken away.

use std::collections::HashSet;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::objs::Kind;

use crate::copy::Sink;
use crate::git::Git;
use crate::pack::PackWriter;
use crate::{Error, Result, Store, durable};

/// Objects on their way into a pack that is kept.
pub(crate) struct KeptPack {
    pack: PackWriter,
    known: HashSet<ObjectId>,
}

impl KeptPack {
    /// Starts one. Until it is whole it lies in the store, where no cleaning of the user's finds it.
    pub(crate) fn new(store: &Store) -> Result<Self> {
        Ok(Self { pack: PackWriter::new(store.objects_dir())?, known: HashSet::new() })
    }

    /// Has git check and index it in `checkout`, durably, with `mark` as the text of its `.keep`.
    pub(crate) fn finish(self, git: &Git, checkout: &Path, mark: &str) -> Result<()> {
        let (_temp, input) = self.pack.end()?;
        let git = git.in_checkout(checkout).durably();
        git.args(["index-pack", "--stdin", &format!("--keep={mark}")]).input(input).ok()?;
        Ok(())
    }
}

impl Sink for KeptPack {
    /// What lies in the user's repository already counts for nothing: it may be what is being dropped.
    fn holds(&self, id: &ObjectId) -> bool {
        self.known.contains(id)
    }

    fn put(&mut self, kind: Kind, data: &[u8]) -> Result<ObjectId> {
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, data).map_err(|e| Error::object("new", e))?;
        if self.known.insert(id) {
            self.pack.add(kind, data)?;
        }
        Ok(id)
    }
}

/// Takes away each `mark` in the object folder `objects`: from here on those packs are as any other.
pub(crate) fn release(objects: &Path, mark: &str) -> Result<()> {
    for file in durable::entries(&objects.join("pack"))? {
        if file.extension().is_some_and(|extension| extension == "keep")
            && durable::read(&file)?.is_some_and(|text| text.trim() == mark.as_bytes())
        {
            durable::remove(&file)?;
        }
    }
    Ok(())
}
