//! The programs that agents and verify commands may run: what the person's own `PATH` names, readable and executable,
//! and nothing else of their home.
//!
//! A home of its own per task means that version managers look for their toolchains in the wrong place; the variables
//! that say where they are point at the person's, which stay read-only.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

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

/// Folders beside a `bin` on the path that hold secrets too: of these only the `bin` itself is opened.
const MIXED: [&str; 2] = [".cargo", ".local"];

impl Toolchain {
    /// What the environment of this process names.
    pub fn of_this_process() -> Self {
        let home = env::var_os("HOME").map(PathBuf::from);
        Self::new(&env::var("PATH").unwrap_or_default(), home.as_deref(), |name| env::var(name).ok())
    }

    /// The program of this name, as it stands on the path.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let programs = env::split_paths(&self.path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
        programs.into_iter().find(|program| {
            let mode = program.metadata().ok().filter(fs::Metadata::is_file).map(|found| found.permissions().mode());
            mode.is_some_and(|mode| mode & 0o111 != 0)
        })
    }

    fn new(path: &str, home: Option<&Path>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut execute = Vec::new();
        let mut add = |path: PathBuf| {
            if path.is_absolute() && !execute.contains(&path) {
                execute.push(path);
            }
        };
        for dir in env::split_paths(path).filter(|dir| dir.is_absolute()) {
            let whole = dir.parent().filter(|_| dir.ends_with("bin") || dir.ends_with("shims"));
            match whole {
                Some(whole) if opens_whole(whole, home) => add(whole.to_owned()),
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

/// Whether the folder around a `bin` may be opened as a whole: an installation may, a home or the root may not.
fn opens_whole(folder: &Path, home: Option<&Path>) -> bool {
    let holds_home = home.is_some_and(|home| home.starts_with(folder));
    let mixed = folder.file_name().is_some_and(|name| MIXED.iter().any(|mixed| name == *mixed));
    folder.parent().is_some() && !holds_home && !mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installations_open_and_homes_stay_shut() {
        let home = Path::new("/home/ann");
        let path = "/usr/bin:/home/ann/.cargo/bin:/home/ann/bin:/home/ann/.nvm/versions/node/v20/bin:relative:/bin";
        let found = Toolchain::new(path, Some(home), |_| None);
        let execute: Vec<_> = found.execute.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            execute,
            ["/usr", "/home/ann/.cargo/bin", "/home/ann/bin", "/home/ann/.nvm/versions/node/v20", "/bin"]
        );
    }
}
