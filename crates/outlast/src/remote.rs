//! Asking a running engine to act, over its local API.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use outlast_api::{Act, Acted, Diagnostic, ExitCode};
use outlast_engine::Holder;
use tokio::net::TcpStream;

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
    let answer = sender.send_request(request).await.map_err(|error| gone(&error))?;
    let status = answer.status();
    let bytes = answer.into_body().collect().await.map_err(|error| gone(&error))?.to_bytes();
    driving.abort();
    if status.is_success() {
        return Ok(bytes);
    }
    match serde_json::from_slice::<Diagnostic>(&bytes) {
        Ok(diagnostic) => Err(diagnostic.into()),
        Err(_) => Err(odd(format!("it answered {status}"))),
    }
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
