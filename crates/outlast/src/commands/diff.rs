//! `outlast diff`: what a task changed, from what is kept in the store, with or without an engine.

use std::io::IsTerminal as _;

use outlast_api::{Diff as View, ExitCode, FileChange, schema};
use outlast_core::run::Run;
use outlast_core::task::Task;
use outlast_core::{Oid, TaskId};
use outlast_engine::{Kept, load_plan};

use crate::args::Diff;
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::selection::{Journalled, tasks};
use crate::text::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};

pub(crate) fn perform(given: &Given, diff: &Diff) -> Result<ExitCode, Failure> {
    let (journalled, id) = Journalled::find(&given.places, diff.selection.run.as_deref())?;
    let run = journalled.core.run(&id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let plan = load_plan(&journalled.home, &run.spec.plan)?;
    let kept = Kept::open(&journalled.home, given.places.repository_of(&journalled.home)?)?;
    for id in tasks(run, &diff.selection)? {
        let Some((base, end)) = run.task(&id).and_then(ends) else {
            say(&format!("{id} has changed nothing yet"));
            continue;
        };
        let writes = plan.task(&id).map(|task| task.writes.clone()).unwrap_or_default();
        let view = view(&kept, run, &id, &base, &end, &writes)?;
        if given.json { print_json(&view)? } else { show(&view, diff.stat)? }
    }
    Ok(ExitCode::Ok)
}

/// What is compared: the task's base with the newest tree that is kept, which also holds what does not land.
fn ends(task: &Task) -> Option<(Oid, Oid)> {
    let end = task.checkpoint.as_ref().or(task.result())?;
    Some((task.base.clone()?, end.clone()))
}

fn view(kept: &Kept, run: &Run, id: &TaskId, base: &Oid, end: &Oid, writes: &[String]) -> Result<View, Failure> {
    let files = kept.changes(base, end, writes)?.into_iter().map(|change| FileChange {
        path: change.path,
        kind: change.kind.to_owned(),
        in_scope: change.in_scope,
    });
    Ok(View {
        schema: schema("diff"),
        run: run.id.to_string(),
        task: id.to_string(),
        base: base.to_string(),
        commit: end.to_string(),
        files: files.collect(),
        patch: kept.patch(base, end)?,
    })
}

fn show(view: &View, stat: bool) -> Result<(), Failure> {
    print(&format!("{}  {}\n", styled(BOLD, &view.task), text::count(view.files.len(), "file")))?;
    for file in &view.files {
        let note = if file.in_scope { String::new() } else { styled(YELLOW, "  outside `writes`: does not land") };
        print(&format!("  {:<12} {}{note}\n", file.kind, text::shown(&file.path)))?;
    }
    if stat {
        return Ok(());
    }
    if !std::io::stdout().is_terminal() {
        return print(&view.patch);
    }
    let coloured: String = view.patch.lines().map(|line| format!("{}\n", coloured(&text::shown(line)))).collect();
    print(&coloured)
}

fn coloured(line: &str) -> String {
    match line.as_bytes().first() {
        Some(b'+') => styled(GREEN, line),
        Some(b'-') => styled(RED, line),
        Some(b'@') => styled(DIM, line),
        Some(b'd' | b'i' | b'n' | b'o') => styled(BOLD, line),
        _ => line.to_owned(),
    }
}
