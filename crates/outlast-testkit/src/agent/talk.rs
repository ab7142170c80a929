//! One request to the gateway and its answer, over plain HTTP. No retry, no timeout: the agent is naive.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::speak::{Heard, Speaker};
use crate::wire::Item;
use crate::{Error, Result};

/// Asks the model for the next turn.
///
/// # Errors
/// [`Error::Refused`] for an error status, [`Error::Connection`] for a broken connection, [`Error::Wire`] for an answer
/// that is not whole.
pub(super) async fn ask(speaker: &Speaker, items: &[Item]) -> Result<Heard> {
    let failed = |why: String| Error::Connection { address: speaker.authority.clone(), why };
    let stream = TcpStream::connect(&speaker.authority).await.map_err(|error| failed(error.to_string()))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(error.to_string()))?;
    // Ends with the connection; what goes wrong on it is told by the request below.
    let driving = tokio::spawn(connection);
    let mut request =
        Request::post(speaker.path()).header("host", &speaker.authority).header("content-type", "application/json");
    for (name, value) in speaker.headers() {
        request = request.header(name, value);
    }
    let body = Bytes::from(speaker.body(items).to_string());
    let request = request.body(Full::new(body)).map_err(|error| Error::Usage(error.to_string()))?;
    let response = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| failed(error.to_string()))?.to_bytes();
    driving.abort();
    let text = String::from_utf8_lossy(&body);
    if !parts.status.is_success() {
        let retry_after = parts.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        return Err(Error::Refused { status: parts.status.as_u16(), body: text.into_owned(), retry_after });
    }
    if speaker.streams { speaker.hear_events(&events(&text)) } else { speaker.hear_whole(&text) }
}

/// The data of each server-sent event; what is not JSON (`[DONE]`, a broken event) comes as a string.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start);
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| Value::from(data))).collect()
}
