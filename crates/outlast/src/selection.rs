//! Finding the run and the tasks that a command is about, in a journal that need not have an engine.

use outlast_api::{Diagnostic, ExitCode};
use outlast_config::nearest;
use outlast_core::glob::Glob;
use outlast_core::run::{Mode, Run};
use outlast_core::task::STATES;
use outlast_core::{Core, RunId, TaskId, Timestamp};
use outlast_engine::{RepoHome, replay};
use outlast_git::{UserRepo, word};
use outlast_journal::JournalReader;

use crate::args::TaskSelection;
use crate::failure::Failure;
use crate::meant::{self, run_of_task};
use crate::places::Places;
use crate::typed::{as_given_for, as_given_with};

/// A repository's state as its journal tells it.
pub(crate) struct Journalled {
    pub(crate) home: RepoHome,
    pub(crate) reader: JournalReader,
    pub(crate) core: Core,
}

impl Journalled {
    /// The time of which it tells: now, where an engine is at work on it. Where none is, nothing has changed since the last
    /// record; what waited then waits still, whatever has become of the limit that it waited for.
    pub(crate) fn told_at(&self, places: &Places, now: Timestamp) -> Result<Timestamp, Failure> {
        if places.home.engine_of(&self.home).is_some() {
            return Ok(now);
        }
        Ok(self.reader.last_at().map_err(outlast_engine::Error::from)?.unwrap_or(now))
    }

    /// Its runs: of two that hold the same task, the one that counts comes first.
    pub(crate) fn newest_first(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.core.runs.values().collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.started_at));
        runs
    }

    /// The newest run that is neither over nor paused nor stopped.
    pub(crate) fn going_on(&self) -> Option<RunId> {
        self.newest_first().into_iter().find(|run| run.mode == Mode::Running).map(|run| run.id.clone())
    }

    /// The newest run that has a task of this name.
    pub(crate) fn run_with(&self, wish: &str) -> Result<Option<&Run>, Failure> {
        let matches = matcher(wish)?;
        let has = |run: &&Run| run.tasks.iter().any(|task| matches(&task.id, task.state()));
        Ok(self.newest_first().into_iter().find(has))
    }

    /// The journal in a folder; nothing where there is none.
    pub(crate) fn load(home: RepoHome) -> Result<Option<Self>, Failure> {
        let reader = match JournalReader::open(home.journal()) {
            Ok(reader) => reader,
            Err(outlast_journal::Error::Missing { .. }) if home.has_lost_its_journal() => {
                return Err(outlast_engine::Error::JournalGone { path: home.journal() }.into());
            }
            Err(outlast_journal::Error::Missing { .. }) => return Ok(None),
            Err(error) => return Err(outlast_engine::Error::from(error).into()),
        };
        let core = replay(&reader)?;
        Ok(Some(Self { home, reader, core }))
    }

    /// Every journal of a home that can be read, and why the first of the others cannot: it keeps nobody from the rest.
    pub(crate) fn load_all(places: &Places) -> Result<(Vec<Self>, Option<Failure>), Failure> {
        let folders = places.home.repositories().map_err(|error| {
            Failure::from(Diagnostic::error(
                "host/cannot",
                ExitCode::Host,
                format!("{}: {error}", places.home.root().display()),
            ))
        })?;
        let (mut found, mut unread) = (Vec::new(), None);
        for folder in folders {
            match Self::load(RepoHome::at(folder)) {
                Ok(journalled) => found.extend(journalled),
                Err(failure) => unread = unread.or(Some(failure)),
            }
        }
        Ok((found, unread))
    }

    /// The run of this name, or the newest. In a repository the newest is that repository's own, whatever runs there are
    /// elsewhere; where there is none around, that of this machine.
    pub(crate) fn find(places: &Places, run: Option<&str>) -> Result<(Self, RunId), Failure> {
        let here = UserRepo::around(&places.cwd).map_err(outlast_engine::Error::from)?;
        if let Some(common_dir) = &here
            && let Some(journalled) = Self::load(places.home.repository(common_dir))?
            && let Some(id) = journalled.pick(run)
        {
            return Ok((journalled, id));
        }
        // One that was moved has its runs where it was.
        if run.is_none() {
            let moved = places.of_a_moved_repository().into_iter().map(Self::load).collect::<Result<Vec<_>, _>>()?;
            let newest =
                moved.into_iter().flatten().filter_map(|journalled| journalled.pick(None).map(|id| (journalled, id)));
            let newest = newest.max_by_key(|(journalled, id)| journalled.core.run(id).map(|run| run.started_at));
            if let Some(newest) = newest {
                return Ok(newest);
            }
        }
        if here.is_some() && run.is_none() {
            return Err(none_here(places.home.repositories().is_ok_and(|folders| !folders.is_empty())));
        }
        let (all, unread) = Self::load_all(places)?;
        let of_task = run.and_then(|name| run_of_task(&all, name)).map(|run| run.id.clone());
        let mut found: Vec<(Self, RunId)> =
            all.into_iter().filter_map(|journalled| journalled.pick(run).map(|id| (journalled, id))).collect();
        found.sort_by_key(|(journalled, id)| journalled.core.run(id).map(|run| run.started_at));
        // What is found nowhere else may be in the one that cannot be read.
        found.pop().ok_or_else(|| unread.unwrap_or_else(|| none(run, of_task.as_ref())))
    }

    fn pick(&self, run: Option<&str>) -> Option<RunId> {
        match run {
            Some(name) => self.core.run(&RunId::new(name)).map(|run| run.id.clone()),
            None => self.core.runs.values().max_by_key(|run| run.started_at).map(|run| run.id.clone()),
        }
    }
}

