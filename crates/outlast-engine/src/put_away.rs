//! What an agent has put away where no HEAD leads to: stashes, and commits on a branch or a detached HEAD that it has left.
//!
//! All of it is in the store, with each checkpoint; it is noted beside the attempt, so that a successor without the session
//! knows of it, and so does a person who looks later.

use std::path::PathBuf;

use outlast_api::PutAway;
use outlast_core::run::Run;
use outlast_core::{AttemptId, task};
use outlast_git::{ByteSlice as _, Note, quoted, word};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::home::{RepoHome, private_dir, read_if_there, write_file};

/// The file in an attempt's folder.
const FILE: &str = "put-away.json";
/// How many are named.
const NAMED_MAX: usize = 20;

/// One of them, as it is noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Away {
    name: String,
    commit: String,
}

/// Notes what the checkpoint that was just made has found put away.
pub(crate) fn note(home: &RepoHome, id: &AttemptId, notes: &[Note]) -> Result<(), Error> {
    let now: Vec<Away> = notes
        .iter()
        .filter_map(|note| match note {
            Note::PutAway { name, commit } => {
                Some(Away { name: name.to_str_lossy().into_owned(), commit: commit.to_string() })
            }
            _ => None,
        })
        .take(NAMED_MAX)
        .collect();
    if noted(home, id) == now {
        return Ok(());
    }
    let text = serde_json::to_vec(&now).map_err(|error| Error::Internal(error.to_string()))?;
    private_dir(&home.attempt(id))?;
    write_file(&place(home, id), &text)
}

fn place(home: &RepoHome, id: &AttemptId) -> PathBuf {
    home.attempt(id).join(FILE)
}

/// What was noted last, by this attempt or by one before it. What cannot be read is told by whoever has to have it.
fn noted(home: &RepoHome, id: &AttemptId) -> Vec<Away> {
    let files = (1..=id.number).rev().map(|number| place(home, &AttemptId { number, ..id.clone() }));
    let found = files.filter_map(|file| read_if_there(&file).ok().flatten()).next();
    found.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// What the agents of a task have put away and nobody has taken out again.
pub fn put_away(home: &RepoHome, run: &Run, task: &task::Task) -> Vec<PutAway> {
    let id = AttemptId { run: run.id.clone(), task: task.id.clone(), number: task.attempts };
    let store = quoted(&home.store().display().to_string());
    let of = |Away { name, commit }: Away| {
        let place = name.strip_prefix("stash@{").and_then(|name| name.strip_suffix('}'));
        let branch = match place {
            Some(place) => format!("put-away/{}/{}/stash-{place}", run.id, task.id.slug()),
            None => format!("put-away/{}/{}/{name}", run.id, task.id.slug()),
        };
        let then = match place {
            Some(_) => format!("git stash apply {}", word(&branch)),
            None => format!("git log {}", word(&branch)),
        };
        // By its id: the store has a name of its own for it only once the task is discarded.
        let what = word(&format!("{commit}:refs/heads/{branch}"));
        PutAway { name, get_back: format!("git -c protocol.version=2 fetch {store} {what}    # then: {then}"), commit }
    };
    noted(home, &id).into_iter().map(of).collect()
}

/// The same in a sentence.
pub(crate) fn in_words(away: &[PutAway]) -> String {
    let named: Vec<String> = away.iter().map(|away| format!("`{}`", away.name)).collect();
    format!("its agent has put away work as {}: it is kept, and none of it lands", named.join(", "))
}

/// What whoever goes on is told; nothing where there is nothing of that kind.
pub(crate) fn told(home: &RepoHome, id: &AttemptId) -> Option<String> {
    let line = |away: Away| match away.name.strip_prefix("detached-").filter(|id| away.commit.starts_with(*id)) {
        // Git knows it by its id alone.
        Some(id) => format!("- {id} (a commit that was left on a detached HEAD)"),
        None => format!("- {}", away.name),
    };
    let named: Vec<String> = noted(home, id).into_iter().map(line).collect();
    (!named.is_empty()).then(|| {
        format!(
            "In git there is work that the files do not show, in stashes (`stash@{{0}}`), in commits or on branches that \
             HEAD does not lead to. Look at it with `git show` before you do it again; what belongs to the task has to be in the files \
             when you end:\n{}",
            named.join("\n")
        )
    })
}
