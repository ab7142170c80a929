//! Files that a task's workspace alone holds, since its last checkpoint could not take them (too large, unreadable, no file) or
//! git ignores them although the task was to write them.
//!
//! They are noted beside the attempt at each checkpoint, so that whoever looks later is told, and not only who was there.

use std::path::Path;

use outlast_api::LeftOut;
use outlast_core::glob::Glob;
use outlast_core::plan::Task;
use outlast_core::run::Run;
use outlast_core::{AttemptId, task};
use outlast_git::{ByteSlice as _, Note, quoted};

use crate::error::Error;
use crate::home::{RepoHome, private_dir, read_if_there, write_file};
use crate::notes;
use crate::programs::may_write;

/// The file in an attempt's folder.
const FILE: &str = "left-out.json";
/// Why git has not taken what it ignores.
const IGNORED: &str = "git ignores it";
/// How many are named in a sentence or a command.
const NAMED_MAX: usize = 5;

/// What is ignored was there before the agent was, in its first attempt's folder.
const BEFORE: &str = "ignored-before.json";

/// Notes what the checkpoint that was just made did not take.
pub(crate) fn note(home: &RepoHome, id: &AttemptId, task: Option<&Task>, notes: &[Note]) -> Result<(), Error> {
    let skipped = notes.iter().filter_map(|note| match note {
        Note::Skipped { path, reason } => {
            let path = path.to_str_lossy().into_owned();
            let in_scope = task.is_none_or(|task| may_write(task, &path));
            Some(LeftOut { path, why: notes::why(reason), in_scope })
        }
        _ => None,
    });
    let before = before(home, id, notes)?;
    let ignored = task.map(|task| declared(task, &home.workspace(&id.run, &id.task), notes)).unwrap_or_default();
    let ignored = ignored.into_iter().filter(|path| !before.contains(path));
    let ignored = ignored.map(|path| LeftOut { path, why: IGNORED.to_owned(), in_scope: true });
    let files: Vec<LeftOut> = skipped.chain(ignored).collect();
    let folder = home.attempt(id);
    let place = folder.join(FILE);
    if files.is_empty() {
        return match std::fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::at(&place, error)),
            _ => Ok(()),
        };
    }
    let text = serde_json::to_vec(&files).map_err(|error| Error::Internal(error.to_string()))?;
    private_dir(&folder)?;
    write_file(&place, &text)
}

/// What git ignored before the task's first agent was there: what `setup` made and `.worktreeinclude` brought is no work of it.
/// The first checkpoint of all is made before that.
fn before(home: &RepoHome, id: &AttemptId, notes: &[Note]) -> Result<Vec<String>, Error> {
    let folder = home.attempt(&AttemptId { number: 1, ..id.clone() });
    let place = folder.join(BEFORE);
    if let Some(text) = read_if_there(&place)? {
        return Ok(serde_json::from_slice(&text).unwrap_or_default());
    }
    if id.number > 1 {
        return Ok(Vec::new());
    }
    let ignored: Vec<String> = ignored(notes).collect();
    let text = serde_json::to_vec(&ignored).map_err(|error| Error::Internal(error.to_string()))?;
    private_dir(&folder)?;
    write_file(&place, &text)?;
    Ok(ignored)
}

fn ignored(notes: &[Note]) -> impl Iterator<Item = String> + '_ {
    notes.iter().filter_map(|note| match note {
        Note::Ignored(path) => Some(path.to_str_lossy().into_owned()),
        _ => None,
    })
}

