//! A checkpoint: the state of a whole working tree as a durable commit in the store.
//!
//! The agent's index, HEAD, branches and configuration are not touched, and nothing of its is run. What it committed by
//! itself is copied into the store, so that a checkpoint holds all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use gix::ObjectId;
use gix::bstr::BString;
use gix::objs::{Commit, Kind as ObjectKind};
use outlast_core::{AttemptId, Oid, Timestamp};

use crate::agent_index::known::Contents;
use crate::agent_repo::AgentRepo;
use crate::agent_state::AgentState;
use crate::beside::{Beside, Sources};
use crate::copy::{Safe, copy_history};
use crate::inside::Folder;
use crate::objects::Batch;
use crate::raw::Raw;
use crate::scan::ahead::Ahead;
use crate::scan::convert::Converter;
use crate::scan::index::Index;
use crate::scan::{self, Found, Sink};
use crate::source::{Hurried, Reader, Source};
use crate::store::attempt_ref;
use crate::tree::{self, Change, Leaf};
use crate::user::Identity;
use crate::workspace::Workspace;
use crate::{Error, Kind, Result, Store, UserRepo, nested, oid};

/// Largest file that a checkpoint takes unless told otherwise, in bytes: what git hosts refuse is half as large again.
pub const FILE_LIMIT_DEFAULT: u64 = 50 << 20;

/// How long a checkpoint copies what an agent has committed and staged: an agent can make objects that take hours to copy,
/// and its answer waits. Its files are kept in any case.
const COPY_PATIENCE: Duration = Duration::from_secs(10);

/// What a checkpoint is made for.
#[derive(Debug, Clone)]
pub struct CheckpointSpec {
    /// The attempt whose ref moves forward.
    pub attempt: AttemptId,
    /// The checkpoint before this one; `None` at the first of a task, whose parent is the base.
    pub parent: Option<Oid>,
    /// The commit message.
    pub message: String,
    /// The date of the commit: given twice with the same tree, the same commit comes out.
    pub at: Timestamp,
    /// Largest new content that is taken, in bytes.
    pub file_limit: u64,
    /// Whether the checkpoint before this one stands for a tree that is still the same.
    pub only_if_changed: bool,
}

/// A durable state of a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The commit in the store.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// What differs from the parent.
    pub changed: Vec<Change>,
    /// The agent's own HEAD, when it can be told.
    pub head: Option<Oid>,
    /// The state of the agent's own repository, as the commit's message says it.
    pub agent: AgentState,
    /// Whether no file changed while the tree was read.
    pub settled: bool,
    /// What a person or the engine should know.
    pub notes: Vec<Note>,
}

/// Something a checkpoint did not take, or took in a special way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// The path was left as it was in the checkpoint before.
    Skipped {
        /// The path, or the folder.
        path: BString,
        /// Why.
        reason: SkipReason,
    },
    /// An ignore pattern names the path, so it was not taken; a folder ends in `/`.
    Ignored(BString),
    /// A repository lies in the tree; its files were taken as plain files.
    NestedRepository(BString),
    /// The attributes name a filter driver, which is never run; the file's bytes were taken as they are.
    FilterNotRun {
        /// The path.
        path: BString,
        /// The driver's name.
        driver: String,
    },
    /// Commits of the agent's that no way from its HEAD leads to: they are kept, and no part of its work that lands.
    PutAway {
        /// The branch or tag, the place among the stashes, or `detached-ID` of one that only HEAD's reflog leads to.
        name: BString,
        /// The newest of them.
        commit: Oid,
    },
    /// Something beside the tree could not be kept: only the workspace has it.
    NotKept {
        /// What it is, a phrase.
        what: String,
        /// What was wrong.
        why: String,
    },
    /// A repository of the agent's is outside the workspace: what it alone holds is not kept.
    RepositoryElsewhere {
        /// What names it.
        path: BString,
        /// Where it is.
        to: BString,
    },
    /// The agent's own commits could not be copied: only the working tree is safe.
    HeadNotCopied {
        /// The agent's HEAD.
        head: Oid,
        /// What was wrong.
        why: String,
    },
}

/// Why a path was left as it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// It is larger than the limit.
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
    },
    /// The system did not let us read it.
    Unreadable,
    /// It is a pipe, a socket or a device.
    NotAFile,
    /// Its name cannot be in a tree, or it lies too deep.
    Unstorable,
}

/// From where a tree is kept, and where to.
#[derive(Clone, Copy)]
pub(crate) struct From<'a> {
    pub(crate) store: &'a Store,
    pub(crate) user: &'a UserRepo,
    pub(crate) reader: &'a Reader,
    pub(crate) root: &'a Folder,
    pub(crate) base: ObjectId,
    /// Largest new content that is taken, in bytes.
    pub(crate) limit: u64,
}

