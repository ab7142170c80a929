//! Trees as values: differences, lookups and edits by path. Nothing here looks at a file system.
//!
//! Paths are bytes, relative to the root, with `/`. There is no rename detection: a rename is two changes, because
//! both of its paths count for a scope.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{Kind as ObjectKind, Tree, TreeRefIter};
use outlast_core::Oid;

use crate::objects::Batch;
use crate::source::{Reader, Source};
use crate::{Error, Result, oid};

/// What a path is in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A plain file.
    File,
    /// A plain file that may be executed.
    Executable,
    /// A symlink.
    Link,
    /// A commit of another repository: never written by outlast, and blocked when an agent makes one.
    Gitlink,
}

/// One entry of a tree that is no folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its content.
    pub oid: Oid,
}

/// One path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path's bytes, relative to the root.
    pub path: BString,
    /// The entry before; `None` when the path is new.
    pub old: Option<Entry>,
    /// The entry after; `None` when the path is gone.
    pub new: Option<Entry>,
}

impl Change {
    /// The path for people to read: bytes that are no text are replaced.
    pub fn path_lossy(&self) -> String {
        self.path.to_str_lossy().into_owned()
    }
}

/// An entry as this crate works with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) kind: Kind,
    pub(crate) id: ObjectId,
}

impl Leaf {
    pub(crate) fn public(self) -> Entry {
        Entry { kind: self.kind, oid: oid::of(self.id) }
    }

    /// The entry of a tree; `None` for a folder.
    pub(crate) fn of(mode: EntryMode, id: ObjectId) -> Option<Self> {
        let kind = match mode.kind() {
            EntryKind::Tree => return None,
            EntryKind::Blob => Kind::File,
            EntryKind::BlobExecutable => Kind::Executable,
            EntryKind::Link => Kind::Link,
            EntryKind::Commit => Kind::Gitlink,
        };
        Some(Self { kind, id })
    }

    pub(crate) fn entry_kind(self) -> EntryKind {
        match self.kind {
            Kind::File => EntryKind::Blob,
            Kind::Executable => EntryKind::BlobExecutable,
            Kind::Link => EntryKind::Link,
            Kind::Gitlink => EntryKind::Commit,
        }
    }
}

/// A set of edits: what each path becomes, `None` for gone.
pub(crate) type Edits = BTreeMap<BString, Option<Leaf>>;

/// The entries of one tree object by name.
pub(crate) fn entries(source: &dyn Source, tree: ObjectId) -> Result<BTreeMap<BString, (EntryMode, ObjectId)>> {
    if tree == oid::empty_tree() {
        return Ok(BTreeMap::new());
    }
    let mut buf = Vec::new();
    source.need(tree, ObjectKind::Tree, &mut buf)?;
    TreeRefIter::from_bytes(&buf, gix::hash::Kind::Sha1)
        .map(|entry| {
            let entry = entry.map_err(|e| Error::object(tree, e))?;
            Ok((entry.filename.to_owned(), (entry.mode, entry.oid.to_owned())))
        })
        .collect()
}

/// One entry of one tree object that is no folder.
pub(crate) fn entry(source: &dyn Source, tree: ObjectId, name: &str) -> Result<Option<Leaf>> {
    Ok(entries(source, tree)?.get(name.as_bytes().as_bstr()).and_then(|(mode, id)| Leaf::of(*mode, *id)))
}

