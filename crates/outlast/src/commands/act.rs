//! `outlast pause`, `stop`, `land`, `discard`: asked of the running engine, or done by a short one of our own.

use std::collections::{BTreeMap, BTreeSet};

use outlast_api::{Act, Acted, Dependant, Diagnostic, ExitCode, PutAway, TaskView, schema};
use outlast_core::run::{Mode, Run};
use outlast_core::task::Phase;
use outlast_core::{AttemptId, Oid, RunId, TaskId};
use outlast_engine::{
    Holder, Kept, RepoHome, Rest, TRIED_AGAIN, is_held_up, landed_with, left_undone, nothing_on_record, perform,
    put_away, run_anew, unless_full, until_parked,
};
use outlast_git::{quoted, word};

use crate::args::{RunSelection, TaskSelection};
use crate::commands::status::{now, view};
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::places::Places;
use crate::remote;
use crate::selection::{Journalled, needs_first, tasks};
use crate::session::block_on;
use crate::signals::Signals;
use crate::text::screen::{fixes, short, task_style};
use crate::text::{BOLD, shown, styled};
use crate::troubles::Troubles;

pub(crate) fn pause(given: Given, selection: &RunSelection) -> Result<ExitCode, Failure> {
    halt(given, selection, "paused", |run| Act::Pause { run })
}

pub(crate) fn stop(given: Given, selection: &RunSelection) -> Result<ExitCode, Failure> {
    halt(given, selection, "stopped", |run| Act::Stop { run })
}

fn halt(
    given: Given,
    selection: &RunSelection,
    done: &str,
    wish: impl FnOnce(String) -> Act,
) -> Result<ExitCode, Failure> {
    let (journalled, found) = Journalled::find(&given.places, selection.run.as_deref())?;
    // Who names none means what is at work, also where a newer one is over.
    let id = selection.run.is_none().then(|| journalled.going_on()).flatten().unwrap_or(found);
    let json = given.json;
    let run = journalled.core.run(&id).filter(|run| matches!(run.mode, Mode::Finished(_)));
    if let Some(run) = run {
        // What still lands when a run is over is no part of it that can be stopped: its engine is.
        if let Some(told) = left_undone(run, &journalled.home) {
            let engine = given.places.home.engine_of(&journalled.home);
            let ends =
                |holder: Holder| format!("kill {}    # ends the engine that tries it; nothing is lost", holder.pid);
            return Err(engine.map(ends).into_iter().fold(told, Diagnostic::fix).into());
        }
        let acted = Acted { schema: schema("act"), run: id.to_string(), tasks: Vec::new() };
        let state = outlast_engine::state(&journalled.core, run, now());
        return told(json, &acted, &format!("{id} is over ({state}): nothing of it is at work, and nothing is {done}"));
    }
    // A run that goes on has an engine, but where that was killed, or was left at once.
    let goes_on = journalled.core.run(&id).is_some_and(|run| run.mode == Mode::Running);
    let alone = goes_on && given.places.home.engine().is_none();
    let ended =
        given.places.home.ended_engine().filter(|holder| Some(&holder.repository) == journalled.home.lender().as_ref());
    let home = journalled.home.clone();
    drop(journalled);
    let acted = act(given, &home, &id, wish(id.to_string()))?;
    // An engine that leaves with something undone may be gone before it has said so.
    if let Some(journalled) = Journalled::load(home)?
        && let Some(run) = journalled.core.run(&id)
        && let Some(told) = left_undone(run, &journalled.home)
    {
        return Err(told.into());
    }
    if alone {
        let last = ended.map(|holder| format!(": the last one (process {}) is gone", holder.pid)).unwrap_or_default();
        say(&format!("no engine was at work{last}; what it had left at work is parked now"));
    }
    told(json, &acted, &format!("{id} is {done}; its work is kept. Go on with: outlast resume {id}"))
}

pub(crate) fn land(given: Given, selection: &TaskSelection) -> Result<ExitCode, Failure> {
    let (home, id, tasks) = of_tasks(&given, selection)?;
    let (json, places) = (given.json, given.places.clone());
    let mut acted = act(given, &home, &id, Act::Land { run: id.to_string(), tasks })?;
    name_what_was_there(&places, &home, &id, &mut acted)?;
    let code = told(json, &acted, "")?;
    if !json {
        say_what_helps(&places, &id, &acted)?;
    }
    Ok(code)
}

