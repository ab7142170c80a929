//! `outlast progress`: an agent notes how far its task is.
//!
//! It runs inside the agent's sandbox and asks nobody: it writes to the file that the attempt's environment names, which
//! is read at each of the agent's turns.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use outlast_agent::prompt::{Line, STEPS_FILE, noted_of};
use outlast_api::{Diagnostic, ExitCode, Noted, schema};

use crate::args::{Noting, Progress};
use crate::commands::{print, print_json};
use crate::failure::Failure;

/// The variable that names the file.
const FILE: &str = "OUTLAST_PROGRESS_FILE";

pub(crate) fn perform(json: bool, wish: &Progress) -> Result<ExitCode, Failure> {
    let file = std::env::var_os(FILE).filter(|file| !file.is_empty()).map(PathBuf::from).ok_or_else(outside)?;
    let steps = read(&file.with_file_name(STEPS_FILE))?;
    let steps: Vec<&str> = steps.lines().collect();
    let known = |named: &[String]| match named.iter().find(|name| !steps.contains(&name.as_str())) {
        Some(unknown) => Err(no_such(unknown, &steps)),
        None => Ok(()),
    };
    let lines: String = match &wish.what {
        None => return show(json, &steps, &read(&file)?),
        Some(Noting::Done { steps }) => {
            known(steps)?;
            steps.iter().map(|step| Line::Done(step).text()).collect()
        }
        Some(Noting::Left { steps }) => {
            known(steps)?;
            steps.iter().map(|step| Line::Left(step).text()).collect()
        }
        Some(Noting::Note { text }) => Line::Note(&text.join(" ")).text(),
    };
    append(&file, &lines)?;
    show(json, &steps, &read(&file)?)
}

fn show(json: bool, steps: &[&str], text: &str) -> Result<ExitCode, Failure> {
    let noted = noted_of(steps.iter().copied(), text);
    if json {
        let left = steps.iter().filter(|step| !noted.done.iter().any(|done| done == *step));
        print_json(&Noted {
            schema: schema("noted"),
            task_id: std::env::var("OUTLAST_TASK").unwrap_or_default(),
            remaining_steps: left.map(|step| (*step).to_owned()).collect(),
            completed_steps: noted.done,
            notes: noted.notes,
        })?;
        return Ok(ExitCode::Ok);
    }
    for step in steps {
        let mark = if noted.done.iter().any(|done| done == step) { "[x]" } else { "[ ]" };
        print(&format!("{mark} {step}\n"))?;
    }
    for note in noted.notes {
        print(&format!("note: {note}\n"))?;
    }
    Ok(ExitCode::Ok)
}

/// What a file says; nothing where there is none yet.
fn read(path: &Path) -> Result<String, Failure> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(failed("read", path, &error)),
    }
}

/// Adds to the file in one write, so that agents that work side by side do not mix their lines.
fn append(path: &Path, lines: &str) -> Result<(), Failure> {
    let before = read(path)?;
    // A line that an agent wrote without its end is not to swallow ours.
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let written = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{gap}{lines}").as_bytes()));
    written.map_err(|error| failed("write", path, &error))
}

fn outside() -> Failure {
    Diagnostic::error("progress/outside", ExitCode::Usage, "this is no attempt of a task")
        .because(format!("`outlast progress` is for agents that outlast has started: {FILE} is not set"))
        .fix("to see how far a run is: outlast status")
        .into()
}

fn no_such(name: &str, steps: &[&str]) -> Failure {
    let told = Diagnostic::error("progress/step", ExitCode::Usage, format!("the task has no step `{name}`"));
    let told = if steps.is_empty() {
        told.because("it has no steps at all")
    } else {
        told.because(format!("its steps are: {}", steps.join(", ")))
    };
    told.fix("for anything else: outlast progress note 'TEXT'").into()
}

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    let what = format!("cannot {verb} {}: {error}", path.display());
    Diagnostic::error("progress/file", ExitCode::Host, what)
        .fix("go on without it: the state of the files counts")
        .into()
}
