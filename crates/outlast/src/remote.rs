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
    let body = serde_json::to_vec(act).map_err(|error| gone(error.to_string()))?;
    let (status, answer) = request(holder, "POST", "/v1/act", body).await?;
    if status.is_success() {
        return serde_json::from_slice(&answer).map_err(|error| gone(error.to_string()));
    }
    match serde_json::from_slice::<Diagnostic>(&answer) {
        Ok(diagnostic) => Err(diagnostic.into()),
        Err(_) => Err(gone(format!("it answered {status}"))),
    }
}

/// Waits until nothing of the run is in flight in that engine.
pub(crate) async fn until_settled(holder: &Holder, run: &str) -> Result<(), Failure> {
    let (status, _) = request(holder, "GET", &format!("/v1/runs/{run}/settled"), Vec::new()).await?;
    if status.is_success() { Ok(()) } else { Err(gone(format!("it answered {status}"))) }
}

/// Whether an engine that was asked is on its way out.
pub(crate) fn is_leaving(failure: &Failure) -> bool {
    matches!(failure.diagnostic().code.as_str(), "engine/stopped" | "engine/unreachable")
}

async fn request(
    holder: &Holder,
    method: &str,
    path: &str,
    body: Vec<u8>,
) -> Result<(hyper::StatusCode, Bytes), Failure> {
    let (Some(address), Some(token)) = (&holder.api, &holder.token) else {
        return Err(gone("it is still starting".to_owned()));
    };
    let stream = TcpStream::connect(address).await.map_err(|error| gone(error.to_string()))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| gone(error.to_string()))?;
    let driving = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", address)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| gone(error.to_string()))?;
    let answer = sender.send_request(request).await.map_err(|error| gone(error.to_string()))?;
    let status = answer.status();
    let bytes = answer.into_body().collect().await.map_err(|error| gone(error.to_string()))?.to_bytes();
    driving.abort();
    Ok((status, bytes))
}

fn gone(why: String) -> Failure {
    Diagnostic::error("engine/unreachable", ExitCode::Host, "the running engine does not answer")
        .because(why)
        .fix("outlast status")
        .into()
}
