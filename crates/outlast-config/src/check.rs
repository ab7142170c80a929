//! What has to hold across tables and files before anything runs.

use std::collections::BTreeMap;

use outlast_core::TaskId;
use outlast_core::plan::{CONCURRENCY_AUTO, Concurrency, Span};

use crate::graph::Graph;
use crate::layer::{AgentLayer, Layer, TaskLayer};
use crate::plan::agent_of;
use crate::reader::Located;
use crate::{Code, Finding, UserConfig, given, suggest};

/// Checks a plan; `broken` says that reading it already failed, so that missing parts prove nothing.
pub(crate) fn check(layer: &Layer, user: Option<&UserConfig>, project_only: bool, broken: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if layer.tasks.is_empty() && !broken {
        let code = if project_only { Code::NoTasksYet } else { Code::NoTasks };
        let fix = "add a `[[task]]` with `id` and `goal`, or name a batch: `outlast run NAME`";
        findings.push(Finding::new(code, None, "the plan has no task").fix(fix));
    }
    if let Some(user) = user {
        check_user(layer, user, &mut findings);
    }
    for (name, agent) in &layer.agents {
        if !broken {
            check_agent(name.as_str(), agent, &mut findings);
        }
    }
    if let Some(agent) = &layer.defaults.agent {
        check_agent_name(layer, &agent.value, &agent.at, None, &mut findings);
    }
    let positions = check_ids(layer, &mut findings);
    for task in &layer.tasks {
        check_task(layer, task, broken, &mut findings);
        given::check_filled(layer, task, &mut findings);
    }
    check_needs(layer, &positions, broken, &mut findings);
    findings
}

/// Checks what a plan asks of the user's own configuration.
fn check_user(layer: &Layer, user: &UserConfig, findings: &mut Vec<Finding>) {
    for (name, agent) in &layer.agents {
        for account in agent.accounts.iter().flat_map(|accounts| &accounts.value) {
            if !user.accounts.keys().any(|known| known.as_str() == account.value) {
                let message =
                    format!("`[agent.{name}]` names the account `{}`, which is not configured", account.value);
                let known = suggest::advice(&account.value, user.accounts.keys().map(|known| known.as_str()));
                let fix = format!(
                    "name one that your config.toml has ({known}), or add [account.{}] there, with `provider` and `key_env` (or \
                     `login`); `outlast doctor` says where it is",
                    account.value
                );
                findings.push(Finding::new(Code::UnknownAccount, Some(&account.at), message).fix(fix));
            }
        }
    }
    let above = |what: &str, at: Option<&Span>| {
        let fix = "lower it in the plan, or raise `[ceiling]` in your config.toml";
        Finding::new(Code::AboveCeiling, at, format!("{what} is above your ceiling, which holds")).fix(fix)
    };
    if let (Some(Located { value: Concurrency::Fixed(wanted), at }), Some(most)) =
        (&layer.run.concurrency, user.ceiling.concurrency)
        && *wanted > most
    {
        findings.push(above(&format!("concurrency {wanted}"), Some(at)));
    }
    check_auto(layer, user.ceiling.concurrency, findings);
    let (budget, ceiling) = (&layer.run.budget, &user.ceiling.budget);
    if budget.is_above(*ceiling) {
        findings.push(above("the budget", budget.at.as_ref()));
    }
}

/// Says where `auto`, written or by default, begins lower than it would.
fn check_auto(layer: &Layer, most: Option<u32>, findings: &mut Vec<Finding>) {
    let written = layer.run.concurrency.as_ref();
    let is_auto = written.is_none_or(|concurrency| concurrency.value == Concurrency::Auto);
    if let Some(most) = most.filter(|most| is_auto && *most < CONCURRENCY_AUTO) {
        let message = format!("concurrency \"auto\" begins at {CONCURRENCY_AUTO}, and your ceiling cuts it to {most}");
        let fix = "raise `concurrency` of `[ceiling]` in your config.toml, if more may work at once";
        findings.push(Finding::new(Code::CeilingCutsAuto, written.map(|written| &written.at), message).fix(fix));
    }
}

fn check_agent(name: &str, agent: &AgentLayer, findings: &mut Vec<Finding>) {
    let Some(kind) = &agent.kind else {
        let message = format!("`[agent.{name}]` has no `kind`");
        findings.push(Finding::new(Code::MissingKey, Some(&agent.at), message).fix("add `kind = \"claude-code\"`"));
        return;
    };
    match (kind.value == "command", &agent.command) {
        (true, None) => {
            let message = format!("`[agent.{name}]` is of the kind `command` and has no `command`");
            let fix = "add `command = [\"prog\", \"{goal_file}\"]`";
            findings.push(Finding::new(Code::AgentCommand, Some(&agent.at), message).fix(fix));
        }
        (false, Some(command)) => {
            let message = format!("`[agent.{name}]` is of the kind `{}`, which takes no `command`", kind.value);
            let fix = "remove `command`, or write `kind = \"command\"`";
            findings.push(Finding::new(Code::AgentCommand, Some(&command.at), message).fix(fix));
        }
        _ => {}
    }
    if let Some((variable, value)) = agent.env.first_key_value().filter(|_| kind.value != "command") {
        let message = format!("`[agent.{name}]` sets `{variable}`, but only the kind `command` takes `env`");
        findings.push(Finding::new(Code::NotSupportedYet, Some(&value.at), message).fix("remove `env`"));
    }
}

