//! Asking a running engine to act, over its local API.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use outlast_api::{Act, Acted, Diagnostic, ExitCode};
use outlast_engine::Holder;
use tokio::net::TcpStream;

use crate::commands::say;
use crate::failure::Failure;

/// Asks the engine that holds the home's lock.
pub(crate) async fn act(holder: &Holder, act: &Act) -> Result<Acted, Failure> {
    let body = serde_json::to_vec(act).map_err(|error| odd(error.to_string()))?;
    let answer = request(holder, "POST", "/v1/act", body).await?;
    serde_json::from_slice(&answer).map_err(|error| odd(error.to_string()))
}

/// Waits until nothing of the run is in flight in that engine.
pub(crate) async fn until_settled(holder: &Holder, run: &str) -> Result<(), Failure> {
    request(holder, "GET", &format!("/v1/runs/{run}/settled"), Vec::new()).await.map(drop)
}

/// Whether an engine that was asked is on its way out, or gone.
pub(crate) fn is_leaving(failure: &Failure) -> bool {
    matches!(failure.diagnostic().code.as_str(), "engine/stopped" | GONE)
}

/// What an engine says that does not know a run which its repository's journal holds: it works on another repository.
pub(crate) fn is_elsewhere(failure: &Failure) -> bool {
    failure.diagnostic().code == "run/none"
}

/// The engine's answer, where it is a good one.
async fn request(holder: &Holder, method: &str, path: &str, body: Vec<u8>) -> Result<Bytes, Failure> {
    let (Some(address), Some(token)) = (&holder.api, &holder.token) else {
        let what = "the running engine is still starting";
        return Err(Diagnostic::error("engine/starting", ExitCode::Host, what).fix("outlast status").into());
    };
    let stream = TcpStream::connect(address).await.map_err(|error| gone(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| gone(&error))?;
    let driving = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", address)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| odd(error.to_string()))?;
    let asked = async {
        let answer = sender.send_request(request).await.map_err(|error| gone(&error))?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.map_err(|error| gone(&error))?.to_bytes();
        Ok::<_, Failure>((status, bytes))
    };
    let (status, bytes) = told_of_silence(holder, asked).await?;
    driving.abort();
    if status.is_success() {
        return Ok(bytes);
    }
    match serde_json::from_slice::<Diagnostic>(&bytes) {
        Ok(diagnostic) => Err(diagnostic.into()),
        Err(_) => Err(odd(format!("it answered {status}"))),
    }
}

/// Waits for an answer, and says why where it cannot come: an engine that is suspended keeps everybody waiting.
async fn told_of_silence<T>(holder: &Holder, asked: impl Future<Output = T>) -> T {
    tokio::pin!(asked);
    tokio::select! {
        answer = &mut asked => return answer,
        () = tokio::time::sleep(SILENCE_MAX) => {}
    }
    let pid = holder.pid;
    if is_suspended(pid) {
        say(&format!(
            "the engine (process {pid}) is suspended: nothing goes on until it is woken. Wake it with: kill -CONT {pid}"
        ));
    }
    asked.await
}

/// How long an answer may take before somebody wants to know why.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Whether a process was stopped by a signal, such as that of Ctrl-Z, and not woken since.
fn is_suspended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The command's name may hold anything: what follows it begins after the last bracket.
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['T', 't']))
}

/// The code of an engine that was there and is not any more.
const GONE: &str = "engine/gone";

fn gone(why: &dyn std::error::Error) -> Failure {
    Diagnostic::error(GONE, ExitCode::Host, "the engine has ended meanwhile")
        .because(why.to_string())
        .fix("outlast status")
        .into()
}

fn odd(why: String) -> Failure {
    Diagnostic::error("engine/unreachable", ExitCode::Host, "the running engine is not understood")
        .because(why)
        .fix("outlast status")
        .into()
}
