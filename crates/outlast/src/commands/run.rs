//! `outlast run`: check, approve, start, and stay to the end.

use std::io::IsTerminal as _;

use outlast_api::{Diagnostic, DryRun, ExitCode, schema};
use outlast_config::{Severity, UserConfig, nearest, read_plan};
use outlast_core::glob::Glob;
use outlast_core::plan::{Budget, Concurrency, Plan};
use outlast_core::{AgentName, RunId, TaskId};
use outlast_git::UserRepo;

use crate::approval;
use crate::args::Run;
use crate::base;
use crate::commands::check::edge_view;
use crate::commands::status::{now, view};
use crate::commands::{Given, print, print_json, say};
use crate::detach;
use crate::failure::Failure;
use crate::landed;
use crate::meant::no_plan;
use crate::selection::Journalled;
use crate::session::block_on;
use crate::text::budget::usd_text;
use crate::text::screen::short;
use crate::text::{self, findings, styled};
use crate::typed::Typed;
use crate::unfinished;
use crate::watch::{Stay, Watch};

pub(crate) fn perform(given: Given, run: &Run) -> Result<ExitCode, Failure> {
    let began = began(given, run);
    if let (true, Err(failure)) = (run.detached, &began) {
        detach::failed(failure);
    }
    began
}

fn began(given: Given, run: &Run) -> Result<ExitCode, Failure> {
    let repository = given.places.repository()?;
    let home = given.places.home.repository(repository.common_dir());
    let user = given.places.user_config()?;
    let typed = Typed(run.plan.as_deref());
    let (mut plan, whole, files) = plan_of(&given, &user, &repository, run)?;
    if !run.again {
        unfinished::refuse_moved(&given.places, typed)?;
    }
    let journalled = if run.again { None } else { Journalled::load(home.clone())? };
    // Beside a living engine that engine is named below.
    let is_free = run.dry_run || given.places.home.engine().is_none();
    if is_free {
        unfinished::refuse(&plan, &whole, journalled.as_ref(), typed)?;
    }
    let landed = landed::leave_out(&mut plan, &whole, journalled.as_ref(), &repository, typed)?;
    if is_free {
        unfinished::refuse_unlanded(&plan, &whole, journalled.as_ref(), &repository, typed)?;
    }
    landed::tell_of_begun(&plan, journalled.as_ref());
    if let (Some(journalled), Some(id), true) = (&journalled, &landed, plan.tasks.is_empty()) {
        return nothing_left(&given, journalled, id);
    }
    base::refuse(base::hindrances(&plan, &given, &user, &repository)?)?;
    say_what_agents_miss(&repository, &plan, &files)?;
    if run.dry_run {
        return dry_run(&given, &plan);
    }
    if let Some(holder) = given.places.home.engine() {
        return Err(outlast_engine::Error::EngineRunning(Some(holder)).into());
    }
    approval::require(&home, &plan, &whole, &base::commit(&plan, &repository)?, typed, run.yes)?;
    if run.detach {
        let id = detach::run(&given.places)?;
        return if given.json { show(&given, &id) } else { Ok(ExitCode::Ok) };
    }
    let (json, places) = (given.json, given.places.clone());
    let stay = Stay { no_wait: run.no_wait, json };
    let session = given.session()?;
    let detached = run.detached;
    block_on(async move {
        let mut engine = session.open(repository, true).await?;
        let watch = Watch::new(&engine)?;
        let started = outlast_engine::start(&engine, &plan).await?;
        if detached {
            engine.ends_with(&started.run)?;
            detach::ready(&started.run)?;
        }
        watch.stay_to_the_end(engine, &places, &started.run, stay).await
    })
}

/// Prints a run as JSON.
fn show(given: &Given, run: &RunId) -> Result<ExitCode, Failure> {
    let (journalled, id) = Journalled::find(&given.places, Some(run.as_str()))?;
    print_json(&view(&given.places, &journalled, &id, now())?)?;
    Ok(ExitCode::Ok)
}

/// Everything has landed: the run in which it did is what there is to show.
fn nothing_left(given: &Given, journalled: &Journalled, run: &RunId) -> Result<ExitCode, Failure> {
    if given.json {
        print_json(&view(&given.places, journalled, run, now())?)?;
    }
    say("nothing is left to do");
    Ok(ExitCode::Ok)
}

/// How many paths are named before the rest is summed up.
const NAMED_MAX: usize = 5;

/// Says what of the checkout is in no commit, and so in nobody's workspace. The plan itself need not be in one.
fn say_what_agents_miss(repository: &UserRepo, plan: &Plan, files: &[String]) -> Result<(), Failure> {
    let of_the_plan =
        |path: &str| files.iter().any(|file| file == path || path.ends_with('/') && file.starts_with(path));
    let mut paths = repository.uncommitted().map_err(outlast_engine::Error::from)?;
    paths.retain(|path| !of_the_plan(path));
    if paths.is_empty() {
        return Ok(());
    }
    let tip = base::commit(plan, repository)?;
    let named: Vec<String> = paths.iter().take(NAMED_MAX).map(|path| text::shown(path)).collect();
    let more = match paths.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (what, start) = (named.join(", "), short(tip.as_str()));
    say(&format!("not committed, and so not seen by agents, who start from {start}: {what}{more}"));
    Ok(())
}

