//! Bringing back what a checkpoint keeps beside its tree: where HEAD stood, what was staged, what git leaves alone, what
//! was under way, branches and stashes, empty folders, and the `.git` of repositories in the tree.
//!
//! All of it was an agent's, and goes back to where only its sandbox runs git. Nothing is written through a link.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::Kind as ObjectKind;

use crate::agent_repo::parse_packed;
use crate::agent_state::AgentState;
use crate::beside::{
    ABSENT, ASSUMED, FOLDERS, GIT, NESTED, NESTED_DIR, NESTED_FILES, NESTED_PATH, NESTED_POINTER, RAW, REFS, SKIPPED,
    STAGES,
};
use crate::inside::{Folder, write_inside};
use crate::source::{Reader, Source};
use crate::tree::{self, Leaf, join};
use crate::workspace::skeleton;
use crate::{Error, Kind, Result, Store, in_progress, oid};

/// Where the agent's repository starts.
pub(crate) struct Head {
    /// The branch HEAD names; none where it names a commit.
    pub(crate) branch: Option<String>,
    /// Its commit; none where the branch has none yet.
    pub(crate) commit: Option<ObjectId>,
}

/// A checkpoint to bring back.
pub(super) struct Restored {
    pub(super) state: AgentState,
    reader: Reader,
    /// The entries of the commit beside it.
    beside: BTreeMap<BString, ObjectId>,
}

impl Restored {
    pub(super) fn load(reader: &Reader, checkpoint: ObjectId) -> Result<Self> {
        let state = AgentState::parse(&reader.message(checkpoint)?);
        let beside = match &state.beside {
            Some(commit) => entries(reader, reader.tree_of(oid::parse(commit)?)?)?,
            None => BTreeMap::new(),
        };
        Ok(Self { state, reader: reader.clone(), beside })
    }

    /// Where HEAD stood; `branch` is the task's own.
    pub(super) fn head(&self, base: ObjectId, branch: &str) -> Result<Head> {
        Ok(match (&self.state.branch, &self.state.head) {
            // Nothing is known of it.
            (None, None) => Head { branch: Some(branch.to_owned()), commit: Some(base) },
            (branch, head) => Head { branch: branch.clone(), commit: head.as_ref().map(oid::parse).transpose()? },
        })
    }

    /// The tree of what was staged.
    pub(super) fn index(&self) -> Result<Option<ObjectId>> {
        self.state.index.as_ref().map(oid::parse).transpose()
    }

    /// The refs besides HEAD's.
    pub(super) fn refs(&self) -> Result<BTreeMap<String, ObjectId>> {
        let mut refs = parse_packed(&self.blob(self.beside.get(REFS.as_bytes().as_bstr()))?);
        refs.retain(|name, _| {
            name.starts_with("refs/") && gix::validate::reference::name(name.as_bytes().as_bstr()).is_ok()
        });
        Ok(refs)
    }

    /// Writes everything else into the working tree at `path` and its `.git`.
    pub(super) fn bring_back(&self, store: &Store, path: &Path) -> Result<()> {
        self.unmerged(store, &path.join(".git/index"))?;
        if let Some(tree) = self.entry(GIT) {
            for (name, leaf) in self.leaves(tree)? {
                if name.to_str().is_ok_and(in_progress::is_known) {
                    self.write(path, &join(b".git".as_bstr(), name.as_bstr()), leaf)?;
                }
            }
        }
        for (name, leaf) in self.entry(RAW).map_or(Ok(Vec::new()), |tree| self.leaves(tree))? {
            self.write(path, &name, leaf)?;
        }
        self.left_alone(store, path)?;
        self.folders(path, BStr::new(""), self.beside.get(FOLDERS.as_bytes().as_bstr()))?;
        let Some(nested) = self.entry(NESTED) else { return Ok(()) };
        for one in entries(&self.reader, nested)?.into_values() {
            let parts = entries(&self.reader, one)?;
            let part = |name: &str| parts.get(name.as_bytes().as_bstr());
            let dot_git = join(BString::from(self.blob(part(NESTED_PATH))?).as_bstr(), b".git".as_bstr());
            if let Some(pointer) = tree::entry(&self.reader, one, NESTED_POINTER)? {
                self.write(path, &dot_git, pointer)?;
            }
            let inside = match part(NESTED_DIR) {
                Some(dir) => BString::from(self.blob(Some(dir))?),
                None => dot_git,
            };
            for (name, leaf) in part(NESTED_FILES).map_or(Ok(Vec::new()), |tree| self.leaves(*tree))? {
                self.write(path, &join(inside.as_bstr(), name.as_bstr()), leaf)?;
            }
            self.folders(path, inside.as_bstr(), part(FOLDERS))?;
        }
        Ok(())
    }

