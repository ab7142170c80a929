//! The guard for CLIs that run in Python: they are started through their own interpreter in isolated mode.
//!
//! Else modules of the workspace or of the agent's home could take the place of the CLI's own, by `PYTHONPATH` or a user's
//! `site-packages`. Unlike a variable, the mode is not handed on to what the agent starts.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::launch::text;
use crate::{Brief, Error, discover};

/// The beginning of the argument list: the interpreter, isolated, and the CLI's script.
///
/// # Errors
/// [`Error::ProgramNotPython`], [`Error::PathNotText`].
pub(crate) fn argv(brief: &Brief) -> Result<Vec<String>, Error> {
    let missing = || Error::ProgramNotPython { program: brief.program.clone() };
    let interpreter = interpreter(&brief.program, &brief.path).ok_or_else(missing)?;
    Ok(vec![text(&interpreter)?, "-I".to_owned(), text(&brief.program)?])
}

/// What of the file system a CLI in Python is made of: its environment, and the interpreter and the library that this
/// borrows.
pub(crate) fn execute_paths(brief: &Brief) -> Vec<PathBuf> {
    let mut paths = vec![discover::install_root(&brief.program)];
    let real = interpreter(&brief.program, &brief.path).and_then(|python| python.canonicalize().ok());
    if let Some(real) = real.filter(|real| !paths.iter().any(|path| real.starts_with(path)))
        && let (Some(prefix), Some(name)) = (real.ancestors().nth(2), real.file_name())
    {
        let library = prefix.join("lib");
        if library.join(name).join("os.py").is_file() {
            paths.push(library);
        }
        paths.push(real);
    }
    paths
}

/// The interpreter that a script names in its first line, links not followed: it knows its environment by its own path.
pub(crate) fn interpreter(program: &Path, path: &str) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(program).and_then(|file| file.take(4096).read_to_end(&mut head)).ok()?;
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.lines();
    let mut words = lines.next()?.strip_prefix("#!")?.split_whitespace();
    let first = PathBuf::from(words.next()?);
    let named = match (first.file_name()?.to_str()?, words.next()) {
        ("env", Some(name)) if is_python(name) => discover::entry_on_path(name, path)?,
        // A path too long or too odd for a first line: the second one is both a text in Python and a command for a shell.
        ("sh", None) => PathBuf::from(quoted(lines.next()?.strip_prefix("'''exec' ")?)?),
        _ => first,
    };
    let name = named.file_name()?.to_str()?;
    (named.is_absolute() && is_python(name) && named.is_file()).then_some(named)
}

fn is_python(name: &str) -> bool {
    name.starts_with("python")
}

/// The first word of a shell's line, in whatever quotation marks.
fn quoted(line: &str) -> Option<&str> {
    match line.chars().next()? {
        mark @ ('\'' | '"') => line[1..].split_once(mark).map(|(word, _)| word),
        _ => line.split_whitespace().next(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_interpreter_is_the_one_that_the_script_names_however_it_does() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let python = root.join("python3");
        fs::write(&python, "").unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let link = root.join("python");
        symlink("python3", &link).unwrap();
        let script = root.join("kimi");
        let path = root.to_str().unwrap();
        let named = |head: &str| {
            fs::write(&script, head).unwrap();
            interpreter(&script, path)
        };
        assert_eq!(named(&format!("#!{}\nimport re\n", python.display())), Some(python.clone()));
        assert_eq!(named(&format!("#!{} -I\n", link.display())), Some(link), "a link stays one");
        assert_eq!(named("#!/usr/bin/env python3\n"), Some(python.clone()));
        for mark in ["'", "\"", ""] {
            let line = format!("#!/bin/sh\n'''exec' {mark}{}{mark} \"$0\" \"$@\"\n' '''\n", python.display());
            assert_eq!(named(&line), Some(python.clone()), "{line}");
        }
        for other in ["", "#!/bin/sh\nexec pyenv \"$0\"\n", "\u{7f}ELF", "#!/usr/bin/env node\n", "#!/no/python3\n"] {
            assert_eq!(named(other), None, "{other:?}");
        }
    }
}