fn check_agent_name(layer: &Layer, name: &str, at: &Span, task: Option<&TaskId>, findings: &mut Vec<Finding>) {
    if layer.agents.keys().any(|agent| agent.as_str() == name) {
        return;
    }
    let fix = if layer.agents.is_empty() {
        format!("add `[agent.{name}]` with `kind = \"claude-code\"`")
    } else {
        suggest::advice(name, layer.agents.keys().map(|agent| agent.as_str()))
    };
    let message = format!("the agent `{name}` is named, but there is no `[agent.{name}]`");
    let mut finding = Finding::new(Code::UnknownAgent, Some(at), message).fix(fix);
    finding.task = task.cloned();
    findings.push(finding);
}

/// Notes ids that are there twice, and gives the position of each.
fn check_ids<'l>(layer: &'l Layer, findings: &mut Vec<Finding>) -> BTreeMap<&'l str, usize> {
    let mut positions = BTreeMap::new();
    let mut slugs: BTreeMap<String, &TaskId> = BTreeMap::new();
    for (position, task) in layer.tasks.iter().enumerate() {
        let Some(first) = positions.get(task.id.as_str()) else {
            positions.insert(task.id.as_str(), position);
            if let Some(other) = slugs.insert(task.id.slug(), &task.id) {
                let message = format!("the ids `{}` and `{other}` would share their files", task.id);
                let finding = Finding::new(Code::BadId, Some(&task.at), message).fix("rename one of them");
                findings.push(finding.task(&task.id));
            }
            continue;
        };
        let first: &TaskLayer = &layer.tasks[*first];
        let message =
            format!("two tasks have the id `{}`; the first is at {}:{}", task.id, first.at.file, first.at.line);
        findings
            .push(Finding::new(Code::DuplicateTask, Some(&task.at), message).fix("rename one of them").task(&task.id));
    }
    positions
}

fn check_task(layer: &Layer, task: &TaskLayer, broken: bool, findings: &mut Vec<Finding>) {
    if task.goal.as_ref().is_none_or(|goal| goal.value.trim().is_empty()) {
        let at = task.goal.as_ref().map_or(&task.at, |goal| &goal.at);
        let message = format!("task `{}` has no goal", task.id);
        let fix = "say what is to be done: `goal = \"…\"`, or the text of the Markdown file";
        findings.push(Finding::new(Code::EmptyGoal, Some(at), message).fix(fix).task(&task.id));
    }
    if let Some(agent) = &task.shared.agent {
        check_agent_name(layer, &agent.value, &agent.at, Some(&task.id), findings);
    } else if agent_of(layer, task).is_none() && !broken {
        let message = format!("task `{}` names no agent", task.id);
        let fix = match layer.agents.len() {
            0 => "add `[agent.claude]` with `kind = \"claude-code\"` to outlast.toml",
            _ => "add `agent = \"…\"` to the task or to `[defaults]`",
        };
        findings.push(Finding::new(Code::UnknownAgent, Some(&task.at), message).fix(fix).task(&task.id));
    }
    for (i, step) in task.steps.iter().enumerate() {
        if task.steps[..i].iter().any(|before| before.name.value == step.name.value) {
            let message = format!("two steps of task `{}` are named `{}`", task.id, step.name.value);
            let finding = Finding::new(Code::BadValue, Some(&step.name.at), message).fix("rename one of them");
            findings.push(finding.task(&task.id));
        }
    }
}

fn check_needs(layer: &Layer, positions: &BTreeMap<&str, usize>, broken: bool, findings: &mut Vec<Finding>) {
    let mut graph = Vec::new();
    for task in &layer.tasks {
        let mut needs = Vec::new();
        for need in task.needs.iter().flat_map(|needs| &needs.value) {
            match positions.get(need.value.as_str()) {
                _ if need.value == task.id.as_str() => {
                    let message = format!("task `{}` needs itself", task.id);
                    let finding = Finding::new(Code::NeedsItself, Some(&need.at), message);
                    findings.push(finding.fix("remove it from `needs`").task(&task.id));
                }
                Some(&position) => needs.push(position),
                // A task that could not be read is missing here, and is no unknown one.
                None if broken => {}
                None if layer.left_out.iter().any(|id| id.as_str() == need.value) => {
                    let of = "is a task of outlast.toml and none of this plan";
                    let message = format!("task `{}` needs `{}`, which {of}", task.id, need.value);
                    let fix = "move it into this plan, or have it landed first and remove it from `needs`";
                    findings.push(Finding::new(Code::UnknownNeed, Some(&need.at), message).fix(fix).task(&task.id));
                }
                None => {
                    let message = format!("task `{}` needs `{}`, which no task is", task.id, need.value);
                    let others = positions.keys().copied().filter(|id| *id != task.id.as_str());
                    let fix = suggest::advice(&need.value, others);
                    findings.push(Finding::new(Code::UnknownNeed, Some(&need.at), message).fix(fix).task(&task.id));
                }
            }
        }
        graph.push(needs);
    }
    for cycle in Graph::new(graph).cycles() {
        findings.push(circle(layer, &cycle));
    }
}

/// Names the whole circle; a very long one is shortened in the middle.
fn circle(layer: &Layer, cycle: &[usize]) -> Finding {
    const SHOWN: usize = 12;
    let name = |&position: &usize| format!("`{}`", layer.tasks[position].id);
    let mut names: Vec<String> = cycle.iter().chain(cycle.first()).map(name).collect();
    if names.len() > 2 * SHOWN {
        let left_out = names.len() - 2 * SHOWN;
        names.splice(SHOWN..names.len() - SHOWN, [format!("({left_out} more)")]);
    }
    let first = &layer.tasks[cycle[0]];
    let at = first.needs.as_ref().map_or(&first.at, |needs| &needs.at);
    Finding::new(Code::Cycle, Some(at), format!("tasks need each other in a circle: {}", names.join(" → ")))
        .fix("remove one of these needs")
        .task(&first.id)
}
