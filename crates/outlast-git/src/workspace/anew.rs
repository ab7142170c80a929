//! What a workspace gives back to a store that has lost objects, and what stands in the place of a checkpoint that is lost.

use std::collections::BTreeSet;

use gix::ObjectId;
use gix::bstr::BStr;

use outlast_core::Oid;

use crate::agent_repo::AgentRepo;
use crate::checkpoint::{FILE_LIMIT_DEFAULT, From};
use crate::scan::index::Index;
use crate::source::{Reader, Source as _};
use crate::{Result, Store, UserRepo, Workspace, oid, tree};

impl Workspace {
    /// Writes those of these objects into the store that the agent's repository has.
    pub(crate) fn give_objects(&self, store: &Store, ids: &BTreeSet<ObjectId>) -> Result<()> {
        let root = self.root()?;
        let Some(agent) = AgentRepo::open(&root, store.reader(), self.admin.join("packs")) else { return Ok(()) };
        let mut batch = store.objects().batch()?;
        let mut buf = Vec::new();
        for id in ids {
            if !batch.holds(id)
                && let Ok(Some(kind)) = agent.read(*id, &mut buf)
            {
                batch.put(kind, &buf)?;
            }
        }
        batch.finish()
    }

    /// Writes all that a checkpoint of the tree as it is now would hold, and no checkpoint: every file is read, since what
    /// was stored of it may be lost. Tells the tree.
    ///
    /// # Errors
    /// The workspace cannot be read, or the store not be written.
    pub fn tree_now(&self, store: &Store, user: &UserRepo) -> Result<Oid> {
        let _lock = self.lock()?;
        self.keep_anew(store, user)
    }

    /// As [`Workspace::tree_now`], for whoever has the lock.
    pub(crate) fn keep_anew(&self, store: &Store, user: &UserRepo) -> Result<Oid> {
        let (reader, root, base) = (store.reader(), self.root()?, oid::parse(&self.meta.base)?);
        let index = Index::of_tree(&self.admin, &reader, reader.tree_of(base)?)?;
        let mut batch = store.objects().batch()?;
        let from = From { store, user, reader: &reader, root: &root, base, limit: FILE_LIMIT_DEFAULT };
        let tree = self.keep(&from, &index, &mut batch)?.tree;
        batch.finish()?;
        Ok(oid::of(tree))
    }

    /// Forgets the cache of what was stored where the tree that it stands for is not whole any more.
    pub(crate) fn forget_cache_of_lost(&self, store: &Store) -> Result<()> {
        let (reader, base) = (store.reader(), oid::parse(&self.meta.base)?);
        let base = reader.tree_of(base)?;
        Index::forget_unless(&self.admin, |tree| is_whole(&reader, base, tree))
    }

    /// The newest of a checkpoint and those before it whose trees are whole, and otherwise the base.
    pub(crate) fn last_whole(&self, reader: &Reader, checkpoint: ObjectId, base: ObjectId) -> ObjectId {
        let Ok(base_tree) = reader.tree_of(base) else { return checkpoint };
        let mut at = checkpoint;
        while at != base {
            let Ok((tree, parents)) = reader.commit(at) else { return base };
            if is_whole(reader, base_tree, tree) {
                return at;
            }
            at = parents.first().copied().unwrap_or(base);
        }
        base
    }
}

/// Whether every folder of a tree that differs from the base's can be read.
fn is_whole(reader: &Reader, base: ObjectId, tree: ObjectId) -> bool {
    tree::walk_diff(reader, Some(base), Some(tree), BStr::new(""), &mut |_| Ok(())).is_ok()
}
