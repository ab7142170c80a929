//! What of a change lies in a task's scope, and what may never land.
//!
//! The decision is made on effects, path by path, never on what an agent said or ran. A rename is two paths; each must
//! be in scope by itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::Kind as ObjectKind;
use outlast_core::Oid;
use outlast_core::glob::Glob;

use crate::source::{Reader, Source};
use crate::tree::{self, Change, Kind};
use crate::{Error, Result, Store, oid, worktrees};

/// Longest chain of symlinks that is followed, as in the kernel.
const LINKS_MAX: usize = 40;
/// Largest file whose line ends are compared, in bytes.
const TEXT_LIMIT: usize = 8 << 20;

/// The paths a task may change.
#[derive(Debug, Clone)]
pub struct Scope(Option<Vec<Glob>>);

impl Scope {
    /// The scope of a task without `writes`: the whole tree.
    pub fn everything() -> Self {
        Self(None)
    }

    /// Reads the globs of `writes`. No glob: nothing is in scope.
    ///
    /// # Errors
    /// [`Error::BadGlob`].
    pub fn new<G: AsRef<str>>(globs: impl IntoIterator<Item = G>) -> Result<Self> {
        let read = |glob: G| {
            Glob::parse(glob.as_ref())
                .map_err(|e| Error::BadGlob { glob: glob.as_ref().to_owned(), why: e.to_string() })
        };
        globs.into_iter().map(read).collect::<Result<_>>().map(|globs| Self(Some(globs)))
    }

    /// Tells whether a path may change.
    pub fn contains(&self, path: &BStr) -> bool {
        self.0.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(path)))
    }
}

/// Why a change may never land, wherever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// A symlink that points out of the tree.
    LinkLeavesTree,
    /// An entry for a commit of another repository.
    Gitlink,
}

impl Block {
    /// The reason in words, of the path.
    pub const fn why(self) -> &'static str {
        match self {
            Self::LinkLeavesTree => "it is a link that leads out of the tree",
            Self::Gitlink => "it is a repository in the tree, of which only the id of a commit would land",
        }
    }
}

/// A change, split by a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeDiff {
    /// What may land.
    pub in_scope: Vec<Change>,
    /// What the task was not allowed to touch.
    pub out_of_scope: Vec<Change>,
    /// What is in worktrees of its own repository that the agent has made: copies of the project, which do not land.
    pub in_worktrees: Vec<Change>,
    /// The folders of these.
    pub worktrees: Vec<BString>,
    /// What may never land, with the reason.
    pub blocked: Vec<(Change, Block)>,
    /// Paths in scope that differ in line ends only.
    pub eol_only: Vec<BString>,
    /// Whether nothing in scope changed but line ends.
    pub noise_only: bool,
}

impl Store {
    /// Splits what differs between `base` and `end` (commits or trees) by a scope.
    ///
    /// # Errors
    /// An object cannot be read.
    pub fn scope_diff(&self, base: &Oid, end: &Oid, scope: &Scope) -> Result<ScopeDiff> {
        let reader = self.reader();
        let mut split = ScopeDiff { worktrees: worktrees::within(&reader, end)?, ..ScopeDiff::default() };
        let (base, end) = (tree_like(&reader, base)?, tree_like(&reader, end)?);
        for change in tree::diff(&reader, Some(base), Some(end))? {
            if worktrees::around(&split.worktrees, change.path.as_bstr()).is_some() {
                split.in_worktrees.push(change);
                continue;
            }
            match block(&reader, end, &change)? {
                Some(block) => split.blocked.push((change, block)),
                None if scope.contains(change.path.as_bstr()) => split.in_scope.push(change),
                None => split.out_of_scope.push(change),
            }
        }
        withdraw_overlaps(&mut split);
        for change in &split.in_scope {
            if is_eol_only(&reader, change)? {
                split.eol_only.push(change.path.clone());
            }
        }
        split.noise_only = split.eol_only.len() == split.in_scope.len();
        Ok(split)
    }

