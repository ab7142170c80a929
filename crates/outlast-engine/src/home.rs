//! Where everything is kept: `$OUTLAST_HOME`, one folder per repository, and the one lock on the whole.
//!
//! Nothing of it lies inside a user's tree. Paths that prompt caches and sessions depend on (a task's workspace and
//! home) are functions of run and task alone, and so stay the same for a task's whole life.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use outlast_core::{AttemptId, RunId, TaskId};
use outlast_git::UserRepo;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// `$OUTLAST_HOME`: every repository's folder and the lock of the one engine.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// One repository's folder.
#[derive(Debug, Clone)]
pub struct RepoHome {
    root: PathBuf,
}

/// Who holds the lock of a home: what another `run` names when it is refused, and where faces reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The engine's process id.
    pub pid: u32,
    /// The repository it works on.
    pub repository: PathBuf,
    /// The address of its local API, once it listens.
    pub api: Option<String>,
    /// What a request to that API must carry.
    pub token: Option<String>,
    /// The run that it ends with, where it is there for one.
    #[serde(default)]
    pub ends_with: Option<String>,
    /// Whether it is a gateway alone, which works on no repository.
    #[serde(default)]
    pub is_gateway: bool,
}

/// The lock of a home: held for the life of an engine, released by the kernel however it ends.
#[derive(Debug)]
pub struct HomeLock {
    file: Flock<File>,
}

/// The gateway's socket, in the folder of sockets.
pub(crate) const GATEWAY_SOCKET: &str = "gateway";

/// How often the lock is tried for while nobody says to hold it.
const LOCK_TRIES: u32 = 100;
/// The pause in between: the kernel tells nobody of the end of a lock that lasts for microseconds.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

impl Home {
    /// The home at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Checks, before anything is made there, that it lies beside the user's repository and all of its checkouts: in one,
    /// the user's own commands would crawl the workspaces.
    ///
    /// # Errors
    /// [`outlast_git::Error::InsideRepository`]; where git cannot list the checkouts.
    pub fn keep_apart(&self, repository: &UserRepo) -> Result<(), Error> {
        let Some(there) = self.root.ancestors().find_map(|above| above.canonicalize().ok()) else { return Ok(()) };
        let mut places = vec![repository.root().to_owned(), repository.common_dir().to_owned()];
        places.extend(repository.worktrees()?);
        for root in places {
            if there.starts_with(root.canonicalize().as_ref().unwrap_or(&root)) {
                return Err(outlast_git::Error::InsideRepository { path: self.root.clone(), root }.into());
            }
        }
        Ok(())
    }

    /// The folder of a repository, known by the path of its common git folder.
    pub fn repository(&self, common_dir: &Path) -> RepoHome {
        let digest = hex(&Sha256::digest(common_dir.as_os_str().as_encoded_bytes()));
        let tree = if common_dir.file_name().is_some_and(|name| name == ".git") { common_dir.parent() } else { None };
        let name = tree.unwrap_or(common_dir).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let slug = TaskId::new(name).slug();
        RepoHome { root: self.root.join(format!("{slug}-{}", &digest[..8])) }
    }

    /// What stands for the repository of a gateway alone. No repository is there: none may lie in a home.
    pub(crate) fn gateway(&self) -> PathBuf {
        self.root.join("gateway")
    }

    /// Every repository folder that holds a journal.
    ///
    /// # Errors
    /// Where the home cannot be read; a home that does not exist holds none.
    pub fn repositories(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let home = RepoHome::at(path);
            if home.journal().is_file() || home.has_lost_its_journal() {
                found.push(home.root);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Takes the lock: one engine per home, since accounts, budgets and slots are the host's.
    ///
    /// # Errors
    /// [`Error::EngineRunning`] names the holder; otherwise where the home cannot be written.
    pub fn lock(&self, repository: &Path) -> Result<HomeLock, Error> {
        private_dir(&self.root)?;
        let path = self.root.join("engine.lock");
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = open.map_err(|source| Error::at(&path, source))?;
        for tries_left in (0..LOCK_TRIES).rev() {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => {
                    let mut lock = HomeLock { file };
                    let pid = std::process::id();
                    let is_gateway = repository == self.gateway();
                    let repository = repository.to_owned();
                    lock.describe(&Holder { pid, repository, api: None, token: None, ends_with: None, is_gateway })?;
                    return Ok(lock);
                }
                Err((file, _)) => file,
            };
            // A holder that is not named is one that has not got to it yet, or somebody who only looks whether there is one.
            if let Some(holder) = self.holder().filter(Holder::lives) {
                return Err(Error::EngineRunning(Some(holder)));
            }
            if tries_left > 0 {
                std::thread::sleep(LOCK_PAUSE);
            }
        }
        Err(Error::EngineRunning(self.holder()))
    }

    /// Who else holds the lock, as far as that is known; nothing where nobody does.
    pub fn engine(&self) -> Option<Holder> {
        let file = File::open(self.root.join("engine.lock")).ok()?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => None,
            // An engine of this very process is one that has let go.
            Err(_) => self.holder().filter(|holder| holder.pid != std::process::id()),
        }
    }

