//! `outlast log`: what happened to tasks, record by record.

use outlast_api::{ExitCode, LogLine, rfc3339, schema};
use outlast_core::{Fact, Record, RunId, Stream, TaskId};
use outlast_engine::read_record;

use crate::args::TaskSelection;
use crate::commands::{Given, print, print_json};
use crate::failure::Failure;
use crate::live;
use crate::selection::{Journalled, tasks};

pub(crate) fn perform(given: &Given, selection: &TaskSelection) -> Result<ExitCode, Failure> {
    let (journalled, id) = Journalled::find(&given.places, selection.run.as_deref())?;
    let run = journalled.core.run(&id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let wanted = tasks(run, selection)?;
    let mut records = Vec::new();
    journalled.reader.replay(0, |_, entry| {
        let record = read_record(&entry)?;
        if is_about(&record, &id, &wanted) {
            records.push(record);
        }
        Ok::<_, outlast_engine::Error>(())
    })?;
    for record in &records {
        if given.json { print_json(&line(record)?)? } else { print(&format!("{}\n", live::line_of(record)))? }
    }
    Ok(ExitCode::Ok)
}

fn is_about(record: &Record, run: &RunId, tasks: &[TaskId]) -> bool {
    matches!(&record.stream, Stream::Task(of, task) if of == run && tasks.contains(task))
}

/// A record as a line of JSON.
fn line(record: &Record) -> Result<LogLine, Failure> {
    let (run, task) = match &record.stream {
        Stream::Task(run, task) => (run.to_string(), Some(task.to_string())),
        Stream::Run(run) => (run.to_string(), None),
        Stream::Account(_) | Stream::Ledger => (String::new(), None),
    };
    let (event, data) = named(&record.fact)?;
    Ok(LogLine { schema: schema("log"), at: rfc3339(record.at), run, task, event, data })
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