    /// The tree of `base` (a commit or tree) with only the in-scope changes applied, durably in the store.
    ///
    /// # Errors
    /// An object cannot be read or written.
    pub fn in_scope_tree(&self, base: &Oid, split: &ScopeDiff) -> Result<Oid> {
        let reader = self.reader();
        let base = tree_like(&reader, base)?;
        let mut batch = self.objects().batch()?;
        let tree = tree::edit(&reader, &mut batch, base, &tree::edits_of(&split.in_scope)?)?;
        batch.finish()?;
        Ok(oid::of(tree))
    }

    /// The tree that a commit or tree id stands for.
    ///
    /// # Errors
    /// The object is missing or is neither.
    pub fn tree(&self, id: &Oid) -> Result<Oid> {
        Ok(oid::of(tree_like(&self.reader(), id)?))
    }

    /// What differs between two commits or trees.
    ///
    /// # Errors
    /// An object cannot be read.
    pub fn diff(&self, old: &Oid, new: &Oid) -> Result<Vec<Change>> {
        let reader = self.reader();
        tree::diff(&reader, Some(tree_like(&reader, old)?), Some(tree_like(&reader, new)?))
    }

    /// The patch between two commits or trees, as git prints it: no configuration and no program has a say in it.
    ///
    /// # Errors
    /// Git fails.
    pub fn patch(&self, old: &Oid, new: &Oid) -> Result<Vec<u8>> {
        let (old, new) = (self.tree(old)?, self.tree(new)?);
        let call = self.call().args(["diff-tree", "-p", "-r", "--full-index", "--binary", "--no-ext-diff"]);
        call.args(["--no-textconv", "--no-renames", old.as_str(), new.as_str()]).ok()
    }

    /// How many lines of each path were added and removed between two trees; of what is no text, nothing is counted.
    ///
    /// # Errors
    /// Git fails.
    pub fn line_counts(&self, old: &Oid, new: &Oid) -> Result<BTreeMap<String, (u64, u64)>> {
        let (old, new) = (self.tree(old)?, self.tree(new)?);
        let call = self.call().args(["diff-tree", "--numstat", "-r", "-z", "--no-ext-diff", "--no-textconv"]);
        let said = call.args(["--no-renames", old.as_str(), new.as_str()]).ok()?;
        let said = String::from_utf8_lossy(&said);
        // `added TAB removed TAB path NUL`, and dashes for what is binary.
        let counted = said.split('\0').filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (added, removed) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some((parts.next()?.to_owned(), (added, removed)))
        });
        Ok(counted.collect())
    }

    /// The content of a file or the target of a link.
    ///
    /// # Errors
    /// The object is missing or no blob.
    pub fn blob(&self, blob: &Oid) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        self.reader().need(oid::parse(blob)?, ObjectKind::Blob, &mut data)?;
        Ok(data)
    }
}

/// The tree that a commit or tree id stands for.
pub(crate) fn tree_like(reader: &Reader, id: &Oid) -> Result<ObjectId> {
    let id = oid::parse(id)?;
    let mut buf = Vec::new();
    match reader.read(id, &mut buf)? {
        _ if id == oid::empty_tree() => Ok(id),
        Some(ObjectKind::Tree) => Ok(id),
        Some(ObjectKind::Commit) => reader.tree_of(id),
        Some(kind) => Err(Error::object(id, format!("it is a {kind}, not a commit or tree"))),
        None => Err(Error::object(id, "it is missing")),
    }
}

fn block(reader: &Reader, end: ObjectId, change: &Change) -> Result<Option<Block>> {
    let Some(new) = &change.new else { return Ok(None) };
    match new.kind {
        Kind::Gitlink => Ok(Some(Block::Gitlink)),
        Kind::Link => {
            let mut target = Vec::new();
            reader.need(oid::parse(&new.oid)?, ObjectKind::Blob, &mut target)?;
            let leaves = link_leaves(reader, end, change.path.as_bstr(), &target)?;
            Ok(leaves.then_some(Block::LinkLeavesTree))
        }
        Kind::File | Kind::Executable => Ok(None),
    }
}

