//! `outlast clean`: lists what can go, and lets it go when asked. What is kept nowhere else stays.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use outlast_api::{Clean as View, CleanItem, Diagnostic, ExitCode, schema};
use outlast_core::task::{Phase, Task};
use outlast_core::{Core, RunId, TaskId};
use outlast_engine::{Kept, Room, checkout};
use outlast_git::{SetAside, quoted, word};

use crate::args::Clean;
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::selection::Journalled;
use crate::text::{self, DIM, styled};
use crate::typed::Given::{Plain, With};
use crate::typed::as_given;

pub(crate) fn perform(given: &Given, clean: &Clean) -> Result<ExitCode, Failure> {
    let repository = given.places.repository()?;
    let home = given.places.home.repository(repository.common_dir());
    let journalled = Journalled::load(home.clone())?;
    if let Some(run) = &clean.run {
        refuse_absent(given, journalled.as_ref(), run)?;
    }
    let Some(journalled) = journalled else {
        say("there is no run of this repository: nothing to clean");
        return Ok(ExitCode::Ok);
    };
    let kept = Kept::open(&home, repository)?;
    if kept.look_through(&journalled.core)? {
        say(
            "our store was damaged: what anybody still has of it is put back, and damaged files are kept beside it (`*.damaged`)",
        );
    }
    let rooms = kept.rooms()?;
    let wanted = |room: &Room| clean.run.as_deref().is_none_or(|run| run == room.run.as_str());
    let mut items: Vec<CleanItem> = Vec::new();
    let mut removable = Vec::new();
    for room in rooms.into_iter().filter(wanted) {
        let stays = stays(&journalled.core, &kept, &room);
        items.push(item(&room, stays.clone()));
        if stays.is_none() {
            removable.push(room);
        }
    }
    let mut asides = Vec::new();
    for aside in
        kept.set_aside()?.into_iter().filter(|aside| clean.run.as_deref().is_none_or(|run| run == aside.run.as_str()))
    {
        let item = aside_item(&journalled.core, &kept, &aside);
        if item.kept.is_none() {
            asides.push(aside);
        }
        items.push(item);
    }
    let homes = homes_left(&journalled.core, &kept, clean.run.as_deref());
    for (run, task, folders) in &homes {
        items.extend(folders.iter().map(|folder| home_item(run, task, folder)));
    }
    let agreed =
        !(removable.is_empty() && asides.is_empty() && homes.is_empty()) && (clean.yes || asked(&items, given.json)?);
    if agreed {
        if let Some(holder) = given.places.home.engine() {
            return Err(outlast_engine::Error::EngineRunning(Some(holder)).into());
        }
        let mut note = |run: &RunId, task: &TaskId, why: String| {
            let of = |item: &&mut CleanItem| item.run == run.as_str() && item.task == task.as_str();
            items.iter_mut().filter(of).for_each(|item| item.kept = Some(why.clone()));
        };
        // One that has come into use since keeps none of the others.
        for room in &removable {
            kept.remove(room).unwrap_or_else(|error| note(&room.run, &room.task, error.to_string()));
        }
        for aside in &asides {
            aside.remove().unwrap_or_else(|error| note(&aside.run, &named(aside), error.to_string()));
        }
        for (run, task, _) in &homes {
            kept.remove_homes(run, task).unwrap_or_else(|error| note(run, task, error.to_string()));
        }
    }
    let view = View { schema: schema("clean"), removed: agreed, items };
    if given.json {
        print_json(&view)?;
    } else {
        show(&view)?;
    }
    Ok(ExitCode::Ok)
}

/// Refuses a run that this repository has not.
fn refuse_absent(given: &Given, here: Option<&Journalled>, run: &str) -> Result<(), Failure> {
    if here.is_some_and(|journalled| journalled.core.run(&RunId::new(run)).is_some()) {
        return Ok(());
    }
    let (other, _) = Journalled::find(&given.places, Some(run))?;
    let what = format!("run `{run}` is of another repository");
    let told = Diagnostic::error("run/elsewhere", ExitCode::NotFound, what);
    let root = other.home.lender().map(|common_dir| quoted(&checkout(&common_dir).display().to_string()));
    let there = root.map(|root| format!("cd {root} && {}", as_given("--run", With(run))));
    Err(there.into_iter().fold(told, Diagnostic::fix).fix("outlast    # lists every run").into())
}

/// What a clean that was killed has left of tasks that are over: their workspaces are gone, their homes are not.
fn homes_left(core: &Core, kept: &Kept, only: Option<&str>) -> Vec<(RunId, TaskId, Vec<PathBuf>)> {
    let runs = core.runs.values().filter(|run| only.is_none_or(|only| only == run.id.as_str()));
    let over = runs.flat_map(|run| run.tasks.iter().filter(|task| is_over(task)).map(|task| (&run.id, &task.id)));
    let left = over.map(|(run, task)| (run.clone(), task.clone(), kept.homes(run, task)));
    left.filter(|(_, _, folders)| !folders.is_empty()).collect()
}

