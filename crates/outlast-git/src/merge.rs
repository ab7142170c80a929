//! Merges in memory: git's own merge, run on objects only, with no working tree and no configuration of anyone's.
//!
//! Intermediate objects go to a scratch folder that is dropped; what is wanted is copied into the store by the caller.
//! A driver that `merge=` names is not run. A file that has one is not for git's plain merge either: where both sides
//! changed it, that is a conflict.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use outlast_core::{Oid, Timestamp};

use crate::attributes::{Attribute, Attributes};
use crate::checkpoint::put_commit;
use crate::objects::ObjectFolder;
use crate::settings::Settings;
use crate::source::{Reader, Source};
use crate::user::Identity;
use crate::{Error, Result, Store, oid, store, tree};

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// It went through.
    Clean(Oid),
    /// Both sides changed the same places.
    Conflict(Conflict),
}

/// The paths that could not be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Each path once, in git's order.
    pub paths: Vec<BString>,
}

/// A folder for objects on top of the store's.
pub(crate) struct Scratch<'a> {
    store: &'a Store,
    folder: tempfile::TempDir,
    objects: ObjectFolder,
}

impl<'a> Scratch<'a> {
    pub(crate) fn new(store: &'a Store) -> Result<Self> {
        let state = store.state();
        let folder =
            tempfile::Builder::new().prefix("merge-").tempdir_in(&state).map_err(Error::io("create in", &state))?;
        for name in ["info", "pack"] {
            std::fs::create_dir(folder.path().join(name)).map_err(Error::io("create in", folder.path()))?;
        }
        let alternates = folder.path().join("info/alternates");
        std::fs::write(&alternates, store::alternates_text(&[store.objects_dir()]))
            .map_err(Error::io("write", &alternates))?;
        let objects = ObjectFolder::new(folder.path().to_owned(), None);
        Ok(Self { store, folder, objects })
    }

    /// Reads the scratch objects and all below them.
    pub(crate) fn reader(&self) -> Result<Reader> {
        let options = gix::odb::store::init::Options::default();
        let path = self.folder.path().to_owned();
        let odb = gix::odb::Store::at_opts(path, gix::hash::Kind::Sha1, &mut std::iter::empty(), options)
            .map_err(Error::io("open", self.folder.path()))?;
        Ok(Reader(std::sync::Arc::new(odb).to_cache_arc()))
    }

    /// Writes a commit that only this merge needs.
    pub(crate) fn commit(&self, tree: ObjectId, parents: Vec<ObjectId>) -> Result<ObjectId> {
        let who = Identity { name: "outlast".to_owned(), email: "outlast@localhost".to_owned() };
        let mut batch = self.objects.batch()?;
        let commit = put_commit(&mut batch, tree, parents, &who, Timestamp::EPOCH, "merge\n")?;
        batch.finish()?;
        Ok(commit)
    }

    /// Merges two commits from where their histories part, and tells the tree. `settings` are the user's, whose
    /// attributes count.
    pub(crate) fn merge(&self, ours: ObjectId, theirs: ObjectId, settings: &Settings) -> Result<Merged> {
        let merged = self.merge_plainly(ours, theirs)?;
        let driven = self.driven(ours, theirs, settings)?;
        Ok(match merged {
            Merged::Clean(tree) if driven.is_empty() => Merged::Clean(tree),
            Merged::Clean(_) => Merged::Conflict(Conflict { paths: driven }),
            Merged::Conflict(mut conflict) => {
                conflict.paths.extend(driven);
                conflict.paths.sort();
                conflict.paths.dedup();
                Merged::Conflict(conflict)
            }
        })
    }

    /// The paths that both sides changed, each in its way, and that attributes of any side keep from a plain merge.
    fn driven(&self, ours: ObjectId, theirs: ObjectId, settings: &Settings) -> Result<Vec<BString>> {
        let reader = self.reader()?;
        let Some(base) = self.merge_base(ours, theirs)? else { return Ok(Vec::new()) };
        let trees = [reader.tree_of(base)?, reader.tree_of(ours)?, reader.tree_of(theirs)?];
        let [base, ours, theirs] = trees;
        let changed = |side| -> Result<BTreeMap<BString, _>> {
            let changes = tree::diff(&reader, Some(base), Some(side))?;
            Ok(changes.into_iter().map(|change| (change.path, change.new)).collect())
        };
        let (ours, mut theirs) = (changed(ours)?, changed(theirs)?);
        let both: Vec<BString> = ours
            .into_iter()
            .filter(|(path, ours)| theirs.remove(path).is_some_and(|theirs| theirs != *ours))
            .map(|(path, _)| path)
            .collect();
        if both.is_empty() {
            return Ok(both);
        }
        let mut sides = trees.map(|tree| Attributes::of_tree(&reader, tree, settings));
        let mut is_driven = |path: &BString| {
            sides.iter_mut().any(|side| match side.get(path.as_bstr(), "merge") {
                Attribute::Unspecified | Attribute::Set => false,
                Attribute::Unset => true,
                Attribute::Value(driver) => driver != "text",
            })
        };
        Ok(both.into_iter().filter(|path| is_driven(path)).collect())
    }

    /// Where two histories part; `None` where they have nothing in common.
    fn merge_base(&self, ours: ObjectId, theirs: ObjectId) -> Result<Option<ObjectId>> {
        let answer = self
            .store
            .call()
            .env("GIT_OBJECT_DIRECTORY", self.folder.path())
            .args(["merge-base".to_owned(), ours.to_string(), theirs.to_string()])
            .run()?;
        match answer.code() {
            Some(0) => oid::parse_text(answer.stdout().to_str_lossy().trim()).map(Some),
            Some(1) => Ok(None),
            _ => Err(answer.into_error()),
        }
    }

    fn merge_plainly(&self, ours: ObjectId, theirs: ObjectId) -> Result<Merged> {
        let answer = self
            .store
            .call()
            .config("core.fsync", "none")
            .env("GIT_OBJECT_DIRECTORY", self.folder.path())
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"])
            .args([ours.to_string(), theirs.to_string()])
            .run()?;
        let mut fields = answer.stdout().split_str("\0").filter(|f| !f.is_empty());
        let tree = fields.next().map(|f| f.to_str_lossy().into_owned()).unwrap_or_default();
        match answer.code() {
            Some(0) => Ok(Merged::Clean(oid::of(oid::parse_text(&tree)?))),
            // 1: there are conflicts; anything else is a failure (git-merge-tree).
            Some(1) => {
                let mut paths: Vec<BString> = fields.map(BString::from).collect();
                paths.dedup();
                Ok(Merged::Conflict(Conflict { paths }))
            }
            _ => Err(answer.into_error()),
        }
    }
}
