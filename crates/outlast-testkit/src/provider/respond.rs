//! From one HTTP request to one HTTP response: reads it, asks the books, performs the ruling.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::{Question, reply};
use super::arrival::{Arrival, Ruling};
use super::fault::Fault;
use super::keeper::{Keeper, unix_now, unix_now_ms};
use super::latency::Latency;
use super::log::{Ended, LogEntry};
use super::player::{Body, Exchange, beats, play};
use super::refusal::{Refusal, RefusalKind};
use super::route::{Route, key, route};
use crate::script::Scenario;
use crate::wire::{Answer, Dialect, Frame};

/// What every connection needs.
pub(super) struct Responder {
    pub keeper: Keeper,
    pub scenarios: BTreeMap<String, Scenario>,
    pub fallback: Option<String>,
    pub keys: Option<Vec<String>>,
    pub models: Vec<String>,
    pub frame_delay: Duration,
    pub latency: Latency,
}

/// Answers one request. An error closes the connection without a word.
pub(super) async fn respond(responder: Arc<Responder>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let route = route(&parts.method, &parts.uri, &parts.headers);
    let entry = entry(&parts, &body);
    let accepted = responder.keys.as_ref().is_none_or(|keys| keys.contains(&entry.key));
    let keeper = &responder.keeper;
    let told = match route {
        Route::Bill => return Ok(json_response(200, &json!(keeper.bill().await))),
        Route::Log => return Ok(json_response(200, &json!(keeper.log().await))),
        Route::Reachable => plain(200, Value::Null),
        Route::Unknown => plain(404, json!({"error": {"type": "not_found_error", "message": "not found"}})),
        Route::Models(dialect) | Route::CountTokens(dialect) | Route::Generate { dialect, .. } if !accepted => {
            Refusal::of(RefusalKind::Auth, dialect, None, unix_now())
        }
        Route::Models(dialect) => plain(200, model_list(dialect, &responder.models)),
        Route::CountTokens(Dialect::Gemini) => plain(200, json!({"totalTokens": body.len().div_ceil(4)})),
        Route::CountTokens(_) => plain(200, json!({"input_tokens": body.len().div_ceil(4)})),
        Route::Generate { dialect, path_model, path_stream } => {
            return generate(&responder, entry, dialect, (path_model, path_stream), body).await;
        }
    };
    Ok(tell(keeper, entry, body, &told))
}

fn plain(status: u16, body: Value) -> Refusal {
    Refusal { status, headers: Vec::new(), body }
}

/// Sends a fixed response and logs the request.
fn tell(keeper: &Keeper, mut entry: LogEntry, body: Bytes, response: &Refusal) -> Response<Body> {
    entry.status = response.status;
    entry.ended = if response.status < 400 { Ended::Complete } else { Ended::Refused };
    keeper.note(entry, body);
    refused(response)
}

fn entry(parts: &http::request::Parts, body: &Bytes) -> LogEntry {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    LogEntry {
        number: 0,
        arrived_at_ms: unix_now_ms(),
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map_or_else(|| parts.uri.to_string(), ToString::to_string),
        headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        key: key(&parts.headers, parts.uri.query()),
        dialect: None,
        model: String::new(),
        stream: false,
        body_bytes: body.len() as u64,
        body_sha256: Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect(),
        scenario: None,
        step: None,
        background: false,
        status: 0,
        fault: None,
        window: None,
        into_closed_window: false,
        ended: Ended::Open,
        billed: None,
    }
}

async fn generate(
    responder: &Responder,
    mut entry: LogEntry,
    dialect: Dialect,
    (path_model, path_stream): (Option<String>, bool),
    body: Bytes,
) -> io::Result<Response<Body>> {
    entry.dialect = Some(dialect);
    let read = serde_json::from_slice::<Value>(&body).map_err(|error| error.to_string());
    let read = read.and_then(|value| dialect.read_request(&value).map_err(|error| error.to_string()));
    let replied = read.and_then(|mut conversation| {
        conversation.model = path_model.unwrap_or(conversation.model);
        conversation.stream |= path_stream;
        entry.model.clone_from(&conversation.model);
        entry.stream = conversation.stream;
        let now = unix_now();
        let question = Question {
            dialect,
            conversation: &conversation,
            body_bytes: body.len(),
            body_digest: &entry.body_sha256,
            now,
        };
        reply(question, &responder.scenarios, responder.fallback.as_deref())
    });
    let reply = match replied {
        Ok(reply) => reply,
        Err(why) => {
            let kind = if dialect == Dialect::Gemini { "INVALID_ARGUMENT" } else { "invalid_request_error" };
            return Ok(tell(&responder.keeper, entry, body, &plain(400, dialect.error_body(400, kind, &why))));
        }
    };
    entry.scenario.clone_from(&reply.scenario);
    entry.step = reply.step;
    entry.background = reply.background;
    let stream = entry.stream;
    let (conversation, faults) = (reply.conversation.clone(), reply.faults.clone());
    let arrival = Arrival { entry, dialect, conversation, faults, body };
    match responder.keeper.rule(arrival).await {
        Some(Ruling::Answer { number, fault, headroom }) => {
            let latency = responder.latency.of(reply.scenario.as_deref().unwrap_or_default(), reply.step.unwrap_or(0));
            let exchange = Exchange::new(responder.keeper.clone(), number, reply.answer.usage);
            let mut response = perform(responder, exchange, latency, (dialect, stream), &reply.answer, fault).await?;
            set_headers(&mut response, &headroom);
            Ok(response)
        }
        Some(Ruling::Refuse { refusal }) => Ok(refused(&refusal)),
        None => Err(io::Error::other("the provider is shutting down")),
    }
}

