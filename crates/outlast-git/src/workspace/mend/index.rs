//! The index, where no git can read it: what was staged when the tree was kept last, or HEAD's tree.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice as _};

use super::{File, Mending};
use crate::agent_index::INDEX_LIMIT;
use crate::agent_repo::AgentRepo;
use crate::checkpoint::copy_head;
use crate::source::{Hurried, Source as _};
use crate::tree::Visit;
use crate::workspace::restore::Restored;
use crate::{Error, Result, durable, in_progress, oid, tree};

/// How long an agent's commits are copied for, which an index is made from.
const PATIENCE: Duration = Duration::from_secs(60);
/// A header of twelve bytes, and a checksum.
const LEN_MIN: usize = 32;
const CHECKSUM_LEN: usize = 20;

impl Mending<'_> {
    pub(super) fn index(&mut self, agent: &AgentRepo, checkpoints: &[Restored]) -> Result<()> {
        const NAME: &str = "index";
        let Ok(data) = self.git.read(NAME.as_bytes().as_bstr(), INDEX_LIMIT) else { return Ok(()) };
        if is_sound(&data) {
            return Ok(());
        }
        let head = agent.head();
        let kept = checkpoints.iter().find(|kept| kept.state.index.is_some());
        let is_same = kept.is_some_and(|kept| kept.state.head == head.map(oid::of));
        let staged = match kept.filter(|_| is_same) {
            Some(kept) => kept.index()?,
            None => head.map(|head| self.tree_of(agent, head)).transpose()?,
        };
        let staged = staged.unwrap_or_else(oid::empty_tree);
        let made = self.workspace.admin.join("made.index");
        durable::remove(&made)?;
        let call = self.store.call().env("GIT_INDEX_FILE", &made);
        match staged == oid::empty_tree() {
            true => call.args(["read-tree", "--empty"]).ok()?,
            false => call.arg("read-tree").arg(staged.to_string()).ok()?,
        };
        if let Some(kept) = kept.filter(|_| is_same) {
            kept.unmerged(self.store, &made)?;
        }
        self.marks(kept, staged, &made)?;
        let bytes = durable::read(&made)?.unwrap_or_default();
        durable::remove(&made)?;
        if !data.is_empty() {
            self.set_aside(NAME, &data)?;
        }
        self.write(NAME, &bytes)
    }

    /// The tree of a commit that the agent may have made itself: from here on the store has it, too.
    fn tree_of(&self, agent: &AgentRepo, head: ObjectId) -> Result<ObjectId> {
        let base = oid::parse(&self.workspace.meta.base)?;
        let hurried = Hurried { source: agent, until: Instant::now() + PATIENCE };
        match copy_head(&hurried, self.store, self.user, base, head) {
            Ok(()) => self.reader.tree_of(head),
            // Its commits stay as they are; what is staged is then as it was at the beginning.
            Err(Error::Object { .. }) => self.reader.tree_of(base),
            Err(error) => Err(error),
        }
    }

    /// Tells git again what it leaves alone: without that, what is not on disk would be deleted. What is there by now counts.
    /// In a sparse checkout it is better that what is gone stays than that what is not goes.
    fn marks(&self, kept: Option<&Restored>, staged: ObjectId, index: &Path) -> Result<()> {
        let (absent, skipped, assumed) = kept.map(Restored::left_alone_lists).transpose()?.unwrap_or_default();
        let is_sparse = !matches!(self.file(in_progress::SPARSE), File::Gone);
        let [absent, skipped, assumed] = [&absent, &skipped, &assumed].map(|list| paths(list));
        let (mut skip, mut assume) = (Vec::new(), Vec::new());
        tree::walk_diff(&self.reader, None, Some(staged), BStr::new(""), &mut |visit| {
            let Visit::Leaf(path, ..) = visit else { return Ok(()) };
            let is_in = |list: &BTreeSet<&[u8]>| list.contains(path.as_bytes());
            if is_in(&skipped) || (is_sparse || is_in(&absent)) && !self.root.has(path) {
                skip.extend_from_slice(path);
                skip.push(0);
            }
            if is_in(&assumed) {
                assume.extend_from_slice(path);
                assume.push(0);
            }
            Ok(())
        })?;
        for (mark, listed) in [("--skip-worktree", skip), ("--assume-unchanged", assume)] {
            if !listed.is_empty() {
                let call = self.store.call().env("GIT_WORK_TREE", self.workspace.path()).env("GIT_INDEX_FILE", index);
                call.args(["update-index", mark, "-z", "--stdin"]).stdin(listed).ok()?;
            }
        }
        Ok(())
    }
}

/// The paths of a list, each of which ends with a zero.
fn paths(list: &[u8]) -> BTreeSet<&[u8]> {
    list.split_str(b"\0").filter(|path| !path.is_empty()).collect()
}

/// Whether an index begins and ends as one does.
fn is_sound(data: &[u8]) -> bool {
    if data.len() < LEN_MIN || !data.starts_with(b"DIRC") {
        return false;
    }
    let (content, sum) = data.split_at(data.len() - CHECKSUM_LEN);
    // Git may leave it out.
    if sum.iter().all(|&byte| byte == 0) {
        return content.iter().skip(4).any(|&byte| byte != 0);
    }
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(content);
    hasher.try_finalize().is_ok_and(|id| id.as_slice() == sum)
}
