//! What a crash of the machine has damaged in a workspace's own repository, written anew: files without a byte or full of
//! garbage, without which no git works there and every try of the task fails.
//!
//! Nothing of the agent's goes: no file of its tree is touched, no commit, and what a damaged file held is kept beside it.
//! Where HEAD stood is told by its log, and otherwise by what was kept last; what was staged, by the latter alone.

mod head;
mod index;

use std::io;
use std::path::PathBuf;

use gix::bstr::{BStr, BString, ByteSlice as _};
use outlast_core::Oid;

use crate::agent_repo::{AgentRepo, parse_packed};
use crate::emptied::ALTERNATES;
use crate::inside::{Folder, Hint, write_inside};
use crate::source::{Reader, Source as _};
use crate::workspace::restore::Restored;
use crate::workspace::skeleton;
use crate::{Error, Result, Store, UserRepo, Workspace, oid, store};

/// Largest configuration, list of refs and the like that is looked at, in bytes.
const LIMIT: u64 = 16 << 20;
/// How many checkpoints are gone back at most for one that knows where HEAD stood.
const CHECKPOINTS_MAX: usize = 1_000;

impl Workspace {
    /// Makes its repository one that git works with again, and names what was damaged there. `kept` is its last checkpoint.
    /// Only for whoever knows that no process is at work in it.
    ///
    /// # Errors
    /// A file of it cannot be written, or the store not be read.
    pub fn mend(&self, store: &Store, user: &UserRepo, kept: Option<&Oid>) -> Result<Vec<String>> {
        let _lock = self.lock()?;
        let root = self.root()?;
        // What is no folder is no repository of ours: nothing is followed out of the workspace.
        let Ok(git) = root.folder(b".git".as_bstr()) else { return Ok(Vec::new()) };
        let mut mending =
            Mending { workspace: self, store, user, reader: store.reader(), root, git, mended: Vec::new() };
        mending.all(kept)?;
        Ok(mending.mended)
    }
}

/// A repository on its way back.
struct Mending<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    user: &'a UserRepo,
    reader: Reader,
    root: Folder,
    git: Folder,
    mended: Vec<String>,
}

/// What a file is like.
enum File {
    /// As any other.
    Sound(Vec<u8>),
    /// It is not there.
    Gone,
    /// It holds no byte.
    Empty,
    /// It cannot be read, or is too large to be looked at: none of ours.
    Other,
}

