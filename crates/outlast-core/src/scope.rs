//! Declared scopes that must not meet while they are worked on.
//!
//! A scope that is not declared meets nothing: its workspace is its own, and the landing finds what does not merge.

use std::cell::OnceCell;

use crate::glob::{self, Glob};
use crate::ids::TaskId;
use crate::mutant::{Bug, planted};
use crate::run::Run;
use crate::task::Task;

/// The scopes of everything that is worked on, each glob read once, however many are held against it.
pub(crate) struct Claims<'a>(Vec<Claim<'a>>);

impl<'a> Claims<'a> {
    /// What is claimed in a run now.
    pub(crate) fn of(run: &'a Run) -> Self {
        let claims = run.active().filter(|task| task.is_busy() && !task.spec.writes.is_empty());
        Self(claims.map(Claim::new).collect())
    }

    /// Adds a task that is about to be worked on, unless its scope meets another's: then that one is named.
    pub(crate) fn add(&mut self, task: &'a Task) -> Result<(), TaskId> {
        if task.spec.writes.is_empty() {
            return Ok(());
        }
        let claim = Claim::new(task);
        if let Some(other) = self.0.iter().find(|other| other.meets(&claim)) {
            return Err(other.task.id.clone());
        }
        self.0.push(claim);
        Ok(())
    }
}

/// One task's scope.
struct Claim<'a> {
    task: &'a Task,
    /// Read only where the texts alone do not tell; nothing for a text that is no glob.
    globs: OnceCell<Vec<Option<Glob>>>,
}

impl<'a> Claim<'a> {
    const fn new(task: &'a Task) -> Self {
        Self { task, globs: OnceCell::new() }
    }

    fn meets(&self, other: &Self) -> bool {
        let (a, b) = (&self.task.spec.writes, &other.task.spec.writes);
        !planted(Bug::ScopesIgnored) && (0..a.len()).any(|i| (0..b.len()).any(|j| self.glob_meets(i, other, j)))
    }

    fn glob_meets(&self, i: usize, other: &Self, j: usize) -> bool {
        let (a, b) = (&self.task.spec.writes[i], &other.task.spec.writes[j]);
        if a == b || glob::plainly_apart(a, b) {
            return a == b;
        }
        match (self.glob(i), other.glob(j)) {
            (Some(a), Some(b)) => a.overlaps(b),
            // Nothing is known about what is no glob.
            _ => true,
        }
    }

    fn glob(&self, i: usize) -> Option<&Glob> {
        let read = || self.task.spec.writes.iter().map(|glob| Glob::parse(glob).ok()).collect();
        self.globs.get_or_init(read)[i].as_ref()
    }
}