/// Says of each task whether what is on the target is a commit of ours.
fn name_what_was_there(places: &Places, home: &RepoHome, run: &RunId, acted: &mut Acted) -> Result<(), Failure> {
    let repository = places.repository_of(home)?;
    let journalled = Journalled::load(home.clone())?;
    let known = journalled.as_ref().and_then(|journalled| journalled.core.run(run));
    for task in &mut acted.tasks {
        let Some(commit) = task.landed.as_deref().map(Oid::new) else { continue };
        let id = TaskId::new(&task.id);
        let is_ours = repository.names_task(&commit, run, &id).map_err(outlast_engine::Error::from)?;
        task.landed_with = known.and_then(|run| landed_with(run, &id, &commit)).map(ToString::to_string);
        task.by_hand = is_ours == Some(false) && task.landed_with.is_none();
    }
    Ok(())
}

/// Says what a person can do with what has landed on a branch of the run's own, and about work that did not land, or that has
/// landed and is not on the target any more.
fn say_what_helps(places: &Places, run: &RunId, acted: &Acted) -> Result<(), Failure> {
    let refused: Vec<&str> =
        acted.tasks.iter().filter(|task| task.refused.is_some()).map(|task| task.id.as_str()).collect();
    if acted.tasks.is_empty() {
        return Ok(());
    }
    let (journalled, id) = Journalled::find(places, Some(run.as_str()))?;
    let status = view(places, &journalled, &id, now())?;
    if status.target == format!("outlast/{id}") && acted.tasks.iter().any(|task| task.landed.is_some()) {
        say(&format!("on {0}; to take it over: git merge {0}", status.target));
    }
    let run = journalled.core.run(&id);
    let behind = acted.tasks.iter().filter(|task| task.cause.as_deref() == Some("need_not_landed"));
    for (task, with_needs) in behind.filter_map(|task| Some((&task.id, with_needs(run?, &TaskId::new(&task.id))?))) {
        let names: Vec<String> = with_needs.iter().map(|task| word(task.as_str())).collect();
        say(format!("{task}\n{}", fixes(&[format!("outlast land --run {id} {}", names.join(" "))])).trim_end());
    }
    for task in &status.tasks {
        if refused.contains(&task.id.as_str()) {
            let helps = if task.fix.is_empty() { to_a_result(&id, task) } else { task.fix.clone() };
            if !helps.is_empty() {
                say(format!("{}\n{}", task.id, fixes(&helps)).trim_end());
            }
        } else if task.off_target && acted.tasks.iter().any(|asked| asked.id == task.id) {
            let detail = shown(task.detail.as_deref().unwrap_or_default());
            say(format!("{}: {detail}\n{}", task.id, fixes(&task.fix)).trim_end());
        }
    }
    Ok(())
}

/// What brings a task to a result that came to none, or says why it came to none.
fn to_a_result(run: &RunId, task: &TaskView) -> Vec<String> {
    let word = word(&task.id);
    let why = format!("outlast log --run {run} {word}    # says why");
    match task.state.as_str() {
        "failed" => vec![why, format!("outlast retry --run {run} {word}    # tries it again, with its work as it is")],
        "blocked" => vec![why],
        "pending" | "ready" | "running" | "held" | "parked" | "verifying" => vec![format!("outlast status {run}")],
        _ => Vec::new(),
    }
}

/// A task with all that has to land before it; nothing where something of that has no result to land.
fn with_needs(run: &Run, task: &TaskId) -> Option<Vec<TaskId>> {
    let mut wanted = vec![task.clone()];
    let mut next = 0;
    while let Some(found) = wanted.get(next).and_then(|id| run.task(id)) {
        next += 1;
        for need in found.spec.needs.iter().filter_map(|need| run.task(need)).filter(|need| !need.is_on_target()) {
            need.result()?;
            if !wanted.contains(&need.id) {
                wanted.push(need.id.clone());
            }
        }
    }
    wanted.reverse();
    Some(wanted)
}

