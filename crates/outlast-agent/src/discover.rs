//! Finds the agents' programs on a `PATH` and says how to ask them for their version. Starts nothing.

use std::path::{Path, PathBuf};

use crate::{Error, Kind, kimi, python};

/// An agent found on a `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its kind.
    pub kind: Kind,
    /// The entry on the `PATH`.
    pub entry: PathBuf,
    /// The file to run: links followed, a wrapper script replaced by the binary it would start.
    pub program: PathBuf,
    /// Program and arguments that print the version.
    pub version_argv: Vec<String>,
}

/// Every known agent on this `PATH`, the first entry of each.
pub fn discover(path: &str) -> Vec<Found> {
    Kind::ALL
        .into_iter()
        .filter_map(|kind| {
            let entry = entry_on_path(kind.program()?, path)?;
            let program = real_program(kind, &entry);
            let version_argv = vec![program.to_str()?.to_owned(), "--version".to_owned()];
            Some(Found { kind, entry, program, version_argv })
        })
        .collect()
}

/// The file to run for an agent's entry: links followed, and for Codex from npm the binary behind its launcher.
///
/// The npm launcher of Codex is a Node process that stays alive beside the binary (34 MB more, one more process to end).
pub fn real_program(kind: Kind, entry: &Path) -> PathBuf {
    let real = entry.canonicalize().unwrap_or_else(|_| entry.to_owned());
    if kind == Kind::Codex && real.extension().is_some_and(|extension| extension == "js") {
        return vendored_codex(&real).unwrap_or(real);
    }
    real
}

/// The version in what `--version` printed: its first word that begins with a digit and holds a dot.
///
/// The CLIs print it bare, before their name or after it.
pub fn parse_version(printed: &str) -> Option<String> {
    printed
        .split(|c: char| c.is_whitespace() || c == '(' || c == ')')
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

/// Why a program that was found and says this of its version cannot be started, and what helps; nothing where it can.
pub fn unusable(found: &Found, printed: &str, path: &str) -> Option<(String, String)> {
    if found.kind != Kind::Kimi {
        return None;
    }
    if python::interpreter(&found.program, path).is_none() {
        let error = Error::ProgramNotPython { program: found.program.clone() };
        return Some((error.to_string(), kimi::INSTALL.to_owned()));
    }
    kimi::is_retired(printed).then(|| (kimi::RETIRED.to_owned(), kimi::INSTALL.to_owned()))
}

/// The first executable file of this name on a `PATH`, links followed.
pub(crate) fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    entry_on_path(name, path).and_then(|entry| entry.canonicalize().ok())
}

/// What of the file system a program is made of: the outermost `node_modules` around it, the Python environment it
/// is in, else the file alone.
///
/// Never simply the folder it is in: that may be a person's home, and this is what an agent gets to read.
pub(crate) fn install_root(program: &Path) -> PathBuf {
    let modules =
        program.ancestors().filter(|folder| folder.file_name().is_some_and(|name| name == "node_modules")).last();
    let environment = program.ancestors().nth(2).filter(|folder| folder.join("pyvenv.cfg").is_file());
    modules.or(environment).unwrap_or(program).to_owned()
}

/// The first executable file of this name on a `PATH`, as it stands there.
pub(crate) fn entry_on_path(name: &str, path: &str) -> Option<PathBuf> {
    path.split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(name))
        .find(|file| is_executable(file))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The binary that the npm launcher at `script` (`@openai/codex/bin/codex.js`) would start.
fn vendored_codex(script: &Path) -> Option<PathBuf> {
    let scope = script.ancestors().nth(3)?;
    let mut packages: Vec<PathBuf> = folders(scope);
    packages.extend(
        script
            .ancestors()
            .nth(2)
            .map(|package| package.join("node_modules/@openai"))
            .iter()
            .flat_map(|nested| folders(nested)),
    );
    packages.sort();
    packages
        .iter()
        .flat_map(|package| folders(&package.join("vendor")))
        .map(|target| target.join("bin/codex"))
        .find(|file| is_executable(file))
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = parent.read_dir() else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn executable(file: &Path) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn versions_are_found_wherever_the_cli_prints_them() {
        assert_eq!(parse_version("2.1.197 (Claude Code)\n").as_deref(), Some("2.1.197"));
        assert_eq!(parse_version("codex-cli 0.171.0\n").as_deref(), Some("0.171.0"));
        assert_eq!(parse_version("v1.18.33").as_deref(), Some("1.18.33"));
        assert_eq!(parse_version("command not found"), None);
    }

    #[test]
    fn a_path_is_searched_in_order_links_are_followed_and_wrappers_looked_through() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let modules = root.join("lib/node_modules");
        let binary = modules.join("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
        let launcher = modules.join("@openai/codex/bin/codex.js");
        let claude = modules.join("@anthropic-ai/claude-code/bin/claude.exe");
        [&binary, &launcher, &claude].into_iter().for_each(|file| executable(file));
        let bin = root.join("bin");
        fs::create_dir_all(&bin).unwrap();
        symlink(&launcher, bin.join("codex")).unwrap();
        symlink(&claude, bin.join("claude")).unwrap();
        // Not executable, so no agent.
        fs::create_dir_all(root.join("first")).unwrap();
        fs::write(root.join("first/claude"), "").unwrap();

        let found = discover(&format!("relative:{}:{}", root.join("first").display(), bin.display()));
        let programs: Vec<_> = found.iter().map(|found| (found.kind, found.program.clone())).collect();
        assert_eq!(programs, [(Kind::ClaudeCode, claude.clone()), (Kind::Codex, binary)]);
        assert_eq!(install_root(&claude), modules);
        assert_eq!(install_root(&bin.join("tool")), bin.join("tool"));
        fs::write(root.join("pyvenv.cfg"), "").unwrap();
        assert_eq!(install_root(&bin.join("tool")), root);
    }
}
