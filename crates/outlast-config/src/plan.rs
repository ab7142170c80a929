//! The files of a plan, put on top of each other and checked, as the core's model.

use std::collections::BTreeMap;

use outlast_core::plan::{
    AgentSpec, Budget, Concurrency, IDLE_TIMEOUT_DEFAULT, Land, Plan, RETRIES_DEFAULT, RunSettings, Step,
    TIMEOUT_DEFAULT, Task,
};
use outlast_core::{AccountId, AgentName, TaskId};

use crate::layer::{AgentLayer, Layer, TaskLayer, bare, read_toml, value};
use crate::{Code, Finding, Source, UserConfig, check, finding, lint, markdown};

/// The files a plan is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFiles {
    /// The plan's name: the batch's, else the project's.
    pub name: String,
    /// The project's `outlast.toml`.
    pub project: Option<Source>,
    /// What lies on top of it.
    pub batch: Batch,
    /// Names in the batch's folder that are not read: other files, and folders.
    pub ignored: Vec<String>,
}

/// The part of a plan that is on top of the project's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Batch {
    /// The project's file is the plan.
    None,
    /// One TOML file.
    File(Source),
    /// Markdown files, one per task, in the order tasks are listed.
    Folder(Vec<Source>),
}

/// A plan, if the files hold one, and what there is to say about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The plan; `None` when a finding is an error.
    pub plan: Option<Plan>,
    /// Errors first, then warnings, then hints; each in the order of the files.
    pub findings: Vec<Finding>,
}

/// Reads and checks a plan; with the user's configuration, also its accounts, and its ceilings are applied.
pub fn read_plan(files: &PlanFiles, user: Option<&UserConfig>) -> Checked {
    let mut findings = Vec::new();
    let mut layer = Layer::default();
    if let Some(source) = &files.project {
        let (read, found) = read_toml(source);
        layer = read;
        findings.extend(found);
    }
    if files.batch != Batch::None {
        // The project's settings hold for each batch; its tasks are a plan of their own.
        layer.left_out = layer.tasks.drain(..).map(|task| task.id).collect();
    }
    if let Some(source) = files.batch.toml() {
        let (read, found) = read_toml(source);
        layer = layer.overlay(read);
        findings.extend(found);
    }
    for source in files.batch.markdown() {
        let (task, found) = markdown::read(source);
        layer.tasks.extend(task);
        findings.extend(found);
    }
    if !files.ignored.is_empty() {
        let message = format!("not read in the folder of `{}`: {}", files.name, files.ignored.join(", "));
        findings
            .push(Finding::new(Code::NotATask, None, message).fix("move tasks into the folder itself, as .md files"));
    }
    let broken = findings.iter().any(Finding::is_error);
    // A goal that is empty beside a syntax error may be what the parser made of it.
    let is_unread = findings.iter().any(|finding| finding.code == Code::Syntax);
    let checked = check::check(&layer, user, files.batch == Batch::None, broken);
    findings.extend(checked.into_iter().filter(|finding| !is_unread || finding.code != Code::EmptyGoal));
    let plan = (!findings.iter().any(Finding::is_error)).then(|| build(&files.name, &layer, user));
    if let Some(plan) = &plan {
        findings.extend(lint::lint(plan, layer.names_a_timeout()));
    }
    finding::finish(&mut findings, &files.sources());
    Checked { plan, findings }
}

impl PlanFiles {
    /// What its files are called, as messages call them: by their path from the repository's root, where they lie in it.
    pub fn names(&self) -> Vec<String> {
        self.sources().into_iter().map(|source| source.name().to_owned()).collect()
    }

    fn sources(&self) -> Vec<&Source> {
        self.project.iter().chain(self.batch.toml()).chain(self.batch.markdown()).collect()
    }
}

impl Batch {
    fn toml(&self) -> Option<&Source> {
        match self {
            Self::File(source) => Some(source),
            Self::None | Self::Folder(_) => None,
        }
    }

    fn markdown(&self) -> &[Source] {
        match self {
            Self::Folder(sources) => sources,
            Self::None | Self::File(_) => &[],
        }
    }
}

/// The agent a task is for: its own, the default, or the only one there is.
pub(crate) fn agent_of(layer: &Layer, task: &TaskLayer) -> Option<AgentName> {
    let named = task.shared.agent.as_ref().or(layer.defaults.agent.as_ref());
    match (named, layer.agents.len()) {
        (Some(name), _) => Some(AgentName::new(&name.value)),
        (None, 1) => layer.agents.keys().next().cloned(),
        (None, _) => None,
    }
}

fn build(name: &str, layer: &Layer, user: Option<&UserConfig>) -> Plan {
    let ceiling = user.map(|user| user.ceiling).unwrap_or_default();
    let run = RunSettings {
        name: name.to_owned(),
        target: value(layer.run.target.as_ref()),
        concurrency: ceiling.over_concurrency(value(layer.run.concurrency.as_ref()).unwrap_or(Concurrency::Auto)),
        land: layer.run.land.unwrap_or(Land::Review),
        pilot: None,
        hot_files: bare(layer.run.hot_files.as_ref()),
        budget: ceiling.over_budget(layer.run.budget.budget),
        setup: bare(layer.run.setup.as_ref()),
        hold_ms: value(layer.run.hold.as_ref()).map(|hold| u64::try_from(hold.as_millis()).unwrap_or(u64::MAX)),
    };
    let tasks = layer.tasks.iter().filter_map(|task| Some(build_task(layer, task, agent_of(layer, task)?))).collect();
    let agents = layer.agents.iter().map(|(name, agent)| (name.clone(), build_agent(agent))).collect();
    Plan { run, agents, tasks }
}

fn build_agent(agent: &AgentLayer) -> AgentSpec {
    let env: BTreeMap<String, String> =
        agent.env.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect();
    AgentSpec {
        kind: value(agent.kind.as_ref()).unwrap_or_default(),
        model: value(agent.model.as_ref()),
        accounts: bare(agent.accounts.as_ref()).into_iter().map(AccountId::new).collect(),
        inherit: bare(agent.inherit.as_ref()),
        command: bare(agent.command.as_ref()),
        env,
    }
}

fn build_task(layer: &Layer, task: &TaskLayer, agent: AgentName) -> Task {
    let mut shared = layer.defaults.clone();
    shared.overlay(task.shared.clone());
    let mut needs: Vec<TaskId> = Vec::new();
    for need in bare(task.needs.as_ref()).into_iter().map(TaskId::new) {
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    let steps = task.steps.iter().map(|step| Step { name: step.name.value.clone(), command: step.command.clone() });
    Task {
        id: task.id.clone(),
        goal: task.goal.as_ref().map(|goal| goal.value.trim().to_owned()).unwrap_or_default(),
        writes: bare(task.writes.as_ref()),
        reads: bare(shared.reads.as_ref()),
        needs,
        example: value(shared.example.as_ref()),
        output: shared.output,
        verify: bare(shared.verify.as_ref()),
        steps: steps.collect(),
        agent,
        model: value(shared.model.as_ref()),
        timeout: value(shared.timeout.as_ref()).unwrap_or(TIMEOUT_DEFAULT),
        idle_timeout: value(shared.idle_timeout.as_ref()).unwrap_or(IDLE_TIMEOUT_DEFAULT),
        no_progress: shared.no_progress,
        retries: shared.retries.unwrap_or(RETRIES_DEFAULT),
        budget: Budget::default(),
        source: Some(task.at.clone()),
    }
}

#[cfg(test)]
mod tests;
