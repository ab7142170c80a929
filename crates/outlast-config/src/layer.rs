//! What one file says, before files are put on top of each other: everything optional, everything with its place.

mod agent;
mod run;
mod shared;
mod task;

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::plan::{Concurrency, Land};
use outlast_core::{AgentName, TaskId};

pub(crate) use agent::AgentLayer;
pub(crate) use shared::{BudgetLayer, Shared, StepLayer, read_budget};
pub(crate) use task::{TaskLayer, read_task};

use crate::document::{SyntaxError, Table, Value, toml};
use crate::reader::{Located, Reader, find};
use crate::{Code, Finding, Source, given, keys};

/// Strings with their places.
pub(crate) type Texts = Located<Vec<Located<String>>>;

/// One file of a plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) run: RunLayer,
    pub(crate) agents: BTreeMap<AgentName, AgentLayer>,
    pub(crate) defaults: Shared,
    pub(crate) tasks: Vec<TaskLayer>,
    /// Tasks of the project's file, which are none of a batch.
    pub(crate) left_out: Vec<TaskId>,
}

/// A `[run]` table.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunLayer {
    pub(crate) target: Option<Located<String>>,
    pub(crate) concurrency: Option<Located<Concurrency>>,
    pub(crate) land: Option<Land>,
    pub(crate) hot_files: Option<Texts>,
    pub(crate) budget: BudgetLayer,
    pub(crate) setup: Option<Texts>,
    pub(crate) hold: Option<Located<Duration>>,
}

/// Reads a project or batch file in TOML.
pub(crate) fn read_toml(source: &Source) -> (Layer, Vec<Finding>) {
    let (mut root, errors) = toml::read(source.text());
    let mut reader = Reader::untrusted(source);
    let broken = note_syntax(&mut reader, errors);
    given::check(&mut reader, &mut root);
    reader.check_keys(&root, "the file", keys::TOP);
    let run = reader.table(&root, "run").map(|table| run::read(&mut reader, table));
    let defaults = reader.table(&root, "defaults").map(|table| {
        reader.check_keys(table, "`[defaults]`", keys::DEFAULTS);
        shared::read(&mut reader, table)
    });
    let agents = reader.table(&root, "agent").map(|table| agent::read_all(&mut reader, table));
    let tasks = read_tasks(&mut reader, &root);
    if broken {
        // What stands around a syntax error is the parser's guess, and not worth a word.
        reader.findings.retain(|finding| finding.code == Code::Syntax);
    }
    let layer = Layer {
        run: run.unwrap_or_default(),
        agents: agents.unwrap_or_default(),
        defaults: defaults.unwrap_or_default(),
        tasks,
        left_out: Vec::new(),
    };
    (layer, reader.findings)
}

/// Notes syntax errors, and tells whether there were any; only the first of several at one place is worth reading.
pub(crate) fn note_syntax(reader: &mut Reader<'_>, errors: Vec<SyntaxError>) -> bool {
    let mut last = None;
    for error in errors {
        if last.replace(error.at) != Some(error.at) {
            reader.note(Code::Syntax, error.at, error.message, "mend the text here");
        }
    }
    last.is_some()
}

fn read_tasks(reader: &mut Reader<'_>, root: &Table) -> Vec<TaskLayer> {
    let Some(entry) = find(root, "task") else {
        return Vec::new();
    };
    let Value::List(items) = &entry.node.value else {
        let message = format!("`task` is {}, not a list of tables", entry.node.value.kind());
        reader.note(Code::WrongType, entry.node.at, message, "write `[[task]]` with two brackets");
        return Vec::new();
    };
    let mut tasks = Vec::new();
    for item in items {
        match &item.value {
            Value::Table(table) => tasks.extend(task::read_listed(reader, table, item.at)),
            other => {
                let message = format!("a task is a table, not {}", other.kind());
                reader.note(Code::WrongType, item.at, message, "write `[[task]]`, then its keys");
            }
        }
    }
    tasks
}

impl Layer {
    /// Puts `above` on top: its keys win one by one, its tasks come after.
    pub(crate) fn overlay(mut self, above: Self) -> Self {
        self.run.overlay(above.run);
        for (name, agent) in above.agents {
            match self.agents.get_mut(&name) {
                Some(below) => below.overlay(agent),
                None => drop(self.agents.insert(name, agent)),
            }
        }
        self.defaults.overlay(above.defaults);
        self.tasks.extend(above.tasks);
        self
    }

    /// Whether its author has named a timeout for all tasks, or for one of them.
    pub(crate) fn names_a_timeout(&self) -> bool {
        let names = |shared: &Shared| shared.timeout.is_some() || shared.idle_timeout.is_some();
        names(&self.defaults) || self.tasks.iter().any(|task| names(&task.shared))
    }
}

impl RunLayer {
    fn overlay(&mut self, above: Self) {
        over(&mut self.target, above.target);
        over(&mut self.concurrency, above.concurrency);
        over(&mut self.land, above.land);
        over(&mut self.hot_files, above.hot_files);
        self.budget.overlay(above.budget);
        over(&mut self.setup, above.setup);
        over(&mut self.hold, above.hold);
    }
}

/// Replaces a value by the one above it, where there is one.
pub(crate) fn over<T>(below: &mut Option<T>, above: Option<T>) {
    if above.is_some() {
        *below = above;
    }
}

/// The bare strings.
pub(crate) fn bare(texts: Option<&Texts>) -> Vec<String> {
    texts.into_iter().flat_map(|texts| &texts.value).map(|text| text.value.clone()).collect()
}

/// The bare string.
pub(crate) fn value<T: Clone>(located: Option<&Located<T>>) -> Option<T> {
    located.map(|located| located.value.clone())
}
