//! From a checked plan to a run on record: where it starts from, where it lands, who pays.
//!
//! Everything that can be refused is refused before the first record: then nothing has been changed.

use std::collections::BTreeSet;
use std::path::Path;

use outlast_agent::{Kind, adapter};
use outlast_config::may_be_for_model;
use outlast_core::admit::Command;
use outlast_core::budget::Allowed;
use outlast_core::plan::{AgentSpec, Budget, CONCURRENCY_AUTO, Concurrency, Land, Plan, Task};
use outlast_core::record::{Assigned, RunSpec, TaskSpec};
use outlast_core::{AccountId, AgentName, Oid, RunId, TaskId};

use crate::asks::AccountInfo;
use crate::context::{Context, accounts_for};
use crate::engine::{Account, Engine};
use crate::error::Error;
use crate::plans::keep_plan;
use crate::toolchain::Toolchain;

/// A run that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Its id.
    pub run: RunId,
    /// The commit that tasks start from.
    pub base: Oid,
    /// The branch that results land on.
    pub target: String,
}

/// Puts a run on record. Its tasks start as soon as this returns.
///
/// # Errors
/// Where the repository, the target, the accounts or the agents do not allow it.
pub async fn start(engine: &Engine, plan: &Plan) -> Result<Start, Error> {
    let context = engine.context()?;
    if let Some((_, error)) = hindrances(plan, &context.infos, &context.toolchain).into_iter().next() {
        return Err(error);
    }
    let tasks = plan.tasks.iter().map(|task| Ok((task.id.clone(), task_spec(context, plan, task)?)));
    let tasks = tasks.collect::<Result<Vec<(TaskId, TaskSpec)>, Error>>()?;
    let run = new_id(engine, plan).await?;
    let target = plan.run.target_of(&run);
    let (id, wanted) = (run.clone(), target.clone());
    let base = context.in_git(move |git| git.begin(&id, &wanted)).await?;

    let hash = keep_plan(&context.home, plan)?;
    context.secret(&run)?;

    let spec = RunSpec {
        plan: hash,
        base: base.clone(),
        target: target.clone(),
        concurrency: match plan.run.concurrency {
            Concurrency::Fixed(concurrency) => concurrency,
            Concurrency::Auto => CONCURRENCY_AUTO,
        },
        auto_land: plan.run.land == Land::Auto,
        seed: outlast_core::hash::fnv1a(run.as_str().as_bytes()),
        budget: allowed(plan.run.budget),
        hold_max_ms: plan.run.hold_ms,
    };
    engine.handle().tell(Command::StartRun { run: run.clone(), spec, tasks }).await?;
    Ok(Start { run, base, target })
}

/// A plan's budget in the core's terms.
fn allowed(budget: Budget) -> Allowed {
    Allowed { usd_nanos: budget.usd_micros.map(|micros| micros.saturating_mul(1000)), tokens: budget.tokens }
}

/// What keeps agents of a plan from starting on this host, or from being answered, each with the first task that it keeps back.
/// Nothing is spent to find out.
pub fn unable_agents(plan: &Plan, accounts: &[Account], toolchain: &Toolchain) -> Vec<(TaskId, Error)> {
    let infos: Vec<_> = accounts.iter().map(crate::engine::info).collect();
    hindrances(plan, &infos, toolchain)
}

fn hindrances(plan: &Plan, infos: &[AccountInfo], toolchain: &Toolchain) -> Vec<(TaskId, Error)> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for task in &plan.tasks {
        let Some(agent) = plan.agent(task) else { continue };
        let model = plan.model(task);
        if seen.insert((&task.agent, model)) {
            let checked = check_agent(&task.agent, agent, model, infos, toolchain);
            found.extend(checked.err().map(|error| (task.id.clone(), error)));
        }
    }
    // What is wrong with the plan is told before what this host lacks.
    found.sort_by_key(|(_, error)| matches!(error, Error::AgentMissing { .. }));
    found
}

fn check_agent(
    name: &AgentName,
    agent: &AgentSpec,
    model: Option<&str>,
    infos: &[AccountInfo],
    toolchain: &Toolchain,
) -> Result<(), Error> {
    let kind = Kind::from_name(&agent.kind).ok_or_else(|| Error::AgentMissing { program: agent.kind.clone() })?;
    if adapter(kind).needs_model() && model.is_none() {
        return Err(Error::ModelMissing { agent: name.clone(), kind: kind.name() });
    }
    let is_command = kind == Kind::Command;
    let accounts = accounts_for(infos, agent, kind);
    if accounts.is_empty() && !is_command {
        return Err(Error::NoAccount { agent: name.clone() });
    }
    check_model(name, agent, kind, model, infos, &accounts)?;
    let program = match kind.program() {
        Some(program) => program.to_owned(),
        None => agent.command.first().cloned().unwrap_or_default(),
    };
    // A path without a root lies in the workspace, which does not exist yet.
    let there = match program.contains('/') {
        true => !program.starts_with('/') || Path::new(&program).exists(),
        false => toolchain.find(&program).is_some(),
    };
    if there { Ok(()) } else { Err(Error::AgentMissing { program }) }
}

