//! One task as a Markdown file: YAML front matter for the keys, the text for the goal, a check list for the steps.

use crate::document::yaml;
use crate::layer::{StepLayer, TaskLayer, read_task};
use crate::reader::Reader;
use crate::{Code, Finding, Source, keys, suggest};

/// Reads one file of a folder; a file that is no task becomes a hint.
pub(crate) fn read(source: &Source) -> (Option<TaskLayer>, Vec<Finding>) {
    let mut reader = Reader::untrusted(source);
    let task = match split(source.text()) {
        Parts::Task { front, front_at, body_at } => read_parts(&mut reader, front, front_at, body_at),
        Parts::Unclosed { at } => {
            reader.note(Code::Syntax, at, "the front matter is never closed", "add a line `---` after its last key");
            None
        }
        Parts::Text => not_a_task(&mut reader, "it has no front matter"),
    };
    (task, reader.findings)
}

fn not_a_task(reader: &mut Reader<'_>, why: &str) -> Option<TaskLayer> {
    let message = format!("`{}` is not read as a task: {why}", reader.source.name());
    reader.note(Code::NotATask, 0, message, "to make it one, give it front matter with a task's key such as `writes`");
    None
}

fn read_parts(reader: &mut Reader<'_>, front: &str, front_at: usize, body_at: usize) -> Option<TaskLayer> {
    let table = match yaml::read(front, front_at) {
        Ok(table) => table,
        Err(error) if front.lines().any(names_task_key) => {
            reader.note(Code::Syntax, error.at, error.message, "mend the front matter here");
            return None;
        }
        Err(_) => return not_a_task(reader, "its front matter has no key of a task"),
    };
    let meant = |key: &str| is_task_key(key) || suggest::nearest(key, keys::TASK.iter().copied()).is_some();
    if !table.entries.iter().any(|entry| meant(&entry.key)) {
        return not_a_task(reader, "its front matter has no key of a task");
    }
    let mut task = read_task(reader, &table, 0, Some(reader.source.stem()))?;
    reader.task = Some(task.id.clone());
    let body = Body::read(reader, body_at);
    if !body.steps.is_empty() && !task.steps.is_empty() {
        let at = body.steps[0].name.at.clone();
        reader.note(Code::BadValue, &at, "steps stand in the front matter and in the text", "keep one of the lists");
    }
    if task.steps.is_empty() {
        task.steps = body.steps;
    }
    match &task.goal {
        Some(goal) if !body.goal.is_empty() => {
            let at = goal.at.clone();
            reader.note(Code::BadValue, &at, "the goal stands in the front matter and in the text", "keep the text");
        }
        Some(_) => {}
        None => task.goal = Some(reader.located(body.goal, body_at)),
    }
    reader.task = None;
    Some(task)
}

fn is_task_key(key: &str) -> bool {
    keys::TASK.contains(&key) || keys::LATER.contains(&key)
}

fn names_task_key(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, _)| is_task_key(key))
}

enum Parts<'t> {
    Task { front: &'t str, front_at: usize, body_at: usize },
    Unclosed { at: usize },
    Text,
}

/// Splits at the first pair of `---` lines; later ones belong to the text.
fn split(text: &str) -> Parts<'_> {
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Parts::Text;
    };
    let front_at = first.len();
    let mut at = front_at;
    let mut keys_seen = false;
    for line in lines {
        if is_fence(line) {
            return Parts::Task { front: &text[front_at..at], front_at, body_at: at + line.len() };
        }
        keys_seen |= names_task_key(line);
        at += line.len();
    }
    if keys_seen { Parts::Unclosed { at: 0 } } else { Parts::Text }
}

#[derive(Default)]
struct Body {
    goal: String,
    steps: Vec<StepLayer>,
}

/// A check list item while its lines are collected.
struct Item {
    at: usize,
    text: String,
}

