//! What git ignores of what a task was to write, file by file: a folder that was there before the agent may hold its work.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use outlast_core::glob::Glob;
use outlast_core::plan::Task;
use serde::{Deserialize, Serialize};

/// Most entries of one ignored folder that are looked at.
const LOOKED_AT_MAX: usize = 20_000;

/// What a file was when it was looked at: size in bytes, and when it was last written, in seconds and nanoseconds.
type Stamp = (u64, i64, i64);

/// The ignored files that a task's `writes` covers, as they are at one moment.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ignored {
    files: BTreeMap<String, Stamp>,
    /// Ignored folders all of whose files are among these.
    whole: BTreeSet<String>,
    /// Folders with more in them than is looked at.
    unread: BTreeSet<String>,
}

impl Ignored {
    /// Looks at what git said it ignores (`paths`; a folder ends with a slash). A scope that names everything declares nothing, and
    /// what tools keep for themselves counts only where it is named.
    pub(crate) fn look<'a>(task: &Task, workspace: &Path, paths: impl Iterator<Item = &'a [u8]>) -> Self {
        let globs: Vec<(&str, Glob)> = task
            .writes
            .iter()
            .filter(|text| !matches!(text.as_str(), "*" | "**" | "**/*"))
            .filter_map(|text| Some((text.as_str(), Glob::parse(text).ok()?)))
            .collect();
        Self::look_for(globs, workspace, paths)
    }

    /// Looks at all that git said it ignores, but for what tools keep for themselves.
    pub(crate) fn look_at_all<'a>(workspace: &Path, paths: impl Iterator<Item = &'a [u8]>) -> Self {
        let all = Glob::parse("**").ok().map(|glob| ("**", glob));
        Self::look_for(all.into_iter().collect(), workspace, paths)
    }

    fn look_for<'a>(globs: Vec<(&str, Glob)>, workspace: &Path, paths: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut look = Look { workspace, globs, found: Self::default(), left: 0, others: false };
        for path in paths {
            match path.strip_suffix(b"/") {
                Some(folder) => {
                    (look.left, look.others) = (LOOKED_AT_MAX, false);
                    let (before, name) = (look.found.files.len(), String::from_utf8_lossy(path).into_owned());
                    if !look.walk(OsStr::from_bytes(folder)) {
                        look.found.unread.insert(name);
                    } else if !look.others && look.found.files.len() > before {
                        look.found.whole.insert(name);
                    }
                }
                None => look.file(OsStr::from_bytes(path)),
            }
        }
        look.found
    }

    /// As [`Ignored::since`], without folders of which it could not be told before either.
    pub(crate) fn told_since(&self, before: &Self) -> Vec<String> {
        let mut names = self.since(before);
        names.retain(|name| !before.unread.contains(name));
        names
    }

    /// What of it is not as it was before: new, or written since. A folder stands for all in it where none was there, or where
    /// that cannot be told.
    pub(crate) fn since(&self, before: &Self) -> Vec<String> {
        let is_new = |folder: &&String| !before.files.keys().any(|path| path.starts_with(folder.as_str()));
        let folders: BTreeSet<&String> = self.whole.iter().filter(is_new).chain(&self.unread).collect();
        let is_in_one = |path: &String| folders.iter().any(|folder| path.starts_with(folder.as_str()));
        let written = self.files.iter().filter(|(path, stamp)| before.files.get(*path) != Some(*stamp));
        let alone = written.map(|(path, _)| path).filter(|path| !is_in_one(path));
        let all: BTreeSet<&String> = alone.chain(folders.iter().copied()).collect();
        all.into_iter().cloned().collect()
    }
}

struct Look<'a> {
    workspace: &'a Path,
    globs: Vec<(&'a str, Glob)>,
    found: Ignored,
    left: usize,
    /// Files that are not meant were met.
    others: bool,
}