pub(crate) fn discard(given: Given, selection: &TaskSelection) -> Result<ExitCode, Failure> {
    let (home, id, tasks) = of_tasks(&given, selection)?;
    let (json, places) = (given.json, given.places.clone());
    let before = without_result(&places, &id)?;
    let mut acted = act(given, &home, &id, Act::Discard { run: id.to_string(), tasks })?;
    name_what_is_kept(&places, &home, &id, &mut acted)?;
    name_dependants(&places, &home, &id, &before, &mut acted)?;
    let code = told(json, &acted, "")?;
    let mut said = BTreeSet::new();
    for dependant in acted.tasks.iter().flat_map(|task| &task.dependants).filter(|task| said.insert(&task.id)) {
        let id = &dependant.id;
        match &dependant.fix {
            None => say(&format!("{id} needs that and is blocked now")),
            Some(fix) => say(&format!("{id} was built on that and is stale now: it lands no more. Do it anew: {fix}")),
        }
    }
    Ok(code)
}

/// Says of each discarded task which others come to no result because of it that were to come to one before.
fn name_dependants(
    places: &Places,
    home: &RepoHome,
    run: &RunId,
    before: &BTreeMap<TaskId, &'static str>,
    acted: &mut Acted,
) -> Result<(), Failure> {
    let mut now = without_result(places, run)?;
    now.retain(|task, _| !before.contains_key(task));
    let (journalled, run) = Journalled::find(places, Some(run.as_str()))?;
    let Some(run) = journalled.core.run(&run) else { return Ok(()) };
    for told in acted.tasks.iter_mut().filter(|task| task.refused.is_none()) {
        let of_this = now.iter().filter(|(task, _)| is_built_on(run, task, &TaskId::new(&told.id)));
        told.dependants = of_this
            .map(|(task, state)| Dependant {
                id: task.to_string(),
                state: (*state).to_owned(),
                fix: (*state == "stale").then(|| run_anew(&journalled.core, home, run, None, &[task])),
            })
            .collect();
    }
    Ok(())
}

/// Whether a task needs another one, by itself or by way of what it needs.
fn is_built_on(run: &Run, task: &TaskId, other: &TaskId) -> bool {
    let mut needs = vec![task];
    let mut next = 0;
    while let Some(found) = needs.get(next).and_then(|id| run.task(id)) {
        next += 1;
        if found.spec.needs.contains(other) {
            return true;
        }
        let more: Vec<&TaskId> = found.spec.needs.iter().filter(|need| !needs.contains(need)).collect();
        needs.extend(more);
    }
    false
}

/// The tasks of a run that come to no result because of another one, with what they are or are about to be.
fn without_result(places: &Places, run: &RunId) -> Result<BTreeMap<TaskId, &'static str>, Failure> {
    let (journalled, run) = Journalled::find(places, Some(run.as_str()))?;
    let tasks = journalled.core.run(&run).map(|run| run.tasks.as_slice()).unwrap_or_default();
    let found = tasks.iter().filter_map(|task| match task.state() {
        "blocked" => Some((task.id.clone(), "blocked")),
        "stale" => Some((task.id.clone(), "stale")),
        "running" | "held" | "verifying" if task.stale => Some((task.id.clone(), "stale")),
        _ => None,
    });
    Ok(found.collect())
}

