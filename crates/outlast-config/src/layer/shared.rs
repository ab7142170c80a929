//! Reading what `[defaults]` and a task have in common, and the small shapes within.

use std::time::Duration;

use outlast_core::plan::{Budget, Output, Span};

use super::{Texts, over};
use crate::document::{Table, Value};
use crate::paths::{self, Meant};
use crate::reader::{Located, Reader, find};
use crate::{Code, keys, units};

/// Keys that a task has, or takes from the defaults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    pub(crate) agent: Option<Located<String>>,
    pub(crate) model: Option<Located<String>>,
    pub(crate) timeout: Option<Located<Duration>>,
    pub(crate) idle_timeout: Option<Located<Duration>>,
    pub(crate) no_progress: Option<u32>,
    pub(crate) retries: Option<u32>,
    pub(crate) verify: Option<Texts>,
    pub(crate) reads: Option<Texts>,
    pub(crate) example: Option<Located<String>>,
    pub(crate) output: Option<Output>,
}

/// A `budget`, part by part, and where the last of its parts stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct BudgetLayer {
    pub(crate) budget: Budget,
    pub(crate) at: Option<Span>,
}

/// A step and its place.
#[derive(Debug, Clone)]
pub(crate) struct StepLayer {
    pub(crate) name: Located<String>,
    pub(crate) command: Option<String>,
}

/// Further turns of the same would be paid for in vain.
const NO_PROGRESS_MAX: u32 = 10_000;

/// A retry starts from a checkpoint; a task that needs more tries than this needs a person.
const RETRIES_MAX: u32 = 20;
const WORDS_MAX: u32 = 1_000_000;
const TOKENS_MAX: u64 = 1_000_000_000_000;

impl Shared {
    /// Puts `above` on top, key by key.
    pub(crate) fn overlay(&mut self, above: Self) {
        over(&mut self.agent, above.agent);
        over(&mut self.model, above.model);
        over(&mut self.timeout, above.timeout);
        over(&mut self.idle_timeout, above.idle_timeout);
        over(&mut self.no_progress, above.no_progress);
        over(&mut self.retries, above.retries);
        over(&mut self.verify, above.verify);
        over(&mut self.reads, above.reads);
        over(&mut self.example, above.example);
        over(&mut self.output, above.output);
    }
}

impl BudgetLayer {
    pub(crate) fn overlay(&mut self, above: Self) {
        over(&mut self.budget.usd_micros, above.budget.usd_micros);
        over(&mut self.budget.tokens, above.budget.tokens);
        over(&mut self.at, above.at);
    }

    /// Tells whether a part is above that of the ceiling.
    pub(crate) fn is_above(&self, ceiling: Budget) -> bool {
        fn above<T: PartialOrd>(part: Option<T>, ceiling: Option<T>) -> bool {
            matches!((part, ceiling), (Some(part), Some(ceiling)) if part > ceiling)
        }
        above(self.budget.usd_micros, ceiling.usd_micros) || above(self.budget.tokens, ceiling.tokens)
    }
}

pub(crate) fn read(reader: &mut Reader<'_>, table: &Table) -> Shared {
    Shared {
        agent: reader.text(table, "agent"),
        model: reader.text(table, "model"),
        timeout: reader.duration(table, "timeout"),
        idle_timeout: reader.duration(table, "idle_timeout"),
        no_progress: reader.small(table, "no_progress", 0, NO_PROGRESS_MAX).map(|turns| turns.value),
        retries: reader.small(table, "retries", 0, RETRIES_MAX).map(|retries| retries.value),
        verify: read_commands(reader, table, "verify"),
        reads: paths::read_list(reader, table, "reads", Meant::Glob),
        example: paths::read_one(reader, table, "example", Meant::Path),
        output: read_output(reader, table),
    }
}

/// A list of shell commands, none of them empty.
pub(crate) fn read_commands(reader: &mut Reader<'_>, table: &Table, key: &str) -> Option<Texts> {
    let commands = reader.texts(table, key)?;
    for command in &commands.value {
        if command.value.trim().is_empty() {
            let message = format!("a command in `{key}` is empty");
            reader.note(Code::BadValue, &command.at, message, "write what a shell would run");
        }
    }
    Some(commands)
}

fn read_output(reader: &mut Reader<'_>, table: &Table) -> Option<Output> {
    let output = reader.table(table, "output")?;
    reader.check_keys(output, "`output`", keys::OUTPUT);
    Some(Output {
        path: paths::read_one(reader, output, "path", Meant::Path).map(|path| path.value),
        max_words: reader.small(output, "max_words", 1, WORDS_MAX).map(|words| words.value),
    })
}

pub(crate) fn read_budget(reader: &mut Reader<'_>, table: &Table) -> BudgetLayer {
    let Some(budget) = reader.table(table, "budget") else {
        return BudgetLayer::default();
    };
    reader.check_keys(budget, "`budget`", keys::BUDGET);
    let parts = Budget {
        usd_micros: read_usd(reader, budget),
        tokens: reader.integer(budget, "tokens", 1, TOKENS_MAX).map(|tokens| tokens.value),
        window_percent: None,
    };
    let at = find(table, "budget").map(|entry| reader.span(entry.node.at));
    BudgetLayer { budget: parts, at }
}

fn read_usd(reader: &mut Reader<'_>, budget: &Table) -> Option<u64> {
    let usd = reader.number(budget, "usd")?;
    let micros = units::usd_micros(usd.value);
    if micros.is_none() {
        let message = format!("`usd` cannot be {}", usd.value);
        reader.note(Code::BadValue, &usd.at, message, "give a sum above zero, such as 40.0");
    }
    micros
}

/// Steps as a table: name and command, in order; an empty command is none.
pub(crate) fn read_steps(reader: &mut Reader<'_>, table: &Table) -> Vec<StepLayer> {
    let Some(steps) = reader.table(table, "steps") else {
        return Vec::new();
    };
    let mut read = Vec::new();
    for entry in &steps.entries {
        let command = match &entry.node.value {
            Value::Text(text) | Value::Plain(text) => text.clone(),
            other => {
                let message = format!("step `{}` is {}, not a command", entry.key, other.kind());
                reader.note(Code::WrongType, entry.node.at, message, "give the shell command that shows it is done");
                continue;
            }
        };
        let command = Some(command).filter(|command| !command.trim().is_empty());
        read.push(StepLayer { name: reader.located(entry.key.clone(), entry.key_at), command });
    }
    read
}
