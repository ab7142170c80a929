//! The plans that runs go by: copies that are kept when a run begins, each read once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::plan::{self, Plan};
use outlast_core::{AgentName, RunId, TaskId};
use tokio::sync::OnceCell;

use crate::context::Context;
use crate::error::Error;
use crate::home::{RepoHome, read_if_there, write_file};

/// The plans that were asked for, by run.
#[derive(Default)]
pub(crate) struct Plans(Mutex<BTreeMap<RunId, PlanCell>>);

/// A run's plan, once it is read.
type PlanCell = Arc<OnceCell<Arc<Plan>>>;

impl Context {
    /// The plan of a run, as it was when the run started.
    pub(crate) async fn plan(&self, run: &RunId) -> Result<Arc<Plan>, Error> {
        let cell =
            Arc::clone(self.plans.0.lock().unwrap_or_else(PoisonError::into_inner).entry(run.clone()).or_default());
        // Whoever comes while it is read waits for that: operations that begin together share one copy.
        let load = async || {
            let id = run.clone();
            let hash = self.engine.look(move |core| core.run(&id).map(|run| run.spec.plan.clone())).await?;
            let hash = hash.ok_or_else(|| Error::Internal(format!("no run `{run}`")))?;
            load_plan(&self.home, &hash).map(Arc::new)
        };
        cell.get_or_try_init(load).await.map(Arc::clone)
    }

    /// A task of a plan as it is worked on now: by whom it was given to, where that is another agent than the plan says.
    ///
    /// # Errors
    /// Where the plan does not hold it, or the engine has stopped.
    pub(crate) async fn task(&self, plan: &Plan, run: &RunId, task: &TaskId) -> Result<Option<plan::Task>, Error> {
        let Some(found) = plan.task(task) else { return Ok(None) };
        Ok(Some(given_to(found, self.task_facts(run, task).await?.agent)))
    }
}

/// Reads the plan of this content hash.
///
/// # Errors
/// [`Error::PlanDamaged`], also where it is gone.
pub fn load_plan(home: &RepoHome, hash: &str) -> Result<Plan, Error> {
    let path = home.plan(hash);
    let damaged = |why: String| Error::PlanDamaged { path: path.clone(), why };
    let bytes = read_if_there(&path)?.ok_or_else(|| damaged("it is gone".to_owned()))?;
    serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))
}

/// Keeps the copy of a plan that a run goes by; gives its content hash.
///
/// # Errors
/// Where the file cannot be written.
pub fn keep_plan(home: &RepoHome, plan: &Plan) -> Result<String, Error> {
    let text = serde_json::to_vec(plan).map_err(|e| Error::Internal(format!("the plan does not serialise: {e}")))?;
    let hash = outlast_config::content_hash(plan);
    write_file(&home.plan(&hash), &text)?;
    Ok(hash)
}

/// A task as an agent works on it; a model that it names is another agent's.
pub(crate) fn given_to(task: &plan::Task, agent: AgentName) -> plan::Task {
    let mut task = task.clone();
    if task.agent != agent {
        task.agent = agent;
        task.model = None;
    }
    task
}
