//! Files that are not on disk because git was told so: sparse checkouts, and `git update-index --skip-worktree`.
//!
//! Of such a path the agent's index says what it is, as it does for git: it is committed, merged and shown like any other.

use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::Kind as ObjectKind;

use crate::checkpoint::{Note, SkipReason};
use crate::scan::{Agent, Walk, storable};
use crate::source::Source;
use crate::tree::Leaf;
use crate::{Error, Kind, Result, in_progress};

impl Walk<'_, '_> {
    /// Takes back the deletion of what git was told not to have on disk.
    pub(super) fn absent(&mut self) -> Result<()> {
        let Some(agent) = self.task.agent else { return Ok(()) };
        let index = match agent.index {
            Ok(Some(index)) => index,
            Ok(None) => return Ok(()),
            Err(why) => {
                // Which files are left out is not known: better that what is gone stays than that what is not goes.
                if agent.repo.has_file(in_progress::SPARSE) {
                    self.found.edits.retain(|_, leaf| leaf.is_some());
                    let what = "which files were deleted in its sparse checkout".to_owned();
                    self.found.notes.push(Note::NotKept { what, why: why.clone() });
                }
                return Ok(());
            }
        };
        let mut next = 0;
        for (path, leaf) in index.skipped() {
            let known = self.task.index.get(path, next);
            if let Some((at, _)) = known {
                next = at + 1;
                if self.seen[at] {
                    continue;
                }
            }
            if self.is_taken(path) || self.task.never.contains(path) {
                continue;
            }
            if known.is_some_and(|(_, known)| known.leaf == leaf) {
                self.found.edits.remove(path);
            } else if leaf.kind != Kind::Gitlink && path.split_str("/").all(|name| storable(name.as_bstr())) {
                self.take_staged(agent, path, leaf)?;
            }
        }
        Ok(())
    }

    /// Whether something that stands on disk has the path's place: there, above or beneath.
    fn is_taken(&self, path: &BStr) -> bool {
        let edits = &self.found.edits;
        let is_there = |path: &BStr| matches!(edits.get(path), Some(Some(_)));
        let mut beneath = BString::from(path);
        beneath.push(b'/');
        is_there(path)
            || path.find_iter("/").any(|at| is_there(path[..at].as_bstr()))
            || edits
                .range(beneath.clone()..)
                .take_while(|(p, _)| p.starts_with(&beneath))
                .any(|(_, leaf)| leaf.is_some())
    }

    /// Takes what the index has, which only the agent's repository may hold.
    fn take_staged(&mut self, agent: Agent<'_>, path: &BStr, leaf: Leaf) -> Result<()> {
        let mut data = Vec::new();
        match agent.repo.need(leaf.id, ObjectKind::Blob, &mut data) {
            Ok(()) if data.len() as u64 > self.task.limit => {
                self.skip(path.to_owned(), SkipReason::TooLarge { bytes: data.len() as u64 });
                self.found.edits.remove(path);
            }
            Ok(()) => {
                let id = (self.sink)(&data)?;
                self.found.edits.insert(path.to_owned(), Some(Leaf { kind: leaf.kind, id }));
            }
            Err(why @ Error::Object { .. }) => {
                let what = format!("what the index has of `{path}`, which is not on disk");
                self.found.notes.push(Note::NotKept { what, why: why.to_string() });
                self.found.edits.remove(path);
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }
}
