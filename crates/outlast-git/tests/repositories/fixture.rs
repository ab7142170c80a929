//! A user's repository with a store beside it, and shorthands to work on both.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use outlast_core::{AgentName, AttemptId, Oid, RunId, TaskId, Timestamp};
use outlast_git::{
    Candidate, CandidateOutcome, CandidateSpec, Checkpoint, CheckpointSpec, FILE_LIMIT_DEFAULT, Git, Move, Scope, Spec,
    Store, UserRepo, Workspace,
};

/// The git program under test.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| Git::locate().unwrap().program().to_owned())
}

fn start(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    for (key, _) in std::env::vars_os() {
        if key.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(key);
        }
    }
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(dir)
        .args(["-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false"])
        .args(args)
        .output()
        .unwrap()
}

/// Runs git as a person or an agent would, and expects it to succeed.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = start(dir, args);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Runs git where it may fail.
pub(crate) fn try_git(dir: &Path, args: &[&str]) -> bool {
    start(dir, args).status.success()
}

pub(crate) fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn executable(root: &Path, path: &str, text: &str) {
    write(root, path, text);
    std::fs::set_permissions(root.join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn read(root: &Path, path: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(root.join(path)).unwrap()).into_owned()
}

/// A fresh repository with one commit.
pub(crate) fn new_repo(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
    git(path, &["init", "-q", "-b", "main"]);
    git(path, &["config", "user.name", "Ada Lovelace"]);
    git(path, &["config", "user.email", "ada@example.org"]);
    write(path, "README.md", "hello\n");
    write(path, "src/a.rs", "fn a() {}\n");
    write(path, "src/b.rs", "fn b() {}\n");
    write(path, "docs/guide.md", "guide\n");
    executable(path, "run.sh", "#!/bin/sh\n");
    write(path, ".gitignore", "target/\n*.log\n.env*\n");
    std::os::unix::fs::symlink("src/a.rs", path.join("link")).unwrap();
    git(path, &["add", "-A"]);
    git(path, &["commit", "-qm", "first"]);
}

/// A user's repository, a store and a run.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) repo: PathBuf,
    pub(crate) user: UserRepo,
    pub(crate) store: Store,
    pub(crate) run: RunId,
    pub(crate) base: Oid,
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

impl World {
    /// A world whose repository holds one commit.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A world whose repository was worked on by `prepare` before the run began.
    pub(crate) fn with(prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("用户 repo");
        new_repo(&repo);
        prepare(&repo);
        Self::around(dir, repo)
    }

    pub(crate) fn around(dir: tempfile::TempDir, repo: PathBuf) -> Self {
        let user = UserRepo::open(&repo).unwrap();
        let store = Store::open_or_init(&dir.path().join("state/store.git"), &user).unwrap();
        let run = RunId::from("run-1");
        let base = user.head().unwrap().commit;
        user.pin_base(&store, &run, &base).unwrap();
        Self { dir, repo, user, store, run, base }
    }

    /// One whose user's git waits for a lock on a ref for a moment only: where the lock is never let go.
    pub(crate) fn impatient(self) -> Self {
        let git = self.user.git().clone().with_ref_patience(Duration::from_millis(200));
        Self { user: UserRepo::open_with(git, &self.repo).unwrap(), ..self }
    }

    pub(crate) fn spec(&self, task: &str) -> Spec {
        Spec {
            run: self.run.clone(),
            task: TaskId::from(task),
            path: self.dir.path().join("work spaces").join(TaskId::from(task).slug()),
            base: self.base.clone(),
            trusted: self.base.clone(),
            restore: None,
        }
    }

    pub(crate) fn workspace(&self, task: &str) -> Workspace {
        Workspace::create(&self.user, &self.store, &self.spec(task)).unwrap()
    }

    pub(crate) fn attempt(&self, task: &str) -> AttemptId {
        AttemptId { run: self.run.clone(), task: TaskId::from(task), number: 1 }
    }

    pub(crate) fn checkpoint_spec(&self, task: &str, parent: Option<&Checkpoint>) -> CheckpointSpec {
        CheckpointSpec {
            attempt: self.attempt(task),
            parent: parent.map(|c| c.commit.clone()),
            message: format!("turn of {task}\n"),
            at: at(0),
            only_if_changed: false,
            file_limit: FILE_LIMIT_DEFAULT,
        }
    }

    pub(crate) fn checkpoint(&self, workspace: &Workspace, task: &str) -> Checkpoint {
        workspace.checkpoint(&self.store, &self.user, &self.checkpoint_spec(task, None)).unwrap()
    }

    /// The next checkpoint of a task.
    pub(crate) fn checkpoint_after(&self, workspace: &Workspace, task: &str, last: Option<&Checkpoint>) -> Checkpoint {
        workspace.checkpoint(&self.store, &self.user, &self.checkpoint_spec(task, last)).unwrap()
    }

    /// The candidate of a checkpoint under a scope, on top of `tip`.
    pub(crate) fn candidate_spec(&self, task: &str, end: &Checkpoint, scope: &Scope, tip: &Oid) -> CandidateSpec {
        let split = self.store.scope_diff(&self.base, &end.commit, scope).unwrap();
        CandidateSpec {
            run: self.run.clone(),
            task: TaskId::from(task),
            agent: AgentName::from("claude"),
            target_tip: tip.clone(),
            base: self.base.clone(),
            result_tree: self.store.in_scope_tree(&self.base, &split).unwrap(),
            message: format!("Do {task}"),
            author: self.user.user_identity().unwrap(),
            committer: self.user.committer_identity().unwrap(),
            at: at(60),
        }
    }

    pub(crate) fn ready(&self, task: &str, end: &Checkpoint, tip: &Oid) -> Candidate {
        let spec = self.candidate_spec(task, end, &Scope::everything(), tip);
        match self.user.candidate(&self.store, &spec).unwrap() {
            CandidateOutcome::Ready(candidate) => candidate,
            other => panic!("no candidate: {other:?}"),
        }
    }

    /// Publishes a candidate and prepares its step.
    pub(crate) fn published(&self, task: &str, target: &str, old: Option<&Oid>, candidate: &Candidate) -> Move {
        self.user.publish(&self.store, &self.run, &TaskId::from(task), candidate).unwrap();
        Move {
            run: self.run.clone(),
            task: TaskId::from(task),
            target: target.to_owned(),
            old: old.cloned(),
            new: candidate.commit.clone(),
        }
    }

    pub(crate) fn fsck_store(&self) {
        git(self.store.path(), &["fsck", "--strict", "--no-dangling"]);
    }

    /// Whether all is there that a commit of the store leads to.
    pub(crate) fn fsck_objects(&self, commit: &Oid) {
        git(self.store.path(), &["rev-list", "--objects", commit.as_str()]);
    }

    /// A file's text in a commit of the store.
    pub(crate) fn text(&self, commit: &Oid, path: &str) -> String {
        git(self.store.path(), &["cat-file", "blob", &format!("{commit}:{path}")])
    }

    /// Everything a person could miss: every file of the repository and its checkout, but for pins.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut files = snapshot(&self.repo);
        files.retain(|path, _| !path.starts_with(".git/refs/outlast"));
        files
    }
}

/// The content, kind, mode and age of everything in a folder.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(root: &Path, at: &Path, files: &mut BTreeMap<PathBuf, String>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if meta.is_dir() {
                walk(root, &path, files);
                continue;
            }
            let content = if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                std::fs::read(&path).unwrap()
            };
            let hash = outlast_core::hash::fnv1a(&content);
            files.insert(name, format!("{:o} {} {} {hash:x}", meta.mode(), meta.mtime(), meta.mtime_nsec()));
        }
    }
    let mut files = BTreeMap::new();
    walk(root, root, &mut files);
    files
}

/// A task that changed `src/a.rs` and added `new.rs`.
pub(crate) fn done(world: &World, task: &str) -> Checkpoint {
    let workspace = world.workspace(task);
    write(workspace.path(), "src/a.rs", format!("fn {task}() {{}}\n"));
    write(workspace.path(), "new.rs", "// new\n");
    world.checkpoint(&workspace, task)
}

/// Somebody in whose name a result is kept.
pub(crate) fn ann() -> outlast_git::Identity {
    outlast_git::Identity { name: "Ann".to_owned(), email: "ann@example.invalid".to_owned() }
}