/// The plan that was named, as the arguments change it; as it is approved, with all its tasks; and its files.
fn plan_of(
    given: &Given,
    user: &UserConfig,
    repository: &UserRepo,
    run: &Run,
) -> Result<(Plan, Plan, Vec<String>), Failure> {
    let files = given.places.plan_files(repository.root(), run.plan.as_deref());
    let files = files.map_err(|told| no_plan(told, &given.places, user, repository, run.plan.as_deref()))?;
    let checked = read_plan(&files, Some(user));
    let told: Vec<_> = checked.findings.into_iter().filter(|finding| finding.severity != Severity::Hint).collect();
    findings::warn(&told);
    let Some(mut plan) = checked.plan else {
        let errors = told.iter().filter(|finding| finding.is_error()).count();
        return Err(Diagnostic::error(
            "plan/refused",
            ExitCode::Plan,
            format!("the plan has {}", text::count(errors, "error")),
        )
        .fix(format!("mend what is named above; {}", Typed(run.plan.as_deref()).check()))
        .into());
    };
    if let Some(agent) = &run.agent {
        use_agent(&mut plan, agent)?;
    }
    let whole = plan.clone();
    if !run.only.is_empty() {
        keep_only(&mut plan, &run.only, Typed(run.plan.as_deref()))?;
    }
    if let Some(concurrency) = run.concurrency {
        plan.run.concurrency = user.ceiling.over_concurrency(Concurrency::Fixed(concurrency));
    }
    if let Some(usd_micros) = run.budget {
        let wanted = Budget { usd_micros: Some(usd_micros), ..plan.run.budget };
        plan.run.budget = user.ceiling.over_budget(wanted);
        if let Some(most) = plan.run.budget.usd_micros.filter(|most| *most < usd_micros) {
            say(&format!("the budget is {} USD: that is your ceiling", usd_text(most)));
        }
    }
    if plan.tasks.is_empty() {
        let told = Diagnostic::error("plan/empty", ExitCode::Plan, "the plan has no task");
        return Err(told.fix("add a [[task]] to it; `outlast init --print` shows one").into());
    }
    Ok((plan, whole, files.names()))
}

fn use_agent(plan: &mut Plan, agent: &str) -> Result<(), Failure> {
    let name = AgentName::new(agent);
    if !plan.agents.contains_key(&name) {
        let known: Vec<&str> = plan.agents.keys().map(AgentName::as_str).collect();
        let told = Diagnostic::error("plan/unknown-agent", ExitCode::Plan, format!("the plan has no agent `{agent}`"));
        return Err(told.fix(format!("one of: {}", known.join(", "))).into());
    }
    for task in &mut plan.tasks {
        task.agent = name.clone();
    }
    Ok(())
}

/// Keeps the tasks that were named and everything that they need.
fn keep_only(plan: &mut Plan, only: &[String], typed: Typed<'_>) -> Result<(), Failure> {
    let mut wanted: Vec<TaskId> = Vec::new();
    for wish in only {
        let glob = Glob::parse(wish).ok();
        let found =
            plan.tasks.iter().map(|task| &task.id).filter(|id| {
                id.as_str() == wish || glob.as_ref().is_some_and(|glob| glob.matches(id.as_str().as_bytes()))
            });
        let found: Vec<TaskId> = found.cloned().collect();
        if found.is_empty() {
            let told = Diagnostic::error("task/none", ExitCode::NotFound, format!("the plan has no task `{wish}`"));
            let near = nearest(wish, plan.tasks.iter().map(|task| task.id.as_str()));
            let told = near.into_iter().fold(told, |told, near| told.because(format!("did you mean `{near}`?")));
            return Err(told.fix(typed.check()).into());
        }
        wanted.extend(found);
    }
    let mut next = 0;
    while let Some(id) = wanted.get(next).cloned() {
        next += 1;
        let needs = plan.task(&id).map(|task| task.needs.clone()).unwrap_or_default();
        wanted.extend(needs.into_iter().filter(|need| !wanted.contains(need)).collect::<Vec<_>>());
    }
    plan.tasks.retain(|task| wanted.contains(&task.id));
    Ok(())
}

fn dry_run(given: &Given, plan: &Plan) -> Result<ExitCode, Failure> {
    let analysis = outlast_config::analyse(plan);
    if given.json {
        let names = |ids: &[TaskId]| ids.iter().map(TaskId::to_string).collect::<Vec<_>>();
        print_json(&DryRun {
            schema: schema("dry_run"),
            plan: plan.run.name.clone(),
            waves: analysis.waves.iter().map(|wave| names(wave)).collect(),
            critical_path: names(&analysis.critical_path),
            edges: analysis.edges.into_iter().map(edge_view).collect(),
        })?;
        return Ok(ExitCode::Ok);
    }
    for (number, wave) in analysis.waves.iter().enumerate() {
        let names: Vec<&str> = wave.iter().map(TaskId::as_str).collect();
        print(&format!("{} {}\n", styled(text::BOLD, format!("wave {}:", number + 1)), names.join(", ")))?;
    }
    if std::io::stderr().is_terminal() {
        say("nothing was started");
    }
    Ok(ExitCode::Ok)
}
