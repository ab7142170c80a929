//! What a plan says of tasks now, and did not when their run began: a run goes by the copy of its plan to its end, and whoever
//! mends the plan and says `retry` has to be told (`docs/design/0040-retry-keeps-the-plan.md`).

use std::collections::{BTreeMap, BTreeSet};

use outlast_api::{Diagnostic, ExitCode};
use outlast_config::load::argument;
use outlast_config::read_plan;
use outlast_core::plan::{Plan, Task};
use outlast_core::run::Run;
use outlast_core::task::Phase;
use outlast_core::{AgentName, Class, Oid, TaskId};
use outlast_engine::{RepoHome, load_plan, program_files, run_anew};
use outlast_git::{UserRepo, word};

use crate::base::commit;
use crate::commands::{Given, say};
use crate::landed::names;
use crate::selection::Journalled;

/// Says what of these tasks has been changed since their run began, and is not taken up by it; nothing where nothing has, or
/// the plan cannot be read as it is now.
pub(crate) fn tell(given: &Given, journalled: &Journalled, run: &Run, tasks: &[TaskId], agent: Option<&str>) {
    let Some((now, changed)) = changed(given, &journalled.home, run, tasks, agent) else { return };
    let Some((_, first)) = changed.first() else { return };
    let first: Vec<String> = first.iter().map(Change::words).collect();
    let ids: Vec<&TaskId> = changed.iter().map(|(task, _)| *task).collect();
    say(&format!(
        "{} goes by its plan as it was when it began; changed since, and not taken up: {} of {}",
        run.id,
        first.join(", "),
        names(&ids)
    ));
    say(&format!(
        "to take it up: {}    # begun anew, in a run of its own",
        run_anew(&journalled.core, &journalled.home, run, Some(&now), &ids)
    ));
}

/// Those of these tasks that failed by what has been changed since, with the command that takes it up: the run goes by what they
/// failed by, and each try of them would be spent as the ones before.
pub(crate) fn failed_by_what_is_mended(
    given: &Given,
    journalled: &Journalled,
    run: &Run,
    tasks: &[TaskId],
) -> Vec<(TaskId, Diagnostic)> {
    let Journalled { home, core, .. } = journalled;
    let Ok(before) = load_plan(home, &run.spec.plan) else { return Vec::new() };
    let Some((now, changed)) = changed(given, home, run, tasks, None) else { return Vec::new() };
    let failed = |task: &TaskId| {
        let found = run.task(task).filter(|task| task.phase == Phase::Failed)?;
        found.last_failure.as_ref().map(|failure| failure.class)
    };
    let refused = changed.into_iter().filter_map(|(task, changes)| {
        let (class, of) = (failed(task)?, before.task(task)?);
        let mended: Vec<String> =
            changes.iter().filter(|change| change.is_where(class, &before, of)).map(Change::words).collect();
        if mended.is_empty() {
            return None;
        }
        let what = format!("`{task}` failed ({class}) by what has been changed since: {}", mended.join(", "));
        let why =
            format!("run `{}` goes by its plan as it was when it began, and would fail by the same again", run.id);
        let told = Diagnostic::error("task/mended-elsewhere", ExitCode::TasksFailed, what).because(why);
        let name = word(task.as_str());
        let anew = run_anew(core, home, run, Some(&now), &[task]);
        let told = told.fix(format!("{anew}    # begun anew, in a run of its own"));
        Some((
            task.clone(),
            told.fix(format!("outlast resume {} {name}    # all the same, by the plan as it was", run.id)),
        ))
    });
    refused.collect()
}

/// Tasks, each with what has been changed of it.
type Changed<'t> = Vec<(&'t TaskId, Vec<Change>)>;

/// The plan as it is now, and what has been changed of each of these tasks of which anything has.
fn changed<'t>(
    given: &Given,
    home: &RepoHome,
    run: &Run,
    tasks: &'t [TaskId],
    agent: Option<&str>,
) -> Option<(Plan, Changed<'t>)> {
    let repository = given.places.repository_of(home).ok()?;
    let before = load_plan(home, &run.spec.plan).ok()?;
    let now = now(given, &repository, &before)?;
    let mut files = Files::new(&repository, run, &now);
    let [old, new] =
        [&before, &now].map(|plan| plan.tasks.iter().map(|task| (&task.id, task)).collect::<BTreeMap<_, _>>());
    let mut of = |task: &TaskId| match (old.get(task), new.get(task)) {
        (Some(old), Some(new)) => changes(run, [&before, &now], [old, new], &mut files, agent),
        _ => Vec::new(),
    };
    let changed = tasks.iter().map(|task| (task, of(task))).filter(|(_, changes)| !changes.is_empty()).collect();
    Some((now, changed))
}

/// What has become of the files that tasks are started from since their run began: each is looked at once, however many tasks
/// name it.
struct Files<'a> {
    repository: &'a UserRepo,
    base: &'a Oid,
    /// Where a run would start from now; none where that cannot be told.
    start: Option<Oid>,
    /// What is changed in the checkout, once somebody asks.
    uncommitted: Option<BTreeSet<String>>,
    seen: BTreeMap<String, Option<bool>>,
}

