//! Results and bases: what a task hands to those that need it, and what such a task starts from.

use outlast_core::{Oid, RunId, TaskId, Timestamp};

use crate::candidate::{run_trailer, task_trailer};
use crate::checkpoint::{put_commit, put_commit_by};
use crate::merge::{Merged, Scratch};
use crate::scope::tree_like;
use crate::source::Source;
use crate::store::result_ref;
use crate::user::Identity;
use crate::{Result, Store, UserRepo, copy, oid};

impl Store {
    /// Keeps `tree`, the verified in-scope tree of a task that started from `base`, as the task's result, in somebody's name.
    ///
    /// # Errors
    /// An object cannot be read or written.
    pub fn keep_result(
        &self,
        run: &RunId,
        task: &TaskId,
        base: &Oid,
        tree: &Oid,
        author: &Identity,
        at: Timestamp,
    ) -> Result<Oid> {
        let commit = self.make_result(run, task, base, tree, author, at)?;
        self.set_ref(&result_ref(run, task), oid::parse(&commit)?)?;
        Ok(commit)
    }

    /// Makes a result, under no name: one that is lost is there again when it is made of the same.
    ///
    /// # Errors
    /// An object cannot be read or written.
    pub fn make_result(
        &self,
        run: &RunId,
        task: &TaskId,
        base: &Oid,
        tree: &Oid,
        author: &Identity,
        at: Timestamp,
    ) -> Result<Oid> {
        let reader = self.reader();
        let (parent, tree) = (oid::parse(base)?, tree_like(&reader, tree)?);
        let mut batch = self.objects().batch()?;
        copy::copy_tree(&reader, &mut batch, tree, Some(reader.tree_of(parent)?))?;
        // Whoever merges it by hand, with `git cherry-pick`, takes over how a landing is known by.
        let message = format!("result of {task}\n\n{}\n{}\n", run_trailer(run), task_trailer(task));
        let commit = put_commit_by(&mut batch, tree, vec![parent], [author, &ours()], at, &message)?;
        batch.finish()?;
        Ok(oid::of(commit))
    }

    /// The commit a task with needs starts from: the run's base with the results of its needs merged.
    ///
    /// The same base and results give the same commit, in whatever order they are named. Attributes of the user's own count.
    ///
    /// # Errors
    /// An object cannot be read or written, or git fails.
    pub fn compose(&self, user: &UserRepo, base: &Oid, results: &[Oid]) -> Result<Merged> {
        let mut results = results.iter().map(oid::parse).collect::<Result<Vec<_>>>()?;
        results.sort_unstable();
        results.dedup();
        let run_base = oid::parse(base)?;
        if results.is_empty() {
            return Ok(Merged::Clean(base.clone()));
        }
        let (scratch, settings) = (Scratch::new(self)?, user.settings()?);
        let mut at = run_base;
        for result in &results {
            let tree = match scratch.merge(at, *result, &settings)? {
                Merged::Clean(tree) => oid::parse(&tree)?,
                conflict => return Ok(conflict),
            };
            at = scratch.commit(tree, vec![at, *result])?;
        }
        let reader = scratch.reader()?;
        let tree = reader.tree_of(at)?;
        let mut batch = self.objects().batch()?;
        copy::copy_tree(&reader, &mut batch, tree, Some(reader.tree_of(run_base)?))?;
        let parents = std::iter::once(run_base).chain(results.iter().copied()).collect();
        let message = "base with the results of needs\n";
        let commit = put_commit(&mut batch, tree, parents, &ours(), Timestamp::EPOCH, message)?;
        batch.finish()?;
        Ok(Merged::Clean(oid::of(commit)))
    }
}

fn ours() -> Identity {
    Identity { name: "outlast".to_owned(), email: "outlast@localhost".to_owned() }
}
