//! A task's progress as a page for people.

use std::fmt::Write as _;

use super::bounds::head;
use super::progress::Progress;
use super::state::{CommandRun, EditKind, Ended, TodoState};

/// Longest line of a list, in bytes: what is longer is in `progress.json`.
const LINE_MAX: usize = 160;
/// How many of the last commands and texts are shown.
const LAST_MAX: usize = 12;

impl Progress {
    /// The text of `progress.md`: the same bytes for the same progress.
    pub fn to_markdown(&self) -> String {
        let mut page = String::new();
        let state = &self.research;
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(page, "# {}: {}", self.task_id, self.status);
        let _ = writeln!(page, "\n{}", self.facts());
        let done = self.completed_steps.iter().map(|name| format!("[x] {name}"));
        let left = self.remaining_steps.iter().map(|name| format!("[ ] {name}"));
        section(&mut page, "Steps", done.chain(left));
        let unanswered = state.unanswered.iter().map(|call| format!("{} {}", call.tool, code(&call.about)));
        section(&mut page, "Running, or cut off", unanswered);
        section(&mut page, "Changed files", self.changed_files.iter().map(|path| code(path)));
        section(&mut page, "Noted by the agent", self.notes.iter().map(|note| line(note)));
        section(
            &mut page,
            "The agent's own list",
            state.todo.iter().map(|item| {
                let mark = match item.state {
                    TodoState::Open => "[ ]",
                    TodoState::Begun => "[ ] (begun)",
                    TodoState::Done => "[x]",
                    TodoState::Dropped => "[x] (dropped)",
                };
                format!("{mark} {}", line(&item.text))
            }),
        );
        section(&mut page, "What it said last", last(&state.decisions).map(|text| line(text)));
        section(&mut page, "Commands, the last ones", last(&state.commands).map(command));
        section(
            &mut page,
            "Edited with a tool",
            state.edits.iter().map(|edit| {
                let how = match edit.kind {
                    EditKind::Changed => "changed",
                    EditKind::Written => "written",
                    EditKind::Deleted => "deleted",
                };
                format!("{} ({how}{})", code(&edit.path), by(edit.by.as_deref()))
            }),
        );
        section(
            &mut page,
            "Read",
            state.read.iter().map(|file| {
                let by = file.by.as_ref().map(|name| format!(" (by {name})")).unwrap_or_default();
                format!("{}{by}", code(&file.path))
            }),
        );
        section(
            &mut page,
            "Sub-agents",
            state.sub_agents.iter().map(|agent| format!("{} ({})", line(&agent.about), ended(agent.ended))),
        );
        page
    }

    /// One line of what is known of the attempt.
    fn facts(&self) -> String {
        let mut facts = vec![format!("run {}", self.run)];
        facts.extend(self.agent.as_ref().map(|agent| format!("agent {agent}")));
        facts.extend(self.attempt.map(|number| format!("attempt {number}")));
        facts.extend(self.turns.map(|turns| format!("turn {turns}")));
        facts.extend(self.checkpoint.as_ref().map(|id| format!("checkpoint {}", head(id.as_str(), 12))));
        facts.extend(self.updated_at.clone());
        facts.join(" · ")
    }
}

fn section(page: &mut String, title: &str, entries: impl Iterator<Item = String>) {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return;
    }
    let _ = writeln!(page, "\n## {title}");
    for entry in entries {
        let _ = writeln!(page, "- {entry}");
    }
}

fn last<T>(list: &[T]) -> impl Iterator<Item = &T> {
    list[list.len().saturating_sub(LAST_MAX)..].iter()
}

fn command(run: &CommandRun) -> String {
    let exit = run.exit.map(|exit| format!("exit {exit}")).unwrap_or_else(|| ended(run.ended).to_owned());
    format!("{} ({exit}{})", code(&run.command), by(run.by.as_deref()))
}

fn by(name: Option<&str>) -> String {
    name.map(|name| format!(", by {name}")).unwrap_or_default()
}

const fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Unknown => "end not known",
        Ended::Ok => "ok",
        Ended::Failed => "failed",
        Ended::Running => "running",
        Ended::Interrupted => "cut off",
    }
}

/// The first line of a text, shortened.
fn line(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default().trim_end();
    let shown = head(first, LINE_MAX);
    let more = shown.len() < text.trim().len();
    format!("{shown}{}", if more { " …" } else { "" })
}

/// The first line of a text as code: in more backticks than it holds.
fn code(text: &str) -> String {
    let shown = line(text);
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{shown}{pad}{fence}")
}