/// Says of each discarded task where its work is and how it comes back, and why its workspace is still there: what could not
/// be kept elsewhere is never removed.
fn name_what_is_kept(places: &Places, home: &RepoHome, run: &RunId, acted: &mut Acted) -> Result<(), Failure> {
    let kept = Kept::open(home, places.repository_of(home)?)?;
    let (journalled, run) = Journalled::find(places, Some(run.as_str()))?;
    let store = quoted(&home.store().display().to_string());
    let is_empty = |id: &str| {
        let task = journalled.core.run(&run).and_then(|run| run.task(&TaskId::new(id)));
        task.is_some_and(|task| task.is_on_target() && task.state() == "done")
    };
    for told in acted.tasks.iter_mut().filter(|task| task.refused.is_some() && is_empty(&task.id)) {
        let why = "its target holds all of it, so nothing is left to give up: `outlast clean` removes its workspace";
        told.refused = Some(why.to_owned());
    }
    for told in acted.tasks.iter_mut().filter(|task| task.state == "discarded") {
        let id = TaskId::new(&told.id);
        let of = journalled.core.run(&run);
        let ignored = of.and_then(|of| kept.ignored_work(of, of.task(&id)?));
        told.kept = match ignored {
            // It is what `clean` would keep it for, too.
            Some(what) => Some(format!("{}: {what}", home.workspace(&run, &id).display())),
            None => kept.stays(&run, &id)?,
        };
        let number = journalled.core.run(&run).and_then(|run| run.task(&id)).map_or(0, |task| task.attempts);
        let branch = format!("discarded/{run}/{}", id.slug());
        told.lost = match journalled.core.run(&run) {
            Some(of) => of.task(&id).map(|task| kept.lost(of, task)).transpose()?.flatten(),
            None => None,
        };
        told.archive = kept.archive(&AttemptId { run: run.clone(), task: id, number })?;
        told.put_away =
            journalled.core.run(&run).map(|of| put_away_of(home, of, &TaskId::new(&told.id))).unwrap_or_default();
        told.get_back = told.archive.as_ref().map(|archive| format!("git fetch {store} {archive}:refs/heads/{branch}"));
    }
    Ok(())
}

/// What a task's agent had put away.
fn put_away_of(home: &RepoHome, run: &Run, task: &TaskId) -> Vec<PutAway> {
    run.task(task).map(|task| put_away(home, run, task)).unwrap_or_default()
}