impl<'a> Files<'a> {
    fn new(repository: &'a UserRepo, run: &'a Run, now: &Plan) -> Self {
        let start = commit(now, repository).ok();
        Self { repository, base: &run.spec.base, start, uncommitted: None, seen: BTreeMap::new() }
    }

    /// Whether a file is another one now, and then whether that is committed.
    fn change(&mut self, file: &str) -> Option<bool> {
        let start = self.start.as_ref()?;
        if let Some(seen) = self.seen.get(file) {
            return *seen;
        }
        let uncommitted = self
            .uncommitted
            .get_or_insert_with(|| self.repository.uncommitted().unwrap_or_default().into_iter().collect());
        let change = if uncommitted.contains(file) {
            Some(false)
        } else {
            self.repository.differs(self.base, start, file).unwrap_or(false).then_some(true)
        };
        self.seen.insert(file.to_owned(), change);
        change
    }
}

/// Something of a task that is another thing now.
enum Change {
    /// A key of its own.
    Key(&'static str),
    /// Its agent, by its name.
    Agent(AgentName),
    /// What prepares each workspace.
    Setup,
    /// A file that its agent or its commands are started from.
    File { path: String, is_committed: bool },
}

impl Change {
    /// For people.
    fn words(&self) -> String {
        match self {
            Self::Key(key) => format!("`{key}`"),
            Self::Agent(name) => format!("agent `{name}`"),
            Self::Setup => "`setup`".to_owned(),
            Self::File { path, is_committed: true } => path.clone(),
            Self::File { path, is_committed: false } => format!("{path} (commit it first)"),
        }
    }

    /// Whether a task fails by this where it fails by that class.
    fn is_where(&self, class: Class, plan: &Plan, task: &Task) -> bool {
        let steps = || task.steps.iter().filter_map(|step| step.command.as_ref());
        let checks = || plan.run.setup.iter().chain(&task.verify).chain(steps());
        let program = || plan.agent(task).into_iter().flat_map(|agent| &agent.command);
        match (class, self) {
            (Class::Verify, Self::Key("verify"))
            | (Class::NoProgram, Self::Key("verify" | "steps") | Self::Setup)
            | (Class::Setup, Self::Setup)
            | (Class::Startup | Class::Crash | Class::GaveUp, Self::Agent(_) | Self::Key("agent"))
            | (Class::Timeout, Self::Key("timeout" | "idle_timeout"))
            | (Class::NoProgress, Self::Key("no_progress"))
            | (Class::Scope, Self::Key("writes")) => true,
            (Class::Verify, Self::File { path, .. }) => task.verify.iter().any(|text| text.contains(path)),
            (Class::Setup, Self::File { path, .. }) => plan.run.setup.iter().any(|text| text.contains(path)),
            (Class::NoProgram, Self::File { path, .. }) => checks().any(|text| text.contains(path)),
            (Class::Startup | Class::Crash | Class::GaveUp, Self::File { path, .. }) => {
                program().any(|text| text.contains(path))
            }
            _ => false,
        }
    }
}

/// The plan as its files are now.
fn now(given: &Given, repository: &UserRepo, before: &Plan) -> Option<Plan> {
    let which = argument(repository.root(), &before.run.name)?;
    let files = given.places.plan_files(repository.root(), which.as_deref()).ok()?;
    read_plan(&files, given.places.user_config().ok().as_ref()).plan
}

/// What of a task is another thing now: keys of its own, its agent, what it is started from.
fn changes(
    run: &Run,
    [before, now]: [&Plan; 2],
    [old, new]: [&Task; 2],
    files: &mut Files<'_>,
    agent: Option<&str>,
) -> Vec<Change> {
    let mut changes: Vec<Change> = keys(old, new).into_iter().map(Change::Key).collect();
    // One that it is given to by name is meant, whoever the plan names.
    let given = agent.map(AgentName::new).or_else(|| run.task(&old.id).map(|task| task.spec.agent.clone()));
    let given = given.unwrap_or_else(|| old.agent.clone());
    if given == old.agent && old.agent != new.agent {
        changes.push(Change::Key("agent"));
    } else if before.agents.get(&given) != now.agents.get(&given) {
        changes.push(Change::Agent(given));
    }
    if before.run.setup != now.run.setup {
        changes.push(Change::Setup);
    }
    for path in program_files(before, old) {
        if let Some(is_committed) = files.change(&path) {
            changes.push(Change::File { path, is_committed });
        }
    }
    changes
}

/// The keys of a task that differ.
fn keys(old: &Task, new: &Task) -> Vec<&'static str> {
    let found = [
        ("goal", old.goal != new.goal),
        ("writes", old.writes != new.writes),
        ("reads", old.reads != new.reads),
        ("needs", old.needs != new.needs),
        ("example", old.example != new.example),
        ("output", old.output != new.output),
        ("verify", old.verify != new.verify),
        ("steps", old.steps != new.steps),
        ("model", old.model != new.model),
        ("timeout", old.timeout != new.timeout),
        ("idle_timeout", old.idle_timeout != new.idle_timeout),
        ("no_progress", old.no_progress != new.no_progress),
        ("retries", old.retries != new.retries),
        ("budget", old.budget != new.budget),
    ];
    found.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
}