    /// The engine that works on a repository, known by its folder in this home. One that works on another does nothing here.
    pub fn engine_of(&self, repository: &RepoHome) -> Option<Holder> {
        self.engine().filter(|holder| self.repository(&holder.repository).root == repository.root)
    }

    /// The engine that held the lock last, where its process has ended: it was killed, or has left.
    pub fn ended_engine(&self) -> Option<Holder> {
        if self.engine().is_some() {
            return None;
        }
        self.holder().filter(|holder| !holder.lives())
    }

    /// Blocks until no engine holds the lock.
    ///
    /// # Errors
    /// Where the lock file cannot be opened or waited for.
    pub fn until_free(&self) -> Result<(), Error> {
        let path = self.root.join("engine.lock");
        let file = File::open(&path).map_err(|source| Error::at(&path, source))?;
        match Flock::lock(file, FlockArg::LockShared) {
            Ok(_) => Ok(()),
            Err((_, errno)) => Err(Error::at(&path, errno.into())),
        }
    }

    fn holder(&self) -> Option<Holder> {
        serde_json::from_slice(&fs::read(self.root.join("engine.lock")).ok()?).ok()
    }
}

impl Holder {
    /// Whether its process lives; the file may still name one that has ended.
    fn lives(&self) -> bool {
        let pid = i32::try_from(self.pid).unwrap_or_default();
        pid > 0 && nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) != Err(nix::errno::Errno::ESRCH)
    }
}

impl HomeLock {
    /// Leaves the release to the end of the process: until then, something of an engine (a connection that was cut
    /// short, and the journal with it) may still be on its way out.
    pub(crate) fn keep_to_the_end(self) {
        std::mem::forget(self.file);
    }

    /// Writes down who holds the lock.
    ///
    /// # Errors
    /// Where the lock file cannot be written.
    pub fn describe(&mut self, holder: &Holder) -> Result<(), Error> {
        let text = serde_json::to_vec(holder).map_err(|e| Error::Internal(e.to_string()))?;
        let write = |file: &mut File| -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        };
        write(&mut self.file).map_err(|source| Error::at(Path::new("engine.lock"), source))
    }
}

