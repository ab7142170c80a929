//! What a workspace gives back to a store that has lost objects, and what stands in the place of a checkpoint that is lost.

use std::collections::BTreeSet;

use gix::ObjectId;
use outlast_core::Oid;

use crate::agent_repo::AgentRepo;
use crate::agent_state::AgentState;
use crate::checkpoint::{FILE_LIMIT_DEFAULT, From};
use crate::scan::index::Index;
use crate::source::Source as _;
use crate::{Result, Store, UserRepo, Workspace, damage, oid};

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
        let reader = store.reader();
        Index::forget_unless(&self.admin, |tree| {
            damage::is_whole(store.objects(), &reader, vec![tree]).is_ok_and(|is_whole| is_whole)
        })
    }
}

impl Store {
    /// The newest of a checkpoint and those before it that is whole; nothing where that is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn newest_whole(&self, checkpoint: &Oid, base: &Oid) -> Result<Option<Oid>> {
        let (asked, base) = (oid::parse(checkpoint)?, oid::parse(base)?);
        let found = if self.has_lost() { self.last_whole(asked, base)? } else { asked };
        Ok(Some(found).filter(|found| *found == asked || *found != base).map(oid::of))
    }

    /// The newest of a checkpoint and those before it that is whole, with what is kept beside it, and otherwise the base.
    pub(crate) fn last_whole(&self, checkpoint: ObjectId, base: ObjectId) -> Result<ObjectId> {
        let reader = self.reader();
        let mut at = checkpoint;
        while at != base {
            let (Ok((_, parents)), Ok(message)) = (reader.commit(at), reader.message(at)) else { return Ok(base) };
            let AgentState { head, index, beside, .. } = AgentState::parse(&message);
            let named = [head, index, beside].into_iter().flatten().filter_map(|id| oid::parse(&id).ok());
            if damage::is_whole(self.objects(), &reader, named.chain([at]).collect())? {
                return Ok(at);
            }
            at = parents.first().copied().unwrap_or(base);
        }
        Ok(base)
    }
}
