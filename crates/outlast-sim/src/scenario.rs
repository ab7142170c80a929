//! What is to be done in a simulated world: runs, tasks, needs, scopes and accounts, drawn from the seed.
//!
//! Scopes are drawn as sets of files first and written as globs second, so that the check of "no two overlapping scopes"
//! does not rest on the code that it checks.

use outlast_core::budget::Allowed;
use outlast_core::record::{RunSpec, TaskSpec};
use outlast_core::{AccountId, AgentName, Oid, RunId, TaskId};

use crate::profile::Profile;
use crate::rng::Rng;

/// Directories of the made-up repository; each has [`FILES`] files.
const DIRECTORIES: u64 = 8;
/// Files in each directory: `DIRECTORIES * FILES` bits fit a [`Scope`].
const FILES: u64 = 4;

/// A set of files, one bit each.
pub(crate) type Scope = u32;

/// Everything that is to be done.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The runs.
    pub(crate) runs: Vec<RunPlan>,
    /// The accounts that tasks share.
    pub(crate) accounts: Vec<AccountId>,
}

/// One run.
#[derive(Debug)]
pub(crate) struct RunPlan {
    /// Its id.
    pub(crate) id: RunId,
    /// What the core is told of it.
    pub(crate) spec: RunSpec,
    /// Its tasks.
    pub(crate) tasks: Vec<TaskPlan>,
}

/// One task.
#[derive(Debug)]
pub(crate) struct TaskPlan {
    /// Its id.
    pub(crate) id: TaskId,
    /// What the core is told of it.
    pub(crate) spec: TaskSpec,
    /// The tasks that it needs, by their place.
    pub(crate) needs: Vec<usize>,
    /// The files that it may change.
    pub(crate) scope: Scope,
    /// Its accounts, by their place.
    pub(crate) accounts: Vec<usize>,
}

/// A task's place: which run, which task of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// Which run.
    pub(crate) run: usize,
    /// Which task of it.
    pub(crate) task: usize,
}

impl Scenario {
    /// Draws a scenario.
    pub(crate) fn draw(rng: &mut Rng, profile: &Profile) -> Self {
        let accounts: Vec<AccountId> = (0..rng.between((1, 3))).map(|i| AccountId::new(format!("a{i}"))).collect();
        let runs = rng.between(profile.runs);
        let tasks = rng.between(profile.tasks);
        let runs = (0..runs)
            .map(|run| {
                let share = tasks / runs + u64::from(run < tasks % runs);
                RunPlan::draw(rng, profile, run, share, &accounts)
            })
            .collect();
        Self { runs, accounts }
    }

    /// Where this task is; nothing where the scenario has none such.
    pub(crate) fn spot(&self, run: &RunId, task: &TaskId) -> Option<Spot> {
        let run = self.run(run)?;
        let task: usize = task.as_str().strip_prefix('t')?.parse().ok()?;
        (task < self.runs[run].tasks.len()).then_some(Spot { run, task })
    }

    /// Which run this is.
    pub(crate) fn run(&self, run: &RunId) -> Option<usize> {
        let run: usize = run.as_str().strip_prefix('r')?.parse().ok()?;
        (run < self.runs.len()).then_some(run)
    }

    /// Which account this is.
    pub(crate) fn account(&self, account: &AccountId) -> Option<usize> {
        account.as_str().strip_prefix('a')?.parse().ok()
    }

    /// The plan of the task at this place.
    pub(crate) fn task(&self, spot: Spot) -> &TaskPlan {
        &self.runs[spot.run].tasks[spot.task]
    }

    /// Every task's place.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot> {
        self.runs.iter().enumerate().flat_map(|(run, plan)| (0..plan.tasks.len()).map(move |task| Spot { run, task }))
    }
}

impl RunPlan {
    fn draw(rng: &mut Rng, profile: &Profile, run: u64, tasks: u64, accounts: &[AccountId]) -> Self {
        let mut spec = RunSpec {
            plan: format!("plan-{run}"),
            base: Oid::new("base"),
            target: format!("outlast/r{run}"),
            concurrency: u32::try_from(rng.between(profile.concurrency)).unwrap_or(1),
            auto_land: rng.chance(600),
            seed: rng.next(),
            budget: Allowed::default(),
            hold_max_ms: None,
        };
        // Of what is drawn already, so that the other runs of a seed stay what they were.
        if spec.seed.is_multiple_of(3) {
            spec.budget.usd_nanos = Some(4_000 + spec.seed % 50_000);
        }
        let tasks = (0..tasks).map(|task| TaskPlan::draw(rng, task, accounts)).collect();
        Self { id: RunId::new(format!("r{run}")), spec, tasks }
    }
}

impl TaskPlan {
    fn draw(rng: &mut Rng, task: u64, accounts: &[AccountId]) -> Self {
        let mut needs: Vec<usize> = (0..rng.pick(&[0, 0, 0, 1, 1, 2]).min(task))
            .map(|_| usize::try_from(rng.below(task)).unwrap_or(0))
            .collect();
        needs.sort_unstable();
        needs.dedup();
        let (writes, scope) = draw_scope(rng);
        let first = rng.index(accounts.len());
        let accounts_wanted: Vec<usize> =
            (0..=rng.index(accounts.len())).map(|i| (first + i) % accounts.len()).collect();
        let spec = TaskSpec {
            needs: needs.iter().map(|need| TaskId::new(format!("t{need}"))).collect(),
            writes,
            agent: AgentName::from("scripted"),
            accounts: accounts_wanted.iter().map(|&i| accounts[i].clone()).collect(),
            retries: u32::try_from(rng.between((0, 3))).unwrap_or(0),
            needs_quota: rng.chance(700),
            // Some tasks are of journals that do not know of it.
            startup_retries: (!task.is_multiple_of(3)).then_some(1),
            empty_retries: (!task.is_multiple_of(3)).then_some(1),
        };
        Self { id: TaskId::new(format!("t{task}")), spec, needs, scope, accounts: accounts_wanted }
    }
}

/// Globs and the set of files that they name.
fn draw_scope(rng: &mut Rng) -> (Vec<String>, Scope) {
    let bit = |directory: u64, file: u64| 1_u32 << (directory * FILES + file);
    let whole = |directory: u64| (0..FILES).fold(0, |set, file| set | bit(directory, file));
    let (directory, file) = (rng.below(DIRECTORIES), rng.below(FILES));
    match rng.below(14) {
        0 | 1 => (Vec::new(), 0),
        2 => (vec![format!("d{directory}/**")], whole(directory)),
        3 => {
            let set = (0..DIRECTORIES).fold(0, |set, directory| set | bit(directory, file));
            (vec![format!("*/f{file}.rs")], set)
        }
        4 => {
            let next = (file + 1) % FILES;
            (vec![format!("d{directory}/{{f{file},f{next}}}.rs")], bit(directory, file) | bit(directory, next))
        }
        5 => {
            let other = (directory + 1) % DIRECTORIES;
            (vec![format!("d{directory}/f{file}.rs"), format!("d{other}/f?.rs")], bit(directory, file) | whole(other))
        }
        _ => (vec![format!("d{directory}/f{file}.rs")], bit(directory, file)),
    }
}
