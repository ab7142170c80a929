//! `outlast log`: what happened to tasks, record by record; then what their agents said last, and where all of it is.

use std::path::Path;

use outlast_api::{ExitCode, LeftOut, LogLine, PutAway, Status, rfc3339, schema};
use outlast_core::run::Run;
use outlast_core::{AttemptId, Fact, Record, RunId, Stream, TaskId};
use outlast_engine::{Kept, RepoHome, last_lines, left_out, load_plan, put_away, read_record};

use crate::args::TaskSelection;
use crate::commands::status::{self, now};
use crate::commands::{Given, print, print_json};
use crate::failure::Failure;
use crate::live;
use crate::selection::{Journalled, tasks};
use crate::text::{BOLD, DIM, YELLOW, shown, styled};

/// How many lines of each output are shown: the end says how it went.
const LINES_MAX: usize = 12;
/// How much of a line is shown: many CLIs print one JSON object a line.
const LINE_LEN_MAX: usize = 240;
/// How many paths are named.
const PATHS_MAX: usize = 8;

pub(crate) fn perform(given: &Given, selection: &TaskSelection) -> Result<ExitCode, Failure> {
    let (journalled, id) = Journalled::find(&given.places, selection.run.as_deref())?;
    let run = journalled.core.run(&id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let wanted = tasks(&journalled, run, selection)?;
    let mut records = Vec::new();
    journalled.reader.replay(0, |_, entry| {
        let record = read_record(&entry)?;
        if is_about(&record, &id, &wanted) {
            records.push(record);
        }
        Ok::<_, outlast_engine::Error>(())
    })?;
    for record in &records {
        if given.json {
            print_json(&line(record, &journalled.home)?)?;
        } else {
            print(&format!("{}\n", live::line_of(record)))?;
        }
    }
    if given.json {
        for task in &wanted {
            for line in left_lines(&journalled.home, run, task) {
                print_json(&line)?;
            }
        }
    } else {
        let status = status::view(&given.places, &journalled, &id, now())?;
        for task in &wanted {
            print(&left(given, &journalled.home, run, task))?;
            print(&only_in_workspace(&journalled.home, run, task))?;
            print(&as_it_is(&status, task))?;
        }
    }
    Ok(ExitCode::Ok)
}

fn is_about(record: &Record, run: &RunId, tasks: &[TaskId]) -> bool {
    matches!(&record.stream, Stream::Task(of, task) if of == run && tasks.contains(task))
}

/// What a task's last attempt left to read.
fn left(given: &Given, home: &RepoHome, run: &Run, id: &TaskId) -> String {
    let Some(task) = run.task(id).filter(|task| task.attempts > 0) else { return String::new() };
    let folder = home.attempt(&AttemptId { run: run.id.clone(), task: id.clone(), number: task.attempts });
    let mut text = String::new();
    for (output, what) in [("stdout", "its agent said"), ("stderr", "its agent said on standard error")] {
        text.push_str(&end_of(&folder.join(output), what));
    }
    let title = styled(BOLD, format!("{id}, attempt {}", task.attempts));
    let place = shown(&folder.display().to_string());
    let earlier = if task.attempts > 1 { ", those of earlier attempts beside it" } else { "" };
    let mut text =
        format!("\n{title}\n{text}  {}\n", styled(DIM, format!("all outputs, of verify too: {place}{earlier}")));
    if let Some(tokens) = task.paid_again.tokens(task.attempts).filter(|tokens| *tokens > 0) {
        text.push_str(&format!("  paid for again after interruptions: {tokens} tokens\n"));
    }
    if let Some(outside) = outside(given, home, run, id) {
        text.push_str(&format!("  outside `writes`, and left out of what lands: {outside}\n"));
    }
    text
}

/// What of a task's work its workspace alone holds, or its agent has put away, a line each.
fn only_in_workspace(home: &RepoHome, run: &Run, id: &TaskId) -> String {
    let files = run.task(id).map(|task| left_out(home, run, task)).unwrap_or_default();
    let place = home.workspace(&run.id, id).display().to_string();
    let line = |file: &LeftOut| {
        format!("  only in {}, and none of it lands: {} ({})\n", shown(&place), shown(&file.path), shown(&file.why))
    };
    let away = run.task(id).map(|task| put_away(home, run, task)).unwrap_or_default();
    let line_of = |away: &PutAway| {
        let back = styled(BOLD, shown(&away.get_back));
        format!("  put away as `{}`, and none of it lands; to get it back: {back}\n", shown(&away.name))
    };
    files.iter().map(line).chain(away.iter().map(line_of)).collect()
}

/// Why a task is where it is now, which may be of another's making and on no record of its own.
fn as_it_is(status: &Status, id: &TaskId) -> String {
    let task = status.tasks.iter().find(|task| task.id == id.as_str());
    let Some((task, detail)) = task.and_then(|task| Some((task, task.detail.as_ref()?))) else { return String::new() };
    let help = match task.fix.is_empty() {
        true => String::new(),
        false => format!("; what helps: {}", styled(BOLD, format!("outlast status {}", status.run))),
    };
    format!("  `{id}` is {}: {}{help}\n", task.state, styled(YELLOW, shown(detail)))
}

/// The same as lines of JSON, after the records: it is what is so now.
fn left_lines(home: &RepoHome, run: &Run, id: &TaskId) -> Vec<LogLine> {
    let Some(task) = run.task(id) else { return Vec::new() };
    let (files, away) = (left_out(home, run, task), put_away(home, run, task));
    let workspace = home.workspace(&run.id, id).display().to_string();
    let line = |event: &str, data| LogLine {
        schema: schema("log"),
        at: rfc3339(now()),
        run: run.id.to_string(),
        task: Some(id.to_string()),
        event: event.to_owned(),
        data,
        outputs: None,
    };
    let left =
        (!files.is_empty()).then(|| line("left_out", serde_json::json!({ "files": files, "workspace": workspace })));
    let away = (!away.is_empty()).then(|| line("put_away", serde_json::json!({ "put_away": away })));
    left.into_iter().chain(away).collect()
}

/// The last lines of an output; nothing where there is none.
fn end_of(path: &Path, what: &str) -> String {
    let lines = last_lines(path, LINES_MAX);
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("  {what}, at the end:\n");
    for line in lines {
        let cut: String = line.chars().take(LINE_LEN_MAX).collect();
        let more = if cut.len() < line.len() { "…" } else { "" };
        text.push_str(&format!("    {}{more}\n", shown(&cut)));
    }
    text
}

/// What a task changed outside of its scope; nothing where that cannot be told from here.
fn outside(given: &Given, home: &RepoHome, run: &Run, id: &TaskId) -> Option<String> {
    let task = run.task(id)?;
    let (base, end) = (task.base.clone()?, task.checkpoint.clone()?);
    let writes = load_plan(home, &run.spec.plan).ok()?.task(id)?.writes.clone();
    let kept = Kept::open(home, given.places.repository_of(home).ok()?).ok()?;
    let changes = kept.changes(&base, &end, &writes).ok()?;
    let outside = changes.into_iter().filter(|change| !change.in_scope && !change.in_worktree);
    let paths: Vec<String> = outside.map(|change| change.path).collect();
    let named: Vec<String> = paths.iter().take(PATHS_MAX).map(|path| format!("`{}`", shown(path))).collect();
    match paths.len().saturating_sub(PATHS_MAX) {
        0 if named.is_empty() => None,
        0 => Some(named.join(", ")),
        more => Some(format!("{} and {more} more", named.join(", "))),
    }
}

/// A record as a line of JSON.
fn line(record: &Record, home: &RepoHome) -> Result<LogLine, Failure> {
    let (run, task) = match &record.stream {
        Stream::Task(run, task) => (run.to_string(), Some(task.to_string())),
        Stream::Run(run) => (run.to_string(), None),
        Stream::Account(_) | Stream::Ledger => (String::new(), None),
    };
    let outputs = match (&record.stream, &record.fact) {
        (Stream::Task(run, task), Fact::AttemptStarted { number, .. }) => {
            let id = AttemptId { run: run.clone(), task: task.clone(), number: *number };
            Some(home.attempt(&id).display().to_string())
        }
        _ => None,
    };
    let (event, data) = named(&record.fact)?;
    Ok(LogLine { schema: schema("log"), at: rfc3339(record.at), run, task, event, data, outputs })
}

/// A fact's name, and what it holds.
fn named(fact: &Fact) -> Result<(String, serde_json::Value), Failure> {
    let value = serde_json::to_value(fact).map_err(|e| outlast_engine::Error::Internal(e.to_string()))?;
    Ok(match value {
        serde_json::Value::Object(map) => map.into_iter().next().unwrap_or_default(),
        serde_json::Value::String(name) => (name, serde_json::Value::Null),
        other => (String::new(), other),
    })
}
