//! Where objects are read from: the store with all it borrows, and an agent's loose objects on top.

use std::sync::Arc;
use std::time::Instant;

use gix::ObjectId;
use gix::objs::{Find, Kind};

use crate::{Error, Result};

/// Something objects can be read from.
pub(crate) trait Source {
    /// Reads an object into `buf`; `None` where it is not here.
    fn read(&self, id: ObjectId, buf: &mut Vec<u8>) -> Result<Option<Kind>>;

    /// Reads an object of this kind; anything else is an error.
    fn need(&self, id: ObjectId, kind: Kind, buf: &mut Vec<u8>) -> Result<()> {
        match self.read(id, buf)? {
            Some(found) if found == kind => Ok(()),
            Some(found) => Err(Error::object(id, format!("it is a {found}, not a {kind}"))),
            None => Err(Error::object(id, "it is missing")),
        }
    }

    /// The tree and the parents of a commit.
    fn commit(&self, id: ObjectId) -> Result<(ObjectId, Vec<ObjectId>)> {
        let mut buf = Vec::new();
        self.need(id, Kind::Commit, &mut buf)?;
        let commit = gix::objs::CommitRef::from_bytes(&buf, gix::hash::Kind::Sha1).map_err(|e| Error::object(id, e))?;
        Ok((commit.tree(), commit.parents().collect()))
    }

    /// The message of a commit.
    fn message(&self, id: ObjectId) -> Result<String> {
        let mut buf = Vec::new();
        self.need(id, Kind::Commit, &mut buf)?;
        let commit = gix::objs::CommitRef::from_bytes(&buf, gix::hash::Kind::Sha1).map_err(|e| Error::object(id, e))?;
        Ok(String::from_utf8_lossy(commit.message).into_owned())
    }

    /// The tree of a commit.
    fn tree_of(&self, commit: ObjectId) -> Result<ObjectId> {
        Ok(self.commit(commit)?.0)
    }
}

/// A source that is not asked for more than so long: an agent can make objects that take hours to read.
pub(crate) struct Hurried<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) until: Instant,
}

impl Source for Hurried<'_> {
    fn read(&self, id: ObjectId, buf: &mut Vec<u8>) -> Result<Option<Kind>> {
        if Instant::now() >= self.until {
            return Err(Error::object(id, "there is more than can be copied in the time that a turn has"));
        }
        self.source.read(id, buf)
    }
}

/// The store's objects and the borrowed ones.
#[derive(Clone)]
pub(crate) struct Reader(pub(crate) gix::odb::HandleArc);

impl Reader {
    pub(crate) fn of(odb: &Arc<gix::odb::Store>) -> Self {
        Self(odb.to_cache_arc())
    }
}

impl Source for Reader {
    fn read(&self, id: ObjectId, buf: &mut Vec<u8>) -> Result<Option<Kind>> {
        let Some(found) = self.0.try_find(&id, buf).map_err(|e| Error::object(id, e))? else { return Ok(None) };
        // The name of a file is all that says which object it holds.
        let real = gix::objs::compute_hash(gix::hash::Kind::Sha1, found.kind, found.data);
        match real.map_err(|e| Error::object(id, e))? {
            real if real == id => Ok(Some(found.kind)),
            real => Err(Error::object(id, format!("its content is that of {real}"))),
        }
    }
}
