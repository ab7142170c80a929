//! One execution of a plan: its tasks, and the indexes that keep a decision cheap.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::alike::Alike;
use crate::budget::Purse;
use crate::class::Remedy;
use crate::ids::{RunId, TaskId};
use crate::mutant::{Bug, planted};
use crate::record::{RunEnd, RunSpec, TaskSpec};
use crate::task::{Phase, Task};
use crate::time::Timestamp;

/// A task's place in the plan: indexes of a run are short and do not change.
pub type Index = u32;

/// A run and everything that is true of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What the plan says of it.
    pub spec: RunSpec,
    /// When it started.
    pub started_at: Timestamp,
    /// Whether it goes on.
    pub mode: Mode,
    /// Its tasks in the plan's order.
    pub tasks: Vec<Task>,
    /// How many results were verified or asked for by a person: the order in which they land.
    pub results: u64,
    /// What it may spend, and what it has spent.
    pub purse: Purse,
    by_id: BTreeMap<TaskId, Index>,
    /// Who needs a task, by its id: a plan may name a task before it lists it.
    dependants: BTreeMap<TaskId, Vec<Index>>,
    /// Tasks that can start. Those that were begun come first: nearly finished work is worth most.
    pub(crate) ready: BTreeSet<(bool, Index)>,
    /// Tasks that start again at a known time.
    pub(crate) waiting: BTreeSet<(Timestamp, Index)>,
    /// Tasks with something in flight.
    pub(crate) active: BTreeSet<Index>,
    /// How many tasks hold a slot.
    pub(crate) busy: u32,
    /// Verified results that are to land and whose needs are on the target, in order.
    pub(crate) landable: BTreeSet<(u64, Index)>,
    /// Tasks that were stopped with their work kept.
    pub(crate) parked: BTreeSet<Index>,
    /// Tasks that wait for the same accounts.
    pub(crate) same_accounts: Alike,
    /// Tasks that may change the same files.
    pub(crate) same_scope: Alike,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Tasks are started as there is room.
    Running,
    /// Nothing is started and living attempts are parked, until a person resumes it.
    Paused,
    /// As paused, and the engine need not stay.
    Stopped,
    /// Nothing is left to do.
    Finished(RunEnd),
}

impl Run {
    /// A run without tasks.
    pub(crate) fn new(id: RunId, spec: RunSpec, started_at: Timestamp) -> Self {
        Self {
            id,
            purse: Purse::new(spec.budget),
            spec,
            started_at,
            mode: Mode::Running,
            tasks: Vec::new(),
            results: 0,
            by_id: BTreeMap::new(),
            dependants: BTreeMap::new(),
            ready: BTreeSet::new(),
            waiting: BTreeSet::new(),
            active: BTreeSet::new(),
            busy: 0,
            landable: BTreeSet::new(),
            parked: BTreeSet::new(),
            same_accounts: Alike::default(),
            same_scope: Alike::default(),
        }
    }

