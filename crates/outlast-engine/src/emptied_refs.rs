//! Refs of the store that a crash of the machine has left without a byte: written anew by what the journal says they held. And
//! what is lost that, by the journal, nobody needs.

use std::collections::BTreeMap;
use std::path::Path;

use outlast_core::record::Verdict;
use outlast_core::run::Run;
use outlast_core::task::Phase;
use outlast_core::{AttemptId, Fact, Oid, Record, Stream};
use outlast_git::{Store, UserRepo, attempt_ref, result_ref};
use outlast_journal::JournalReader;

use crate::error::Error;
use crate::store::{record, replay};

/// Mends what there is. Where the journal cannot be read, all stays as it is: whoever needs it says so.
pub(crate) fn mend(store: &Store, journal: &Path) -> Result<(), Error> {
    let names = store.empty_refs()?;
    if names.is_empty() {
        return Ok(());
    }
    let Ok(held) = held(journal) else { return Ok(()) };
    for name in names {
        store.mend_ref(&name, held.get(&name))?;
        tracing::info!(name, "a ref of the store that held no byte is mended");
    }
    Ok(())
}

/// Forgets what the store has lost and no run needs that is not over: its work is on the target, or given up.
pub(crate) fn forget_lost(store: &Store, user: &UserRepo, journal: &Path) -> Result<(), Error> {
    if !store.has_lost() || !store.misses_any()? {
        return Ok(());
    }
    let Ok(core) = JournalReader::open(journal).map_err(Error::from).and_then(|reader| replay(&reader)) else {
        return Ok(());
    };
    let is_over =
        |run: &&Run| run.tasks.iter().all(|task| matches!(task.phase, Phase::Landed { .. } | Phase::Discarded));
    let over: Vec<String> = core.runs.values().filter(is_over).map(|run| format!("refs/outlast/{}/", run.id)).collect();
    Ok(store.forget_lost(user, &|name| over.iter().any(|folder| name.starts_with(folder)))?)
}

/// What each ref of a task holds.
fn held(journal: &Path) -> Result<BTreeMap<String, Oid>, Error> {
    let mut held = BTreeMap::new();
    JournalReader::open(journal)?.replay(0, |_, entry| {
        let Record { stream, fact, .. } = record(&entry)?;
        let Stream::Task(run, task) = stream else { return Ok::<_, Error>(()) };
        match fact {
            Fact::Checkpointed { number, commit } => {
                held.insert(attempt_ref(&AttemptId { run, task, number }), commit);
            }
            Fact::Verified { verdict: Verdict::Passed { result }, .. } => {
                held.insert(result_ref(&run, &task), result);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(held)
}