/// No run was named, and this repository has none.
fn none_here(elsewhere: bool) -> Failure {
    let told = Diagnostic::error("run/none", ExitCode::NotFound, "there is no run of this repository yet");
    let told = told.fix("outlast run");
    if elsewhere { told.fix("outlast    # lists the runs of other repositories").into() } else { told.into() }
}

/// What was named is neither.
pub(crate) fn no_run_or_task(name: &str, other: Option<&RunId>) -> Failure {
    let what = format!("there is no run `{name}`, and the newest run has no such task");
    let told = Diagnostic::error("run/none", ExitCode::NotFound, what);
    let told = match other {
        Some(run) => told.because(format!("run `{run}` has it")).fix(format!("outlast resume {run} {}", word(name))),
        None => told,
    };
    told.fix("outlast    # lists every run").fix("outlast status").into()
}

fn none(run: Option<&str>, of_task: Option<&RunId>) -> Failure {
    let what = run.map_or_else(|| "there is no run yet".to_owned(), |run| format!("there is no run `{run}`"));
    let told = Diagnostic::error("run/none", ExitCode::NotFound, what);
    match (run, of_task) {
        (Some(name), Some(run)) => meant::a_task(told, name, run).into(),
        (Some(_), None) => told.fix("outlast    # lists every run").into(),
        (None, _) => told.fix("outlast run").into(),
    }
}

/// The tasks that a selection names, in the plan's order.
///
/// # Errors
/// `task/none`, with the newest other run that has such a task.
pub(crate) fn tasks(journalled: &Journalled, run: &Run, selection: &TaskSelection) -> Result<Vec<TaskId>, Failure> {
    let of = |run: &RunId, names: &[&str]| as_given_for(run.as_str(), names, &selection.tasks);
    tasks_or(journalled, run, selection, &of)
}

/// The same, where the command for tasks of a run is another than the one that was given.
///
/// # Errors
/// As [`tasks`].
pub(crate) fn tasks_or(
    journalled: &Journalled,
    run: &Run,
    selection: &TaskSelection,
    of: &dyn Fn(&RunId, &[&str]) -> String,
) -> Result<Vec<TaskId>, Failure> {
    if selection.all {
        return Ok(run.tasks.iter().map(|task| task.id.clone()).collect());
    }
    let mut chosen = vec![false; run.tasks.len()];
    for wish in &selection.tasks {
        let matches = matcher(wish)?;
        let mut any = false;
        for (task, chosen) in run.tasks.iter().zip(&mut chosen) {
            if matches(&task.id, task.state()) {
                *chosen = true;
                any = true;
            }
        }
        // A state that no task is in is an answer; a name that no task has is a mistake.
        if !any && !wish.starts_with("state:") {
            return Err(absent(journalled, run, wish, &selection.tasks, of)?.into());
        }
    }
    Ok(run.tasks.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(task, _)| task.id.clone()).collect())
}

