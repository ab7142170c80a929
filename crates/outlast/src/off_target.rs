//! Landed work that is not on the target any more: somebody has reset, rebased or removed the branch since.
//!
//! The journal says what happened, and that it landed stays true. What is on the branch now is asked of the repository, each
//! time that somebody wants to know, and put on no record: a branch that is moved back has everything again. Nothing is done
//! anew by itself (`docs/design/0038-taken-off-the-target.md`).

use std::collections::{BTreeMap, BTreeSet};

use outlast_api::Status;
use outlast_core::run::Run;
use outlast_core::task::Phase;
use outlast_core::{Core, Oid, TaskId};
use outlast_engine::{RepoHome, run_anew};
use outlast_git::{Result, UserRepo, quoted, word};

use crate::places::Places;
use crate::text::screen::short;

/// The cause of a landed task whose commit is not on the target any more.
const CAUSE: &str = "off_target";

/// What has been taken off the target since it landed.
pub(crate) struct Off {
    /// The commits, by task, and whether the repository still holds each.
    commits: BTreeMap<TaskId, (Oid, bool)>,
    /// Whether the branch itself is gone.
    is_gone: bool,
}

impl Off {
    /// Of a run; nothing where the repository cannot be asked.
    pub(crate) fn of(places: &Places, home: &RepoHome, run: &Run) -> Option<Self> {
        let landed: Vec<(&TaskId, &Oid)> = run.tasks.iter().filter_map(landed).collect();
        if landed.is_empty() {
            return None;
        }
        let repository = places.repository_of(home).ok()?;
        let off = Self::find(&repository, run, &landed).ok()?;
        (!off.commits.is_empty()).then_some(off)
    }

    fn find(repository: &UserRepo, run: &Run, landed: &[(&TaskId, &Oid)]) -> Result<Self> {
        let tip = repository.branch_tip(&run.spec.target)?;
        let is_gone = tip.is_none();
        let places: Vec<Oid> = tip.iter().cloned().chain([repository.head()?.commit]).collect();
        let mut lost: BTreeSet<Oid> = landed.iter().map(|(_, commit)| (*commit).clone()).collect();
        for place in &places {
            let asked: Vec<Oid> = lost.iter().cloned().collect();
            lost = repository.not_in_history(place, &asked)?;
        }
        // What a squashed merge, a rebase or an amended commit has taken over is there in another shape.
        for place in &places {
            for taken in repository.taken_over(place, &lost)? {
                lost.remove(&taken);
            }
        }
        let named = match tip {
            Some(_) if !lost.is_empty() => repository.tasks_landed(&run.id, &run.spec.target, &run.spec.base)?,
            _ => BTreeSet::new(),
        };
        let gone = landed.iter().filter(|(task, commit)| lost.contains(*commit) && !named.contains(*task));
        let commits = gone.map(|(task, commit)| ((*task).clone(), ((*commit).clone(), repository.holds(commit))));
        Ok(Self { commits: commits.collect(), is_gone })
    }

    /// Tells of it in the view of a run.
    pub(crate) fn note(&self, status: &mut Status, core: &Core, run: &Run, home: &RepoHome) {
        let target = status.target.clone();
        for task in &mut status.tasks {
            if let Some((commit, is_held)) = self.commits.get(&TaskId::new(&task.id)) {
                task.off_target = true;
                task.cause = Some(CAUSE.to_owned());
                task.detail = Some(self.detail(&target, commit));
                task.fix = self.fixes(run, commit, *is_held, &TaskId::new(&task.id), core, home);
            }
        }
    }

    fn detail(&self, target: &str, commit: &Oid) -> String {
        let commit = short(commit.as_str());
        match self.is_gone {
            true => format!(
                "it landed as {commit}, and the branch `{target}` is gone, with nothing of it in what is checked out"
            ),
            false => format!("it landed as {commit}, and somebody has taken that off `{target}` since"),
        }
    }

    /// The commit back onto the branch, from the repository or from our store; or the work anew, which is paid for again.
    fn fixes(
        &self,
        run: &Run,
        commit: &Oid,
        is_held: bool,
        task: &TaskId,
        core: &Core,
        home: &RepoHome,
    ) -> Vec<String> {
        let (store, slug) = (quoted(&home.store().display().to_string()), task.slug());
        let pick = match is_held {
            true => format!("git cherry-pick {commit}"),
            false => format!("git fetch {store} refs/outlast/{}/{slug}/result && git cherry-pick FETCH_HEAD", run.id),
        };
        let back = if self.is_gone { pick } else { format!("git switch {} && {pick}", word(&run.spec.target)) };
        let anew = run_anew(core, home, run, None, &[task]);
        vec![back, format!("{anew}    # in a run of its own, and paid for again")]
    }
}

fn landed(task: &outlast_core::task::Task) -> Option<(&TaskId, &Oid)> {
    match &task.phase {
        Phase::Landed { commit, .. } => Some((&task.id, commit)),
        _ => None,
    }
}
