//! The commit beside a checkpoint: what of an agent's work neither the tree nor the agent's HEAD holds.
//!
//! That is what is staged, paths that a merge left open, what git leaves alone (a sparse checkout), what it has begun,
//! branches and stashes beside HEAD, files whose bytes no checkout would write, empty folders, and the `.git` of repositories in the tree. It is one commit, a parent of the checkpoint, so that all of it is
//! reached from our ref; where there is nothing of that kind, there is none. The same state makes the same commit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::tree::EntryKind;
use gix::objs::{Kind as ObjectKind, Tree, tree::Entry};
use outlast_core::Timestamp;

use crate::agent_index::Staged;
use crate::agent_repo::{AgentRepo, parse_packed};
use crate::agent_state::AgentState;
use crate::checkpoint::{Note, checkpoint_author, put_commit};
use crate::copy::{Safe, copy_history};
use crate::inside::Folder;
use crate::nested::Nested;
use crate::objects::Batch;
use crate::raw::Raw;
use crate::scan::index::Index;
use crate::scan::{Agent, Found, storable};
use crate::source::{Hurried, Reader, Source};
use crate::tree::{self, Edits, Leaf};
use crate::workspace::Workspace;
use crate::{Error, Kind, Result, Store, UserRepo, in_progress, oid};

pub(crate) mod left;

/// The entries of the commit's tree.
pub(crate) const INDEX: &str = "index";
pub(crate) const STAGES: [&str; 3] = ["stage-1", "stage-2", "stage-3"];
/// Paths that git leaves alone and that are not on disk; those that are; those it takes for unchanged.
pub(crate) const ABSENT: &str = "absent";
pub(crate) const SKIPPED: &str = "skipped";
pub(crate) const ASSUMED: &str = "assumed";
pub(crate) const GIT: &str = "git";
pub(crate) const REFS: &str = "refs";
/// The bytes of files that a checkout would write differently.
pub(crate) const RAW: &str = "raw";
pub(crate) const FOLDERS: &str = "folders";
pub(crate) const NESTED: &str = "nested";
/// The entries of each folder below the last one.
pub(crate) const NESTED_PATH: &str = "path";
pub(crate) const NESTED_FILES: &str = "files";
/// What stands as `.git` where that is a file or link, and where the repository is then.
pub(crate) const NESTED_POINTER: &str = "pointer";
pub(crate) const NESTED_DIR: &str = "dir";

/// Most branches, tags and stashes of an agent's that are kept.
const REFS_MAX: usize = 1000;
/// Most empty folders.
const FOLDERS_MAX: usize = 10_000;
/// Most repositories in a tree.
const NESTED_MAX: usize = 100;

/// The entries of a tree of ours, by name.
type Entries = BTreeMap<&'static str, (EntryKind, ObjectId)>;

/// Where to look.
pub(crate) struct Sources<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) store: &'a Store,
    pub(crate) user: &'a UserRepo,
    pub(crate) reader: &'a Reader,
    pub(crate) root: &'a Folder,
    pub(crate) agent: Option<Agent<'a>>,
    pub(crate) base: ObjectId,
    /// The agent's HEAD where it is safe: the base, or copied.
    pub(crate) head: Option<ObjectId>,
    /// Largest file of a repository in the tree, in bytes.
    pub(crate) limit: u64,
    /// The bytes of files that a checkout would write differently.
    pub(crate) raw: &'a Raw,
    /// Until when what an agent committed and staged is copied.
    pub(crate) until: Instant,
}

/// What was found, on its way into the store with the batch.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) state: AgentState,
    pub(crate) notes: Vec<Note>,
    pub(crate) nested: Vec<Nested>,
    entries: Entries,
    parents: BTreeSet<ObjectId>,
}

