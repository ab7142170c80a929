//! Worktrees that an agent has made of its own repository inside of its workspace: a second copy of the project, which is
//! kept with each checkpoint and is no part of what lands.

use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::Kind as ObjectKind;
use outlast_core::Oid;

use crate::agent_repo::LINKED;
use crate::agent_state::AgentState;
use crate::beside::{NESTED, NESTED_PATH, NESTED_POINTER};
use crate::source::{Reader, Source};
use crate::{Result, oid, tree};

/// The folders of such worktrees in the tree of a checkpoint; of what is no checkpoint, none.
pub(crate) fn within(reader: &Reader, end: &Oid) -> Result<Vec<BString>> {
    let (end, mut buf) = (oid::parse(end)?, Vec::new());
    if reader.read(end, &mut buf)? != Some(ObjectKind::Commit) {
        return Ok(Vec::new());
    }
    let Some(beside) = AgentState::parse(&reader.message(end)?).beside else { return Ok(Vec::new()) };
    let beside = tree::entries(reader, reader.tree_of(oid::parse(&beside)?)?)?;
    let Some((_, nested)) = beside.get(NESTED.as_bytes().as_bstr()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (_, one) in tree::entries(reader, *nested)?.into_values() {
        let mut text = |name: &str| -> Result<BString> {
            match tree::entry(reader, one, name)? {
                Some(leaf) => reader.need(leaf.id, ObjectKind::Blob, &mut buf)?,
                None => buf.clear(),
            }
            Ok(BString::from(buf.as_slice()))
        };
        // `gitdir: …/.git/worktrees/NAME` (gitrepository-layout).
        let pointer = text(NESTED_POINTER)?;
        if pointer.starts_with(b"gitdir:") && pointer.contains_str(format!("{LINKED}/")) {
            found.push(text(NESTED_PATH)?);
        }
    }
    Ok(found)
}

/// The one of these folders that a path lies in.
pub(crate) fn around<'a>(folders: &'a [BString], path: &BStr) -> Option<&'a BString> {
    folders.iter().find(|folder| path.strip_prefix(folder.as_slice()).is_some_and(|rest| rest.starts_with(b"/")))
}
