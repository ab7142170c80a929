//! The programs that agents and verify commands may run: what the person's own `PATH` names, readable and executable,
//! and nothing else of their home.
//!
//! A home of its own per task means that version managers look for their toolchains in the wrong place; the variables
//! that say where they are point at the person's, which stay read-only.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::programs::Lack;

/// Where programs are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The `PATH` that is handed on.
    pub path: String,
    /// Folders that must be readable and executable for it.
    pub execute: Vec<PathBuf>,
    /// Variables by which version managers find what is in the person's home.
    pub env: BTreeMap<String, String>,
}

/// Hidden folders of a home that are an installation as a whole. Of any other that has a `bin` on the path (`.cargo`,
/// `.local`, `.docker`, `.fly`) only the `bin` is opened: beside it lie tokens.
const INSTALLATIONS: [&str; 14] = [
    ".asdf", ".bun", ".deno", ".elan", ".ghcup", ".goenv", ".jenv", ".juliaup", ".nodenv", ".opam", ".pyenv", ".rbenv",
    ".rye", ".volta",
];

/// The name of our own program, as prompts call it.
const PROGRAM: &str = "outlast";

/// Where the accounts of this host are listed.
const PASSWD: &str = "/etc/passwd";
/// The first number of a person's account; what is below belongs to services, whose homes are system folders.
const FIRST_PERSON: u32 = 1000;

impl Toolchain {
    /// What the environment of this process names. `state` is where ours is kept, which no task gets to read.
    pub fn of_this_process(state: &Path) -> Self {
        let home = env::var_os("HOME").map(PathBuf::from);
        let mut shut = homes(&fs::read_to_string(PASSWD).unwrap_or_default());
        shut.extend([env::temp_dir(), state.to_owned()]);
        Self::new(&env::var("PATH").unwrap_or_default(), home.as_deref(), &shut, |name| env::var(name).ok())
            .with_ours(env::current_exe().ok())
    }

    /// Adds our own program, which agents note their progress with: it alone may be run, and is found last.
    fn with_ours(mut self, program: Option<PathBuf>) -> Self {
        let Some(program) = program.filter(|program| program.file_name() == Some(OsStr::new(PROGRAM))) else {
            return self;
        };
        if self.find(PROGRAM).is_none()
            && let Some(folder) = program.parent().and_then(Path::to_str)
        {
            let before = if self.path.is_empty() { String::new() } else { format!("{}:", self.path) };
            self.path = format!("{before}{folder}");
        }
        if !self.execute.iter().any(|opened| program.starts_with(opened)) {
            self.execute.push(program);
        }
        self
    }

    /// The program of this name, as it stands on the path.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let programs = env::split_paths(&self.path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
        programs.into_iter().find(|program| is_executable(program))
    }

    /// Why a program that a command names would not be found: named without a path, it is none that is on the path; by its
    /// whole path, none that is there. What a path from the workspace on names is another question.
    pub fn lacks(&self, program: &str) -> Option<Lack> {
        if program.starts_with('/') {
            return (!is_executable(Path::new(program))).then_some(Lack::NotOnHost);
        }
        // A shell looks in the workspace, too, where the path names a folder without a root.
        let is_whole = env::split_paths(&self.path).all(|folder| folder.is_absolute());
        let is_name = !program.is_empty() && !program.contains('/');
        (is_name && is_whole && self.find(program).is_none()).then_some(Lack::NotOnPath)
    }

    fn new(path: &str, home: Option<&Path>, shut: &[PathBuf], variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut execute = Vec::new();
        let mut add = |path: PathBuf| {
            if path.is_absolute() && !execute.contains(&path) {
                execute.push(path);
            }
        };
        for dir in env::split_paths(path).filter(|dir| dir.is_absolute()) {
            let whole = dir.parent().filter(|_| dir.ends_with("bin") || dir.ends_with("shims"));
            match whole {
                Some(whole) if opens_whole(whole, home, shut) => add(whole.to_owned()),
                _ => add(dir),
            }
        }
        let mut env = BTreeMap::new();
        for (name, folder) in [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")] {
            let place = variable(name).map(PathBuf::from).or_else(|| home.map(|home| home.join(folder)));
            if let Some(place) = place.filter(|place| place.is_dir()) {
                env.insert(name.to_owned(), place.to_string_lossy().into_owned());
                add(place);
            }
        }
        Self { path: path.to_owned(), execute, env }
    }
}

