//! The words an agent is given. The prompt depends on the task alone, so it stays the same, byte for byte, for all its
//! attempts: prompt caches and replay depend on it. What differs between attempts is said in a message of its own.

mod handover;
mod noted;

use std::fmt::Write as _;

use outlast_core::plan::Task;

pub use handover::{Changed, HandOver, How, NOTE_LEN_MAX, handover_note, last_acts, made};
pub use noted::{Line, Noted, STEPS_FILE, noted, noted_of};

/// What a resumed agent is told besides what it knows already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resumption {
    /// Why it was interrupted, or the answer to its question; a sentence.
    pub reason: Option<String>,
    /// What was running when it was stopped and what it did last, for a session that may have lost it: see [`last_acts`].
    pub interrupted: Option<String>,
    /// Files that the work has made or changed so far, for a session: see [`made`].
    pub made: Vec<String>,
    /// A note about the work so far, for a session that does not know it: see [`handover_note`].
    pub note: Option<String>,
    /// Steps that are shown to be done.
    pub done: Vec<String>,
}

/// The first message of a task's session.
pub fn prompt(task: &Task) -> String {
    fill(
        include_str!("preamble.txt"),
        &[
            ("{scope}", scope(task)),
            ("{reads}", list("Files it depends on; read them, do not change them:", &task.reads)),
            ("{example}", example(task)),
            ("{steps}", steps(task)),
            (
                "{verify}",
                list(
                    "It is checked with these commands; run them before you end, and put right what fails because of your change:",
                    &task.verify,
                ),
            ),
            ("{output}", output(task)),
            ("{id}", task.id.to_string()),
            ("{goal}", task.goal.trim_end().to_owned()),
        ],
    )
}

/// The message that makes a resumed session go on.
pub fn resume_prompt(resumption: &Resumption) -> String {
    fill(
        include_str!("resume.txt"),
        &[
            ("{reason}", resumption.reason.clone().unwrap_or_default()),
            ("{interrupted}", resumption.interrupted.clone().unwrap_or_default()),
            (
                "{made}",
                list("Files that the work has made or changed so far; they need not be made again:", &resumption.made),
            ),
            ("{note}", resumption.note.clone().unwrap_or_default()),
            ("{done}", list("These steps are done and need no second look:", &resumption.done)),
        ],
    )
}

/// The first message of a fresh session that takes over a started task: the prompt unchanged, then the note.
pub fn handover_prompt(task: &Task, resumption: &Resumption) -> String {
    format!("{}\n{}", prompt(task), resume_prompt(resumption))
}

/// Replaces each placeholder once, where the template has it and never inside what was filled in; a line left empty by
/// that is dropped.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut filled = String::new();
    for line in template.lines() {
        match parts.iter().find(|(placeholder, _)| line.contains(placeholder)) {
            Some((_, text)) if text.is_empty() => {}
            Some((placeholder, text)) => {
                filled.push_str(&line.replacen(placeholder, text, 1));
                filled.push('\n');
            }
            None => {
                filled.push_str(line);
                filled.push('\n');
            }
        }
    }
    filled
}

fn list(title: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}");
    for item in items {
        let _ = write!(text, "\n- {}", item.trim_end().replace('\n', "\n  "));
    }
    text
}

fn scope(task: &Task) -> String {
    list(
        "You may create, change and delete only files that match these patterns; any other change is thrown away or fails the task:",
        &task.writes,
    )
}

fn example(task: &Task) -> String {
    task.example.as_ref().map(|file| format!("\nFollow the pattern of this file: {file}")).unwrap_or_default()
}

const STEPS: &str = "\nSteps, in this order. After each one run: outlast progress done 'NAME' (where that command is not found: echo 'NAME' >> \"$OUTLAST_PROGRESS_FILE\"). What whoever may have to go on in your place should know, and the files do not show: outlast progress note 'TEXT'";

fn steps(task: &Task) -> String {
    if task.steps.is_empty() {
        return String::new();
    }
    let mut text = STEPS.to_owned();
    for (index, step) in task.steps.iter().enumerate() {
        let _ = write!(text, "\n{}. {}", index + 1, step.name);
        if let Some(command) = &step.command {
            let _ = write!(text, " (done when this succeeds: {command})");
        }
    }
    text
}

fn output(task: &Task) -> String {
    let Some(output) = &task.output else {
        return String::new();
    };
    let words = output.max_words.map(|words| format!(", at most {words} words")).unwrap_or_default();
    let place = output
        .path
        .as_ref()
        .map(|path| format!(" into the file {path}"))
        .unwrap_or_else(|| " as your last message, before the closing account".to_owned());
    format!("\nWrite your result{place}{words}.")
}

#[cfg(test)]
mod tests;