/// What of a workspace is on its way into the store.
pub(crate) struct Kept {
    pub(crate) tree: ObjectId,
    /// The agent's HEAD, and the same where it is a commit of its own that is stored.
    head: Option<ObjectId>,
    copied: Option<ObjectId>,
    found: Found,
    raw: Raw,
    /// The agent's index, where it could be read.
    staged: Option<Contents>,
    beside: Beside,
    notes: Vec<Note>,
}

impl Workspace {
    /// Saves the whole working tree, untracked files included, as a commit in the store, and moves the attempt's ref.
    ///
    /// Ignored files are left out and named; so are files above the limit. When this returns, the objects and the ref
    /// are on disk.
    ///
    /// # Errors
    /// The tree's root cannot be read, or the store cannot be written.
    pub fn checkpoint(&self, store: &Store, user: &UserRepo, spec: &CheckpointSpec) -> Result<Checkpoint> {
        let _lock = self.lock()?;
        let base = oid::parse(&self.meta.base)?;
        let reader = store.reader();
        let parent = spec.parent.as_ref().map_or(Ok(base), oid::parse)?;
        let parent = if store.has_lost() { store.last_whole(parent, base)? } else { parent };
        let parent_tree = reader.tree_of(parent)?;
        let root = self.root()?;
        let mut batch = store.objects().batch()?;
        Raw::mend(&self.admin)?;
        let index = Index::open(&self.admin, &reader, reader.tree_of(base)?)?;
        let from = From { store, user, reader: &reader, root: &root, base, limit: spec.file_limit };
        let Kept { tree, head, copied, found, raw, staged, beside, mut notes } =
            self.keep(&from, &index, &mut batch)?;
        notes.extend(beside.notes);
        let is_same = tree == parent_tree && AgentState::parse(&reader.message(parent)?) == beside.state;
        let commit = if spec.only_if_changed && spec.parent.is_some() && is_same {
            parent
        } else {
            let aside = beside.state.beside.as_ref().map(oid::parse).transpose()?;
            let parents = std::iter::once(parent).chain(copied.filter(|head| *head != parent)).chain(aside).collect();
            let (author, message) = (checkpoint_author(), beside.state.message(&spec.message));
            let commit = put_commit(&mut batch, tree, parents, &author, spec.at, &message)?;
            batch.finish()?;
            store.set_ref(&attempt_ref(&spec.attempt), commit)?;
            commit
        };
        raw.save(&self.admin)?;
        if let (Some(staged), Some(whole)) = (staged, &beside.state.index) {
            staged.remember(&self.admin, &reader, &index, oid::parse(whole)?)?;
        }
        index.save(tree, &found.edits, &found.fresh)?;
        nested::remember(&self.admin, beside.nested)?;

        notes.extend(self.filters_not_run(&root, &reader, tree)?);
        notes.sort();
        notes.dedup();
        Ok(Checkpoint {
            commit: oid::of(commit),
            tree: oid::of(tree),
            changed: tree::diff(&reader, Some(parent_tree), Some(tree))?,
            head: head.map(oid::of),
            agent: beside.state,
            settled: found.settled,
            notes,
        })
    }

    /// Puts the tree as it is, and what is beside it, into the batch; the agent's own commits are stored at once.
    pub(crate) fn keep(&self, from: &From<'_>, index: &Index, batch: &mut Batch<'_>) -> Result<Kept> {
        let From { store, user, reader, root, base, limit } = *from;
        let mut notes = Vec::new();
        let agent = AgentRepo::open(root, reader.clone(), self.admin.join("packs"));
        let head = agent.as_ref().and_then(AgentRepo::head);
        let until = Instant::now() + COPY_PATIENCE;
        let kept_head = match (&agent, head) {
            (_, Some(head)) if head == base => Some(base),
            (Some(agent), Some(head)) => {
                let agent = Hurried { source: agent, until };
                kept_or_noted(head, copy_head(&agent, store, user, base, head), &mut notes)?
            }
            _ => None,
        };

        let copied = kept_head.filter(|head| *head != base);
        let staged = || agent.as_ref().map_or(Ok(None), |agent| agent.staged(&self.admin, index));
        let (ahead, staged) = Ahead::look_while(root, index, staged);
        let seen = agent.as_ref().map(|repo| scan::Agent { repo, index: &staged });
        let put = &mut |data: &[u8]| batch.put(ObjectKind::Blob, data);
        let mut found = self.scan(root, index, &ahead, reader, seen, copied, limit, put)?;
        let tree = tree::edit(reader, batch, index.tree(), &found.edits)?;
        let raw = Raw::load(&self.admin)?.updated(&found);
        let sources = Sources {
            workspace: self,
            store,
            user,
            reader,
            root,
            agent: seen,
            base,
            head: kept_head,
            limit,
            until,
            raw: &raw,
        };
        let beside = sources.keep(batch, index, &found, tree)?;
        notes.append(&mut found.notes);
        let staged = staged.ok().flatten();
        Ok(Kept { tree, head, copied, found, raw, staged, beside, notes })
    }

