//! The local HTTP API for the faces: loopback only, and only with the token that the home's lock file holds.

use std::net::{Ipv4Addr, SocketAddr};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use outlast_api::{Act, Acted, ActedTask, Diagnostic, ExitCode, schema};
use outlast_core::admit::{Command, Rejection};
use outlast_core::budget::Allowed;
use outlast_core::record::Assigned;
use outlast_core::task::Phase;
use outlast_core::{AccountId, AgentName, RunId, TaskId};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::held_up::HeldUp;
use crate::home::hex;
use crate::keys::same;
use crate::runs::Rest;
use crate::state_loop::LoopHandle;

#[derive(Clone)]
struct Api {
    engine: LoopHandle,
    token: String,
}

/// A new token: whoever can read the home's lock file may act, nobody else.
///
/// # Errors
/// Where the system has no random bytes.
pub(crate) fn token() -> Result<String, Error> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|e| Error::Internal(format!("no random bytes: {e}")))?;
    Ok(hex(&bytes))
}

/// Serves until `leaving`, and says where.
///
/// # Errors
/// Where no loopback port can be bound.
pub(crate) async fn serve(engine: LoopHandle, token: &str, leaving: CancellationToken) -> Result<SocketAddr, Error> {
    let failed = |e: std::io::Error| Error::Internal(format!("the local API cannot listen: {e}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let api = Api { engine, token: token.to_owned() };
    let router =
        Router::new().route("/v1/act", post(act)).route("/v1/runs/{run}/settled", get(settled)).with_state(api);
    tokio::spawn(async move {
        let served = axum::serve(listener, router).with_graceful_shutdown(async move { leaving.cancelled().await });
        if let Err(error) = served.await {
            tracing::warn!(%error, "the local API ended");
        }
    });
    Ok(address)
}

fn authorised(api: &Api, headers: &HeaderMap) -> bool {
    let shown = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    shown.is_some_and(|shown| same(shown, &api.token))
}

fn refuse(status: StatusCode, diagnostic: Diagnostic) -> Response {
    (status, Json(diagnostic)).into_response()
}

fn unauthorised() -> Response {
    let what = "the request shows no token of this engine";
    refuse(StatusCode::UNAUTHORIZED, Diagnostic::error("engine/unauthorised", ExitCode::Usage, what))
}

async fn act(State(api): State<Api>, headers: HeaderMap, Json(act): Json<Act>) -> Response {
    if !authorised(&api, &headers) {
        return unauthorised();
    }
    match crate::runs::unless_full(&api.engine, perform(&api.engine, act)).await {
        Ok(Some(acted)) => Json(acted).into_response(),
        Ok(None) => refuse(StatusCode::CONFLICT, crate::diagnose::nothing_on_record(api.engine.folder())),
        Err(error) => refuse(StatusCode::CONFLICT, crate::diagnose::diagnostic(&error)),
    }
}

/// Answers once nothing of the run is in flight, or what is left of it comes to nothing each time.
async fn settled(State(api): State<Api>, headers: HeaderMap, Path(run): Path<String>) -> Response {
    if !authorised(&api, &headers) {
        return unauthorised();
    }
    match crate::runs::until_parked(&api.engine, &RunId::new(run)).await {
        Ok(Rest::Settled) => StatusCode::NO_CONTENT.into_response(),
        Ok(Rest::HeldUp(told)) => refuse(StatusCode::CONFLICT, *told),
        Err(error) => refuse(StatusCode::CONFLICT, crate::diagnose::diagnostic(&error)),
    }
}

/// Does what a face asks for. Each task of a list is told apart: one that is refused does not hold up the others.
///
/// # Errors
/// Where there is no such run, or the engine is on its way out.
pub async fn perform(engine: &LoopHandle, act: Act) -> Result<Acted, Error> {
    let (run, tasks) = match act {
        Act::Pause { run } => (tell_run(engine, run, Command::PauseRun).await?, Vec::new()),
        Act::Resume { run } => (tell_run(engine, run, Command::ResumeRun).await?, Vec::new()),
        Act::TryNow { run } => (tell_run(engine, run, Command::TryNow).await?, Vec::new()),
        Act::Stop { run } => (tell_run(engine, run, Command::StopRun).await?, Vec::new()),
        Act::Budget { run, usd_nanos, tokens } => {
            let allowed = Allowed { usd_nanos, tokens };
            (tell_run(engine, run, |run| Command::ChangeBudget { run, allowed }).await?, Vec::new())
        }
        Act::Land { run, tasks } => {
            let id = RunId::new(&run);
            (run, each(engine, &id, tasks, |run, task| Command::Land { run, task }).await?)
        }
        Act::Discard { run, tasks } => {
            let id = RunId::new(&run);
            (run, each(engine, &id, tasks, |run, task| Command::Discard { run, task }).await?)
        }
        Act::Assign { run, tasks, agent, accounts, needs_quota } => {
            let id = RunId::new(&run);
            let accounts = accounts.into_iter().map(AccountId::new).collect();
            let to = Assigned { agent: AgentName::new(agent), accounts, needs_quota };
            let assign = |run, task| Command::Assign { run, task, assigned: to.clone() };
            (run, each(engine, &id, tasks, assign).await?)
        }
        Act::Retry { run, tasks } => {
            let id = RunId::new(&run);
            (run, each(engine, &id, tasks, |run, task| Command::Retry { run, task }).await?)
        }
    };
    Ok(Acted { schema: schema("act"), run, tasks })
}

async fn tell_run(engine: &LoopHandle, run: String, command: impl FnOnce(RunId) -> Command) -> Result<String, Error> {
    engine.tell(command(RunId::new(&run))).await?;
    Ok(run)
}

async fn each(
    engine: &LoopHandle,
    run: &RunId,
    tasks: Vec<String>,
    command: impl Fn(RunId, TaskId) -> Command,
) -> Result<Vec<ActedTask>, Error> {
    let mut refusals = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let refused = match engine.tell(command(run.clone(), TaskId::new(task))).await {
            Ok(()) => None,
            Err(Error::Rejected(
                rejection @ (Rejection::Illegal { .. }
                | Rejection::NeedNotLanded { .. }
                | Rejection::NeedWithoutResult { .. }),
            )) => Some(rejection),
            Err(error) => return Err(error),
        };
        refusals.push(refused);
    }
    crate::runs::until_tasks_settled(engine, run, &tasks).await?;
    let (id, held_up) = (run.clone(), engine.held_up().clone());
    engine.look(move |core| acted(core, &held_up, &id, tasks, refusals)).await
}

fn acted(
    core: &outlast_core::Core,
    held_up: &HeldUp,
    run: &RunId,
    tasks: Vec<String>,
    refusals: Vec<Option<Rejection>>,
) -> Vec<ActedTask> {
    let found = |id: &str| core.run(run).and_then(|run| run.task(&TaskId::new(id)));
    let lines = tasks.into_iter().zip(refusals).map(|(id, refused)| {
        let task = found(&id);
        let (landed, cause, detail) = match task.map(|task| &task.phase) {
            Some(Phase::Landed { commit, .. }) => (Some(commit.to_string()), None, None),
            Some(Phase::Done(finished)) => {
                let refused = finished.refused.as_ref();
                (None, refused.map(|r| r.cause.name().to_owned()), refused.map(|r| r.detail.clone()))
            }
            _ => (None, None, None),
        };
        let state = task.map(outlast_core::task::Task::state).unwrap_or_default().to_owned();
        // An order that people can put right is a conflict; a state in which this is impossible has no cause to mend.
        let cause = match &refused {
            Some(Rejection::NeedNotLanded { .. }) => Some("need_not_landed".to_owned()),
            Some(_) => None,
            None => cause,
        };
        // What was asked for is on record, and comes to nothing for now.
        let is_under_way = task.is_some_and(|task| !crate::runs::is_at_rest(task));
        let held_up = held_up.why_of(run, &TaskId::new(&id)).filter(|_| is_under_way);
        let cause = cause.or_else(|| held_up.as_ref().map(|_| crate::views::TRIED_AGAIN.to_owned()));
        let detail = detail.or(held_up.map(|told| told.what));
        ActedTask {
            id,
            state,
            landed,
            by_hand: false,
            landed_with: None,
            refused: refused.map(|refused| refused.to_string()).or(detail),
            cause,
            kept: None,
            archive: None,
            get_back: None,
            lost: None,
            put_away: Vec::new(),
            dependants: Vec::new(),
        }
    });
    lines.collect()
}
