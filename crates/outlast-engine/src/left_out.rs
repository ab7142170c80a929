//! Files that a task's workspace alone holds, since its last checkpoint could not take them: too large, unreadable, no file.
//!
//! They are noted beside the attempt at each checkpoint, so that whoever looks later is told, and not only who was there.

use outlast_api::LeftOut;
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
/// How many are named in a sentence or a command.
const NAMED_MAX: usize = 5;

/// Notes what the checkpoint that was just made did not take.
pub(crate) fn note(home: &RepoHome, id: &AttemptId, task: Option<&Task>, notes: &[Note]) -> Result<(), Error> {
    let files: Vec<LeftOut> = notes
        .iter()
        .filter_map(|note| match note {
            Note::Skipped { path, reason } => {
                let path = path.to_str_lossy().into_owned();
                let in_scope = task.is_none_or(|task| may_write(task, &path));
                Some(LeftOut { path, why: notes::why(reason), in_scope })
            }
            _ => None,
        })
        .collect();
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
    if files.is_empty() || !workspace.is_dir() { Vec::new() } else { files }
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
    let what = "takes it over by hand; `.gitignore` is for what no commit should hold";
    Some(format!("cd {workspace} && cp -i -R --parents -- {} {root}    # {what}", named.join(" ")))
}
