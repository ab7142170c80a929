//! Refs of the store that a crash of the machine has left without a byte, with garbage, or not at all: written anew by what the
//! journal says they held. And what is lost that, by the journal, nobody needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outlast_core::record::Verdict;
use outlast_core::run::Run;
use outlast_core::task::{Phase, Task};
use outlast_core::{AttemptId, Core, Fact, Oid, Record, Stream};
use outlast_git::{Needed, Store, attempt_ref, result_ref};
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

/// As [`mend`], for whoever has met with damage: every ref is read, and those that are gone are written anew, too.
/// Whether there was any.
pub(crate) fn mend_all(store: &Store, journal: &Path) -> Result<bool, Error> {
    let Ok(held) = held(journal) else { return Ok(false) };
    let mut found = false;
    // A checkpoint that is the same as the one before it has no ref of its own.
    let named: BTreeSet<Oid> = store.refs()?.into_iter().map(|(_, id)| id).collect();
    let gone = held.iter().filter(|(name, id)| !store.has_ref(name) && !named.contains(id));
    let gone = gone.filter(|(_, id)| store.tree(id).is_ok()).map(|(name, _)| name.clone());
    for name in store.damaged_refs()?.into_iter().chain(gone) {
        store.mend_ref(&name, held.get(&name))?;
        tracing::info!(name, "a ref of the store that was damaged or gone is mended");
        found = true;
    }
    Ok(found)
}

/// The commits that what is not over goes by: where its tasks began, what was kept of them last, and their results.
pub fn needed(core: &Core) -> Needed {
    let tasks = core.runs.values().flat_map(|run| run.tasks.iter().filter(|task| !is_over(run, task)));
    let commits = tasks.flat_map(|task| [task.base.as_ref(), task.checkpoint.as_ref(), task.result()]).flatten();
    let borrowed = core.runs.values().map(|run| run.spec.base.clone()).collect();
    Needed { commits: commits.cloned().collect(), borrowed }
}

/// Tells by its name whether a ref of ours is one of work that is over: of a task that is given up, or of a run whose every
/// task is, or has landed.
pub fn over(core: &Core) -> impl Fn(&str) -> bool + use<> {
    let tasks = core.runs.values().flat_map(|run| run.tasks.iter().map(move |task| (run, task)));
    let over = tasks.filter(|(run, task)| is_over(run, task));
    let folders: BTreeSet<String> =
        over.map(|(run, task)| format!("refs/outlast/{}/{}", run.id, task.id.slug())).collect();
    move |name| name.rsplit_once('/').is_some_and(|(folder, _)| folders.contains(folder))
}

/// Whether nobody goes by what is kept of a task any more: others of its run may go by what one has landed.
fn is_over(run: &Run, task: &Task) -> bool {
    let is_done = |task: &Task| matches!(task.phase, Phase::Landed { .. } | Phase::Discarded);
    matches!(task.phase, Phase::Discarded) || run.tasks.iter().all(is_done)
}

/// Forgets what the store has lost and no run needs that is not over: its work is on the target, or given up.
pub(crate) fn forget_lost(store: &Store, journal: &Path) -> Result<(), Error> {
    if !store.has_lost() || !store.misses_any()? {
        return Ok(());
    }
    let Ok(core) = JournalReader::open(journal).map_err(Error::from).and_then(|reader| replay(&reader)) else {
        return Ok(());
    };
    Ok(store.forget_lost(&needed(&core), &over(&core))?)
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
