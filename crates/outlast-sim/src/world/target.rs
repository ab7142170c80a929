//! The branch that results land on: a line of commits, moved by compare-and-swap alone.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::Oid;
use outlast_core::hash::fnv1a;

use crate::invariant::{Invariant, Violation};

/// A branch and every commit that was ever made for it.
#[derive(Debug)]
pub(crate) struct Target {
    run: usize,
    tip: Option<Oid>,
    commits: BTreeMap<Oid, Commit>,
    /// What people committed, in order.
    people: Vec<Oid>,
    /// Whether it is checked out where moving it is not safe.
    pub(crate) checked_out: bool,
    /// Tasks whose change was found to be in the target already.
    empty: BTreeSet<usize>,
    is_checked: bool,
}

#[derive(Debug)]
struct Commit {
    parent: Option<Oid>,
    /// The task whose result it is; nothing where a person made it.
    task: Option<usize>,
}

/// What came of asking for a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The target holds the commit.
    Holds,
    /// The target has moved elsewhere.
    Elsewhere,
    /// The target is checked out where moving it is not safe.
    Unsafe,
}

impl Target {
    /// A branch that does not exist yet.
    pub(crate) const fn new(run: usize) -> Self {
        Self {
            run,
            tip: None,
            commits: BTreeMap::new(),
            people: Vec::new(),
            checked_out: false,
            empty: BTreeSet::new(),
            is_checked: false,
        }
    }

    /// Makes a commit out of a task's result on the tip, and names the tip and the commit.
    pub(crate) fn candidate(&mut self, task: usize) -> (Option<Oid>, Oid) {
        let old = self.tip.clone();
        (old, self.commit(Some(task)))
    }

    /// Moves the branch from `old` to `new`, or finds that it holds `new`, or why it cannot be moved.
    pub(crate) fn advance(&mut self, old: Option<&Oid>, new: &Oid) -> Moved {
        if self.holds(new) {
            return Moved::Holds;
        }
        if self.checked_out {
            return Moved::Unsafe;
        }
        if self.tip.as_ref() != old {
            return Moved::Elsewhere;
        }
        self.tip = Some(new.clone());
        self.is_checked = false;
        Moved::Holds
    }

    /// A person commits.
    pub(crate) fn person_commits(&mut self) {
        let id = self.commit(None);
        self.people.push(id.clone());
        self.tip = Some(id);
        self.is_checked = false;
    }

    /// The commit on the branch that bears this task's trailer.
    pub(crate) fn landed(&self, task: usize) -> Option<Oid> {
        self.history().find(|(_, commit)| commit.task == Some(task)).map(|(id, _)| id.clone())
    }

    /// Marks a task's change as one that the branch has already.
    pub(crate) fn mark_empty(&mut self, task: usize) {
        self.empty.insert(task);
    }

    /// Whether the branch holds a commit.
    pub(crate) fn holds(&self, wanted: &Oid) -> bool {
        self.history().any(|(id, _)| id == wanted)
    }

    /// Checks, where it has moved, that everything on the branch is there once, after what it needs, and that people's
    /// commits are there.
    pub(crate) fn check<'a>(&mut self, needs: impl Fn(usize) -> &'a [usize]) -> Result<(), Violation> {
        if std::mem::replace(&mut self.is_checked, true) {
            return Ok(());
        }
        let mut line: Vec<(&Oid, &Commit)> = self.history().collect();
        line.reverse();
        let mut seen = BTreeSet::new();
        for (id, commit) in &line {
            let Some(task) = commit.task else { continue };
            for need in needs(task) {
                let there = seen.contains(need) || self.empty.contains(need);
                Invariant::LandsAfterNeeds
                    .holds(there, || format!("r{} holds t{task} ({id}) without t{need}", self.run))?;
            }
            Invariant::LandsOnce.holds(seen.insert(task), || format!("r{} holds t{task} twice", self.run))?;
        }
        let people = line.iter().filter(|(_, commit)| commit.task.is_none());
        let people: Vec<&Oid> = people.map(|(id, _)| *id).collect();
        Invariant::TargetOnlyForward.holds(people.iter().copied().eq(&self.people), || {
            format!("r{}: people put {:?} there, it holds {people:?}", self.run, self.people)
        })
    }

    /// From the tip back to the first commit.
    fn history(&self) -> impl Iterator<Item = (&Oid, &Commit)> {
        let mut next = self.tip.as_ref();
        std::iter::from_fn(move || {
            let (id, commit) = self.commits.get_key_value(next?)?;
            next = commit.parent.as_ref();
            Some((id, commit))
        })
    }

    /// Makes a commit on the tip. A task's commit on the same tip is the same commit; a person never makes one twice.
    fn commit(&mut self, task: Option<usize>) -> Oid {
        let parent = self.tip.clone();
        let of = task.map_or_else(|| format!("person{}", self.people.len()), |t| format!("t{t}"));
        let content = format!("{}/{of} on {parent:?}", self.run);
        let id = Oid::new(format!("{:016x}", fnv1a(content.as_bytes())));
        self.commits.insert(id.clone(), Commit { parent, task });
        id
    }
}
