//! Which tasks of a run are alike in one respect, so that what holds for one of them need not be asked of the others.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::run::Index;

/// Tasks by kind: those of one kind are alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alike {
    kinds: BTreeMap<String, u32>,
    of: Vec<u32>,
}

impl Alike {
    /// Adds the next task of the plan; tasks of one text are alike.
    pub(crate) fn add(&mut self, text: String) {
        let kind = self.kind(text);
        self.of.push(kind);
    }

    /// Changes the text of a task.
    pub(crate) fn set(&mut self, index: Index, text: String) {
        let kind = self.kind(text);
        self.of[index as usize] = kind;
    }

    fn kind(&mut self, text: String) -> u32 {
        let next = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
        *self.kinds.entry(text).or_insert(next)
    }

    /// Nothing is known of any kind yet.
    pub(crate) const fn nothing_refused(&self) -> Refused<'_> {
        Refused { alike: self, kinds: BTreeSet::new() }
    }
}

/// Kinds of which one task was refused, and so all are.
pub(crate) struct Refused<'a> {
    alike: &'a Alike,
    kinds: BTreeSet<u32>,
}

impl Refused<'_> {
    /// Whether a task like this one was refused.
    pub(crate) fn covers(&self, index: Index) -> bool {
        !self.kinds.is_empty() && self.kinds.contains(&self.alike.of[index as usize])
    }

    /// Refuses this task and all that are like it.
    pub(crate) fn add(&mut self, index: Index) {
        self.kinds.insert(self.alike.of[index as usize]);
    }
}
