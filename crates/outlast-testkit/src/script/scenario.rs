//! A scenario: steps compiled into the turns of a conversation, and where a scenario is named or written in a prompt.

use super::{Action, parse_steps};
use crate::Result;
use crate::provider::InlineFault;

/// One line of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A tool call; it ends a turn.
    Act(Action),
    /// Text of the next answer.
    Say(String),
    /// Thinking in the next answer.
    Think(String),
    /// A closing account that asks a question.
    Ask(String),
    /// The tokens of the next answer.
    Usage(UsageOverride),
    /// A fault in place of, or in, the next answer.
    Fault(InlineFault),
}

/// Token counts that a script states; what is absent is derived from the request and the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageOverride {
    /// Input tokens outside the cache.
    pub input: Option<u64>,
    /// Output tokens, reasoning included.
    pub output: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read: Option<u64>,
    /// Input tokens written to the cache.
    pub cache_write: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

/// One assistant turn of a scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// Thinking before the text.
    pub think: Option<String>,
    /// Text before the tool call, or the whole answer of the last turn.
    pub say: Option<String>,
    /// Stated token counts.
    pub usage: UsageOverride,
    /// Faults that hit this turn.
    pub faults: Vec<InlineFault>,
    /// The tool call; `None` in the last turn only.
    pub action: Option<Action>,
}

/// A named list of turns; the last one ends the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name in the script file, or one derived from an inline script.
    pub name: String,
    turns: Vec<Turn>,
}

impl Scenario {
    /// Compiles a script.
    ///
    /// # Errors
    /// [`crate::Error::Script`] when a line is not a step.
    pub fn parse(name: impl Into<String>, script: &str) -> Result<Self> {
        Ok(Self { name: name.into(), turns: compile(parse_steps(script)?) })
    }

    /// The turn after `answered` tool calls have been answered; the closing turn when the script is through.
    pub fn turn(&self, answered: usize) -> (usize, &Turn) {
        let index = answered.min(self.turns.len() - 1);
        (index, &self.turns[index])
    }

    /// All turns, in order; never empty.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The files that the script writes, appends to or edits, in order, each once.
    pub fn changed_files(&self) -> Vec<&str> {
        let mut files = Vec::new();
        for turn in &self.turns {
            let Some(path) = turn.action.as_ref().and_then(Action::changes) else { continue };
            if !files.contains(&path) {
                files.push(path);
            }
        }
        files
    }

    /// The closing account of a script that says nothing at its end.
    pub fn closing_account(&self) -> String {
        let files: Vec<String> = self.changed_files().iter().map(|file| format!("- {file}: as asked")).collect();
        let changed = if files.is_empty() { "- none".to_owned() } else { files.join("\n") };
        format!("Changed:\n{changed}\nWhy:\n- the goal asked for it\nBlocked:\n- none\nAssumptions:\n- none")
    }
}

fn compile(steps: Vec<Step>) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut turn = Turn::default();
    for step in steps {
        match step {
            Step::Say(text) => join(&mut turn.say, &text),
            Step::Think(text) => join(&mut turn.think, &text),
            Step::Ask(question) => {
                let account =
                    format!("Changed:\n- none\nWhy:\n- none\nBlocked:\n- question: {question}\nAssumptions:\n- none");
                join(&mut turn.say, &account);
            }
            Step::Usage(usage) => turn.usage = usage,
            Step::Fault(fault) => turn.faults.push(fault),
            Step::Act(action) => {
                turn.action = Some(action);
                turns.push(std::mem::take(&mut turn));
            }
        }
    }
    turns.push(turn);
    turns
}

fn join(slot: &mut Option<String>, text: &str) {
    match slot {
        Some(known) => {
            known.push('\n');
            known.push_str(text);
        }
        None => *slot = Some(text.to_owned()),
    }
}

/// The text of the first fenced `outlast-script` block in a prompt.
///
/// The fence may be longer than three backticks, so that a script can hold fences of its own, and may be indented.
pub fn inline_script(prompt: &str) -> Option<String> {
    let mut lines = prompt.lines();
    let (indent, ticks) = lines.find_map(opening_fence)?;
    let mut script = String::new();
    for line in lines {
        let line = line.strip_prefix(indent).unwrap_or(line);
        if line.trim_end() == ticks {
            return Some(script);
        }
        script.push_str(line);
        script.push('\n');
    }
    None
}

/// The indent and the backticks of a line that opens a script block.
fn opening_fence(line: &str) -> Option<(&str, &str)> {
    let start = line.find("```")?;
    let (before, fence) = line.split_at(start);
    let length = fence.len() - fence.trim_start_matches('`').len();
    // A CLI may put a quotation mark or a label in front of the prompt's first line; only white space is an indent.
    let indent = if before.trim().is_empty() { before } else { "" };
    (fence[length..].trim() == "outlast-script").then_some((indent, &fence[..length]))
}
