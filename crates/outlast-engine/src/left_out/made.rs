//! Files that git ignores and a task's agents have made, whatever its `writes` says of them: whoever goes on finds them in the
//! workspace, and need not make them again. People are told of those that the task was to write alone.

use outlast_core::AttemptId;
use outlast_git::{ByteSlice as _, Note};

use super::{before_the_first_agent, is_there};
use crate::error::Error;
use crate::home::{RepoHome, private_dir, read_if_there, write_file};
use crate::ignored::Ignored;

/// The file in an attempt's folder.
const FILE: &str = "ignored.json";
/// What was there before the agent was, in its first attempt's folder.
const BEFORE: &str = "all-ignored-before.json";
/// How many are named.
const NAMED_MAX: usize = 50;

/// Notes what is there of that kind now.
pub(super) fn note(home: &RepoHome, id: &AttemptId, notes: &[Note]) -> Result<(), Error> {
    let paths = notes.iter().filter_map(|note| match note {
        Note::Ignored(path) => Some(path.as_bytes()),
        _ => None,
    });
    let now = Ignored::look_at_all(&home.workspace(&id.run, &id.task), paths);
    let Some(before) = before_the_first_agent(home, id, BEFORE, &now)? else { return Ok(()) };
    let mut made = now.told_since(&before);
    if made.is_empty() && noted(home, id).is_empty() {
        return Ok(());
    }
    made.truncate(NAMED_MAX + 1);
    let text = serde_json::to_vec(&made).map_err(|error| Error::Internal(error.to_string()))?;
    private_dir(&home.attempt(id))?;
    write_file(&home.attempt(id).join(FILE), &text)
}

/// What was noted last, by this attempt or by one before it. What cannot be read is not told.
fn noted(home: &RepoHome, id: &AttemptId) -> Vec<String> {
    let files = (1..=id.number).rev().map(|number| home.attempt(&AttemptId { number, ..id.clone() }).join(FILE));
    let found = files.filter_map(|file| read_if_there(&file).ok().flatten()).next();
    found.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// What whoever goes on is told; nothing where nothing of that kind is in the workspace.
pub(crate) fn told(home: &RepoHome, id: &AttemptId) -> Option<String> {
    let workspace = home.workspace(&id.run, &id.task);
    let made: Vec<String> = noted(home, id).into_iter().filter(|path| is_there(&workspace, path)).collect();
    let more = if made.len() > NAMED_MAX { "\n- and more" } else { "" };
    let named: Vec<String> =
        made.iter().take(NAMED_MAX).map(|path| format!("- {}", path.replace(['\n', '\r'], " "))).collect();
    (!named.is_empty()).then(|| {
        format!(
            "Files that the work has made or changed and that git ignores, so that no diff shows them; they are in the workspace \
             and need not be made again:\n{}{more}",
            named.join("\n")
        )
    })
}