fn is_executable(program: &Path) -> bool {
    let mode = program.metadata().ok().filter(fs::Metadata::is_file).map(|found| found.permissions().mode());
    mode.is_some_and(|mode| mode & 0o111 != 0)
}

/// Whether the folder around a `bin` may be opened as a whole: an installation may, a home of anybody's or what is above
/// one may not.
fn opens_whole(folder: &Path, home: Option<&Path>, shut: &[PathBuf]) -> bool {
    let holds_shut = home.into_iter().chain(shut.iter().map(PathBuf::as_path)).any(|shut| shut.starts_with(folder));
    let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let in_a_home = |parent: &Path| home == Some(parent) || shut.iter().any(|shut| shut == parent);
    let mixed = name.starts_with('.') && !INSTALLATIONS.contains(&name) && folder.parent().is_some_and(in_a_home);
    folder.parent().is_some() && !holds_shut && !mixed
}

/// The homes of root and of people, as `passwd(5)` lists them.
fn homes(passwd: &str) -> Vec<PathBuf> {
    let home = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, number, _, _, home, _] = fields[..] else { return None };
        let number: u32 = number.parse().ok()?;
        (number == 0 || number >= FIRST_PERSON).then(|| PathBuf::from(home)).filter(|home| home.parent().is_some())
    };
    passwd.lines().filter_map(home).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installations_open_and_homes_stay_shut() {
        let home = Path::new("/home/ann");
        let path = "/usr/bin:/home/ann/.cargo/bin:/home/ann/bin:/home/ann/.nvm/versions/node/v20/bin:relative:/bin";
        let found = Toolchain::new(path, Some(home), &[], |_| None);
        let execute: Vec<_> = found.execute.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            execute,
            ["/usr", "/home/ann/.cargo/bin", "/home/ann/bin", "/home/ann/.nvm/versions/node/v20", "/bin"]
        );
    }

    #[test]
    fn our_own_program_is_found_last_and_nothing_beside_it_may_be_run() {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("outlast");
        std::fs::write(&ours, "").unwrap();
        std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(0o755)).unwrap();
        let bare = Toolchain::new("/usr/bin", None, &[], |_| None);
        let found = bare.clone().with_ours(Some(ours.clone()));
        assert_eq!(found.path, format!("/usr/bin:{}", dir.path().display()));
        assert_eq!(found.execute, [PathBuf::from("/usr"), ours.clone()]);
        assert_eq!(found.find("outlast"), Some(ours.clone()));
        assert_eq!(found.clone().with_ours(Some(ours)), found, "once is enough");
        assert_eq!(bare.clone().with_ours(Some(dir.path().join("survive-1f"))), bare, "a test program is none of ours");
        assert_eq!(bare.clone().with_ours(None), bare);
    }

    #[test]
    fn nobodys_home_and_nothing_of_ours_is_opened_around_a_bin() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n";
        let mut shut = homes(passwd);
        assert_eq!(shut, [Path::new("/root"), Path::new("/home/bob")]);
        shut.push("/var/tmp".into());
        let path =
            "/home/bob/bin:/home/bin:/var/tmp/bin:/home/bob/.docker/bin:/home/bob/.volta/bin:/root/go/bin:/usr/sbin";
        let found = Toolchain::new(path, Some(Path::new("/home/ann")), &shut, |_| None);
        let execute: Vec<_> = found.execute.iter().map(|path| path.to_str().unwrap()).collect();
        let expected = [
            "/home/bob/bin",
            "/home/bin",
            "/var/tmp/bin",
            "/home/bob/.docker/bin",
            "/home/bob/.volta",
            "/root/go",
            "/usr/sbin",
        ];
        assert_eq!(execute, expected);
    }
}