impl Mending<'_> {
    fn all(&mut self, kept: Option<&Oid>) -> Result<()> {
        self.empty_objects()?;
        self.plain_files()?;
        self.config()?;
        let Some(agent) = self.agent() else { return Ok(()) };
        if !agent.has_plain_refs() {
            return Ok(());
        }
        let checkpoints = self.checkpoints(kept)?;
        self.packed_refs(checkpoints.first())?;
        self.head(&agent, &checkpoints)?;
        self.refs(&agent, &checkpoints)?;
        self.index(&agent, &checkpoints)
    }

    fn agent(&self) -> Option<AgentRepo> {
        AgentRepo::open(&self.root, self.reader.clone(), self.workspace.admin.join("packs"))
    }

    /// What was kept, newest first, as far as it knows where HEAD stood.
    fn checkpoints(&self, kept: Option<&Oid>) -> Result<Vec<Restored>> {
        let base = oid::parse(&self.workspace.meta.base)?;
        let mut at = kept.map(oid::parse).transpose()?;
        let mut found = Vec::new();
        for _ in 0..CHECKPOINTS_MAX {
            let Some(id) = at.filter(|id| *id != base) else { break };
            let Ok((_, parents)) = self.reader.commit(id) else { break };
            if let Ok(restored) = Restored::load(&self.reader, id)
                && (restored.state.branch.is_some() || restored.state.head.is_some())
            {
                let knows_all = restored.state.index.is_some();
                found.push(restored);
                if knows_all {
                    break;
                }
            }
            at = parents.first().copied();
        }
        Ok(found)
    }

    fn file(&self, name: &str) -> File {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let read = self.git.descend(folder.as_bytes().as_bstr()).and_then(|f| f.read(file.as_bytes().as_bstr(), LIMIT));
        match read {
            Ok(bytes) if bytes.is_empty() => File::Empty,
            Ok(bytes) => File::Sound(bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => File::Gone,
            Err(_) => File::Other,
        }
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put(name, bytes)?;
        self.mended.push(name.to_owned());
        Ok(())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = format!(".git/{name}");
        write_inside(self.workspace.path(), path.as_bytes().as_bstr(), bytes, 0o644)
            .map_err(Error::io("write", self.at(name)))
    }

    /// Keeps what a file holds that is written anew.
    fn set_aside(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put(&format!("{name}.damaged"), bytes)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.workspace.path().join(".git").join(name)
    }

    /// Git takes the name of an object for the object, and writes it nowhere else: an empty one goes.
    fn empty_objects(&mut self) -> Result<()> {
        let Ok(objects) = self.git.folder(b"objects".as_bstr()) else { return Ok(()) };
        let failed =
            |folder: &BStr| Error::io("remove an empty object in", self.at("objects").join(folder.to_string()));
        let mut gone = 0;
        for (name, hint) in objects.names().unwrap_or_default() {
            let name = BString::from(name.into_encoded_bytes());
            let Ok(fan_out) = objects.folder(name.as_bstr()) else { continue };
            if hint == Hint::Other || name.len() != 2 {
                continue;
            }
            for (file, _) in fan_out.names().unwrap_or_default() {
                let file = BString::from(file.into_encoded_bytes());
                let is_empty =
                    fan_out.file(file.as_bstr()).and_then(|found| found.metadata()).is_ok_and(|m| m.len() == 0);
                if is_empty && file.len() == 38 {
                    fan_out.unlink(file.as_bstr()).map_err(failed(name.as_bstr()))?;
                    gone += 1;
                }
            }
        }
        if gone > 0 {
            self.mended.push("objects".to_owned());
        }
        Ok(())
    }

    /// What is the same in every workspace.
    fn plain_files(&mut self) -> Result<()> {
        let settings = &self.workspace.meta.settings;
        let lenders = store::alternates_text(&[&self.user.objects_dir(), self.store.objects_dir()]);
        let attributes = skeleton::attributes(settings);
        let excludes = settings.excludes.clone();
        if matches!(self.file(ALTERNATES), File::Empty | File::Gone) {
            self.write(ALTERNATES, &lenders)?;
        }
        for (name, wanted) in [("info/exclude", excludes), ("info/attributes", attributes)] {
            if matches!(self.file(name), File::Empty) && !wanted.trim_ascii().is_empty() {
                self.write(name, &wanted)?;
            }
        }
        Ok(())
    }

    /// Whether git can read its configuration is for git to say: it is handed to it as data, and none that it runs with.
    fn config(&mut self) -> Result<()> {
        const NAME: &str = "config";
        match self.file(NAME) {
            File::Sound(bytes) => {
                let call = self.store.call().args(["config", "--file", "-", "--no-includes", "--list"]);
                if call.stdin(bytes.clone()).run()?.code() == Some(0) {
                    return Ok(());
                }
                self.set_aside(NAME, &bytes)?;
            }
            File::Empty | File::Gone => {}
            File::Other => return Ok(()),
        }
        let mut text = skeleton::config(self.user, &self.workspace.meta.settings)?;
        if matches!(self.file("config.worktree"), File::Sound(_)) {
            text.push_str("[extensions]\n\tworktreeConfig = true\n");
        }
        if let File::Sound(patterns) = self.file(crate::in_progress::SPARSE) {
            text.push_str(&skeleton::sparse(&patterns));
        }
        if self.git.folder(b"reftable".as_bstr()).is_ok() {
            text.push_str("[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n");
        }
        self.write(NAME, text.as_bytes())
    }

    /// The branches and tags that are shown, and those of the agent's that were kept.
    fn packed_refs(&mut self, kept: Option<&Restored>) -> Result<()> {
        const NAME: &str = "packed-refs";
        let damaged = match self.file(NAME) {
            File::Empty | File::Gone => Vec::new(),
            File::Sound(bytes) if bytes.lines().all(is_packed_line) => return Ok(()),
            File::Sound(bytes) => bytes,
            File::Other => return Ok(()),
        };
        let mut own = kept.map(Restored::refs).transpose()?.unwrap_or_default();
        own.extend(parse_packed(&damaged));
        own.retain(|name, _| {
            gix::validate::reference::name(name.as_bytes().as_bstr()).is_ok()
                && !matches!(self.file(name), File::Sound(_))
        });
        let tips = self.store.tips(&self.workspace.meta.run)?.unwrap_or_default();
        let text = skeleton::packed_with(&tips, &own);
        if text.is_empty() {
            return Ok(());
        }
        if !damaged.is_empty() {
            self.set_aside(NAME, &damaged)?;
        }
        self.write(NAME, &text)
    }
}

fn is_packed_line(line: &[u8]) -> bool {
    let is_ref =
        || line.split_once_str(" ").is_some_and(|(id, name)| gix::ObjectId::from_hex(id).is_ok() && !name.is_empty());
    line.starts_with(b"#") || line.starts_with(b"^") || is_ref()
}