/// Visits what differs between two trees, tree objects included: `visit(path, is_tree, old, new)`.
pub(crate) fn walk_diff(
    source: &dyn Source,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    prefix: &BStr,
    visit: &mut dyn FnMut(Visit<'_>) -> Result<()>,
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    if let Some(id) = new {
        visit(Visit::NewTree(id))?;
    }
    let before = old.map_or(Ok(BTreeMap::new()), |id| entries(source, id))?;
    let mut after = new.map_or(Ok(BTreeMap::new()), |id| entries(source, id))?;
    for (name, was) in before {
        let is = after.remove(&name);
        walk_entry(source, &join(prefix, name.as_bstr()), Some(was), is, visit)?;
    }
    for (name, is) in after {
        walk_entry(source, &join(prefix, name.as_bstr()), None, Some(is), visit)?;
    }
    Ok(())
}

/// What [`walk_diff`] comes across.
pub(crate) enum Visit<'a> {
    /// A tree object of the new side that the old side does not have at this place.
    NewTree(ObjectId),
    /// A path that differs.
    Leaf(&'a BStr, Option<Leaf>, Option<Leaf>),
}

type Raw = Option<(EntryMode, ObjectId)>;

fn walk_entry(
    source: &dyn Source,
    path: &BString,
    old: Raw,
    new: Raw,
    visit: &mut dyn FnMut(Visit<'_>) -> Result<()>,
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    let tree = |side: Raw| side.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id);
    let leaf = |side: Raw| side.and_then(|(mode, id)| Leaf::of(mode, id));
    if leaf(old) != leaf(new) {
        visit(Visit::Leaf(path.as_bstr(), leaf(old), leaf(new)))?;
    }
    if tree(old).is_some() || tree(new).is_some() {
        walk_diff(source, tree(old), tree(new), path.as_bstr(), visit)?;
    }
    Ok(())
}

/// The paths that differ, in byte order.
pub(crate) fn diff(source: &dyn Source, old: Option<ObjectId>, new: Option<ObjectId>) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    walk_diff(source, old, new, b"".as_bstr(), &mut |visit| {
        if let Visit::Leaf(path, old, new) = visit {
            changes.push(Change { path: path.to_owned(), old: old.map(Leaf::public), new: new.map(Leaf::public) });
        }
        Ok(())
    })?;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// What leads from one tree to another.
pub(crate) fn edits_between(source: &dyn Source, old: ObjectId, new: ObjectId) -> Result<Edits> {
    let mut edits = Edits::new();
    walk_diff(source, Some(old), Some(new), b"".as_bstr(), &mut |visit| {
        if let Visit::Leaf(path, _, new) = visit {
            edits.insert(path.to_owned(), new);
        }
        Ok(())
    })?;
    Ok(edits)
}

/// The entry at a path; `None` where there is nothing or a folder.
pub(crate) fn lookup(source: &dyn Source, tree: ObjectId, path: &BStr) -> Result<Option<Leaf>> {
    let mut at = tree;
    let mut parts = path.split_str("/").peekable();
    while let Some(part) = parts.next() {
        let Some((mode, id)) = entries(source, at)?.remove(part.as_bstr()) else { return Ok(None) };
        match (mode.is_tree(), parts.peek().is_some()) {
            (true, true) => at = id,
            (false, false) => return Ok(Leaf::of(mode, id)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Applies `edits` to `base`, writing the trees that change, and tells the new root.
pub(crate) fn edit(reader: &Reader, batch: &mut Batch<'_>, base: ObjectId, edits: &Edits) -> Result<ObjectId> {
    if edits.is_empty() {
        return Ok(base);
    }
    let root = if base == oid::empty_tree() {
        Tree::empty()
    } else {
        let mut buf = Vec::new();
        reader.need(base, ObjectKind::Tree, &mut buf)?;
        let tree = gix::objs::TreeRef::from_bytes(&buf, gix::hash::Kind::Sha1).map_err(|e| Error::object(base, e))?;
        tree.to_owned()
    };
    let mut editor = gix::objs::tree::Editor::new(root, &reader.0, gix::hash::Kind::Sha1);
    let failed = |e: gix::Error| Error::object(base, e);
    // Removals first: a file that became a folder is an entry gone and others new beneath its path.
    for path in edits.iter().filter(|(_, leaf)| leaf.is_none()).map(|(path, _)| path) {
        editor.remove_if_leaf(path.split_str("/").map(ByteSlice::as_bstr)).map_err(failed)?;
    }
    for (path, leaf) in edits.iter().filter_map(|(path, leaf)| leaf.map(|leaf| (path, leaf))) {
        editor.upsert(path.split_str("/").map(ByteSlice::as_bstr), leaf.entry_kind(), leaf.id).map_err(failed)?;
    }
    editor.write(|tree| batch.put_object(ObjectKind::Tree, tree))
}

/// The edits that lead to the new side of `changes`.
pub(crate) fn edits_of(changes: &[Change]) -> Result<Edits> {
    let mut edits = Edits::new();
    for change in changes {
        let new = match &change.new {
            Some(entry) => Some(Leaf { kind: entry.kind, id: oid::parse(&entry.oid)? }),
            None => None,
        };
        edits.insert(change.path.clone(), new);
    }
    Ok(edits)
}

/// A path beneath `prefix`.
pub(crate) fn join(prefix: &BStr, name: &BStr) -> BString {
    if prefix.is_empty() {
        return name.to_owned();
    }
    let mut path = BString::from(Vec::with_capacity(prefix.len() + 1 + name.len()));
    path.extend_from_slice(prefix);
    path.push(b'/');
    path.extend_from_slice(name);
    path
}