/// Tells, from the texts alone, whether a link at `path` with this target leaves the tree.
pub(crate) fn leaves_tree(path: &BStr, target: &BStr) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut depth = path.split_str("/").count() - 1;
    for part in target.split_str("/") {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// Follows a link through the tree as the kernel would, other links on the way included.
fn link_leaves(reader: &Reader, tree: ObjectId, path: &BStr, target: &[u8]) -> Result<bool> {
    if target.starts_with(b"/") {
        return Ok(true);
    }
    let mut at: Vec<BString> = path.split_str("/").map(BString::from).collect();
    at.pop();
    let mut todo: VecDeque<BString> = target.split_str("/").map(BString::from).collect();
    let mut links = 1;
    while let Some(part) = todo.pop_front() {
        match part.as_slice() {
            b"" | b"." => continue,
            b".." => {
                if at.pop().is_none() {
                    return Ok(true);
                }
                continue;
            }
            _ => at.push(part),
        }
        let here: BString = at.iter().map(|p| p.to_vec()).collect::<Vec<_>>().join(&b'/').into();
        let Some(leaf) = tree::lookup(reader, tree, here.as_bstr())? else { continue };
        if leaf.kind == Kind::Link {
            let mut next = Vec::new();
            reader.need(leaf.id, ObjectKind::Blob, &mut next)?;
            links += 1;
            if next.starts_with(b"/") || links > LINKS_MAX {
                return Ok(true);
            }
            at.pop();
            for part in next.split_str("/").collect::<Vec<_>>().into_iter().rev() {
                todo.push_front(BString::from(part));
            }
        }
    }
    Ok(false)
}

/// Takes out of scope what could only be applied together with something out of scope: a file that became a folder, or
/// a folder that became a file, where the other half is not the task's to change.
fn withdraw_overlaps(split: &mut ScopeDiff) {
    loop {
        let outside: BTreeSet<BString> = split
            .out_of_scope
            .iter()
            .chain(split.blocked.iter().map(|(change, _)| change))
            .filter(|change| change.old.is_some())
            .map(|change| change.path.clone())
            .collect();
        let (withdrawn, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut split.in_scope)
            .into_iter()
            .partition(|c| c.new.is_some() && overlaps(&outside, &c.path));
        split.in_scope = kept;
        if withdrawn.is_empty() {
            return;
        }
        split.out_of_scope.extend(withdrawn);
        split.out_of_scope.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

/// Tells whether one of `paths` is a folder of `path` or lies beneath it.
fn overlaps(paths: &BTreeSet<BString>, path: &BString) -> bool {
    let above = path.find_iter("/").any(|at| paths.contains(path[..at].as_bstr()));
    let mut prefix = path.clone();
    prefix.push(b'/');
    above || paths.range(prefix.clone()..).next().is_some_and(|p| p.starts_with(&prefix))
}

fn is_eol_only(reader: &Reader, change: &Change) -> Result<bool> {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return Ok(false) };
    let is_file = |kind: Kind| matches!(kind, Kind::File | Kind::Executable);
    if old.kind != new.kind || !is_file(new.kind) {
        return Ok(false);
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    reader.need(oid::parse(&old.oid)?, ObjectKind::Blob, &mut a)?;
    reader.need(oid::parse(&new.oid)?, ObjectKind::Blob, &mut b)?;
    let unix = |text: &[u8]| text.replace("\r\n", "\n");
    Ok(a.len().max(b.len()) <= TEXT_LIMIT && unix(&a) == unix(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g05_links_are_judged_from_where_they_stand() {
        let leaves = |path: &str, target: &str| leaves_tree(path.into(), target.into());
        assert!(leaves("esc", "/") && leaves("esc", "..") && leaves("a/b", "../../x") && leaves("a/b", "c/../../../x"));
        assert!(!leaves("a/b", "../x") && !leaves("a", "b/../c") && !leaves("a/b/c", "./../../d"));
    }

    #[test]
    fn e22_globs_stay_within_a_segment_and_take_any_bytes() {
        let scope = Scope::new(["src/*.rs", "文档/**"]).unwrap();
        assert!(scope.contains("src/a.rs".into()) && scope.contains("src/a\nb.rs".into()));
        assert!(!scope.contains("src/a/b.rs".into()) && !scope.contains("src2/a.rs".into()));
        assert!(scope.contains("文档/说明 书.txt".into()));
        assert!(scope.contains(BStr::new(b"src/\xff.rs")));
        assert!(
            Scope::everything().contains("x".into()) && !Scope::new(Vec::<&str>::new()).unwrap().contains("x".into())
        );
    }
}
