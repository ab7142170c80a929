//! The one type that passes through the stages: a request as the agent sent it, taken apart but not changed.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, request};
use hyper::body::{Body as _, Incoming};
use outlast_core::Timestamp;
use outlast_journal::{Error, Ledger};

use super::body::{Body, Unread};
use super::facts::Facts;
use super::{attempt, facts, headers, key, replay};
use crate::admission::{Arrived, Ask};
use crate::answer::OwnError;
use crate::context_window;
use crate::dialect::{self, Dialect, Endpoint, Operation};

/// A request whose key, attempt and dialect are known.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) endpoint: Endpoint,
    pub(crate) method: Method,
    /// The path after the attempt's prefix.
    pub(crate) path: String,
    /// The query without a key in it; `None` when there was none.
    pub(crate) query: Option<String>,
    /// Ready to go upstream but for the account's credential.
    pub(crate) headers: Arc<HeaderMap>,
    body: Body,
    pub(crate) facts: Facts,
    ask: Arc<Ask>,
}

/// Why a request got no further than its own reading.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// The gateway answers by itself, in this dialect.
    Answer(OwnError, Dialect),
    /// The client went away in the middle of its request.
    Gone,
}

/// Where a request goes, told before its body is read.
#[derive(Debug)]
pub(crate) struct Routed {
    endpoint: Endpoint,
    path: String,
    attempt: Option<String>,
}

impl Routed {
    pub(crate) const fn endpoint(&self) -> Endpoint {
        self.endpoint
    }
}

/// Finds attempt and endpoint.
pub(crate) fn route(parts: &request::Parts) -> Result<Routed, Unreadable> {
    let split = attempt::split(parts.uri.path());
    let path = if split.rest.is_empty() { "/" } else { split.rest };
    if dialect::climbs(path) {
        let message = format!("outlast: a path with `.` or `..` in it is not sent on: {path}");
        let error = OwnError::new(StatusCode::BAD_REQUEST, "path_climbs", message);
        return Err(Unreadable::Answer(error, dialect::guess(path, &parts.headers)));
    }
    let Some(endpoint) = dialect::endpoint(&parts.method, path, &parts.headers) else {
        let message = format!("outlast: the gateway does not serve {} {path}", parts.method);
        let error = OwnError::new(StatusCode::NOT_FOUND, "not_served", message);
        return Err(Unreadable::Answer(error, dialect::guess(path, &parts.headers)));
    };
    Ok(Routed { endpoint, path: path.to_owned(), attempt: split.attempt.map(str::to_owned) })
}

/// Whose request it says it is: the attempt that its path names, and the key that it shows.
pub(crate) fn asker(parts: &request::Parts, routed: &Routed) -> (Option<String>, String) {
    (routed.attempt.clone(), key::presented(&parts.headers, parts.uri.query()).unwrap_or_default())
}

/// Reads the whole request, at most `bytes_max` of body.
pub(crate) async fn read(
    parts: request::Parts,
    body: Incoming,
    routed: Routed,
    bytes_max: usize,
    received_at: Timestamp,
) -> Result<Inbound, Unreadable> {
    let Routed { endpoint, path, attempt } = routed;
    let too_long = || {
        let message = format!("outlast: the request is longer than {bytes_max} bytes");
        let error = OwnError::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_long", message);
        Unreadable::Answer(error, endpoint.dialect)
    };
    // One that says how long it is need not be sent first.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_long());
    }
    let body = match Body::read(body, bytes_max).await {
        Ok(body) => body,
        Err(Unread::TooLong) => return Err(too_long()),
        Err(Unread::Gone) => return Err(Unreadable::Gone),
    };
    let facts = facts::read(endpoint, &path, &body);
    let query = parts.uri.query();
    let clean_query = query.map(key::query_without_key).filter(|q| !q.is_empty() || query == Some(""));
    let request = match endpoint.operation {
        // What a client was given that is no attempt is never given again.
        Operation::Generate if attempt.is_some() => replay::name_of(&path, clean_query.as_deref(), &body),
        _ => String::new(),
    };
    let sub_agent = facts::sub_agent(&parts.headers);
    let ask = Ask {
        // Of a client that is no attempt nobody asks.
        context_tokens: attempt
            .as_ref()
            .and_then(|_| context_window::tokens(endpoint.dialect, facts.model.as_deref(), &parts.headers)),
        path_attempt: attempt,
        key: key::presented(&parts.headers, query).unwrap_or_default(),
        dialect: endpoint.dialect,
        model: facts.model.clone(),
        request_bytes: body.len() as u64,
        request,
        turn_kind: facts::turn_kind(endpoint, sub_agent.as_deref(), &facts),
        sub_agent,
        received_at,
        again_after: None,
    };
    Ok(Inbound {
        headers: Arc::new(headers::for_upstream(&parts.headers)),
        query: clean_query,
        method: parts.method,
        endpoint,
        path,
        body: Body::Here(body),
        facts,
        ask: Arc::new(ask),
    })
}

impl Inbound {
    /// See [`Ask::request`].
    pub(crate) fn request(&self) -> &str {
        &self.ask.request
    }

    /// What `Admission` is told of it once.
    ///
    /// # Errors
    /// As [`Inbound::body`].
    pub(crate) fn arrived(&self) -> Result<Arrived, Error> {
        Ok(Arrived { ask: self.ask(), body: self.body()? })
    }

    /// Its body.
    ///
    /// # Errors
    /// Where it was put aside and the disk does not give it back.
    pub(crate) fn body(&self) -> Result<Bytes, Error> {
        self.body.bytes()
    }

    /// Whether it takes memory that it need not take while it waits.
    pub(crate) fn fills_memory(&self) -> bool {
        self.body.fills_memory()
    }

    /// Puts its body on disk until it is asked for; where there is no room, it stays where it is.
    pub(crate) fn put_aside(&mut self, ledger: &Ledger) {
        self.body.put_aside(ledger);
    }

    /// What is asked of `Admission` for the first time.
    pub(crate) fn ask(&self) -> Arc<Ask> {
        Arc::clone(&self.ask)
    }

    /// What is asked of it after a refusal.
    pub(crate) fn ask_after(&self, refused: String) -> Arc<Ask> {
        Arc::new(Ask { again_after: Some(refused), ..Ask::clone(&self.ask) })
    }
}
