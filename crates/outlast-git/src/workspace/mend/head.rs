//! Where HEAD stands, and the refs that are files.

use std::collections::HashSet;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::objs::{Kind, TreeRefIter};

use super::{File, LIMIT, Mending};
use crate::agent_repo::AgentRepo;
use crate::emptied::is_head;
use crate::inside::{Folder, Hint};
use crate::source::Source as _;
use crate::workspace::restore::Restored;
use crate::{Error, Result, oid};

/// How deep a ref may lie in folders: an agent makes what it likes.
const DEPTH_MAX: usize = 32;

impl Mending<'_> {
    /// Writes HEAD anew where it says nothing that git understands.
    pub(super) fn head(&mut self, agent: &AgentRepo, checkpoints: &[Restored]) -> Result<()> {
        const NAME: &str = "HEAD";
        match self.file(NAME) {
            File::Sound(text) if is_head(&text) => return Ok(()),
            File::Sound(text) => self.set_aside(NAME, &text)?,
            File::Empty | File::Gone => {}
            File::Other => return Ok(()),
        }
        let text = match self.where_it_stood(agent, checkpoints)? {
            Stood::At(branch) => format!("ref: refs/heads/{branch}\n"),
            Stood::Detached(commit) => format!("{commit}\n"),
        };
        self.write(NAME, text.as_bytes())
    }

    fn where_it_stood(&self, agent: &AgentRepo, checkpoints: &[Restored]) -> Result<Stood> {
        let log = agent.file("logs/HEAD", LIMIT).unwrap_or_default();
        let newest = agent.been_at().into_iter().find(|id| self.is_whole(agent, *id));
        let is_branch = |name: &str| {
            !matches!(self.file(&format!("refs/heads/{name}")), File::Gone)
                || agent.refs().contains_key(&format!("refs/heads/{name}"))
        };
        if let Some(to) = log.lines().rev().find_map(moved_to) {
            match (to, newest) {
                (Some(branch), _) if is_branch(&branch) => return Ok(Stood::At(branch)),
                (_, Some(commit)) => return Ok(Stood::Detached(commit)),
                _ => {}
            }
        }
        Ok(match checkpoints.first().map(|kept| &kept.state) {
            Some(state) => match (&state.branch, &state.head) {
                (None, Some(head)) => Stood::Detached(newest.map_or_else(|| oid::parse(head), Ok)?),
                (branch, _) => Stood::At(branch.clone().unwrap_or_else(|| self.workspace.meta.branch.clone())),
            },
            None => Stood::At(self.workspace.meta.branch.clone()),
        })
    }

    /// Writes those refs anew that say nothing, or what is not there any more: HEAD's own, and others as far as is known
    /// what they held.
    pub(super) fn refs(&mut self, agent: &AgentRepo, checkpoints: &[Restored]) -> Result<()> {
        let current = agent.branch().map(|branch| format!("refs/heads/{branch}"));
        let mut files = Vec::new();
        if let Ok(refs) = self.git.folder(b"refs".as_bstr()) {
            below(&refs, "refs", DEPTH_MAX, &mut files);
        }
        if let Some(current) = &current
            && !files.contains(current)
            && !agent.refs().contains_key(current)
            && !agent.logged_as(current).is_empty()
        {
            // A branch goes with its log: this one is lost.
            files.push(current.clone());
        }
        for name in files {
            let is_current = current.as_ref() == Some(&name);
            let held = match self.file(&name) {
                File::Sound(text) if text.starts_with(b"ref:") => continue,
                File::Sound(text) => ObjectId::from_hex(text.trim_ascii()).ok(),
                File::Other => continue,
                File::Empty | File::Gone => None,
            };
            let is_sound = |id: ObjectId| if is_current { self.is_whole(agent, id) } else { true };
            if held.is_some_and(is_sound) {
                continue;
            }
            match self.known(agent, &name, is_current, checkpoints)? {
                Some(id) => self.write(&name, format!("{id}\n").as_bytes())?,
                None if held.is_none() => self.forget(&name)?,
                None => {}
            }
        }
        Ok(())
    }

    /// The newest that a ref is known to have held and that is there.
    fn known(
        &self,
        agent: &AgentRepo,
        name: &str,
        is_current: bool,
        checkpoints: &[Restored],
    ) -> Result<Option<ObjectId>> {
        let mut known = agent.logged_as(name);
        if is_current {
            known.extend(agent.been_at());
        }
        for kept in checkpoints {
            known.extend(kept.refs()?.get(name).copied());
            if kept.state.branch.as_ref().is_some_and(|branch| name.strip_prefix("refs/heads/") == Some(branch)) {
                known.extend(kept.state.head.as_ref().map(oid::parse).transpose()?);
            }
        }
        if is_current {
            known.push(oid::parse(&self.workspace.meta.base)?);
        }
        Ok(known.into_iter().find(|id| self.is_whole(agent, *id)))
    }

    /// Whether a commit is there: all of its folders where the store has ever lost an object, and the first where it has not.
    fn is_whole(&self, agent: &AgentRepo, commit: ObjectId) -> bool {
        is_whole(agent, commit, self.store.has_lost())
    }

    /// Removes a ref that says nothing: one that is packed under its name counts then.
    fn forget(&mut self, name: &str) -> Result<()> {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let folder = self.git.descend(folder.as_bytes().as_bstr());
        folder
            .and_then(|folder| folder.unlink(file.as_bytes().as_bstr()))
            .map_err(Error::io("remove", self.at(name)))?;
        self.mended.push(name.to_owned());
        Ok(())
    }
}