impl Sources<'_> {
    /// Puts everything beside `tree`, which `found` leads to from the tree of `index`, into the batch.
    pub(crate) fn keep(&self, batch: &mut Batch<'_>, index: &Index, found: &Found, tree: ObjectId) -> Result<Beside> {
        let mut beside = Beside::default();
        if let Some(agent) = self.agent {
            self.head(agent.repo, &mut beside);
            let is_sparse = self.staged(agent, batch, index, tree, &mut beside)?;
            self.commits(agent.repo, is_sparse, batch, &mut beside)?;
        }
        let raw = tree::edit(self.reader, batch, oid::empty_tree(), &self.raw.edits())?;
        if raw != oid::empty_tree() {
            beside.entries.insert(RAW, (EntryKind::Tree, raw));
        }
        self.folders(batch, found, &mut beside)?;
        self.nested(batch, index, found, &mut beside)?;
        if !beside.entries.is_empty() {
            let tree = put_tree(batch, &beside.entries)?;
            let parents = beside.parents.iter().copied().filter(|id| *id != self.base).collect();
            let commit = put_commit(batch, tree, parents, &checkpoint_author(), Timestamp::EPOCH, "beside the tree\n")?;
            beside.state.beside = Some(oid::of(commit));
        }
        Ok(beside)
    }

    fn head(&self, agent: &AgentRepo, beside: &mut Beside) {
        beside.state.head = self.head.map(oid::of);
        // A branch whose commit could not be copied would come back empty.
        beside.state.branch = agent.branch().filter(|_| self.head == agent.head());
    }

    /// What is staged, what a merge left open, and what git leaves alone; tells whether there is any of the last.
    fn staged(
        &self,
        Agent { repo: agent, index }: Agent<'_>,
        batch: &mut Batch<'_>,
        cache: &Index,
        tree: ObjectId,
        beside: &mut Beside,
    ) -> Result<bool> {
        let index = match index {
            Ok(Some(index)) => index,
            Ok(None) => return Ok(false),
            Err(why) => {
                beside.notes.push(Note::NotKept { what: "what is staged".to_owned(), why: why.clone() });
                return Ok(false);
            }
        };
        let staged = index.against(cache);
        let Some((whole, stages)) = self.hold(agent, batch, cache, &staged, "what is staged", &mut beside.notes)?
        else {
            return Ok(false);
        };
        beside.state.index = Some(oid::of(whole));
        beside.state.unmerged = staged.unmerged_count();
        let of_head = self.head.map(|head| agent.tree_of(head)).transpose()?;
        if whole != tree && Some(whole) != of_head {
            if whole == oid::empty_tree() {
                batch.put(ObjectKind::Tree, b"")?;
            }
            beside.entries.insert(INDEX, (EntryKind::Tree, whole));
        }
        beside.entries.extend(stages);
        let (mut absent, mut skipped) = (Vec::new(), Vec::new());
        for (path, _) in index.skipped() {
            if self.root.has(path) { &mut skipped } else { &mut absent }.push(path);
        }
        let is_sparse = absent.len() + skipped.len() > 0;
        for (name, paths) in [(ABSENT, absent), (SKIPPED, skipped), (ASSUMED, index.assumed().collect())] {
            if !paths.is_empty() {
                beside.entries.insert(name, (EntryKind::Blob, batch.put(ObjectKind::Blob, &listed(&paths))?));
            }
        }
        Ok(is_sparse)
    }

    /// Brings what is staged into the store: as one tree, and one each for the sides of what a merge left open; nothing,
    /// and a note, where it cannot be.
    fn hold(
        &self,
        agent: &AgentRepo,
        batch: &mut Batch<'_>,
        cache: &Index,
        staged: &Staged,
        what: &str,
        notes: &mut Vec<Note>,
    ) -> Result<Option<(ObjectId, Entries)>> {
        let mut keep = || -> Result<_> {
            self.copy_blobs(agent, batch, &staged.edits)?;
            let whole = tree::edit(self.reader, batch, cache.tree(), &staged.edits)?;
            let mut stages = BTreeMap::new();
            for (name, edits) in STAGES.into_iter().zip(&staged.unmerged) {
                self.copy_blobs(agent, batch, edits)?;
                let stage = tree::edit(self.reader, batch, oid::empty_tree(), edits)?;
                if stage != oid::empty_tree() {
                    stages.insert(name, (EntryKind::Tree, stage));
                }
            }
            Ok((whole, stages))
        };
        match keep() {
            Ok(held) => Ok(Some(held)),
            Err(why @ Error::Object { .. }) => {
                notes.push(Note::NotKept { what: what.to_owned(), why: why.to_string() });
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Copies what is staged, as far as neither the store nor the pinned base holds it.
    fn copy_blobs(&self, agent: &AgentRepo, batch: &mut Batch<'_>, edits: &Edits) -> Result<()> {
        let base = self.reader.tree_of(self.base)?;
        let mut buf = Vec::new();
        for (path, leaf) in edits {
            let Some(leaf) = leaf else { continue };
            if !path.split_str("/").all(|name| storable(name.as_bstr())) {
                return Err(Error::object(leaf.id, format!("no git would check out `{path}`")));
            }
            if leaf.kind == Kind::Gitlink
                || batch.holds(&leaf.id)
                || tree::lookup(self.reader, base, path.as_ref())?.is_some_and(|at_base| at_base.id == leaf.id)
            {
                continue;
            }
            Hurried { source: agent, until: self.until }.need(leaf.id, ObjectKind::Blob, &mut buf)?;
            batch.put(ObjectKind::Blob, &buf)?;
        }
        Ok(())
    }

    /// Copies a commit with its history and has the commit beside hold it; nothing, and a note, where it cannot be.
    fn commit(
        &self,
        agent: &AgentRepo,
        id: ObjectId,
        safe: &mut Safe<'_>,
        name: &str,
        beside: &mut Beside,
    ) -> Result<Option<ObjectId>> {
        let commit = self.copied(agent, id, safe, &format!("`{name}`"), beside)?;
        beside.parents.extend(commit);
        Ok(commit)
    }

    /// Copies a commit with its history, in a batch of its own; nothing, and a note, where it cannot be.
    fn copied(
        &self,
        agent: &AgentRepo,
        id: ObjectId,
        safe: &mut Safe<'_>,
        what: &str,
        beside: &mut Beside,
    ) -> Result<Option<ObjectId>> {
        let mut copy = || -> Result<ObjectId> {
            let commit = agent.commit_of(id)?;
            let mut batch = self.store.objects().batch()?;
            copy_history(&Hurried { source: agent, until: self.until }, &mut batch, commit, safe)?;
            batch.finish()?;
            Ok(commit)
        };
        match copy() {
            Ok(commit) => Ok(Some(commit)),
            Err(why @ Error::Object { .. }) => {
                beside.notes.push(Note::NotKept { what: what.to_owned(), why: why.to_string() });
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// What git has begun, and what the agent has committed beside its HEAD.
    fn commits(&self, agent: &AgentRepo, is_sparse: bool, batch: &mut Batch<'_>, beside: &mut Beside) -> Result<()> {
        let under_way = in_progress::read(agent);
        let mut files = under_way.files;
        beside.state.in_progress = under_way.operations;
        let mut safe = Safe::new(self.base, self.user);
        let mut keep = |name: &str, id, beside: &mut Beside| self.commit(agent, id, &mut safe, name, beside);
        for id in under_way.heads {
            keep("a commit of what is under way", id, beside)?;
        }
        let stashes = agent.stashes();
        let refs = self.own_refs(agent)?;
        let surplus = (refs.len() + stashes.len()).saturating_sub(REFS_MAX);
        if surplus > 0 {
            let what = format!("{surplus} branches, tags and stashes");
            beside.notes.push(Note::NotKept { what, why: format!("more than {REFS_MAX} are not kept") });
        }
        let mut text = String::new();
        let (mut apart, mut known) = (Vec::new(), Vec::new());
        for (name, id) in refs.into_iter().take(REFS_MAX) {
            if let Some(commit) = keep(&name, id, beside)? {
                text.push_str(&format!("{commit} {name}\n"));
                known.push(commit);
                // The stashes name the newest of them, too.
                let short = ["refs/heads/", "refs/tags/"].iter().find_map(|lead| name.strip_prefix(lead));
                apart.extend(short.map(|name| (name.to_owned(), commit)));
            }
        }
        let last = stashes.len();
        for (at, id) in stashes.into_iter().enumerate().take(REFS_MAX) {
            let kept = keep("a stash", id, beside)?;
            apart.extend(kept.map(|commit| (format!("stash@{{{}}}", last - 1 - at), commit)));
        }
        known.extend(apart.iter().map(|(_, commit)| *commit));
        let left = self.left(agent, &mut safe, &known, &mut apart, beside)?;
        self.put_away(apart, beside)?;
        if !left.is_empty() {
            files.insert(in_progress::HEAD_LOG.to_owned(), left);
        }
        if let Some(log) = agent.file(in_progress::STASHES, 1 << 20) {
            files.insert(in_progress::STASHES.to_owned(), log);
        }
        if is_sparse && let Some(patterns) = agent.file(in_progress::SPARSE, 1 << 20) {
            files.insert(in_progress::SPARSE.to_owned(), patterns);
        }
        if !text.is_empty() {
            let id = batch.put(ObjectKind::Blob, text.as_bytes())?;
            beside.entries.insert(REFS, (EntryKind::Blob, id));
        }
        let mut edits = Edits::new();
        for (path, bytes) in files {
            let id = batch.put(ObjectKind::Blob, &bytes)?;
            edits.insert(path.into(), Some(Leaf { kind: Kind::File, id }));
        }
        if !edits.is_empty() {
            let tree = tree::edit(self.reader, batch, oid::empty_tree(), &edits)?;
            beside.entries.insert(GIT, (EntryKind::Tree, tree));
        }
        Ok(())
    }

    /// Says which commits HEAD does not lead to: a successor that does not know of them would do their work again.
    fn put_away(&self, mut apart: Vec<(String, ObjectId)>, beside: &mut Beside) -> Result<()> {
        apart.retain(|(_, id)| *id != self.base && Some(*id) != self.head);
        if apart.is_empty() {
            return Ok(());
        }
        let asked: String = apart.iter().map(|(_, id)| format!("{id}\n")).collect();
        let known = self.head.into_iter().chain([self.base]).map(|id| format!("^{id}\n"));
        let asked = known.fold(asked, |asked, id| asked + &id);
        let said = match self.store.call().args(["rev-list", "--stdin"]).stdin(asked).ok() {
            // Nobody can tell what leads to what where a commit in between is lost.
            Err(Error::Git { .. }) if self.store.has_lost() => return Ok(()),
            said => said?,
        };
        let outside: BTreeSet<&[u8]> = said.lines().collect();
        let there = apart.into_iter().filter(|(_, id)| outside.contains(id.to_string().as_bytes()));
        beside.notes.extend(there.map(|(name, id)| Note::PutAway { name: name.into(), commit: oid::of(id) }));
        Ok(())
    }

    /// The refs that are neither the user's, as they were shown, nor said by HEAD.
    fn own_refs(&self, agent: &AgentRepo) -> Result<BTreeMap<String, ObjectId>> {
        let shown = parse_packed(&self.store.tips(&self.workspace.meta.run)?.unwrap_or_default());
        let current = agent.branch().map(|branch| format!("refs/heads/{branch}"));
        let mut refs = agent.refs();
        refs.retain(|name, id| {
            let is_said = current.as_ref() == Some(name) && agent.head() == Some(*id);
            !is_said && shown.get(name) != Some(id) && gix::validate::reference::name(name.as_bytes().as_bstr()).is_ok()
        });
        Ok(refs)
    }

    fn folders(&self, batch: &mut Batch<'_>, found: &Found, beside: &mut Beside) -> Result<()> {
        if found.folders.is_empty() {
            return Ok(());
        }
        if let Some(surplus) = found.folders.len().checked_sub(FOLDERS_MAX).filter(|surplus| *surplus > 0) {
            let what = format!("{surplus} empty folders");
            beside.notes.push(Note::NotKept { what, why: format!("more than {FOLDERS_MAX} are not kept") });
        }
        let kept = &found.folders[..found.folders.len().min(FOLDERS_MAX)];
        beside.entries.insert(FOLDERS, (EntryKind::Blob, batch.put(ObjectKind::Blob, &listed(kept))?));
        Ok(())
    }

    fn nested(&self, batch: &mut Batch<'_>, index: &Index, found: &Found, beside: &mut Beside) -> Result<()> {
        let paths = found.notes.iter().filter_map(|note| match note {
            Note::NestedRepository(path) => Some(path),
            _ => None,
        });
        let places = self.workspace.repositories(self.root, self.reader, self.limit);
        beside.notes.extend(match self.agent {
            Some(agent) => places.linked_elsewhere(agent.repo),
            None => places.own_elsewhere().into_iter().collect(),
        });
        let mut trees = BTreeMap::new();
        for (at, path) in paths.enumerate() {
            if at >= NESTED_MAX {
                let why = format!("more than {NESTED_MAX} are not kept");
                beside.notes.push(Note::NotKept { what: format!("`{path}/.git`"), why });
                continue;
            }
            let (kept, note) = places.keep(path.as_ref(), batch)?;
            beside.notes.extend(note);
            let Some(nested) = kept else { continue };
            let mut entries = BTreeMap::from([(NESTED_PATH, blob(batch, path)?)]);
            if let Some(pointer) = nested.pointer {
                entries.insert(NESTED_POINTER, (pointer.entry_kind(), pointer.id));
            }
            if let Some(place) = &nested.place {
                entries.insert(NESTED_DIR, blob(batch, &place.dir)?);
                entries.insert(NESTED_FILES, (EntryKind::Tree, place.files));
                entries.insert(FOLDERS, blob(batch, &listed(&place.folders))?);
                if place.files == oid::empty_tree() {
                    batch.put(ObjectKind::Tree, b"")?;
                }
                if let Some(name) = place.linked() {
                    self.linked(name, batch, index, &mut entries, beside)?;
                }
            }
            trees.insert(format!("{at:03}"), (EntryKind::Tree, put_tree(batch, &entries)?));
            beside.nested.push(nested);
        }
        if !trees.is_empty() {
            let trees = trees.iter().map(|(name, entry)| (name.as_str(), *entry)).collect();
            beside.entries.insert(NESTED, (EntryKind::Tree, put_tree(batch, &trees)?));
        }
        Ok(())
    }

    /// What a linked worktree alone leads to in the agent's own repository: its HEAD, what it has begun, what is staged.
    fn linked(
        &self,
        name: &str,
        batch: &mut Batch<'_>,
        index: &Index,
        entries: &mut Entries,
        beside: &mut Beside,
    ) -> Result<()> {
        let Some(worktree) = self.agent.and_then(|agent| agent.repo.linked(name)) else { return Ok(()) };
        let mut safe = Safe::new(self.base, self.user);
        for id in worktree.head().into_iter().chain(in_progress::read(&worktree).heads) {
            self.commit(&worktree, id, &mut safe, &format!("a commit of the worktree `{name}`"), beside)?;
        }
        let what = format!("what is staged in the worktree `{name}`");
        match worktree.index() {
            Ok(Some(staged)) => {
                let held = self.hold(&worktree, batch, index, &staged.against(index), &what, &mut beside.notes)?;
                if let Some((whole, stages)) = held.filter(|(whole, _)| *whole != oid::empty_tree()) {
                    entries.insert(INDEX, (EntryKind::Tree, whole));
                    entries.extend(stages);
                }
            }
            Ok(None) => {}
            Err(why) => beside.notes.push(Note::NotKept { what, why }),
        }
        Ok(())
    }
}

/// The entry of a file with these bytes.
fn blob(batch: &mut Batch<'_>, bytes: &[u8]) -> Result<(EntryKind, ObjectId)> {
    Ok((EntryKind::Blob, batch.put(ObjectKind::Blob, bytes)?))
}

/// Paths, each with a zero at its end.
fn listed(paths: &[impl AsRef<[u8]>]) -> Vec<u8> {
    paths.iter().flat_map(|path| path.as_ref().iter().copied().chain([0])).collect()
}

/// Writes a tree of a few entries, whose names are such that git's order is that of their bytes.
fn put_tree(batch: &mut Batch<'_>, entries: &BTreeMap<&str, (EntryKind, ObjectId)>) -> Result<ObjectId> {
    let entries =
        entries.iter().map(|(name, (kind, id))| Entry { mode: (*kind).into(), filename: (*name).into(), oid: *id });
    batch.put_object(ObjectKind::Tree, &Tree { entries: entries.collect() })
}