/// Refuses a model that none of an agent's accounts is for: each of its requests would be.
fn check_model(
    name: &AgentName,
    agent: &AgentSpec,
    kind: Kind,
    model: Option<&str>,
    infos: &[AccountInfo],
    accounts: &[AccountId],
) -> Result<(), Error> {
    // A command may ask for another model than it is told, or of somebody else: only one that is told it, and that is to use
    // accounts, is taken at its word.
    let is_told = || {
        let holds = |text: &String| text.contains("{model}");
        !agent.accounts.is_empty() && (agent.command.iter().any(holds) || agent.env.values().any(holds))
    };
    let Some(model) = model.filter(|_| kind != Kind::Command || is_told()) else { return Ok(()) };
    let may_use: Vec<&AccountInfo> = infos.iter().filter(|info| accounts.contains(&info.id)).collect();
    if may_use.is_empty() || may_use.iter().any(|info| may_be_for_model(&info.models, model)) {
        return Ok(());
    }
    let are_for = may_use.iter().map(|info| format!("`{}` is for {}", info.id, info.models.join(", ")));
    let accounts = are_for.collect::<Vec<_>>().join("; ");
    Err(Error::ModelNotAllowed { agent: name.clone(), model: model.to_owned(), accounts })
}

fn task_spec(context: &Context, plan: &Plan, task: &Task) -> Result<TaskSpec, Error> {
    let agent = plan.agent(task).ok_or_else(|| Error::Internal(format!("no agent `{}`", task.agent)))?;
    let kind = Kind::from_name(&agent.kind).ok_or_else(|| Error::AgentMissing { program: agent.kind.clone() })?;
    let accounts = context.accounts_of(agent, kind);
    let is_command = kind == Kind::Command;
    if accounts.is_empty() && !is_command {
        return Err(Error::NoAccount { agent: task.agent.clone() });
    }
    Ok(TaskSpec {
        needs: task.needs.clone(),
        writes: task.writes.clone(),
        agent: task.agent.clone(),
        // A command may never ask a model anything: it is only held up by a quota where the plan names one.
        needs_quota: !is_command || !agent.accounts.is_empty(),
        accounts,
        retries: task.retries,
        startup_retries: Some(STARTUP_RETRIES),
        empty_retries: Some(EMPTY_RETRIES),
    })
}

/// How many tries in a row follow one that never began: a program that hangs at its start twice does so each time.
const STARTUP_RETRIES: u32 = 1;

/// How many tries in a row follow one whose agent took its work for done and had changed nothing: it was told so once, and says so again.
const EMPTY_RETRIES: u32 = 1;

/// What it means for a task of a plan to be given to another of its agents.
///
/// # Errors
/// Where the plan has no such agent, or it could not start here.
pub fn assigned(plan: &Plan, agent: &str, accounts: &[Account]) -> Result<Assigned, Error> {
    let name = AgentName::new(agent);
    let Some(spec) = plan.agents.get(&name) else {
        let known: Vec<&str> = plan.agents.keys().map(AgentName::as_str).collect();
        return Err(Error::AgentUnknown { agent: agent.to_owned(), known: known.join(", ") });
    };
    let kind = Kind::from_name(&spec.kind).ok_or_else(|| Error::AgentMissing { program: spec.kind.clone() })?;
    if adapter(kind).needs_model() && spec.model.is_none() {
        return Err(Error::ModelMissing { agent: name, kind: kind.name() });
    }
    let infos: Vec<_> = accounts.iter().map(crate::engine::info).collect();
    let accounts = accounts_for(&infos, spec, kind);
    let is_command = kind == Kind::Command;
    if accounts.is_empty() && !is_command {
        return Err(Error::NoAccount { agent: name });
    }
    check_model(&name, spec, kind, spec.model.as_deref(), &infos, &accounts)?;
    Ok(Assigned { agent: name, needs_quota: !is_command || !spec.accounts.is_empty(), accounts })
}

/// A name for the run that is short, says which plan it is, and is new.
async fn new_id(engine: &Engine, plan: &Plan) -> Result<RunId, Error> {
    let name = TaskId::new(&plan.run.name).slug();
    loop {
        let mut bytes = [0; 2];
        getrandom::fill(&mut bytes).map_err(|e| Error::Internal(format!("no random bytes: {e}")))?;
        let id = RunId::new(format!("{name}-{}", crate::home::hex(&bytes)));
        let candidate = id.clone();
        if !engine.handle().look(move |core| core.runs.contains_key(&candidate)).await? {
            return Ok(id);
        }
    }
}
