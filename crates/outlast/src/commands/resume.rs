//! `outlast resume`: go on with a run, also after a crash, a reset or a reboot; `outlast retry`: have tasks of it tried
//! again that were given up.

use outlast_api::{Act, Acted, ExitCode};
use outlast_config::{content_hash, read_plan};
use outlast_core::admit::Command;
use outlast_core::plan::Plan;
use outlast_core::record::Assigned;
use outlast_core::run::{Mode, Run};
use outlast_core::task::{Phase, Task};
use outlast_core::{AgentName, RunId, TaskId};
use outlast_engine::{Obstacle, RepoHome, assigned, keep_plan, landed_anew, load_plan, perform as act, refusal};
use outlast_git::word;

use crate::args::{Resume, Retry, TaskSelection};
use crate::base;
use crate::commands::status::{now, view};
use crate::commands::{Given, budget, print_json, say};
use crate::failure::Failure;
use crate::plan_since;
use crate::remote;
use crate::selection::{Journalled, no_run_or_task, tasks, tasks_or};
use crate::session::{accounts, block_on};
use crate::text::screen::short;
use crate::watch::{Stay, Watch};

/// What to go on with.
struct GoingOn {
    /// Where its journal is.
    home: RepoHome,
    run: RunId,
    /// Who these tasks are given to.
    assign: Option<Assigned>,
    /// Tasks that were given up and are tried again first.
    retry: Vec<TaskId>,
    budget: Option<u64>,
    no_wait: bool,
}

pub(crate) fn perform(given: Given, resume: &Resume) -> Result<ExitCode, Failure> {
    // Read once: of a large run, that takes a part of the time in which it is to work again.
    let (journalled, run, mut retry) = which(&given, &resume.what)?;
    if let Some(found) = journalled.core.run(&run) {
        if !retry.is_empty() {
            leave_landed(&journalled.home, found, &mut retry);
            if retry.is_empty() {
                return nothing(&given, &run);
            }
            check(&journalled, found, &retry)?;
        }
        can_go_on(&given, &journalled.home, found)?;
        plan_since::tell(&given, &journalled, found, &goes_on_with(found, &retry), None);
    }
    let home = journalled.home;
    go_on(given, GoingOn { home, run, assign: None, retry, budget: resume.budget, no_wait: resume.no_wait })
}