impl RepoHome {
    /// The repository folder at a known place, as [`Home::repositories`] lists it.
    pub const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Makes the folders that must exist before anything runs.
    ///
    /// # Errors
    /// Where they cannot be made; [`Error::JournalGone`] where a new journal would hide that runs were there.
    pub fn create(&self) -> Result<(), Error> {
        if self.has_lost_its_journal() {
            return Err(Error::JournalGone { path: self.journal() });
        }
        for dir in [
            &self.root,
            &self.root.join("attempts"),
            &self.root.join("plans"),
            &self.root.join("keys"),
            &self.root.join("setup"),
            &self.sockets(),
        ] {
            private_dir(dir)?;
        }
        Ok(())
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where engines listen: one folder for all of them, so that what waits for the next one knows where it will be.
    pub fn sockets(&self) -> PathBuf {
        self.root.join("sockets")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    /// Whether runs began here, by the copies of their plans, and the journal that tells of them is gone.
    pub fn has_lost_its_journal(&self) -> bool {
        let is_gone = || matches!(fs::symlink_metadata(self.journal()), Err(e) if e.kind() == io::ErrorKind::NotFound);
        let has_begun = || fs::read_dir(self.root.join("plans")).is_ok_and(|mut plans| plans.next().is_some());
        is_gone() && has_begun()
    }

    /// Bodies of exchanges, by hash.
    pub fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// Answers that are still being written.
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// The user's repository that this folder belongs to, as its store borrows objects from it: its common git folder.
    pub fn lender(&self) -> Option<PathBuf> {
        let text = fs::read_to_string(self.store().join("objects/info/alternates")).ok()?;
        // An odd path is quoted there, and not read.
        let objects = text.lines().next().filter(|line| line.starts_with('/'))?;
        Path::new(objects).parent().map(Path::to_owned)
    }

    /// Our own bare repository.
    pub fn store(&self) -> PathBuf {
        self.root.join("store.git")
    }

    /// The folder for the one reused integration worktree.
    pub fn integration(&self) -> PathBuf {
        self.root.join("integration")
    }

    /// Everything that one attempt leaves: outputs, exit status, launch spec.
    pub fn attempt(&self, attempt: &AttemptId) -> PathBuf {
        self.root.join("attempts").join(attempt.run.as_str()).join(attempt.slug())
    }

    /// The CLI's own home for a task: its config and its sessions.
    pub fn agent_home(&self, run: &RunId, task: &TaskId, agent: &str) -> PathBuf {
        self.task_home(run, task).join(TaskId::new(agent).slug())
    }

    /// The homes of every agent that worked on a task.
    pub fn task_home(&self, run: &RunId, task: &TaskId) -> PathBuf {
        self.root.join("homes").join(run.as_str()).join(task.slug())
    }

    /// The home of verify and setup commands: no agent can write it.
    pub fn verify_home(&self, run: &RunId) -> PathBuf {
        self.root.join("verify").join(run.as_str()).join("home")
    }

    /// The temporary files of verify and setup commands: no agent can write there either.
    pub fn verify_temp(&self, run: &RunId) -> PathBuf {
        self.root.join("verify").join(run.as_str()).join("temp")
    }

    /// What `setup` made for one tree.
    pub fn setup(&self, key: &str) -> PathBuf {
        self.root.join("setup").join(key)
    }

    /// Temporary files of a task.
    pub fn temp(&self, run: &RunId, task: &TaskId) -> PathBuf {
        self.root.join("temp").join(run.as_str()).join(task.slug())
    }

    /// The working trees of all tasks, by run.
    pub fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// The working tree of a task.
    pub fn workspace(&self, run: &RunId, task: &TaskId) -> PathBuf {
        self.workspaces().join(run.as_str()).join(task.slug())
    }

    /// The plan of a run, as it was when the run started.
    pub fn plan(&self, hash: &str) -> PathBuf {
        self.root.join("plans").join(format!("{hash}.json"))
    }

    /// Whether a run of this name was ever begun here.
    pub fn knows(&self, run: &RunId) -> bool {
        self.run_secret(run).is_file()
    }

    /// What an engine tries again and again, for those who look without asking it.
    pub(crate) fn tried(&self) -> PathBuf {
        self.root.join("tried.json")
    }

    /// The secret that a run's keys are derived from.
    pub fn run_secret(&self, run: &RunId) -> PathBuf {
        self.root.join("keys").join(run.as_str())
    }

    /// Where shims reach the gateway.
    pub fn gateway_socket(&self) -> PathBuf {
        self.sockets().join(GATEWAY_SOCKET)
    }
}

/// Makes a folder, and those above it, that only its owner can look into.
pub(crate) fn private_dir(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|source| Error::at(path, source))?;
    reopen(path)
}

/// Gives the owner of a folder back what an agent that works in it took away: to list it, to enter it, to write in it.
///
/// For folders that only we can replace, so that no link is followed. One that is gone is left alone.
pub(crate) fn reopen(path: &Path) -> Result<(), Error> {
    const OWNER: u32 = 0o700;
    let found = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => found.permissions().mode(),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::at(path, source)),
    };
    if found & OWNER == OWNER {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(found | OWNER)).map_err(|source| Error::at(path, source))
}

/// Replaces a file as a whole, durably.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temp = path.with_extension("tmp");
    let write = || -> io::Result<()> {
        // What lies there is left over, or planted: a pipe would hold us up, and a link lead us elsewhere.
        match fs::remove_file(&temp) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temp, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|source| Error::at(path, source))
}

/// Reads a file that may not be there. A pipe or the like in its place is an error, and is not waited for.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::at(path, error)),
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