/// A task that a run does not have: which other one has it, with the command for what of all that was named is there.
fn absent(
    journalled: &Journalled,
    run: &Run,
    wish: &str,
    wishes: &[String],
    of: &dyn Fn(&RunId, &[&str]) -> String,
) -> Result<Diagnostic, Failure> {
    let what = format!("run `{}` has no task `{wish}`", run.id);
    let mut told = Diagnostic::error("task/none", ExitCode::NotFound, what);
    if let (Some(named), [_]) = (journalled.core.run(&RunId::new(wish)), wishes) {
        return Ok(meant::a_run(told, &named.id, &of(&named.id, &[])));
    }
    if let Some(other) = journalled.run_with(wish)? {
        told = told.because(format!("run `{}` has it", other.id));
        let (mut there, mut only_here) = (Vec::new(), Vec::new());
        for wish in wishes {
            let matches = matcher(wish)?;
            let is_in = |run: &Run| run.tasks.iter().any(|task| matches(&task.id, task.state()));
            match (is_in(other), is_in(run)) {
                (true, _) => there.push(wish.as_str()),
                (false, true) => only_here.push(wish.as_str()),
                (false, false) => {}
            }
        }
        told = told.fix(of(&other.id, &there));
        if !only_here.is_empty() {
            told = told.fix(of(&run.id, &only_here));
        }
    }
    if let Some(near) = nearest(wish, run.tasks.iter().map(|task| task.id.as_str())) {
        told = told.because(format!("the nearest that it has is `{near}`")).fix(as_given_with(wish, near));
    }
    Ok(told.fix(format!("outlast status {}", run.id)))
}

/// These tasks as they were named, what they need before them: a list may be given in any order. Of those that one name
/// stands for, what was verified first comes first.
pub(crate) fn needs_first(run: &Run, selection: &TaskSelection, tasks: &[TaskId]) -> Result<Vec<TaskId>, Failure> {
    let matchers = selection.tasks.iter().map(|wish| matcher(wish)).collect::<Result<Vec<_>, _>>()?;
    let place = |id: &TaskId| {
        let task = run.task(id);
        let named = matchers.iter().position(|matches| task.is_some_and(|task| matches(id, task.state())));
        (named, task.and_then(|task| task.landing_order()).unwrap_or(u64::MAX))
    };
    let mut wanted = tasks.to_vec();
    wanted.sort_by_key(place);
    let mut ordered = Vec::new();
    for task in &wanted {
        with_needs(run, &wanted, task, &mut ordered);
    }
    Ok(ordered)
}

/// A plan is no circle, and so this ends.
fn with_needs(run: &Run, wanted: &[TaskId], task: &TaskId, ordered: &mut Vec<TaskId>) {
    if ordered.contains(task) {
        return;
    }
    let needs = run.task(task).map(|task| task.spec.needs.as_slice()).unwrap_or_default();
    for need in needs.iter().filter(|need| wanted.contains(need)) {
        with_needs(run, wanted, need, ordered);
    }
    ordered.push(task.clone());
}

type Matcher = Box<dyn Fn(&TaskId, &str) -> bool>;

fn matcher(wish: &str) -> Result<Matcher, Failure> {
    if let Some(state) = wish.strip_prefix("state:") {
        if !STATES.contains(&state) {
            let what = format!("no task can be in the state `{state}`");
            let told = Diagnostic::error("task/unknown-state", ExitCode::Usage, what);
            return Err(told.because(format!("the states are {}", STATES.join(", "))).fix("outlast status").into());
        }
        let state = state.to_owned();
        return Ok(Box::new(move |_, found| found == state));
    }
    let name = wish.to_owned();
    // An id may itself hold characters of a glob, so the name as it stands counts too.
    match Glob::parse(wish) {
        Ok(glob) => Ok(Box::new(move |id, _| id.as_str() == name || glob.matches(id.as_str().as_bytes()))),
        Err(_) => Ok(Box::new(move |id, _| id.as_str() == name)),
    }
}