async fn perform(
    responder: &Responder,
    mut exchange: Exchange,
    latency: Duration,
    (dialect, stream): (Dialect, bool),
    answer: &Answer,
    fault: Option<Fault>,
) -> io::Result<Response<Body>> {
    match &fault {
        Some(Fault::Drop) => {
            exchange.settle(Ended::Cut);
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "dropped by the script"));
        }
        Some(Fault::Status { status, headers, body }) => {
            exchange.begin(*status);
            exchange.settle(Ended::Refused);
            let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            return Ok(refused(&Refusal { status: *status, headers, body: body.clone() }));
        }
        Some(Fault::Hold { seconds: Some(seconds) }) => tokio::time::sleep(Duration::from_secs_f64(*seconds)).await,
        Some(Fault::Hold { seconds: None }) => std::future::pending().await,
        _ => {}
    }
    if !latency.is_zero() {
        exchange.think();
        tokio::time::sleep(latency).await;
    }
    let frames = if stream {
        dialect.frames(answer)
    } else {
        vec![Frame { bytes: Bytes::from(dialect.whole(answer).to_string()), declares: Some(answer.usage) }]
    };
    let length: usize = frames.iter().map(|frame| frame.bytes.len()).sum();
    let shortened = matches!(fault, Some(Fault::ErrorEvent { .. } | Fault::Malformed { .. }));
    exchange.begin(200);
    let beats = beats(frames, fault.as_ref(), dialect, if stream { responder.frame_delay } else { Duration::ZERO });
    let content_type = match &fault {
        Some(Fault::ContentType { value }) => value.clone(),
        _ if stream => "text/event-stream; charset=utf-8".to_owned(),
        _ => "application/json".to_owned(),
    };
    let request_id = if dialect == Dialect::Anthropic { "request-id" } else { "x-request-id" };
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, content_type)
        .header(request_id, format!("req_{}", answer.seed));
    response = match (stream, shortened) {
        (true, _) => response.header(header::CACHE_CONTROL, "no-cache"),
        // A cut answer keeps the length of the whole one, so that its reader notices.
        (false, false) => response.header(header::CONTENT_LENGTH, length),
        (false, true) => response,
    };
    response.body(play(exchange, beats)).map_err(io::Error::other)
}

fn model_list(dialect: Dialect, models: &[String]) -> Value {
    match dialect {
        Dialect::Gemini => {
            let list: Vec<Value> = models
                .iter()
                .map(|id| json!({"name": format!("models/{id}"), "supportedGenerationMethods": ["generateContent"]}))
                .collect();
            json!({"models": list})
        }
        Dialect::Anthropic => {
            let list: Vec<Value> =
                models.iter().map(|id| json!({"type": "model", "id": id, "display_name": id})).collect();
            json!({"data": list, "has_more": false, "first_id": models.first(), "last_id": models.last()})
        }
        // Codex asks for its own catalogue; an empty one leaves it with the one it carries.
        Dialect::Responses => json!({"models": []}),
        Dialect::Chat => {
            let list: Vec<Value> =
                models.iter().map(|id| json!({"id": id, "object": "model", "owned_by": "scripted"})).collect();
            json!({"object": "list", "data": list})
        }
    }
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = json_response(refusal.status, &refusal.body);
    set_headers(&mut response, &refusal.headers);
    response
}

/// Sets headers out of a script; one that HTTP does not allow is left out, and said on stderr.
fn set_headers(response: &mut Response<Body>, headers: &[(String, String)]) {
    for (name, value) in headers {
        match (name.parse::<http::HeaderName>(), value.parse()) {
            (Ok(name), Ok(value)) => drop(response.headers_mut().insert(name, value)),
            _ => eprintln!("the scripted provider leaves out a header that is none: {name}: {value}"),
        }
    }
}

/// A string is sent as it stands, null as an empty body, anything else as JSON.
fn json_response(status: u16, body: &Value) -> Response<Body> {
    let text = match body {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut response = Response::new(BodyExt::boxed(Full::new(Bytes::from(text)).map_err(|never| match never {})));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
