//! One task as a Markdown file: YAML front matter for the keys, the text for the goal, a check list for the steps.

mod foreign;
mod step;

use self::step::Step;
use crate::document::yaml;
use crate::layer::{StepLayer, TaskLayer, read_task};
use crate::reader::Reader;
use crate::{Code, Finding, Source, given, keys, suggest};

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
    let mut table = match yaml::read(front, front_at) {
        Ok(table) => table,
        Err(error) if front.lines().any(names_task_key) => {
            reader.note(Code::Syntax, error.at, error.message, "mend the front matter here");
            return None;
        }
        Err(_) => return not_a_task(reader, "its front matter has no key of a task"),
    };
    given::check(reader, &mut table);
    let is_foreign = foreign::is_task(&table);
    let table = if is_foreign { foreign::translated(reader, &table) } else { table };
    let meant = |key: &str| is_task_key(key) || suggest::nearest(key, keys::TASK.iter().copied()).is_some();
    if !is_foreign && !table.entries.iter().any(|entry| meant(&entry.key)) {
        return not_a_task(reader, "its front matter has no key of a task");
    }
    let mut task = read_task(reader, &table, 0, Some(reader.source.stem()))?;
    reader.task = Some(task.id.clone());
    given::check_text(reader, body_at);
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
    /// The command that stands below it: a line that is one code span, or a block of shell.
    below: Option<String>,
}

/// What a fence is closed by, and whether its lines are the command of the item above it.
struct Fence {
    mark: &'static str,
    is_command: bool,
}

/// Words after a fence that say that a shell is to read the block.
const SHELLS: [&str; 4] = ["sh", "bash", "shell", "zsh"];

impl Body {
    /// Takes the check list out of the text; the rest is the goal.
    fn read(reader: &mut Reader<'_>, body_at: usize) -> Self {
        let source = reader.source;
        let mut body = Self::default();
        let mut item: Option<Item> = None;
        let mut fence: Option<Fence> = None;
        let mut at = body_at;
        for line in source.text()[body_at..].split_inclusive('\n') {
            let start = at;
            at += line.len();
            let trimmed = line.trim();
            let is_below = line.starts_with("  ") || line.starts_with('\t');
            if let Some(open) = fence.take() {
                let closes = trimmed.starts_with(open.mark);
                let is_command = open.is_command;
                fence = (!closes).then_some(open);
                if let Some(item) = item.as_mut().filter(|_| is_command) {
                    item.push_command(if closes { "" } else { trimmed });
                    continue;
                }
            } else if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
                let of = trimmed[mark.len()..].trim();
                let is_command =
                    is_below && SHELLS.contains(&of) && item.as_ref().is_some_and(|item| item.below.is_none());
                fence = Some(Fence { mark, is_command });
                if is_command {
                    continue;
                }
            } else if let Some((ticked, text)) = checkbox(trimmed) {
                body.close(reader, &mut item);
                if ticked {
                    reader.note(Code::TickedStep, start, format!("step `{text}` is ticked"), "write `[ ]`");
                }
                let at = start + (line.len() - line.trim_start().len());
                item = Some(Item { at, text: text.to_owned(), below: None });
                continue;
            } else if let Some(open) = item.as_mut().filter(|_| is_below && !trimmed.is_empty()) {
                match step::alone(trimmed) {
                    Some(code) if open.below.is_none() => open.below = Some(code.to_owned()),
                    _ => open.text = format!("{} {trimmed}", open.text),
                }
                continue;
            }
            body.close(reader, &mut item);
            body.goal.push_str(line);
        }
        body.close(reader, &mut item);
        body.goal = body.goal.trim().to_owned();
        body
    }

    fn close(&mut self, reader: &mut Reader<'_>, item: &mut Option<Item>) {
        let Some(item) = item.take() else { return };
        if self.steps.is_empty() {
            self.drop_heading();
        }
        let Step { name, command, unclear } = Step::read(&item.text, item.below.filter(|below| !below.is_empty()));
        if let Some(code) = unclear {
            let message = format!("`{code}` in step `{name}` is not taken for a command");
            reader.note(Code::StepCommand, item.at, message, format!("if it is one, write it as: name: `{code}`"));
        }
        if let Some(command) = &command {
            given::check_step(reader, item.at, command);
        }
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

impl Item {
    /// Adds a line to the command below it.
    fn push_command(&mut self, line: &str) {
        let command = self.below.get_or_insert_default();
        if !command.is_empty() && !line.is_empty() {
            command.push('\n');
        }
        command.push_str(line);
    }
}

/// The tick and the text of a check list line, which may be numbered.
fn checkbox(line: &str) -> Option<(bool, &str)> {
    let bullet = match line.trim_start_matches(|c: char| c.is_ascii_digit()) {
        rest if rest.len() == line.len() => line.strip_prefix(['-', '*', '+'])?,
        rest => rest.strip_prefix(['.', ')'])?,
    };
    let rest = bullet.strip_prefix(' ')?.trim_start();
    let (ticked, rest) = match rest.get(..3)? {
        "[ ]" => (false, &rest[3..]),
        "[x]" | "[X]" => (true, &rest[3..]),
        _ => return None,
    };
    rest.starts_with(' ').then(|| (ticked, rest.trim()))
}

#[cfg(test)]
mod tests;