impl Body {
    /// Takes the check list out of the text; the rest is the goal.
    fn read(reader: &mut Reader<'_>, body_at: usize) -> Self {
        let source = reader.source;
        let mut body = Self::default();
        let mut item: Option<Item> = None;
        let mut fence: Option<&str> = None;
        let mut at = body_at;
        for line in source.text()[body_at..].split_inclusive('\n') {
            let start = at;
            at += line.len();
            let trimmed = line.trim();
            let fence_mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
            if fence.is_some() || fence_mark.is_some() {
                fence = match fence {
                    None => fence_mark,
                    Some(open) if fence_mark == Some(open) => None,
                    open => open,
                };
            } else if let Some((ticked, text)) = checkbox(trimmed) {
                body.close(reader, &mut item);
                if ticked {
                    reader.note(Code::TickedStep, start, format!("step `{text}` is ticked"), "write `[ ]`");
                }
                item = Some(Item { at: start + (line.len() - line.trim_start().len()), text: text.to_owned() });
                continue;
            } else if let Some(open) = item.as_mut().filter(|_| line.starts_with("  ") && !trimmed.is_empty()) {
                open.text.push(' ');
                open.text.push_str(trimmed);
                continue;
            }
            body.close(reader, &mut item);
            body.goal.push_str(line);
        }
        body.close(reader, &mut item);
        body.goal = body.goal.trim().to_owned();
        body
    }

    fn close(&mut self, reader: &Reader<'_>, item: &mut Option<Item>) {
        let Some(item) = item.take() else { return };
        if self.steps.is_empty() {
            self.drop_heading();
        }
        let (name, command) = step(&item.text);
        self.steps.push(StepLayer { name: reader.located(name, item.at), command });
    }

    /// Drops the heading `Steps` right above the list: its content is no longer in the text.
    fn drop_heading(&mut self) {
        let kept = self.goal.trim_end();
        let last = kept.rfind('\n').map_or(0, |i| i + 1);
        let heading = kept[last..].trim_start_matches('#');
        if heading.len() < kept[last..].len() && heading.trim().eq_ignore_ascii_case("steps") {
            self.goal.truncate(last);
        }
    }
}

/// The tick and the text of a check list line.
fn checkbox(line: &str) -> Option<(bool, &str)> {
    let rest = line.strip_prefix(['-', '*', '+'])?.strip_prefix(' ')?.trim_start();
    let (ticked, rest) = match rest.get(..3)? {
        "[ ]" => (false, &rest[3..]),
        "[x]" | "[X]" => (true, &rest[3..]),
        _ => return None,
    };
    rest.starts_with(' ').then(|| (ticked, rest.trim()))
}

/// A step's name and command: ``name: `command` ``, or the command alone, or the name alone.
fn step(text: &str) -> (String, Option<String>) {
    let ticks = text.len() - text.trim_end_matches('`').len();
    let inner_end = text.len() - ticks;
    if ticks == 0 {
        return (text.to_owned(), None);
    }
    let Some(open) = opening(&text[..inner_end], ticks) else {
        return (text.to_owned(), None);
    };
    let command = unpad(&text[open + ticks..inner_end]);
    let name = text[..open].trim_end();
    match name.strip_suffix(':') {
        Some(name) if !name.trim().is_empty() => (name.trim().to_owned(), Some(command.to_owned())),
        _ if name.is_empty() => (command.to_owned(), Some(command.to_owned())),
        _ => (text.to_owned(), None),
    }
}

/// Where the run of exactly `ticks` backticks begins that a closing run of the same length pairs with.
fn opening(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        at = start + run;
        if run != ticks {
            continue;
        }
        let closed = closing(&text[at..], ticks);
        match closed {
            None => return Some(start),
            Some(end) => at += end,
        }
    }
    None
}

/// Where the text goes on after the next run of exactly `ticks` backticks.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        at = start + run;
        if run == ticks {
            return Some(at);
        }
    }
    None
}

/// A code span may be padded by one space on both sides, to hold backticks at its ends (CommonMark, "Code spans").
fn unpad(code: &str) -> &str {
    code.strip_prefix(' ')
        .and_then(|code| code.strip_suffix(' '))
        .filter(|code| !code.trim().is_empty())
        .unwrap_or(code)
}

#[cfg(test)]
mod tests;