impl Look<'_> {
    fn file(&mut self, path: &OsStr) {
        let name = path.to_string_lossy().into_owned();
        let covers = |(text, glob): &(&str, Glob)| glob.covers(path.as_bytes()) && !is_a_tools(&name, text);
        let meta = self.globs.iter().any(covers).then(|| self.workspace.join(path).symlink_metadata().ok()).flatten();
        match meta {
            Some(meta) => {
                self.found.files.insert(name, (meta.len(), meta.mtime(), meta.mtime_nsec()));
            }
            None => self.others = true,
        }
    }

    /// Looks at all files of a folder; whether they were not too many.
    fn walk(&mut self, folder: &OsStr) -> bool {
        let name = folder.to_string_lossy();
        if !self.globs.iter().any(|(text, _)| reaches(text, &name) && !is_a_tools(&name, text)) {
            self.others = true;
            return true;
        }
        let Ok(entries) = std::fs::read_dir(self.workspace.join(folder)) else {
            self.others = true;
            return true;
        };
        for entry in entries.flatten() {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            let path = Path::new(folder).join(entry.file_name());
            // A link is not followed.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.file(path.as_os_str());
            } else if !self.walk(path.as_os_str()) {
                return false;
            }
        }
        true
    }
}

/// Whether a glob may cover anything in a folder: as far as it has no wildcard, one leads to the other.
fn reaches(glob: &str, folder: &str) -> bool {
    let literal = glob.find(['*', '?', '[', '{', '\\']).map_or(glob, |at| &glob[..at]);
    let folder = format!("{folder}/");
    literal.starts_with(&folder) || folder.starts_with(literal)
}

/// Whether a path is what tools keep for themselves, unless the glob names it.
fn is_a_tools(path: &str, glob: &str) -> bool {
    const NAMES: &[&str] = &[
        "node_modules",
        "target",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".tox",
        ".nox",
        ".venv",
        "venv",
        ".gradle",
        ".next",
        ".nuxt",
        ".turbo",
        ".cache",
        ".parcel-cache",
        ".svelte-kit",
        ".nyc_output",
        ".eggs",
        ".DS_Store",
        ".idea",
        ".vscode",
        ".direnv",
        ".terraform",
    ];
    const ENDS: &[&str] = &[".pyc", ".pyo", ".swp", ".egg-info", ".tsbuildinfo", "~"];
    let is_named = |part: &str| glob.split('/').any(|named| named == part);
    path.split('/')
        .filter(|part| NAMES.contains(part) || ENDS.iter().any(|end| part.ends_with(end)))
        .any(|part| !is_named(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(writes: &[&str]) -> Task {
        let mut task = Task::new("t", "do it", "a");
        task.writes = writes.iter().map(|&glob| glob.into()).collect();
        task
    }

    fn look(writes: &[&str], root: &Path, paths: &[&str]) -> Ignored {
        Ignored::look(&task(writes), root, paths.iter().map(|path| path.as_bytes()))
    }

    fn write(root: &Path, path: &str, text: &str) {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), text).unwrap();
    }

    #[test]
    fn e13_work_in_a_folder_that_was_there_before_is_found_and_what_was_there_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in ["dist/old.js", "dist/again.js", "node_modules/a/index.js", "notes.log"] {
            write(root, path, "setup");
        }
        let (writes, paths) = (["dist/**", "**/*.log"], ["dist/", "node_modules/", "notes.log"]);
        let before = look(&writes, root, &paths);
        assert_eq!(look(&writes, root, &paths).since(&before), Vec::<String>::new());
        for path in ["dist/deep/new.js", "dist/again.js", "node_modules/a/npm.log", "other/x.js"] {
            write(root, path, "agents");
        }
        assert_eq!(look(&writes, root, &paths).since(&before), ["dist/again.js", "dist/deep/new.js"]);
        // A folder that is named counts, whoever else keeps it.
        let named = look(&["node_modules/a/*.log"], root, &paths).since(&Ignored::default());
        assert_eq!(named, ["node_modules/a/npm.log"]);
    }

    #[test]
    fn a_folder_with_too_much_in_it_is_told_as_one_where_the_task_may_write_in_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("out")).unwrap();
        (0..=LOOKED_AT_MAX).for_each(|n| write(dir.path(), &format!("out/{n}"), ""));
        let since = |writes: &[&str]| look(writes, dir.path(), &["out/"]).since(&Ignored::default());
        assert!(since(&["out/**"]).contains(&"out/".to_owned()));
        assert_eq!(since(&["src/**"]), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_is_no_text_is_found() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        for path in [&b"out/x\xff.log"[..], b"x\xff.log"] {
            std::fs::write(dir.path().join(OsStr::from_bytes(path)), "").unwrap();
        }
        let paths = [&b"out/"[..], b"x\xff.log"];
        let found = Ignored::look(&task(&["out/*", "*.log"]), dir.path(), paths.into_iter());
        assert_eq!(found.since(&Ignored::default()), ["out/", "x\u{fffd}.log"]);
    }
}
