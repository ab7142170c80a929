//! The bytes of files that a checkout would write differently: line ends, `ident` and encodings are converted both ways, and
//! not every file survives that. They are remembered beside the cache of a scan, and kept beside each checkpoint's tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice};

use crate::scan::{Found, index::Index};
use crate::store::set_aside;
use crate::tree::{Edits, Leaf};
use crate::{Error, Kind, Result, durable, oid};

/// What is remembered, by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Raw(BTreeMap<BString, Leaf>);

fn file(admin: &Path) -> PathBuf {
    admin.join("raw")
}

impl Raw {
    /// Reads what is remembered of a workspace.
    pub(crate) fn load(admin: &Path) -> Result<Self> {
        let path = file(admin);
        let bytes = durable::read(&path)?.unwrap_or_default();
        let line = |line: &[u8]| {
            let (kind, rest) = line.split_once_str(" ")?;
            let (id, path) = rest.split_once_str(" ")?;
            let kind = if kind == b"x" { Kind::Executable } else { Kind::File };
            Some((BString::from(path), Leaf { kind, id: oid::parse_text(id.to_str().ok()?).ok()? }))
        };
        let lines = bytes.split_str(b"\0").filter(|line| !line.is_empty());
        let parsed: Option<BTreeMap<_, _>> = lines.map(line).collect();
        parsed.map(Self).ok_or_else(|| Error::State { path, why: "it is damaged".to_owned() })
    }

    /// Sets aside what holds garbage, and forgets the cache of the scan with it: every file is read again then, and tells.
    pub(crate) fn mend(admin: &Path) -> Result<()> {
        match Self::load(admin) {
            Err(Error::State { path, .. }) => {
                Index::forget_unless(admin, |_| false)?;
                set_aside(&path)
            }
            loaded => loaded.map(drop),
        }
    }

    /// Takes over what a scan has read, and forgets what is not there any more.
    pub(crate) fn updated(mut self, found: &Found) -> Self {
        self.0.retain(|path, _| !matches!(found.edits.get(path), Some(None)));
        for (path, raw) in &found.raw {
            match raw {
                Some(leaf) => self.0.insert(path.clone(), *leaf),
                None => self.0.remove(path),
            };
        }
        self
    }

    /// Remembers it: before the cache of the scan, by which files that did not change are not read again.
    pub(crate) fn save(&self, admin: &Path) -> Result<()> {
        let mut bytes = Vec::new();
        for (path, leaf) in &self.0 {
            let kind = if leaf.kind == Kind::Executable { "x" } else { "-" };
            bytes.extend_from_slice(format!("{kind} {} ", leaf.id).as_bytes());
            bytes.extend_from_slice(path);
            bytes.push(0);
        }
        let path = file(admin);
        if durable::read(&path)?.unwrap_or_default() == bytes { Ok(()) } else { durable::write(&path, &bytes, 0o600) }
    }

    /// What leads to a tree of all of it.
    pub(crate) fn edits(&self) -> Edits {
        self.0.iter().map(|(path, leaf)| (path.clone(), Some(*leaf))).collect()
    }
}
