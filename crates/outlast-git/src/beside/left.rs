//! Commits that an agent has made on a detached HEAD and left: no branch and no stash leads to them, only HEAD's reflog.
//!
//! What was reset or amended is named there as well, and git calls that done with. A commit is left where a checkout moved
//! HEAD away from it while no branch stood there, and nothing that is kept otherwise leads to it.

use std::collections::BTreeSet;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::Kind as ObjectKind;

use crate::agent_repo::{AgentRepo, parse_packed};
use crate::beside::{Beside, Sources};
use crate::copy::Safe;
use crate::source::Source as _;
use crate::{Result, in_progress, oid};

/// Most of them that are kept.
const LEFT_MAX: usize = 20;
/// Most lines that are looked at where a workspace goes: an agent can write any number of them.
const NAMED_MAX: usize = 1_000;
/// Largest reflog that is read, in bytes, and its longest line that is kept.
const LOG_LIMIT: u64 = 64 << 20;
const LINE_MAX: usize = 4096;

impl Sources<'_> {
    /// Has the commit beside hold those that HEAD and what else is kept (`known`) do not lead to; they are put among `apart` by name, and
    /// the lines of the reflog that lead to them are handed back.
    pub(super) fn left(
        &self,
        agent: &AgentRepo,
        safe: &mut Safe<'_>,
        known: &[ObjectId],
        apart: &mut Vec<(String, ObjectId)>,
        beside: &mut Beside,
    ) -> Result<Vec<u8>> {
        let log = agent.file(in_progress::HEAD_LOG, LOG_LIMIT).unwrap_or_default();
        let known: Vec<ObjectId> = known.iter().copied().chain(self.head).chain([self.base]).collect();
        let mut seen: BTreeSet<ObjectId> = known.iter().copied().collect();
        let mut buf = Vec::new();
        // What a reflog names may be long gone.
        let mut is_here = |id| agent.read(id, &mut buf).is_ok_and(|kind| kind == Some(ObjectKind::Commit));
        let named = log.lines().rev().filter_map(|line| Some((left_by(line)?, line)));
        let mut found: Vec<(ObjectId, &[u8])> =
            named.filter(|(id, _)| seen.insert(*id) && is_here(*id)).take(LEFT_MAX).collect();
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // What the user's repository holds is theirs, but where a person has brought the agent's own work there.
        let held: Vec<ObjectId> = found.iter().map(|(id, _)| *id).filter(|id| self.user.holds(&oid::of(*id))).collect();
        let brought = self.alone(&held, &known)?;
        found.retain(|(id, _)| !held.contains(id) || brought.contains(id));
        let mut copied = Vec::new();
        for (id, _) in &found {
            copied.extend(self.copied(agent, *id, safe, "a commit of a detached HEAD", beside)?);
        }
        let alone = self.alone(&copied, &known)?;
        found.retain(|(id, _)| alone.contains(id));
        let mut lines = Vec::new();
        for (id, line) in found.into_iter().rev() {
            beside.parents.insert(id);
            apart.push((name(id), id));
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
        Ok(lines)
    }

    /// Those of these commits that nothing known leads to, no branch as the user had it, and none of the others.
    fn alone(&self, left: &[ObjectId], known: &[ObjectId]) -> Result<BTreeSet<ObjectId>> {
        if left.is_empty() {
            return Ok(BTreeSet::new());
        }
        let shown = parse_packed(&self.store.tips(&self.workspace.meta.run)?.unwrap_or_default());
        let without: String = known.iter().chain(shown.values()).map(|id| format!("^{id}\n")).collect();
        let asked = left.iter().fold(without, |asked, id| asked + &format!("{id}\n"));
        let call = self.store.call().args(["rev-list", "--ignore-missing", "--parents", "--stdin"]);
        let said = call.stdin(asked).ok()?;
        let (mut here, mut parents) = (BTreeSet::new(), BTreeSet::new());
        for line in said.lines() {
            let mut ids = line.split_str(" ").filter_map(|id| ObjectId::from_hex(id).ok());
            here.extend(ids.next());
            parents.extend(ids);
        }
        Ok(left.iter().copied().filter(|id| here.contains(id) && !parents.contains(id)).collect())
    }
}

/// Every commit that HEAD's reflog says was left so and that is there, whatever leads to it since.
pub(crate) fn all(agent: &AgentRepo) -> BTreeSet<ObjectId> {
    let log = agent.file(in_progress::HEAD_LOG, LOG_LIMIT).unwrap_or_default();
    let mut buf = Vec::new();
    let mut is_here = |id: &ObjectId| agent.read(*id, &mut buf).is_ok_and(|kind| kind == Some(ObjectKind::Commit));
    let named: BTreeSet<ObjectId> = log.lines().rev().filter_map(left_by).take(NAMED_MAX).collect();
    named.into_iter().filter(|id| is_here(id)).collect()
}

/// What people and successors know such a commit by.
fn name(id: ObjectId) -> String {
    format!("detached-{}", id.to_hex_with_len(12))
}

/// The commit that a line of HEAD's reflog says was left while no branch stood there.
fn left_by(line: &[u8]) -> Option<ObjectId> {
    if line.len() > LINE_MAX {
        return None;
    }
    let (before, message) = line.split_once_str("\t")?;
    let from = message.strip_prefix(b"checkout: moving from ")?.split_str(" ").next()?;
    let old = ObjectId::from_hex(before.split_str(" ").next()?).ok()?;
    (old.to_hex().to_string().as_bytes() == from).then_some(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e14_only_a_checkout_away_from_a_commit_leaves_it() {
        let (a, b) = ("1".repeat(40), "2".repeat(40));
        let line = |message: &str| format!("{a} {b} A <a@example.invalid> 0 +0000\t{message}");
        let id = ObjectId::from_hex(a.as_bytes()).unwrap();
        assert_eq!(left_by(line(&format!("checkout: moving from {a} to main")).as_bytes()), Some(id));
        for other in [
            "checkout: moving from main to side".to_owned(),
            format!("checkout: moving from {b} to main"),
            format!("reset: moving to {a}"),
            "commit (amend): x".to_owned(),
            "rebase (finish): returning to refs/heads/main".to_owned(),
            String::new(),
        ] {
            assert_eq!(left_by(line(&other).as_bytes()), None, "{other}");
        }
        assert_eq!(left_by(b"no line of a reflog"), None);
    }
}