pub(crate) fn retry(given: Given, retry: &Retry) -> Result<ExitCode, Failure> {
    let (journalled, id) = Journalled::find(&given.places, retry.selection.run.as_deref())?;
    let run = journalled.core.run(&id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let mut wanted = named(&journalled, run, &retry.selection)?;
    if retry.selection.all {
        wanted.retain(|task| run.task(task).is_some_and(|task| matches!(task.state(), "failed" | "blocked")));
    }
    if wanted.is_empty() {
        say(&format!("no such task of {id} was given up: there is nothing to try again"));
        return nothing(&given, &id);
    }
    leave_landed(&journalled.home, run, &mut wanted);
    if wanted.is_empty() {
        return nothing(&given, &id);
    }
    check(&journalled, run, &wanted)?;
    can_go_on(&given, &journalled.home, run)?;
    plan_since::tell(&given, &journalled, run, &wanted, retry.agent.as_deref());
    let left_out = match retry.agent {
        Some(_) => false,
        None => leave_mended(&given, &journalled, run, &mut wanted)?,
    };
    let assign = match &retry.agent {
        Some(agent) => {
            let plan = load_plan(&journalled.home, &run.spec.plan)?;
            refuse_absent(&given, &journalled.home, run, plan.clone(), &wanted, agent)?;
            Some(assigned(&plan, agent, &accounts(&given.places.user_config()?)?)?)
        }
        None => None,
    };
    let wish = GoingOn { home: journalled.home, run: id, assign, retry: wanted, budget: None, no_wait: retry.no_wait };
    let ended = go_on(given, wish)?;
    Ok(if left_out { ExitCode::worst([ended, ExitCode::TasksFailed]) } else { ended })
}

/// Leaves out, of tasks that are to be tried again, those that failed by what has been mended since and is not taken up; an error
/// where nothing is left. Tells whether there was any.
fn leave_mended(given: &Given, journalled: &Journalled, run: &Run, wanted: &mut Vec<TaskId>) -> Result<bool, Failure> {
    let mut mended = plan_since::failed_by_what_is_mended(given, journalled, run, wanted);
    wanted.retain(|task| mended.iter().all(|(other, _)| other != task));
    if wanted.is_empty() && !mended.is_empty() {
        let (_, first) = mended.remove(0);
        return Err(Failure::of_several(first, mended.into_iter().map(|(_, told)| told).collect()));
    }
    for (_, told) in &mended {
        say(&format!("not tried again: {}\n  do:      {}", told.what, told.fix.join("\n      or:  ")));
    }
    Ok(!mended.is_empty())
}

/// What a resumed run works on: these tasks, or else whatever an agent is still to do.
fn goes_on_with(run: &Run, retry: &[TaskId]) -> Vec<TaskId> {
    let is_open =
        |task: &&Task| !matches!(task.state(), "done" | "landed" | "discarded" | "stale" | "failed" | "blocked");
    match retry {
        [] => run.tasks.iter().filter(is_open).map(|task| task.id.clone()).collect(),
        retry => retry.to_vec(),
    }
}

/// Checks, before an engine is asked or opened, that what a run goes on with is there: its repository, our store, and the copy of
/// its plan. One that is damaged is made anew from the checkout's own plan, where that is still the same.
fn can_go_on(given: &Given, home: &RepoHome, run: &Run) -> Result<(), Failure> {
    // Beside an engine as well: it goes on by itself, once what it waits for is back.
    if Obstacle::gone(home).is_some() {
        given.places.repository_of(home)?;
    }
    let Err(damaged) = load_plan(home, &run.spec.plan) else { return Ok(()) };
    let same = || {
        let repository = given.places.repository_of(home).ok()?;
        let files = given.places.plan_files(repository.root(), None).ok()?;
        let plan = read_plan(&files, given.places.user_config().ok().as_ref()).plan?;
        (content_hash(&plan) == run.spec.plan).then_some(plan)
    };
    match same() {
        Some(plan) => {
            keep_plan(home, &plan)?;
            say(&format!(
                "the copy of its plan that {} goes by was damaged, and is made anew: the plan is still the same",
                run.id
            ));
            Ok(())
        }
        None => Err(damaged.into()),
    }
}

/// Refuses to give tasks to an agent whose program is not in the commit that their run started from.
fn refuse_absent(
    given: &Given,
    home: &RepoHome,
    run: &Run,
    mut plan: Plan,
    wanted: &[TaskId],
    agent: &str,
) -> Result<(), Failure> {
    let repository = given.places.repository_of(home)?;
    let agent = AgentName::new(agent);
    plan.tasks.iter_mut().filter(|task| wanted.contains(&task.id)).for_each(|task| task.agent = agent.clone());
    base::refuse_absent(&plan, &agent, given, &repository, &run.spec.base)
}

/// The tasks that a selection names; what others wait for comes before them.
fn named(journalled: &Journalled, run: &Run, selection: &TaskSelection) -> Result<Vec<TaskId>, Failure> {
    Ok(first_what_others_wait_for(run, tasks(journalled, run, selection)?))
}

fn first_what_others_wait_for(run: &Run, mut wanted: Vec<TaskId>) -> Vec<TaskId> {
    wanted.sort_by_key(|task| run.task(task).is_none_or(|task| task.state() != "failed"));
    wanted
}

fn go_on(given: Given, wish: GoingOn) -> Result<ExitCode, Failure> {
    let GoingOn { home, run: id, assign, retry, budget, no_wait } = wish;
    let assign = assign.map(|to| Act::Assign {
        run: id.to_string(),
        tasks: retry.iter().map(ToString::to_string).collect(),
        agent: to.agent.to_string(),
        accounts: to.accounts.iter().map(ToString::to_string).collect(),
        needs_quota: to.needs_quota,
    });
    let retry = (!retry.is_empty())
        .then(|| Act::Retry { run: id.to_string(), tasks: retry.iter().map(ToString::to_string).collect() });
    let resume = Act::Resume { run: id.to_string() };
    let raise = match budget {
        Some(usd) => Some(budget::change(&given.places.user_config()?, &id, Some(usd), None)?),
        None => None,
    };
    // A run that is over goes on with what is tried again in it, and only then can its budget be another.
    let wishes: Vec<Act> = assign.into_iter().chain(retry).chain(raise).chain([resume]).collect();
    if let Some(holder) = given.places.home.engine() {
        let asked = async {
            let mut retried = Vec::new();
            for wish in &wishes {
                let acted = remote::act(&holder, wish).await?;
                if matches!(wish, Act::Assign { .. } | Act::Retry { .. }) {
                    retried.push(acted);
                }
            }
            // Nothing else is to be resumed: whoever says so knows that what it waits for is over.
            remote::act(&holder, &Act::TryNow { run: id.to_string() }).await?;
            Ok(retried)
        };
        match block_on(asked) {
            Ok(retried) => {
                let refused = ExitCode::worst(retried.iter().map(refusals));
                let until = match holder.ends_with.as_deref() {
                    Some(other) if other != id.as_str() => format!(", and is parked again when that ends with {other}"),
                    _ => String::new(),
                };
                let tries = "; what waits for a limit is tried now";
                say(&format!("{id} goes on in the engine that is running (process {}){until}{tries}", holder.pid));
                if given.json {
                    let (journalled, id) = Journalled::find(&given.places, Some(id.as_str()))?;
                    print_json(&view(&given.places, &journalled, &id, now())?)?;
                }
                return Ok(refused);
            }
            // It was about to leave: this is the next engine, as soon as that one is gone.
            Err(failure) if remote::is_leaving(&failure) => given.places.home.until_free()?,
            Err(failure) if remote::is_elsewhere(&failure) => {
                return Err(outlast_engine::Error::EngineRunning(Some(holder)).into());
            }
            Err(failure) => return Err(failure),
        }
    }
    let repository = given.places.repository_of(&home)?;
    let stay = Stay { no_wait, json: given.json };
    let places = given.places.clone();
    let session = given.session()?;
    block_on(async move {
        let engine = session.open(repository, true).await?;
        let watch = Watch::new(&engine)?;
        let mut refused = ExitCode::Ok;
        for wish in wishes {
            let retries = matches!(wish, Act::Assign { .. } | Act::Retry { .. });
            let acted = act(engine.handle(), wish).await?;
            if retries {
                refused = ExitCode::worst([refused, refusals(&acted)]);
            }
        }
        let ended = watch.stay_to_the_end(engine, &places, &id, stay).await?;
        Ok(ExitCode::worst([refused, ended]))
    })
}

/// Leaves out, of tasks that are to be tried again, those that have landed: they are where they were to get to.
fn leave_landed(home: &RepoHome, run: &Run, wanted: &mut Vec<TaskId>) {
    wanted.retain(|id| match run.task(id).map(|task| &task.phase) {
        Some(Phase::Landed { commit, .. }) => {
            let anew = landed_anew(home, run, id);
            let commit = short(commit.as_str());
            say(&format!("{id} has landed as {commit}: there is nothing to try again\n  or:      {anew}"));
            false
        }
        _ => true,
    });
}

/// Ends with nothing done, since nothing is to be done.
fn nothing(given: &Given, run: &RunId) -> Result<ExitCode, Failure> {
    if given.json {
        let (journalled, id) = Journalled::find(&given.places, Some(run.as_str()))?;
        print_json(&view(&given.places, &journalled, &id, now())?)?;
    }
    Ok(ExitCode::Ok)
}

/// Refuses a wish of which nothing can be done, before an engine is opened that would go on with other work.
fn check(journalled: &Journalled, run: &Run, wanted: &[TaskId]) -> Result<(), Failure> {
    let mut core = journalled.core.clone();
    let mut refused = Vec::new();
    for task in wanted {
        match core.admit(now(), Command::Retry { run: run.id.clone(), task: task.clone() }) {
            Ok(records) => records.iter().for_each(|record| core.apply(record)),
            Err(rejection) => refused.push(rejection),
        }
    }
    if refused.len() < wanted.len() {
        return Ok(());
    }
    let Some(last) = refused.pop() else { return Ok(()) };
    for other in &refused {
        say(&format!("not tried again: {other}"));
    }
    Err(refusal(&last, &journalled.core, &journalled.home, run).into())
}

/// Says which tasks are not tried again, and why.
fn refusals(acted: &Acted) -> ExitCode {
    let mut code = ExitCode::Ok;
    for why in acted.tasks.iter().filter_map(|task| task.refused.as_ref()) {
        say(&format!("not tried again: {why}"));
        code = ExitCode::TasksFailed;
    }
    code
}

/// The run that was named, or the newest that is not finished, or else the newest; with the tasks that were named.
fn which(given: &Given, what: &[String]) -> Result<(Journalled, RunId, Vec<TaskId>), Failure> {
    let Some((first, rest)) = what.split_first() else {
        let (journalled, newest) = Journalled::find(&given.places, None)?;
        let open = journalled.core.runs.values().filter(|run| !matches!(run.mode, Mode::Finished(_)));
        let open = open.max_by_key(|run| run.started_at).map(|run| run.id.clone());
        return Ok((journalled, open.unwrap_or(newest), Vec::new()));
    };
    let is_absent = |failure: &Failure| failure.diagnostic().exit == ExitCode::NotFound;
    let (found, names) = match Journalled::find(&given.places, Some(first)) {
        Err(failure) if is_absent(&failure) => match Journalled::find(&given.places, None) {
            Err(failure) if is_absent(&failure) => return Err(no_run_or_task(first, None)),
            newest => (newest?, what),
        },
        named => (named?, rest),
    };
    let (journalled, id) = found;
    let run = journalled.core.run(&id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let selection = TaskSelection { tasks: names.to_vec(), all: false, run: None };
    let of = |run: &RunId, names: &[&str]| {
        let words: Vec<String> = names.iter().map(|name| word(name)).collect();
        format!("outlast resume {run} {}", words.join(" "))
    };
    match tasks_or(&journalled, run, &selection, &of).map(|tasks| first_what_others_wait_for(run, tasks)) {
        Err(failure) if is_absent(&failure) && names.len() == what.len() => {
            Err(no_run_or_task(first, journalled.run_with(first)?.map(|run| &run.id)))
        }
        tasks => {
            let tasks = tasks?;
            Ok((journalled, id, tasks))
        }
    }
}
