//! The `.git` of a repository that lies in a workspace's tree: no checkpoint has it in its tree, since no git would check
//! it out, so it is kept beside it, file by file.
//!
//! It may be a file or a link that leads to where the repository really is (a submodule, a linked worktree,
//! `--separate-git-dir`): then both are kept, where that place is in the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};

use crate::agent_repo::{AgentRepo, LINKED, SUBMODULES};
use crate::checkpoint::Note;
use crate::inside::{self, Folder};
use crate::objects::Batch;
use crate::scan::index::Index;
use crate::scan::{self, Found, Sink};
use crate::settings::Settings;
use crate::source::Reader;
use crate::tree::{self, Leaf, join};
use crate::{Error, Kind, Result};

/// Longest file or link that leads to a repository, in bytes.
const POINTER_LIMIT: u64 = 1 << 14;
/// Most worktrees that are looked after.
const LINKED_MAX: usize = 100;

/// Where repositories in a tree are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Folder,
    /// The root's path, which files that lead to a repository name.
    pub(crate) path: &'a Path,
    /// Where outlast keeps what it remembers about the workspace.
    pub(crate) admin: &'a Path,
    pub(crate) reader: &'a Reader,
    /// Largest file that is taken, in bytes.
    pub(crate) limit: u64,
}

/// What is kept of one repository.
pub(crate) struct Nested {
    /// What stands in the tree as `.git`, where that is no folder.
    pub(crate) pointer: Option<Leaf>,
    /// The folder that is the repository: nothing where there is none of its own in the workspace.
    pub(crate) place: Option<Place>,
}

/// A folder that is a repository.
pub(crate) struct Place {
    /// Its path in the workspace.
    pub(crate) dir: BString,
    /// Its tree.
    pub(crate) files: ObjectId,
    /// Its empty folders, without some of which git takes it for none.
    pub(crate) folders: Vec<BString>,
    cache: Index,
    found: Found,
}

impl Place {
    /// Whether it is a linked worktree's part of the agent's own repository, whose commits and staged files are there.
    pub(crate) fn linked(&self) -> Option<&str> {
        let name = self.dir.strip_prefix(LINKED.as_bytes())?.strip_prefix(b"/")?;
        name.to_str().ok().filter(|name| !name.contains('/'))
    }
}

/// The kind and the bytes of a `.git` that is no folder.
type Pointer = (Kind, Vec<u8>);

/// Where a `.git` leads.
enum Leads {
    /// To a folder in the workspace.
    To(BString),
    /// To the agent's own repository.
    Home,
    /// Out of the workspace.
    Out(BString),
}

/// Where what was read of nested repositories is remembered.
fn caches(admin: &Path) -> PathBuf {
    admin.join("nested")
}

fn cache(admin: &Path, dir: &BStr) -> PathBuf {
    caches(admin).join(format!("{:016x}", outlast_core::hash::fnv1a(dir)))
}

