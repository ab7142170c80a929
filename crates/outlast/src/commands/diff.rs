//! `outlast diff`: what a task changed, from what is kept in the store, with or without an engine.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use outlast_api::{Diff as View, ExitCode, FileChange, rfc3339, schema};
use outlast_core::run::Run;
use outlast_core::task::Task;
use outlast_core::{Fact, Oid, RunId, Stream, TaskId, Timestamp};
use outlast_engine::{Kept, left_out, load_plan, put_away, read_record};

use crate::args::Diff;
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::live;
use crate::selection::{Journalled, tasks};
use crate::text::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};

pub(crate) fn perform(given: &Given, diff: &Diff) -> Result<ExitCode, Failure> {
    let (journalled, id) = Journalled::find(&given.places, diff.selection.run.as_deref())?;
    let run = journalled.core.run(&id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let plan = load_plan(&journalled.home, &run.spec.plan)?;
    let kept = Kept::open(&journalled.home, given.places.repository_of(&journalled.home)?)?;
    let wanted = tasks(&journalled, run, &diff.selection)?;
    let times = kept_at(&journalled, &id)?;
    for id in &wanted {
        let Some(task) = run.task(id) else { continue };
        let (base, end) = ends(run, task);
        let writes = plan.task(id).map(|task| task.writes.clone()).unwrap_or_default();
        let mut view = view(&kept, run, task, &base, &end, &writes)?;
        let kept_at = times.get(&(id.clone(), end)).copied();
        view.kept_at = kept_at.map(rfc3339);
        let workspace = journalled.home.workspace(&run.id, id);
        view.workspace = workspace.is_dir().then(|| workspace.display().to_string());
        view.left_out = left_out(&journalled.home, run, task);
        view.put_away = put_away(&journalled.home, run, task);
        if given.json {
            print_json(&view)?;
        } else if view.files.is_empty() && view.left_out.is_empty() && view.put_away.is_empty() && !task.is_busy() {
            say(&format!("{id} has changed nothing yet"));
        } else {
            show(&view, diff.stat)?;
            say_since(task, &view, kept_at);
        }
    }
    Ok(ExitCode::Ok)
}

/// When each tree of the run's tasks was kept.
fn kept_at(journalled: &Journalled, run: &RunId) -> Result<BTreeMap<(TaskId, Oid), Timestamp>, Failure> {
    let mut times = BTreeMap::new();
    journalled.reader.replay(0, |_, entry| {
        let record = read_record(&entry)?;
        if let (Stream::Task(of, task), Fact::Checkpointed { commit, .. }) = (record.stream, record.fact)
            && of == *run
        {
            times.insert((task, commit), record.at);
        }
        Ok::<_, outlast_engine::Error>(())
    })?;
    Ok(times)
}

/// Says, of a task that is at work, that this is not all, and where the rest is.
fn say_since(task: &Task, view: &View, kept_at: Option<Timestamp>) {
    if !task.is_busy() {
        return;
    }
    let when = kept_at.map_or_else(String::new, |at| format!(", of {}", live::clock(at)));
    let rest = view.workspace.as_deref().unwrap_or("its workspace");
    say(&format!("{} is at work: this is its last checkpoint{when}; what it has changed since is in {rest}", task.id));
}

/// What is compared: the task's base with the newest tree that is kept, which also holds what does not land. Of a task that
/// has not begun, nothing is kept but what it starts from.
fn ends(run: &Run, task: &Task) -> (Oid, Oid) {
    let base = task.base.clone().unwrap_or_else(|| run.spec.base.clone());
    let end = task.checkpoint.as_ref().or(task.result()).unwrap_or(&base).clone();
    (base, end)
}

fn view(kept: &Kept, run: &Run, task: &Task, base: &Oid, end: &Oid, writes: &[String]) -> Result<View, Failure> {
    let files = kept.changes(base, end, writes)?.into_iter().map(|change| FileChange {
        path: change.path,
        kind: change.kind.to_owned(),
        in_scope: change.in_scope,
        in_worktree: change.in_worktree,
        added: change.lines.map(|(added, _)| added),
        removed: change.lines.map(|(_, removed)| removed),
    });
    Ok(View {
        schema: schema("diff"),
        run: run.id.to_string(),
        task: task.id.to_string(),
        state: task.state().to_owned(),
        kept_at: None,
        workspace: None,
        base: base.to_string(),
        commit: end.to_string(),
        files: files.collect(),
        left_out: Vec::new(),
        put_away: Vec::new(),
        patch: kept.patch(base, end)?,
    })
}

fn show(view: &View, stat: bool) -> Result<(), Failure> {
    print(&format!("{}  {}\n", styled(BOLD, &view.task), text::count(view.files.len(), "file")))?;
    for file in &view.files {
        let note = match (file.in_scope, file.in_worktree) {
            (true, _) => String::new(),
            (false, true) => styled(YELLOW, "  in a worktree of its agent's own: does not land"),
            (false, false) => styled(YELLOW, "  outside `writes`: does not land"),
        };
        let lines = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("  +{added} -{removed}"),
            _ => "  binary".to_owned(),
        };
        print(&format!("  {:<12} {}{lines}{note}\n", file.kind, text::shown(&file.path)))?;
    }
    let place = view.workspace.as_deref().unwrap_or_default();
    for file in &view.left_out {
        let note = styled(YELLOW, format!("  {}: only in {place}, does not land", file.why));
        print(&format!("  {:<12} {}{note}\n", "left out", text::shown(&file.path)))?;
    }
    for away in &view.put_away {
        let note = styled(YELLOW, "  of its agent's repository: does not land");
        print(&format!("  {:<12} {}{note}\n", "put away", text::shown(&away.name)))?;
        print(&format!("               to get it back: {}\n", styled(BOLD, text::shown(&away.get_back))))?;
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
