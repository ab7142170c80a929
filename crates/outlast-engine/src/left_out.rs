//! Files that a task's workspace alone holds, since its last checkpoint could not take them (too large, unreadable, no file) or
//! git ignores them although the task was to write them.
//!
//! They are noted beside the attempt at each checkpoint, so that whoever looks later is told, and not only who was there.

use std::path::Path;

use outlast_api::LeftOut;
use outlast_core::plan::Task;
use outlast_core::run::Run;
use outlast_core::{AttemptId, task};
use outlast_git::{ByteSlice as _, Note, quoted};

use crate::error::Error;
use crate::home::{RepoHome, private_dir, read_if_there, write_file};
use crate::ignored::Ignored;
use crate::notes;
use crate::programs::may_write;

pub(crate) mod made;

/// The file in an attempt's folder.
const FILE: &str = "left-out.json";
/// Why git has not taken what it ignores.
const IGNORED: &str = "git ignores it";
/// How many are named in a sentence or a command.
const NAMED_MAX: usize = 5;

/// What is ignored was there before the agent was, in its first attempt's folder.
const BEFORE: &str = "ignored-before.json";

/// Notes what the checkpoint that was just made did not take. At a turn, while the agent waits, not everything is looked at.
pub(crate) fn note(
    home: &RepoHome,
    id: &AttemptId,
    task: Option<&Task>,
    notes: &[Note],
    at_a_turn: bool,
) -> Result<(), Error> {
    if !at_a_turn {
        made::note(home, id, notes)?;
    }
    let skipped = notes.iter().filter_map(|note| match note {
        Note::Skipped { path, reason } => {
            let path = path.to_str_lossy().into_owned();
            let in_scope = task.is_none_or(|task| may_write(task, &path));
            Some(LeftOut { path, why: notes::why(reason), in_scope })
        }
        _ => None,
    });
    let ignored = match task {
        Some(task) => {
            let paths = notes.iter().filter_map(|note| match note {
                Note::Ignored(path) => Some(path.as_bytes()),
                _ => None,
            });
            let now = Ignored::look(task, &home.workspace(&id.run, &id.task), paths);
            since_the_first_agent(home, id, &now)?
        }
        None => Vec::new(),
    };
    let ignored = ignored.into_iter().map(|path| LeftOut { path, why: IGNORED.to_owned(), in_scope: true });
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

/// What has come or changed since the task's first agent began: what `setup` made and `.worktreeinclude` brought is no work of
/// it.
fn since_the_first_agent(home: &RepoHome, id: &AttemptId, now: &Ignored) -> Result<Vec<String>, Error> {
    let before = before_the_first_agent(home, id, BEFORE, now)?;
    Ok(before.map(|before| now.since(&before)).unwrap_or_default())
}

/// What was ignored before the task's first agent began, as this file says; nothing where that is now. The first checkpoint of
/// all is made before that.
fn before_the_first_agent(
    home: &RepoHome,
    id: &AttemptId,
    file: &str,
    now: &Ignored,
) -> Result<Option<Ignored>, Error> {
    let folder = home.attempt(&AttemptId { number: 1, ..id.clone() });
    let place = folder.join(file);
    if let Some(text) = read_if_there(&place)? {
        return Ok(Some(serde_json::from_slice(&text).unwrap_or_default()));
    }
    if id.number > 1 {
        return Ok(Some(Ignored::default()));
    }
    let text = serde_json::to_vec(now).map_err(|error| Error::Internal(error.to_string()))?;
    private_dir(&folder)?;
    write_file(&place, &text)?;
    Ok(None)
}

/// What of a task's work its workspace alone holds; nothing where it is gone.
pub fn left_out(home: &RepoHome, run: &Run, task: &task::Task) -> Vec<LeftOut> {
    if task.attempts == 0 {
        return Vec::new();
    }
    let id = AttemptId { run: run.id.clone(), task: task.id.clone(), number: task.attempts };
    let files = noted(home, &id);
    let workspace = home.workspace(&run.id, &task.id);
    // What somebody has taken away since is not in it any more.
    files.into_iter().filter(|file| is_there(&workspace, &file.path)).collect()
}

/// What the last checkpoint of an attempt has left behind. What cannot be read is told by whoever has to have it.
fn noted(home: &RepoHome, id: &AttemptId) -> Vec<LeftOut> {
    let text = read_if_there(&home.attempt(id).join(FILE)).ok().flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Whether a file is there. One whose name is no text cannot be asked for by what is written of it: then any that reads so.
fn is_there(workspace: &Path, path: &str) -> bool {
    let place = workspace.join(path);
    let is_there = place.symlink_metadata().is_ok();
    if is_there || !path.contains(char::REPLACEMENT_CHARACTER) {
        return is_there;
    }
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return true };
    // A folder that cannot be looked into may hold it.
    std::fs::read_dir(folder).map_or(true, |entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy() == name.to_string_lossy())
    })
}

/// What git ignores of a task's work; nothing that a check for what is kept would not find.
pub(crate) fn ignored_work(home: &RepoHome, run: &Run, task: &task::Task) -> Option<String> {
    let files: Vec<LeftOut> = left_out(home, run, task).into_iter().filter(|file| file.why == IGNORED).collect();
    (!files.is_empty()).then(|| in_words(&files))
}

/// What the last checkpoint of an attempt has left behind of its work because git ignores it, named for people.
pub(crate) fn ignored_of(home: &RepoHome, id: &AttemptId) -> Vec<String> {
    let ignored = noted(home, id).into_iter().filter(|file| file.why == IGNORED);
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