impl Tree<'_> {
    /// Reads the `.git` of the repository at `path`, and says what of it cannot be kept; half a repository is none.
    pub(crate) fn keep(&self, path: &BStr, batch: &mut Batch<'_>) -> Result<(Option<Nested>, Option<Note>)> {
        let not_kept = |why: String| Some(Note::NotKept { what: format!("`{path}/.git`"), why });
        let Some((pointer, leads)) = self.follow(path) else {
            return Ok((None, not_kept("it is no file, folder or link that can be read".to_owned())));
        };
        let pointer = match pointer {
            Some((kind, bytes)) => Some(Leaf { kind, id: batch.put(gix::objs::Kind::Blob, &bytes)? }),
            None => None,
        };
        let nested = |place| Some(Nested { pointer, place });
        let dir = match leads {
            Leads::To(dir) => dir,
            Leads::Home => return Ok((nested(None), None)),
            Leads::Out(to) => {
                return Ok((nested(None), Some(Note::RepositoryElsewhere { path: join(path, b".git".as_bstr()), to })));
            }
        };
        let put = &mut |data: &[u8]| batch.put(gix::objs::Kind::Blob, data);
        let Some((cache, found)) = self.read(dir.as_bstr(), put)? else {
            return Ok((nested(None), None));
        };
        if let Some(skipped) = skipped(&found) {
            return Ok((nested(None), not_kept(format!("`{skipped}` in it cannot be kept"))));
        }
        let files = tree::edit(self.reader, batch, cache.tree(), &found.edits)?;
        let folders = found.folders.clone();
        Ok((nested(Some(Place { dir, files, folders, cache, found })), None))
    }

    /// Whether the last checkpoint holds the repository at `path` as it is now; also where the workspace holds none.
    pub(crate) fn is_kept(&self, path: &BStr) -> Result<bool> {
        let Some((_, Leads::To(dir))) = self.follow(path) else { return Ok(true) };
        let hash = &mut |data: &[u8]| {
            gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, data)
                .map_err(|e| Error::object("new", e))
        };
        let read = self.read(dir.as_bstr(), hash)?;
        Ok(read.is_none_or(|(_, found)| found.edits.is_empty() && skipped(&found).is_none()))
    }

    /// Where the workspace's own `.git` leads, where it is a file or link and not the agent's repository itself.
    pub(crate) fn own_elsewhere(&self) -> Option<Note> {
        match self.follow(BStr::new(""))? {
            (Some(_), Leads::To(to) | Leads::Out(to)) => Some(Note::RepositoryElsewhere { path: ".git".into(), to }),
            _ => None,
        }
    }

    /// The worktrees of the agent's own repository that it has made outside the workspace.
    pub(crate) fn linked_elsewhere(&self, agent: &AgentRepo) -> Vec<Note> {
        let mut found = Vec::new();
        for name in agent.names("worktrees").into_iter().take(LINKED_MAX) {
            let Some(text) = agent.file(&format!("worktrees/{name}/gitdir"), POINTER_LIMIT) else { continue };
            let is_there = Path::new(OsStr::from_bytes(text.trim())).symlink_metadata().is_ok();
            if let Leads::Out(to) = self.leads(BStr::new(""), text.trim())
                && is_there
            {
                found.push(Note::RepositoryElsewhere { path: format!("{LINKED}/{name}").into(), to });
            }
        }
        found
    }

    /// What stands as `.git` in the folder `path`, where that is no folder, and where it leads.
    fn follow(&self, path: &BStr) -> Option<(Option<Pointer>, Leads)> {
        let (folder, name) = (self.root.descend(path).ok()?, b".git".as_bstr());
        let stat = folder.stat(name).ok()?;
        match inside::kind(&stat) {
            nix::sys::stat::SFlag::S_IFDIR => Some((None, Leads::To(join(path, name)))),
            nix::sys::stat::SFlag::S_IFLNK => {
                let to = folder.link(name).ok()?;
                let leads = self.leads(path, to.as_bytes());
                Some((Some((Kind::Link, to.as_bytes().to_owned())), leads))
            }
            _ => {
                let text = folder.read(name, POINTER_LIMIT).ok()?;
                let to = text.strip_prefix(b"gitdir:").unwrap_or_default().trim();
                let leads = self.leads(path, to);
                Some((Some((Kind::File, text)), leads))
            }
        }
    }

    /// Where a path leads that is written in the folder `from`.
    fn leads(&self, from: &BStr, to: &[u8]) -> Leads {
        let out = || Leads::Out(to.into());
        let real = self.path.canonicalize().ok();
        let roots = [Some(self.path), real.as_deref()].into_iter().flatten();
        let beneath = |root: &Path| Path::new(OsStr::from_bytes(to)).strip_prefix(root).ok().map(Path::to_owned);
        let (start, rest) = match to.starts_with(b"/") {
            false => (from, to.to_owned()),
            true => match roots.filter_map(beneath).next() {
                Some(rest) => (BStr::new(""), rest.as_os_str().as_bytes().to_owned()),
                None => return out(),
            },
        };
        let mut parts: Vec<&[u8]> = start.split_str("/").filter(|part| !part.is_empty()).collect();
        for part in rest.split_str("/") {
            match part {
                b"" | b"." => {}
                b".." => match parts.pop() {
                    Some(_) => {}
                    None => return out(),
                },
                part => parts.push(part),
            }
        }
        let dir = BString::from(parts.join(&b'/'));
        let is_in = |folder: &str| dir.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"));
        // The rest of the agent's own repository is kept in its own way, and a folder above is none's.
        let is_above = dir.is_empty() || from.starts_with(&dir) && matches!(from.get(dir.len()), None | Some(b'/'));
        let is_own = dir == ".git" || dir.starts_with(b".git/") && !is_in(LINKED) && !is_in(SUBMODULES);
        if is_above || is_own { Leads::Home } else { Leads::To(dir) }
    }

    fn read(&self, dir: &BStr, sink: &mut Sink<'_>) -> Result<Option<(Index, Found)>> {
        let Ok(folder) = self.root.descend(dir) else { return Ok(None) };
        let place = cache(self.admin, dir);
        std::fs::create_dir_all(&place).map_err(Error::io("create", &place))?;
        let cache = Index::open_or_empty(&place)?;
        let nothing = BTreeSet::new();
        let task = scan::Task {
            root: &folder,
            settings: &Settings::default(),
            index: &cache,
            reader: self.reader,
            never: &nothing,
            forced: &nothing,
            dirt: &BTreeMap::new(),
            agent: None,
            limit: self.limit,
        };
        let found = scan::scan(&task, &scan::ahead::Ahead::look(&folder, &cache), sink)?;
        Ok(Some((cache, found)))
    }
}

/// A file that was not taken.
fn skipped(found: &Found) -> Option<&BString> {
    found.notes.iter().find_map(|note| match note {
        Note::Skipped { path, .. } => Some(path),
        _ => None,
    })
}

/// Remembers what was read, once it is durable, and forgets what is not there any more: what no checkpoint names, a
/// garbage collection takes.
pub(crate) fn remember(admin: &Path, nested: Vec<Nested>) -> Result<()> {
    let places: Vec<Place> = nested.into_iter().filter_map(|each| each.place).collect();
    let used: BTreeSet<PathBuf> = places.iter().map(|each| cache(admin, each.dir.as_bstr())).collect();
    for each in places {
        each.cache.save(each.files, &each.found.edits, &each.found.fresh)?;
    }
    let folder = caches(admin);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io("read", folder)(e)),
    };
    for entry in entries {
        let path = entry.map_err(Error::io("read", &folder))?.path();
        if !used.contains(&path) {
            std::fs::remove_dir_all(&path).map_err(Error::io("remove", path))?;
        }
    }
    Ok(())
}
