//! Pins: refs in the user's repository that keep what tasks borrow out of reach of its garbage collection.
//!
//! A run pins its base and every tip that tasks' repositories will show (`refs/outlast/base/<run>/<id>`). The list of
//! those tips is taken once per run and kept in the store, so that every workspace of the run shows the same ones.

use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::Kind;
use outlast_core::{Oid, RunId};

use super::open;
use crate::git::Call;
use crate::lock::Lock;
use crate::source::Source;
use crate::{Error, Refusal, Result, Store, UserRepo, durable, oid};

/// A branch or tag of the user's as tasks' repositories show it.
struct Tip {
    name: String,
    id: ObjectId,
    /// The commit an annotated tag stands for.
    peeled: Option<ObjectId>,
}

impl Tip {
    fn commit(&self) -> ObjectId {
        self.peeled.unwrap_or(self.id)
    }
}

impl UserRepo {
    /// Pins `base` and the user's branch and tag tips for a run, and notes in the store which tips tasks will show.
    ///
    /// Called again for the same run and base, it changes nothing.
    ///
    /// # Errors
    /// [`Refusal::NotACommit`], [`Refusal::Submodule`], [`Error::BadRun`], or git fails.
    pub fn pin_base(&self, store: &Store, run: &RunId, base: &Oid) -> Result<()> {
        let name = run.as_str();
        let reserved = matches!(name, "archive" | "base");
        let full = format!("refs/outlast/{name}/x");
        if reserved || name.contains('/') || gix::validate::reference::name(full.as_bytes().as_bstr()).is_err() {
            return Err(Error::BadRun(name.to_owned()));
        }
        let id = oid::parse(base)?;
        self.check_base(store, id)?;
        store.tidy()?;
        let lock = store.lock()?;
        if store.tips(run)?.is_none() {
            let tips = self.tips()?;
            self.pin(store, &lock, run, id, &tips)?;
            store.keep_tips(run, &packed_refs(&tips))?;
        }
        self.set_pin(&lock, run, &id.to_string(), id)
    }

    /// Sets one named pin of a run.
    pub(crate) fn set_pin(&self, lock: &Lock, run: &RunId, name: &str, id: ObjectId) -> Result<()> {
        let full = format!("{}/{name}", namespace(run));
        self.update_pins(lock, run)?.args([full, id.to_string()]).ok()?;
        Ok(())
    }

    /// The git command that writes pins of a run. Under the store's lock no other git of ours writes there, and nobody
    /// else does at all: a lock file that is there was left by a git that was killed.
    fn update_pins(&self, lock: &Lock, run: &RunId) -> Result<Call> {
        for file in durable::entries(&self.common_dir().join(namespace(run)))? {
            if file.extension().is_some_and(|extension| extension == "lock") {
                durable::remove(&file)?;
            }
        }
        self.git().in_checkout(self.root()).args(["update-ref", "--no-deref"]).holding(lock)
    }

    /// All pins of all runs.
    pub(crate) fn pins(&self) -> Result<Vec<ObjectId>> {
        let listed = self
            .git()
            .in_checkout(self.root())
            .args(["for-each-ref", "--format=%(objectname)", "refs/outlast/base"])
            .ok()?;
        String::from_utf8_lossy(&listed).lines().map(oid::parse_text).collect()
    }

    /// Refuses a base that is no commit, or whose tree holds a submodule.
    fn check_base(&self, store: &Store, base: ObjectId) -> Result<()> {
        let reader = store.reader();
        let mut buf = Vec::new();
        if reader.read(base, &mut buf)? != Some(Kind::Commit) {
            return Err(Refusal::NotACommit(base.to_string()).into());
        }
        open::refuse_submodule(&reader, reader.tree_of(base)?)
    }

    fn tips(&self) -> Result<Vec<Tip>> {
        let format = "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(refname)";
        let listed =
            self.git().in_checkout(self.root()).args(["for-each-ref", format, "refs/heads", "refs/tags"]).ok()?;
        let mut tips = Vec::new();
        for line in String::from_utf8_lossy(&listed).lines() {
            let fields: Vec<&str> = line.splitn(5, ' ').collect();
            let [kind, id, peeled_kind, peeled, name] = fields[..] else { continue };
            let peeled = match (kind, peeled_kind) {
                ("commit", _) => None,
                ("tag", "commit") => Some(oid::parse_text(peeled)?),
                // A tag of a tree, a blob or another tag is nothing a task needs.
                _ => continue,
            };
            tips.push(Tip { name: name.to_owned(), id: oid::parse_text(id)?, peeled });
        }
        Ok(tips)
    }

    /// Pins the tips that `base` does not contain, and copies the tag objects, which no commit contains.
    fn pin(&self, store: &Store, lock: &Lock, run: &RunId, base: ObjectId, tips: &[Tip]) -> Result<()> {
        let merged = self
            .git()
            .in_checkout(self.root())
            .args(["for-each-ref", "--format=%(refname)", &format!("--merged={base}"), "refs/heads", "refs/tags"])
            .ok()?;
        let merged = String::from_utf8_lossy(&merged).into_owned();
        let merged: std::collections::BTreeSet<&str> = merged.lines().collect();
        let mut wanted: std::collections::BTreeSet<ObjectId> = std::collections::BTreeSet::from([base]);
        wanted.extend(tips.iter().filter(|t| !merged.contains(t.name.as_str())).map(Tip::commit));
        let commands: String = wanted.iter().map(|id| format!("update {}/{id} {id}\n", namespace(run))).collect();
        self.update_pins(lock, run)?.arg("--stdin").stdin(commands).ok()?;

        let reader = store.reader();
        let mut batch = store.objects().batch()?;
        for tip in tips.iter().filter(|t| t.peeled.is_some()) {
            let mut buf = Vec::new();
            reader.need(tip.id, Kind::Tag, &mut buf)?;
            batch.put(Kind::Tag, &buf)?;
        }
        batch.finish()
    }
}

/// The runs that have pins in a repository, known by its common git folder; what cannot be read tells of none.
pub fn pinned_runs(common_dir: &Path) -> Vec<RunId> {
    const PINS: &str = "refs/outlast/base/";
    let loose = std::fs::read_dir(common_dir.join(PINS)).into_iter().flatten().flatten();
    let mut runs: Vec<RunId> = loose.map(|entry| RunId::new(entry.file_name().to_string_lossy())).collect();
    let packed = std::fs::read(common_dir.join("packed-refs")).unwrap_or_default();
    let packed = String::from_utf8_lossy(&packed).into_owned();
    let names = packed.lines().filter_map(|line| line.split_once(' ')?.1.strip_prefix(PINS)?.split_once('/'));
    runs.extend(names.map(|(run, _)| RunId::new(run)));
    runs.sort();
    runs.dedup();
    runs
}

/// Where the pins of a run are.
fn namespace(run: &RunId) -> String {
    format!("refs/outlast/base/{run}")
}

/// The tips as the file `packed-refs` of a repository, sorted as git wants it.
fn packed_refs(tips: &[Tip]) -> String {
    let mut tips: Vec<&Tip> = tips.iter().collect();
    tips.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    for tip in tips {
        text.push_str(&format!("{} {}\n", tip.id, tip.name));
        if let Some(peeled) = tip.peeled {
            text.push_str(&format!("^{peeled}\n"));
        }
    }
    text
}