    /// Puts the paths that a merge left open back into an index of the agent's.
    pub(super) fn unmerged(&self, store: &Store, index: &Path) -> Result<()> {
        let mut lines = Vec::new();
        for (stage, tree) in (1..).zip(STAGES.map(|name| self.entry(name))) {
            for (name, leaf) in tree.map_or(Ok(Vec::new()), |tree| self.leaves(tree))? {
                let mode = leaf.entry_kind() as u16;
                lines.extend_from_slice(format!("{mode:o} {} {stage}\t", leaf.id).as_bytes());
                lines.extend_from_slice(&name);
                lines.push(0);
            }
        }
        if !lines.is_empty() {
            let call = store.call().env("GIT_INDEX_FILE", index);
            call.args(["update-index", "-z", "--index-info"]).stdin(lines).ok()?;
        }
        Ok(())
    }

    /// What git was told to leave alone: what was not on disk, what was, and what it takes for unchanged.
    pub(super) fn left_alone_lists(&self) -> Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        let list = |name: &str| self.blob(self.beside.get(name.as_bytes().as_bstr()));
        Ok((list(ABSENT)?, list(SKIPPED)?, list(ASSUMED)?))
    }

    /// Tells the agent's git again what it leaves alone, and takes from the disk what was not there.
    fn left_alone(&self, store: &Store, path: &Path) -> Result<()> {
        let (absent, skipped, assumed) = self.left_alone_lists()?;
        let root = Folder::root(path).map_err(Error::io("open", path))?;
        for gone in absent.split_str(b"\0").filter(|gone| !gone.is_empty()) {
            root.remove(gone.as_bstr()).map_err(Error::io("remove", path.join(gone.to_path_lossy())))?;
        }
        let marks = [("--skip-worktree", [absent, skipped].concat()), ("--assume-unchanged", assumed)];
        for (mark, paths) in marks {
            if !paths.is_empty() {
                let call = store.call().env("GIT_WORK_TREE", path).env("GIT_INDEX_FILE", path.join(".git/index"));
                call.args(["update-index", mark, "-z", "--stdin"]).stdin(paths).ok()?;
            }
        }
        let patterns = path.join(".git").join(in_progress::SPARSE);
        let Ok(patterns) = std::fs::read(patterns) else { return Ok(()) };
        let config = path.join(".git/config");
        let mut file = std::fs::File::options().append(true).open(&config).map_err(Error::io("open", &config))?;
        file.write_all(skeleton::sparse(&patterns).as_bytes()).map_err(Error::io("write", &config))
    }

    fn folders(&self, root: &Path, beneath: &BStr, list: Option<&ObjectId>) -> Result<()> {
        let bytes = self.blob(list)?;
        let root_folder = Folder::root(root).map_err(Error::io("open", root))?;
        for folder in bytes.split_str(b"\0").filter(|folder| !folder.is_empty()) {
            let folder = join(beneath, folder.as_bstr());
            let place = root.join(folder.to_path_lossy());
            root_folder.make_all(folder.as_bstr()).map_err(Error::io("create", place))?;
        }
        Ok(())
    }

    fn write(&self, root: &Path, path: &BString, leaf: Leaf) -> Result<()> {
        let bytes = self.blob(Some(&leaf.id))?;
        let failed = Error::io("write", root.join(path.to_path_lossy()));
        let written = match leaf.kind {
            Kind::Link => Folder::root(root).and_then(|folder| {
                let (folder, name) = folder.parent_of(path.as_bstr())?;
                folder.make_link(name, bytes.to_os_str_lossy().as_ref())
            }),
            Kind::Executable => write_inside(root, path.as_bstr(), &bytes, 0o755),
            Kind::File | Kind::Gitlink => write_inside(root, path.as_bstr(), &bytes, 0o644),
        };
        written.map_err(failed)
    }

    fn entry(&self, name: &str) -> Option<ObjectId> {
        self.beside.get(name.as_bytes().as_bstr()).copied()
    }

    fn blob(&self, id: Option<&ObjectId>) -> Result<Vec<u8>> {
        let mut buf = Vec::new();
        if let Some(id) = id {
            self.reader.need(*id, ObjectKind::Blob, &mut buf)?;
        }
        Ok(buf)
    }

    fn leaves(&self, tree: ObjectId) -> Result<Vec<(BString, Leaf)>> {
        let mut leaves = Vec::new();
        tree::walk_diff(&self.reader, None, Some(tree), BStr::new(""), &mut |visit| {
            if let tree::Visit::Leaf(path, _, Some(leaf)) = visit {
                leaves.push((path.to_owned(), leaf));
            }
            Ok(())
        })?;
        Ok(leaves)
    }
}

fn entries(reader: &Reader, tree: ObjectId) -> Result<BTreeMap<BString, ObjectId>> {
    Ok(tree::entries(reader, tree)?.into_iter().map(|(name, (_, id))| (name, id)).collect())
}