    /// Opens the working tree's root.
    ///
    /// # Errors
    /// [`Error::NoWorkspace`] where somebody has removed it or put something else in its place.
    pub(crate) fn root(&self) -> Result<Folder> {
        Folder::root(&self.meta.path).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Error::NoWorkspace { run: self.meta.run.to_string(), task: self.meta.task.to_string() }
            }
            _ => Error::io("open", &self.meta.path)(source),
        })
    }

    /// Scans the tree against `index`; `head` is the agent's own commit, where that is safe.
    #[expect(clippy::too_many_arguments, reason = "each is one thing that a scan depends on")]
    pub(crate) fn scan(
        &self,
        root: &Folder,
        index: &Index,
        ahead: &Ahead,
        reader: &Reader,
        agent: Option<scan::Agent<'_>>,
        head: Option<ObjectId>,
        limit: u64,
        sink: &mut Sink<'_>,
    ) -> Result<Found> {
        let base_tree = reader.tree_of(oid::parse(&self.meta.base)?)?;
        let mut forced = BTreeSet::new();
        if let Some(head) = head {
            let added = tree::diff(reader, Some(base_tree), Some(reader.tree_of(head)?))?;
            forced.extend(added.into_iter().filter(|c| c.old.is_none()).map(|c| c.path));
        }
        // What it has added by force counts from then on, committed or not.
        if let Some(Ok(Some(staged))) = agent.map(|agent| agent.index) {
            forced.extend(staged.added(index));
        }
        let task = scan::Task {
            root,
            settings: &self.meta.settings,
            index,
            reader,
            never: &self.meta.included(),
            forced: &forced,
            dirt: &self.dirt()?,
            agent,
            limit,
        };
        scan::scan(&task, ahead, sink)
    }

    /// The files changed since the base that a filter driver would have converted.
    fn filters_not_run(&self, root: &Folder, reader: &Reader, tree: ObjectId) -> Result<Vec<Note>> {
        let base_tree = reader.tree_of(oid::parse(&self.meta.base)?)?;
        let mut converter = Converter::new(root, &self.meta.settings);
        let changed = tree::diff(reader, Some(base_tree), Some(tree))?.into_iter();
        let files = changed.filter(|c| c.new.as_ref().is_some_and(|e| matches!(e.kind, Kind::File | Kind::Executable)));
        let noted = files.filter_map(|c| {
            let driver = converter.filter(c.path.as_ref())?;
            Some(Note::FilterNotRun { path: c.path, driver })
        });
        Ok(noted.collect())
    }

    /// What the tree looked like at creation where it differed from the base.
    fn dirt(&self) -> Result<BTreeMap<BString, Option<Leaf>>> {
        self.meta.dirt.iter().map(|d| Ok((d.path.clone().into(), d.leaf()?))).collect()
    }
}

/// The agent's HEAD where its copy is safe; a note, where its objects are not sound.
fn kept_or_noted(head: ObjectId, copied: Result<()>, notes: &mut Vec<Note>) -> Result<Option<ObjectId>> {
    match copied {
        Ok(()) => Ok(Some(head)),
        Err(why @ Error::Object { .. }) => {
            notes.push(Note::HeadNotCopied { head: oid::of(head), why: why.to_string() });
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// Copies the agent's own commits into the store, in a batch of their own: it must not fail with the tree's.
pub(crate) fn copy_head(
    agent: &Hurried<'_>,
    store: &Store,
    user: &UserRepo,
    base: ObjectId,
    head: ObjectId,
) -> Result<()> {
    let mut batch = store.objects().batch()?;
    if batch.holds(&head) {
        return Ok(());
    }
    copy_history(agent, &mut batch, head, &mut Safe::new(base, user))?;
    batch.finish()
}

pub(crate) fn checkpoint_author() -> Identity {
    Identity { name: "outlast".to_owned(), email: "outlast@localhost".to_owned() }
}

/// Writes a commit whose author is its committer.
pub(crate) fn put_commit(
    batch: &mut Batch<'_>,
    tree: ObjectId,
    parents: Vec<ObjectId>,
    author: &Identity,
    at: Timestamp,
    message: &str,
) -> Result<ObjectId> {
    put_commit_by(batch, tree, parents, [author, author], at, message)
}

/// Writes a commit by an author, then a committer.
pub(crate) fn put_commit_by(
    batch: &mut Batch<'_>,
    tree: ObjectId,
    parents: Vec<ObjectId>,
    by: [&Identity; 2],
    at: Timestamp,
    message: &str,
) -> Result<ObjectId> {
    let clean = |text: &str| text.replace(['\n', '\0', '<', '>'], " ").trim().to_owned();
    let [author, committer] = by.map(|who| gix::actor::Signature {
        name: clean(&who.name).into(),
        email: clean(&who.email).into(),
        time: gix::date::Time { seconds: at.as_millis().div_euclid(1000), offset: 0 },
    });
    let commit = Commit {
        tree,
        parents: parents.into(),
        author,
        committer,
        encoding: None,
        message: message.replace('\0', " ").into(),
        extra_headers: Vec::new(),
    };
    batch.put_object(ObjectKind::Commit, &commit)
}
