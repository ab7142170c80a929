//! What would land: the target merged with the in-scope part of a task, as one commit in the user's name.

use outlast_core::{AgentName, Oid, RunId, TaskId, Timestamp};

use crate::checkpoint::put_commit_by;
use crate::merge::{Conflict, Merged, Scratch};
use crate::scope::tree_like;
use crate::source::Source;
use crate::user::Identity;
use crate::{Result, Store, UserRepo, copy, oid};

/// What a candidate is made of. The same values give the same commit.
#[derive(Debug, Clone)]
pub struct CandidateSpec {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: TaskId,
    /// Which agent did the work.
    pub agent: AgentName,
    /// The tip of the target, or the run's base while the target does not exist.
    pub target_tip: Oid,
    /// The commit the task started from.
    pub base: Oid,
    /// The in-scope tree ([`Store::in_scope_tree`]).
    pub result_tree: Oid,
    /// The message; trailers are added.
    pub message: String,
    /// In whose name.
    pub author: Identity,
    /// Who commits it.
    pub committer: Identity,
    /// The date of the commit.
    pub at: Timestamp,
}

/// One commit on top of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The commit, in the store.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// The target's tip, its only parent.
    pub parent: Oid,
}

/// What merging a task with the target came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateOutcome {
    /// This commit can be verified and landed.
    Ready(Candidate),
    /// Target and task changed the same places.
    Conflict(Conflict),
    /// The target has all of it already.
    Empty,
}

impl UserRepo {
    /// Makes the commit that would land, in the store; the target does not move.
    ///
    /// # Errors
    /// An object cannot be read or written, or git fails.
    pub fn candidate(&self, store: &Store, spec: &CandidateSpec) -> Result<CandidateOutcome> {
        let tip = oid::parse(&spec.target_tip)?;
        let lock = store.lock()?;
        // The candidate's parent must stay in the user's repository as long as the store knows the candidate.
        self.set_pin(&lock, &spec.run, "target", tip)?;
        let scratch = Scratch::new(store)?;
        let reader = scratch.reader()?;
        let (base, ours, theirs) =
            (tree_like(&reader, &spec.base)?, reader.tree_of(tip)?, tree_like(&reader, &spec.result_tree)?);
        let tree = if base == ours {
            theirs
        } else {
            let from = scratch.commit(base, Vec::new())?;
            let (ours, theirs) = (scratch.commit(ours, vec![from])?, scratch.commit(theirs, vec![from])?);
            match scratch.merge(ours, theirs, &self.settings()?)? {
                Merged::Clean(tree) => oid::parse(&tree)?,
                Merged::Conflict(conflict) => return Ok(CandidateOutcome::Conflict(conflict)),
            }
        };
        if tree == ours {
            return Ok(CandidateOutcome::Empty);
        }
        let mut batch = store.objects().batch()?;
        copy::copy_tree(&reader, &mut batch, tree, Some(ours))?;
        let message = match spec.message.trim() {
            "" => one_line(spec.task.as_str()),
            message => message.to_owned(),
        };
        let message = format!("{message}\n\n{}", trailers(spec));
        let commit = put_commit_by(&mut batch, tree, vec![tip], [&spec.author, &spec.committer], spec.at, &message)?;
        batch.finish()?;
        Ok(CandidateOutcome::Ready(Candidate {
            commit: oid::of(commit),
            tree: oid::of(tree),
            parent: spec.target_tip.clone(),
        }))
    }
}

fn trailers(spec: &CandidateSpec) -> String {
    format!(
        "{}\n{}\nOutlast-Agent: {}\n",
        run_trailer(&spec.run),
        task_trailer(&spec.task),
        one_line(spec.agent.as_str())
    )
}

/// The trailer line that names the run.
pub(crate) fn run_trailer(run: &RunId) -> String {
    format!("Outlast-Run: {}", one_line(run.as_str()))
}

/// The trailer line that names the task.
pub(crate) fn task_trailer(task: &TaskId) -> String {
    format!("Outlast-Task: {}", one_line(task.as_str()))
}

fn one_line(text: &str) -> String {
    text.split(char::is_control).collect::<Vec<_>>().join(" ").trim().to_owned()
}
