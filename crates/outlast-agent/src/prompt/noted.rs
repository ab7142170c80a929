//! What an agent notes of its own work, in a file that `outlast progress` or the agent itself writes: one line each.
//!
//! `NAME` says that the step of this name is done, `left: NAME` that it is not after all, `note: TEXT` is for whoever
//! goes on. Anything else is left out.

use outlast_core::plan::Task;

/// The file beside the progress file that lists the steps' names, one a line.
pub const STEPS_FILE: &str = "steps";

const LEFT: &str = "left: ";
const NOTE: &str = "note: ";

/// How many notes are kept, the last ones, and how long each is at most, in bytes.
const NOTES_MAX: usize = 50;
const NOTE_LEN_MAX: usize = 1000;

/// What an agent has noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noted {
    /// Names of steps that it says are done, in the plan's order.
    pub done: Vec<String>,
    /// What else it noted, oldest first.
    pub notes: Vec<String>,
}

/// What a line of the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A step is done.
    Done(&'a str),
    /// A step is left.
    Left(&'a str),
    /// Something to know.
    Note(&'a str),
}

impl Line<'_> {
    /// The line as the file has it, with its end.
    pub fn text(self) -> String {
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Self::Done(step) => format!("{step}\n"),
            Self::Left(step) => format!("{LEFT}{step}\n"),
            Self::Note(text) => format!("{NOTE}{}\n", one_line(text)),
        }
    }
}

/// Reads the file, for a task with steps of these names.
pub fn noted_of<'a>(steps: impl IntoIterator<Item = &'a str>, text: &str) -> Noted {
    let steps: Vec<&str> = steps.into_iter().collect();
    let mut done = vec![false; steps.len()];
    let mut notes = Vec::new();
    for line in text.lines() {
        let line = line.trim_matches(['"', '\'', ' ', '\t', '\r']);
        let place = |name: &str| steps.iter().position(|step| *step == name);
        if let Some(at) = place(line) {
            done[at] = true;
        } else if let Some(at) = line.strip_prefix(LEFT).and_then(|name| place(name.trim())) {
            done[at] = false;
        } else if let Some(note) = line.strip_prefix(NOTE).map(str::trim).filter(|note| !note.is_empty()) {
            notes.push(outlast_core::research::head(note, NOTE_LEN_MAX).to_owned());
        }
    }
    notes.drain(..notes.len().saturating_sub(NOTES_MAX));
    let done = steps.iter().zip(done).filter(|(_, done)| *done).map(|(step, _)| (*step).to_owned());
    Noted { done: done.collect(), notes }
}

/// As [`noted_of`], for a task.
pub fn noted(task: &Task, text: &str) -> Noted {
    noted_of(task.steps.iter().map(|step| step.name.as_str()), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [&str; 2] = ["imports", "tests"];

    #[test]
    fn steps_and_notes_are_read_in_the_plans_order_and_anything_else_is_left_out() {
        let text = "tests\r\n'imports'\nother\nimport\nnote: the retry is in the caller\nnote: \nleft: nothing\n";
        let noted = noted_of(STEPS, text);
        assert_eq!(
            noted,
            Noted { done: vec!["imports".into(), "tests".into()], notes: vec!["the retry is in the caller".into()] }
        );
        assert_eq!(noted_of(STEPS, &format!("{text}left: tests\n")).done, ["imports"], "the last word counts");
        assert_eq!(noted_of(STEPS, ""), Noted::default());
    }

    #[test]
    fn what_is_written_is_read_again_and_bounded() {
        let lines = [Line::Done("tests"), Line::Done("imports"), Line::Left("tests"), Line::Note("two\nlines: \n  x")];
        let text: String = lines.map(Line::text).concat();
        assert_eq!(noted_of(STEPS, &text), Noted { done: vec!["imports".into()], notes: vec!["two lines: x".into()] });
        let flood: String = (0..100).map(|n| Line::Note(&format!("{n} {}", "é".repeat(5000))).text()).collect();
        let notes = noted_of(STEPS, &flood).notes;
        assert!(notes.len() == NOTES_MAX && notes.iter().all(|note| note.len() <= NOTE_LEN_MAX));
        assert!(notes[0].starts_with("50 "), "the last ones");
    }
}
