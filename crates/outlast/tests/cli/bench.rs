//! A hermetic place to run the binary in, and what it did there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast_testkit::fixture::{Odd, Repo, TestEnv};
use serde_json::Value;

/// A home, a configuration and a repository of their own.
pub(crate) struct Bench {
    pub(crate) env: TestEnv,
    pub(crate) repo: Repo,
}

/// Files and folders with what is in them.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<PathBuf, Vec<u8>>);

impl Files {
    /// Checks that nothing is there now that was not, that nothing is gone, and that every byte is the same.
    #[track_caller]
    pub(crate) fn assert_same(&self, now: &Self, what: &str) {
        let paths = self.0.keys().chain(now.0.keys());
        let mut changed: Vec<&PathBuf> = paths.filter(|path| self.0.get(*path) != now.0.get(*path)).collect();
        changed.dedup();
        assert!(changed.is_empty(), "{what}: {changed:#?}");
    }
}

/// How one command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    /// A repository with one commit and a person to commit as.
    pub(crate) fn new() -> Self {
        let env = environment();
        let repo = env.repo("repo").unwrap();
        repo.commit_file("README.md", "# Fixture\n", "First").unwrap();
        for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
            repo.git(&["config", key, value]).unwrap();
        }
        Self { env, repo }
    }

    /// A repository of another shape.
    pub(crate) fn odd(shape: Odd) -> Self {
        let env = environment();
        let repo = shape.build(&env.root().join("repo")).unwrap();
        Self { env, repo }
    }

    /// The command, to be run in the repository by a caller who wants more than [`Bench::run`].
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = self.env.command(env!("CARGO_BIN_EXE_outlast"));
        command.args(arguments).current_dir(self.repo.dir()).stdin(Stdio::null());
        // The person has a name by their configuration alone.
        for role in ["AUTHOR", "COMMITTER"] {
            command.env_remove(format!("GIT_{role}_NAME")).env_remove(format!("GIT_{role}_EMAIL"));
        }
        command
    }

    /// Runs the binary in the repository.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// Runs the binary where there is no repository.
    pub(crate) fn run_outside<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        Ran::of(self.command(arguments).current_dir(self.env.home()))
    }

    /// Writes the project's file.
    pub(crate) fn plan(&self, text: &str) {
        self.repo.write("outlast.toml", text).unwrap();
    }

    /// Puts a program on the PATH.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let file = self.programs().join(name);
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The one folder on the PATH.
    fn programs(&self) -> PathBuf {
        self.env.root().join("bin")
    }

    /// Every file of the repository and of the state folder, with what is in it, links not followed.
    pub(crate) fn files(&self) -> Files {
        let mut files = Files::default();
        for root in [self.repo.dir(), self.env.outlast_home()] {
            collect(root, &mut files.0);
        }
        files
    }

    /// The same of the repository alone.
    pub(crate) fn tree(&self) -> Files {
        let mut files = Files::default();
        collect(self.repo.dir(), &mut files.0);
        files
    }
}

/// An environment whose PATH holds git and the usual tools, and no agent whatever this machine has.
fn environment() -> TestEnv {
    let mut env = TestEnv::new().unwrap();
    let bin = env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for tool in ["git", "sh", "cat", "cp", "env", "test", "true", "false", "sleep", "touch", "mkdir"] {
        let found = std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|file| file.is_file());
        symlink(found.expect(tool).canonicalize().unwrap(), bin.join(tool)).unwrap();
    }
    env.set("PATH", bin);
    env
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let path = entry.path();
        if kind.is_dir() {
            files.insert(path.clone(), b"folder".to_vec());
            collect(&path, files);
        } else if kind.is_symlink() {
            files.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else if kind.is_file() {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Checks that standard error says this.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "{text:?} is missing in {self:#?}");
        self
    }

    /// Checks that standard output shows this.
    #[track_caller]
    pub(crate) fn shows(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "{text:?} is missing in {self:#?}");
        self
    }

    /// Standard output as the one JSON object that it is, of this schema.
    #[track_caller]
    pub(crate) fn json(&self, schema: &str) -> Value {
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        assert_eq!(value["schema"], format!("outlast/{schema}/v1"), "{self:#?}");
        assert_eq!(self.stdout.lines().count(), 1, "{self:#?}");
        value
    }

    /// The error that `--json` prints: its code, its exit number in both places, and something to do.
    #[track_caller]
    pub(crate) fn fails(&self, exit: i32, code: &str) -> Value {
        let error = self.json("error");
        assert_eq!((self.code, &error["exit_code"]), (exit, &Value::from(exit)), "{self:#?}");
        assert_eq!(error["error"]["code"], code, "{self:#?}");
        assert!(error["error"]["fix"].as_array().is_some_and(|fixes| !fixes.is_empty()), "no advice: {self:#?}");
        error
    }
}