/// Where HEAD was.
enum Stood {
    At(String),
    Detached(ObjectId),
}

/// Where a line of HEAD's log says that it moved to: a name, none where it was detached; nothing where it stayed.
fn moved_to(line: &[u8]) -> Option<Option<String>> {
    let message = line.split_once_str("\t")?.1;
    if let Some(to) = message.strip_prefix(b"checkout: moving from ") {
        return Some(Some(to.rsplit_once_str(" to ")?.1.to_str().ok()?.to_owned()));
    }
    if message.starts_with(b"rebase") {
        if let Some((_, to)) = message.split_once_str("returning to refs/heads/") {
            return Some(Some(to.to_str().ok()?.to_owned()));
        }
        return message.find("(start)").map(|_| None);
    }
    None
}

/// Whether a commit is there, with the first folder of its tree, or with all of them.
fn is_whole(agent: &AgentRepo, commit: ObjectId, deep: bool) -> bool {
    let mut buf = Vec::new();
    let Ok(tree) = agent.tree_of(commit) else { return false };
    let mut todo = vec![tree];
    let mut seen = HashSet::new();
    while let Some(tree) = todo.pop() {
        if tree == oid::empty_tree() || !seen.insert(tree) {
            continue;
        }
        if !agent.read(tree, &mut buf).is_ok_and(|kind| kind == Some(Kind::Tree)) {
            return false;
        }
        if deep {
            let below = TreeRefIter::from_bytes(&buf, gix::hash::Kind::Sha1).flatten();
            todo.extend(below.filter(|entry| entry.mode.is_tree()).map(|entry| entry.oid.to_owned()));
        }
    }
    true
}

/// The files below a folder of refs that may be some.
fn below(folder: &Folder, prefix: &str, depth: usize, files: &mut Vec<String>) {
    for (name, hint) in folder.names().unwrap_or_default() {
        let Some(text) = name.to_str() else { continue };
        let full = format!("{prefix}/{text}");
        let name: &BStr = text.as_bytes().as_bstr();
        if hint != Hint::Other
            && depth > 0
            && let Ok(next) = folder.folder(name)
        {
            below(&next, &full, depth - 1, files);
        } else if gix::validate::reference::name(BString::from(full.as_bytes()).as_bstr()).is_ok() {
            files.push(full);
        }
    }
}