/// What git ignores of what the task's `writes` names; a folder ends with a slash. What tools keep for themselves counts only
/// where it is named.
fn declared(task: &Task, workspace: &Path, notes: &[Note]) -> Vec<String> {
    let globs: Vec<(&String, Glob)> = task
        .writes
        .iter()
        .filter(|text| !matches!(text.as_str(), "*" | "**" | "**/*"))
        .filter_map(|text| Some((text, Glob::parse(text).ok()?)))
        .collect();
    let is_meant =
        |path: &str| globs.iter().any(|(text, glob)| glob.covers(path.as_bytes()) && !is_a_tools(path, text));
    let holds_any = |folder: &String| {
        let mut left = LOOKED_AT_MAX;
        any_file(workspace, folder.trim_end_matches('/'), &mut left, &is_meant)
    };
    ignored(notes).filter(|path| if path.ends_with('/') { holds_any(path) } else { is_meant(path) }).collect()
}

/// Most files of an ignored folder that are looked at.
const LOOKED_AT_MAX: usize = 2_000;

/// Whether a folder holds a file of which this is so.
fn any_file(root: &Path, folder: &str, left: &mut usize, is_so: &dyn Fn(&str) -> bool) -> bool {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return false };
    for entry in entries.flatten() {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        // A link is not followed.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && any_file(root, &path, left, is_so) || !is_folder && is_so(&path) {
            return true;
        }
    }
    false
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

/// What of a task's work its workspace alone holds; nothing where it is gone.
pub fn left_out(home: &RepoHome, run: &Run, task: &task::Task) -> Vec<LeftOut> {
    if task.attempts == 0 {
        return Vec::new();
    }
    let id = AttemptId { run: run.id.clone(), task: task.id.clone(), number: task.attempts };
    // What cannot be read is told by whoever has to have it.
    let text = read_if_there(&home.attempt(&id).join(FILE)).ok().flatten();
    let files: Vec<LeftOut> = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let workspace = home.workspace(&run.id, &task.id);
    // What somebody has taken away since is not in it any more.
    files.into_iter().filter(|file| workspace.join(&file.path).symlink_metadata().is_ok()).collect()
}

/// What git ignores of a task's work; nothing that a check for what is kept would not find.
pub fn ignored_work(home: &RepoHome, run: &Run, task: &task::Task) -> Option<String> {
    let files: Vec<LeftOut> = left_out(home, run, task).into_iter().filter(|file| file.why == IGNORED).collect();
    (!files.is_empty()).then(|| in_words(&files))
}

/// What the last checkpoint of an attempt has left behind of its work because git ignores it, named for people.
pub(crate) fn ignored_of(home: &RepoHome, id: &AttemptId) -> Vec<String> {
    let text = read_if_there(&home.attempt(id).join(FILE)).ok().flatten();
    let files: Vec<LeftOut> = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let ignored = files.into_iter().filter(|file| file.why == IGNORED);
    ignored.take(NAMED_MAX).map(|file| format!("`{}` ({IGNORED})", file.path)).collect()
}

/// The same in a sentence.
pub(crate) fn in_words(files: &[LeftOut]) -> String {
    let named: Vec<String> =
        files.iter().take(NAMED_MAX).map(|file| format!("`{}` ({})", file.path, file.why)).collect();
    let more = match files.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("only its workspace holds {}{more}: in no checkpoint, and none of it lands", named.join(", "))
}

/// The command that takes such files into the user's checkout by hand.
pub(crate) fn fix(home: &RepoHome, run: &Run, task: &task::Task, files: &[LeftOut]) -> Option<String> {
    let lender = home.lender()?;
    let root = crate::obstacle::checkout(&lender);
    let named: Vec<String> = files.iter().map(|file| quoted(&file.path)).collect();
    let place = |path: &std::path::Path| quoted(&path.display().to_string());
    let (workspace, root) = (place(&home.workspace(&run.id, &task.id)), place(root));
    let what = match files.iter().all(|file| file.why == IGNORED) {
        true => "takes it over by hand; what is to land must not be in `.gitignore`",
        false => "takes it over by hand; `.gitignore` is for what no commit should hold",
    };
    Some(format!("cd {workspace} && cp -i -R --parents -- {} {root}    # {what}", named.join(" ")))
}