    /// The task of this id.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.index(id).map(|i| &self.tasks[i as usize])
    }

    /// The tasks that something is being done with.
    pub fn active(&self) -> impl Iterator<Item = &Task> {
        self.active.iter().map(|&index| &self.tasks[index as usize])
    }

    /// The place of the task of this id.
    pub(crate) fn index(&self, id: &TaskId) -> Option<Index> {
        self.by_id.get(id).copied()
    }

    /// The tasks that need this one.
    pub(crate) fn dependants(&self, index: Index) -> Vec<Index> {
        self.dependants.get(&self.tasks[index as usize].id).cloned().unwrap_or_default()
    }

    /// Adds a task. An id that is known stays what it was.
    pub(crate) fn add(&mut self, id: TaskId, spec: TaskSpec) {
        if self.by_id.contains_key(&id) {
            return;
        }
        let index = Index::try_from(self.tasks.len()).unwrap_or(Index::MAX);
        for need in spec.needs.iter().collect::<BTreeSet<_>>() {
            self.dependants.entry(need.clone()).or_default().push(index);
        }
        let needs_open = self.needs_open(&spec.needs);
        self.by_id.insert(id.clone(), index);
        self.same_accounts.add(billing(&spec));
        self.same_scope.add(format!("{:?}", spec.writes));
        self.tasks.push(Task::new(id, spec, needs_open));
        self.enter(index);
    }

    /// How many of these tasks, each counted once, have no verified result yet.
    pub(crate) fn needs_open(&self, needs: &[TaskId]) -> u32 {
        let open = |need: &&&TaskId| self.task(need).is_none_or(|task| task.result().is_none());
        let open = needs.iter().collect::<BTreeSet<_>>().iter().filter(open).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// Keeps the index of tasks with the same accounts true for one that has others now.
    pub(crate) fn same_accounts_changed(&mut self, index: Index) {
        self.same_accounts.set(index, billing(&self.tasks[index as usize].spec));
    }

    /// Moves a task to another phase and keeps every index true.
    pub(crate) fn set_phase(&mut self, index: Index, phase: Phase) {
        let was_on_target = self.tasks[index as usize].is_on_target();
        self.leave(index);
        self.tasks[index as usize].phase = phase;
        self.enter(index);
        self.update_landable(index);
        if was_on_target != self.tasks[index as usize].is_on_target() {
            for dependant in self.dependants(index) {
                self.update_landable(dependant);
            }
        }
    }

    /// Keeps the index of what can land true for a task that has changed, or whose needs have.
    fn update_landable(&mut self, index: Index) {
        let Phase::Done(finished) = &self.tasks[index as usize].phase else { return };
        let place = (finished.order, index);
        if self.can_land(index) {
            self.landable.insert(place);
        } else {
            self.landable.remove(&place);
        }
    }

    /// The tasks that wait by themselves for something that is nobody's fault: the end of a limit that their agents reported, a
    /// network or a provider that may be back.
    pub(crate) fn waiting_for_the_world(&self) -> Vec<Index> {
        let is_the_worlds = |task: &Task| {
            let failed = task.last_failure.as_ref();
            task.parked_for.is_some() || failed.is_some_and(|failure| failure.class.remedy() == Remedy::Later)
        };
        let waiting = self.waiting.iter().map(|&(_, index)| index);
        waiting.filter(|&index| is_the_worlds(&self.tasks[index as usize])).collect()
    }

    fn leave(&mut self, index: Index) {
        let task = &self.tasks[index as usize];
        match &task.phase {
            Phase::Ready => {
                self.ready.remove(&(task.attempts == 0, index));
            }
            Phase::Waiting { until } => {
                self.waiting.remove(&(*until, index));
            }
            Phase::Done(finished) => {
                self.landable.remove(&(finished.order, index));
            }
            Phase::Parked => {
                self.parked.remove(&index);
            }
            _ => {}
        }
        self.active.remove(&index);
        self.busy -= u32::from(task.is_busy());
    }

    fn enter(&mut self, index: Index) {
        let task = &self.tasks[index as usize];
        match &task.phase {
            Phase::Ready => {
                self.ready.insert((task.attempts == 0, index));
            }
            Phase::Waiting { until } => {
                self.waiting.insert((*until, index));
            }
            Phase::Parked => {
                self.parked.insert(index);
            }
            Phase::Live(_) | Phase::Verifying { .. } | Phase::Landing { .. } | Phase::Discarding => {
                self.active.insert(index);
            }
            _ => {}
        }
        self.busy += u32::from(task.is_busy());
    }

    /// Whether a landing is under way: one at a time, since each moves the same branch.
    pub(crate) fn is_landing(&self) -> bool {
        self.active.iter().any(|&i| matches!(self.tasks[i as usize].phase, Phase::Landing { .. }))
    }

    /// Whether a result is to land and can.
    pub fn lands_next(&self) -> bool {
        self.next_to_land().is_some()
    }

    /// The next result to land, of those that can.
    pub(crate) fn next_to_land(&self) -> Option<Index> {
        self.landable.first().map(|&(_, index)| index)
    }

    /// Whether a task's result is to land and everything that it needs is on the target.
    pub(crate) fn can_land(&self, index: Index) -> bool {
        let task = &self.tasks[index as usize];
        matches!(&task.phase, Phase::Done(finished) if finished.wanted)
            && task
                .spec
                .needs
                .iter()
                .all(|need| self.task(need).is_none_or(Task::is_on_target) || planted(Bug::LandsBeforeNeeds))
    }

    /// Whether only a change of its budget lets it go on: nothing is in flight, and nothing starts.
    pub fn waits_for_budget(&self) -> bool {
        self.mode == Mode::Running && self.purse.reached.is_some() && self.active.is_empty()
    }

    /// Whether nothing is left that could change without a person.
    pub(crate) fn is_settled(&self) -> bool {
        self.active.is_empty()
            && self.ready.is_empty()
            && self.waiting.is_empty()
            && self.parked.is_empty()
            && self.next_to_land().is_none()
    }
}

/// What tasks have in common that wait for the same accounts.
fn billing(spec: &TaskSpec) -> String {
    format!("{} {:?}", spec.needs_quota, spec.accounts)
}