fn of_tasks(given: &Given, selection: &TaskSelection) -> Result<(RepoHome, RunId, Vec<String>), Failure> {
    let (journalled, id) = Journalled::find(&given.places, selection.run.as_deref())?;
    let run = journalled.core.run(&id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let chosen = needs_first(run, selection, &tasks(&journalled, run, selection)?)?;
    Ok((journalled.home, id, chosen.into_iter().map(|task| task.to_string()).collect()))
}

pub(crate) fn act(given: Given, home: &RepoHome, run: &RunId, act: Act) -> Result<Acted, Failure> {
    let parks = matches!(act, Act::Pause { .. } | Act::Stop { .. });
    if let Some(holder) = given.places.home.engine() {
        match block_on(ask(&holder, run, &act)) {
            Ok((acted, is_gone)) => {
                // An engine that is there for this run alone ends with it.
                let ends = matches!(act, Act::Stop { .. }) && holder.ends_with.as_deref() == Some(run.as_str());
                if ends || is_gone {
                    given.places.home.until_free()?;
                }
                // One that was killed while it parked has left that to whoever comes next: its word alone keeps nothing.
                if !(parks && (ends || is_gone) && left_alive(home, run, &holder)?) {
                    return Ok(acted);
                }
            }
            Err(failure) if is_held_up(failure.diagnostic()) && parks => {
                // It has been told, and leaves without what it cannot do.
                if holder.ends_with.as_deref() == Some(run.as_str()) {
                    given.places.home.until_free()?;
                }
                return Err(failure);
            }
            Err(failure) if remote::is_leaving(&failure) => {
                given.places.home.until_free()?;
                if parks {
                    left_alive(home, run, &holder)?;
                }
            }
            Err(failure) if remote::is_elsewhere(&failure) => {
                return Err(outlast_engine::Error::EngineRunning(Some(holder)).into());
            }
            Err(failure) => return Err(failure),
        }
    }
    let repository = given.places.repository_of(home)?;
    let session = given.session()?;
    let run = run.clone();
    block_on(async move {
        let engine = session.open(repository, false).await?;
        let mut troubles = Troubles::of(&engine);
        let done = async {
            let acted = perform(engine.handle(), act);
            let acted = match parks {
                true => unless_full(engine.handle(), acted)
                    .await?
                    .ok_or_else(|| nothing_on_record(engine.handle().folder()))?,
                false => acted.await?,
            };
            if parks && let Rest::HeldUp(told) = until_parked(engine.handle(), &run).await? {
                return Err((*told).into());
            }
            Ok::<_, Failure>(acted)
        };
        let acted = tokio::select! {
            acted = done => acted,
            signal = interrupted() => Err(signal?),
            never = troubles.tell_all(engine.handle().folder()) => match never {},
        };
        // Also where it was interrupted: a check that it has begun is ended with it.
        engine.close().await?;
        acted
    })
}

/// Whether an engine that is gone has left attempts of a run that are not parked, which is said: then we do it. What it left
/// because that comes to nothing each time would do so for us, too.
fn left_alive(home: &RepoHome, run: &RunId, holder: &Holder) -> Result<bool, Failure> {
    let journalled = Journalled::load(home.clone())?;
    let is_left = journalled.as_ref().and_then(|journalled| journalled.core.run(run)).is_some_and(|run| {
        let is_alive = run.tasks.iter().any(|task| matches!(task.phase, Phase::Live(_)));
        is_alive && left_undone(run, home).is_none()
    });
    if is_left {
        say(&format!("the engine (process {}) has ended before all was parked: parking it now", holder.pid));
    }
    Ok(is_left)
}

/// Waits for a signal that ends a command, and says what is said then.
async fn interrupted() -> Result<Failure, Failure> {
    let mut signals = Signals::listen().map_err(|error| {
        Failure::from(Diagnostic::error("host/cannot", ExitCode::Host, format!("no signals: {error}")))
    })?;
    let code = signals.next().await;
    let what = "it was interrupted; what was asked for is on record, and the next command that needs an engine goes on";
    Ok(Diagnostic::error("command/interrupted", code, what).fix("outlast status").into())
}

/// Asks the running engine, and waits until what was parked is at rest; whether it has gone meanwhile.
async fn ask(holder: &Holder, run: &RunId, act: &Act) -> Result<(Acted, bool), Failure> {
    let acted = remote::act(holder, act).await?;
    if matches!(act, Act::Pause { .. } | Act::Stop { .. }) {
        match remote::until_settled(holder, run.as_str()).await {
            // It had nothing left to do, or was killed.
            Err(failure) if remote::is_leaving(&failure) => return Ok((acted, true)),
            settled => settled?,
        }
    }
    Ok((acted, false))
}

/// Tells what became of each task; the exit code is that of the worst.
fn told(json: bool, acted: &Acted, what: &str) -> Result<ExitCode, Failure> {
    if json {
        print_json(acted)?;
    } else if !what.is_empty() {
        say(what);
    }
    let mut codes = Vec::new();
    for task in &acted.tasks {
        let good = task.refused.is_none();
        if !json {
            let state = styled(task_style(&task.state), format!("{:<10}", task.state));
            let detail = match (&task.refused, &task.landed, &task.kept) {
                // What has landed is history: nothing here takes it back.
                (Some(why), Some(commit), _) => format!("refused: {why}; `git revert {}` undoes it", short(commit)),
                (Some(why), None, _) => format!("{}: {why}", task.cause.as_deref().unwrap_or("refused")),
                (None, Some(commit), _) if task.by_hand => {
                    format!("its change is there already, by {} (merged by hand): it counts as landed", short(commit))
                }
                (None, Some(commit), _) => match &task.landed_with {
                    Some(other) => format!(
                        "its change is there already, by {}, which landed with `{other}`: it counts as landed",
                        short(commit)
                    ),
                    None => format!("as {}", short(commit)),
                },
                (None, None, Some(why)) => format!("its workspace stays, {why}"),
                (None, None, None) => String::new(),
            };
            print(&format!("{state} {}  {detail}\n", task.id))?;
            if let (Some(archive), Some(command)) = (&task.archive, &task.get_back) {
                print(&format!("             kept in our store as {archive}\n"))?;
                print(&format!("             to get it back: {}\n", styled(BOLD, command)))?;
            }
            if let Some(lost) = &task.lost {
                print(&format!("             {lost}\n"))?;
            }
            for away in &task.put_away {
                let command = styled(BOLD, shown(&away.get_back));
                print(&format!("             what it had put away as `{}`: {command}\n", shown(&away.name)))?;
            }
        }
        codes.push(match task.cause.as_deref() {
            _ if good => ExitCode::Ok,
            Some("empty") => ExitCode::Ok,
            Some(TRIED_AGAIN) => ExitCode::Host,
            Some(_) => ExitCode::Conflict,
            None => ExitCode::TasksFailed,
        });
    }
    if acted.tasks.is_empty() && what.is_empty() && !json {
        say("no task was named by that: nothing to do");
    }
    Ok(ExitCode::worst(codes))
}
