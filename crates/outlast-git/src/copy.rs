//! Copying physically what a ref of ours will reach, as far as no pin reaches it.
//!
//! "The user's repository has it" is not enough: what no pin reaches there can be pruned. So everything that differs
//! from a tree that is safe already is copied, and history is followed until it meets a pin or what was copied before.

use std::collections::HashSet;

use gix::ObjectId;
use gix::objs::Kind;

use crate::objects::Batch;
use crate::source::Source;
use crate::tree::{self, Visit};
use crate::{Error, Result, UserRepo};

/// Longest history of an agent's that is followed, in commits.
const HISTORY_MAX: usize = 200_000;

/// Where objects are copied to.
pub(crate) trait Sink {
    /// Whether the object need not be copied.
    fn holds(&self, id: &ObjectId) -> bool;

    /// Adds an object.
    fn put(&mut self, kind: Kind, data: &[u8]) -> Result<ObjectId>;
}

/// Copies the objects of `tree` that the tree `safe` does not hold at the same place.
pub(crate) fn copy_tree(
    source: &dyn Source,
    sink: &mut dyn Sink,
    tree: ObjectId,
    safe: Option<ObjectId>,
) -> Result<()> {
    let mut buf = Vec::new();
    let mut copy = |id: ObjectId, kind: Kind| -> Result<()> {
        if !sink.holds(&id) {
            source.need(id, kind, &mut buf)?;
            sink.put(kind, &buf)?;
        }
        Ok(())
    };
    tree::walk_diff(source, safe, Some(tree), gix::bstr::BStr::new(""), &mut |visit| match visit {
        Visit::NewTree(id) => copy(id, Kind::Tree),
        Visit::Leaf(_, old, Some(new)) if old.map(|o| o.id) != Some(new.id) && new.kind != crate::Kind::Gitlink => {
            copy(new.id, Kind::Blob)
        }
        Visit::Leaf(..) => Ok(()),
    })
}

/// Where following a history may stop.
pub(crate) struct Safe<'a> {
    base: ObjectId,
    user: &'a UserRepo,
    repo: Option<gix::Repository>,
    pinned: Option<HashSet<ObjectId>>,
}

impl<'a> Safe<'a> {
    /// `base` is safe itself; other pins of `user` are looked up when they are first needed.
    pub(crate) fn new(base: ObjectId, user: &'a UserRepo) -> Self {
        Self { base, user, repo: None, pinned: None }
    }

    /// Tells whether a pin reaches this commit. What the user's repository does not hold, no pin reaches.
    fn reaches(&mut self, commit: ObjectId) -> Result<bool> {
        if commit == self.base {
            return Ok(true);
        }
        if self.repo.is_none() {
            self.repo = Some(self.user.gix()?);
        }
        let Some(repo) = self.repo.as_ref().filter(|repo| repo.has_object(commit)) else { return Ok(false) };
        if self.pinned.is_none() {
            let failed = |e: gix::Error| Error::object("pins", e);
            let walk = repo.rev_walk(self.user.pins()?).all().map_err(failed)?;
            self.pinned = Some(walk.map(|info| info.map(|i| i.id).map_err(failed)).collect::<Result<_>>()?);
        }
        Ok(self.pinned.as_ref().is_some_and(|set| set.contains(&commit)))
    }
}

/// Copies the commit `tip` and its history down to what is safe or copied already.
pub(crate) fn copy_history(
    source: &dyn Source,
    batch: &mut Batch<'_>,
    tip: ObjectId,
    safe: &mut Safe<'_>,
) -> Result<()> {
    let base_tree = source.tree_of(safe.base)?;
    let mut seen = HashSet::new();
    let mut todo = vec![tip];
    let mut found = Vec::new();
    while let Some(id) = todo.pop() {
        if !seen.insert(id) || batch.holds(&id) || safe.reaches(id)? {
            continue;
        }
        if found.len() >= HISTORY_MAX {
            return Err(Error::object(tip, format!("its history has more than {HISTORY_MAX} commits of its own")));
        }
        let (tree, parents) = source.commit(id)?;
        todo.extend(parents.iter().copied());
        found.push((id, tree, parents));
    }
    // A first parent's tree is safe, held, or copied by this very loop, in whatever order.
    for (id, tree, parents) in found.into_iter().rev() {
        let known = match parents.first() {
            Some(parent) => source.tree_of(*parent)?,
            None => base_tree,
        };
        copy_tree(source, batch, tree, Some(known))?;
        let mut buf = Vec::new();
        source.need(id, Kind::Commit, &mut buf)?;
        batch.put(Kind::Commit, &buf)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::source::Hurried;
    use crate::{Store, oid};

    /// Commits without end, each of which has another one before it.
    struct Endless;

    impl Source for Endless {
        fn read(&self, id: ObjectId, buf: &mut Vec<u8>) -> Result<Option<Kind>> {
            let mut before = id.as_slice().to_vec();
            before.rotate_right(1);
            before[0] = before[0].wrapping_add(1);
            let before = ObjectId::from_bytes_or_panic(&before);
            *buf = format!(
                "tree {}\nparent {before}\nauthor A <a> 0 +0000\ncommitter A <a> 0 +0000\n\nx\n",
                oid::empty_tree()
            )
            .into_bytes();
            Ok(Some(Kind::Commit))
        }
    }

    #[test]
    fn a_history_that_takes_too_long_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let done = std::process::Command::new("git").current_dir(dir.path()).args(args).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        git(&["init", "-q"]);
        git(&["-c", "user.name=A", "-c", "user.email=a@x", "commit", "-q", "--allow-empty", "-m", "first"]);
        let user = UserRepo::open(dir.path()).unwrap();
        let store = Store::open_or_init(&dir.path().join("store.git"), &user).unwrap();
        let base = oid::parse(&user.head().unwrap().commit).unwrap();
        let mut batch = store.objects().batch().unwrap();
        let hurried = Hurried { source: &Endless, until: Instant::now() + Duration::from_millis(50) };
        let began = Instant::now();
        let tip = ObjectId::from_bytes_or_panic(&[7; 20]);
        let why = copy_history(&hurried, &mut batch, tip, &mut Safe::new(base, &user)).unwrap_err();
        assert!(
            matches!(why, Error::Object { .. }) && why.to_string().contains("in the time that a turn has"),
            "{why}"
        );
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