/// Whether nothing more comes of a task: also of one whose result changes nothing that its target does not hold.
fn is_over(task: &Task) -> bool {
    task.is_on_target() || task.phase == Phase::Discarded
}

/// What is set aside, under the name that its folder has.
fn named(aside: &SetAside) -> TaskId {
    TaskId::new(format!("{}~damaged-{}", aside.task, aside.number))
}

/// A damaged workspace that was set aside: nobody goes on with it, and it goes once all of it is kept elsewhere.
fn aside_item(core: &Core, kept: &Kept, aside: &SetAside) -> CleanItem {
    let folders: Vec<&Path> = aside.tree.iter().chain(&aside.record).map(PathBuf::as_path).collect();
    let words: Vec<String> = folders.iter().map(|path| quoted(&path.display().to_string())).collect();
    let by_hand = format!("look into it, then: rm -rf {}", words.join(" "));
    let stays = match core.run(&aside.run) {
        Some(run) => kept.unsaved_aside(aside, &run.spec.base).unwrap_or_else(|error| Some(error.to_string())),
        None => Some("its run is not on record".to_owned()),
    };
    CleanItem {
        kind: "set_aside".to_owned(),
        run: aside.run.to_string(),
        task: named(aside).to_string(),
        path: aside.place().map(|path| path.display().to_string()).unwrap_or_default(),
        bytes: folders.iter().map(|path| outlast_git::size_of(path)).sum(),
        kept: stays.map(|why| format!("{why}; {by_hand}")),
    }
}

fn home_item(run: &RunId, task: &TaskId, folder: &Path) -> CleanItem {
    CleanItem {
        kind: "home".to_owned(),
        run: run.to_string(),
        task: task.to_string(),
        path: folder.display().to_string(),
        bytes: outlast_git::size_of(folder),
        kept: None,
    }
}

/// Why a task's folders stay; nothing where they can go.
fn stays(core: &Core, kept: &Kept, room: &Room) -> Option<String> {
    let found = core.run(&room.run).and_then(|run| run.task(&room.task));
    if let Some(task) = found.filter(|task| !is_over(task)) {
        return Some(format!("the task is {}: {}", task.state(), what_ends_it(task, &room.run)));
    }
    let ignored = core.run(&room.run).zip(found).and_then(|(run, task)| kept.ignored_work(run, task));
    if let Some(what) = ignored {
        return Some(format!("{what}; `outlast diff` names all of it: take it over, or remove it there"));
    }
    // What cannot be looked at stays, and keeps none of the others.
    let looked = kept.keep_commits(room).and_then(|()| kept.unsaved(room));
    looked.unwrap_or_else(|error| Some(error.to_string())).or_else(|| kept.in_use(room))
}

/// The commands after which a task's workspace is not needed any more.
fn what_ends_it(task: &Task, run: &RunId) -> String {
    let id = word(task.id.as_str());
    let discard = format!("`outlast discard --run {run} {id}` gives it up");
    match task.phase {
        Phase::Failed | Phase::Waiting { .. } => format!("`outlast retry --run {run} {id}` goes on with it, {discard}"),
        Phase::Done(_) | Phase::Landing { .. } => format!("`outlast land --run {run} {id}` lands it, {discard}"),
        Phase::Stale | Phase::Blocked { .. } => discard,
        _ => format!("`outlast resume {run}` goes on with it, {discard}"),
    }
}

fn item(room: &Room, kept: Option<String>) -> CleanItem {
    CleanItem {
        kind: "workspace".to_owned(),
        run: room.run.to_string(),
        task: room.task.to_string(),
        path: room.path.display().to_string(),
        bytes: room.bytes,
        kept,
    }
}

fn show(view: &View) -> Result<(), Failure> {
    let mut freed = 0;
    for item in &view.items {
        let note = match &item.kept {
            Some(why) => styled(DIM, format!("stays: {why}")),
            None if view.removed => "removed".to_owned(),
            None => "can go".to_owned(),
        };
        freed += if item.kept.is_none() { item.bytes } else { 0 };
        print(&format!("{:>10}  {}/{}  {note}\n", text::bytes(item.bytes), item.run, item.task))?;
    }
    let verb = match view.removed {
        true => "freed".to_owned(),
        false if freed == 0 => "can be freed".to_owned(),
        false => format!("can be freed: {}", as_given("--yes", Plain)),
    };
    say(&format!("{} {verb}", text::bytes(freed)));
    Ok(())
}

/// Asks at a terminal; elsewhere nothing is removed without `--yes`.
fn asked(items: &[CleanItem], json: bool) -> Result<bool, Failure> {
    if json || !io::stdin().is_terminal() {
        return Ok(false);
    }
    let going = items.iter().filter(|item| item.kept.is_none());
    let mut stderr = io::stderr();
    let failed = |error: io::Error| Failure::from(Diagnostic::error("host/cannot", ExitCode::Host, error.to_string()));
    for item in going {
        writeln!(stderr, "{:>10}  {}", text::bytes(item.bytes), item.path).map_err(failed)?;
    }
    write!(stderr, "Remove these? [y/N] ").and_then(|()| stderr.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
