//! Stage "replay": an answer that was paid for and never arrived is given out of the ledger, whole and as it was.
//!
//! Which answer that is, and whether it may be given again, is decided behind [`Admission`](crate::Admission). Giving it
//! has a row of its own in the ledger, which names the exchange that was paid for and costs nothing.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use outlast_journal::{AnswerHead, BodyHash, Closing, Opening, Outcome, Spool, Usage};
use serde_json::Value;

use super::headers;
use super::inbound::Inbound;
use crate::admission::{Grant, Recorded, Settled};
use crate::answer::Answer;
use crate::clock::now;
use crate::gateway::Shared;

/// Names the exchange whose answer is given again, to the client and in the ledger.
const REPLAY_OF: &str = "x-outlast-replay-of";
/// Under which an answer's kept headers name the request, in the ledger alone.
const REQUEST: &str = "x-outlast-request";

/// Everything of an answer out of the ledger was paid for already.
const NOTHING: Usage = Usage {
    input: Some(0),
    cache_write_5m: Some(0),
    cache_write_1h: Some(0),
    cache_read: Some(0),
    output: Some(0),
    reasoning: Some(0),
};

/// The name of a request: see [`crate::Ask::request`].
pub(super) fn name_of(path: &str, query: Option<&str>, body: &[u8]) -> String {
    let (mark, query) = query.map_or((&b""[..], &b""[..]), |query| (b"?", query.as_bytes()));
    // No path holds a line break, so that no body can pass for a part of one.
    BodyHash::of_parts([path.as_bytes(), mark, query, b"\n", body]).to_string()
}

/// What the ledger keeps of an answer's headers: those of the answer, and the name of what it answers.
pub(super) fn headers_kept(clean: &HeaderMap, request: &str, replay_of: Option<&HeaderValue>) -> String {
    let named = Some(request.as_bytes()).filter(|request| !request.is_empty());
    let ours = [(REPLAY_OF, replay_of.map(HeaderValue::as_bytes)), (REQUEST, named)];
    headers::as_json(clean, &ours)
}

/// The name of the request that an answer in the ledger was given to, out of the headers that were kept of it; nothing
/// where it was recorded before requests had names.
pub fn recorded_request(headers: &str) -> Option<String> {
    let headers: Value = serde_json::from_str(headers).ok()?;
    Some(headers.get(REQUEST)?.as_str()?.to_owned())
}

/// The recorded answer to a request; nothing where there is none, or where it cannot be given.
pub(crate) fn response(shared: &Arc<Shared>, inbound: &Inbound, recorded: Recorded) -> Option<Response<Answer>> {
    let Recorded { of, grant, status, headers, body } = recorded;
    let mut replay = Replay {
        shared: Arc::clone(shared),
        model: inbound.facts.model.clone(),
        status,
        grant,
        body: None,
        spool: None,
        is_open: true,
        started_at: now(),
    };
    let opening = Opening {
        exchange: replay.grant.exchange_id.clone(),
        attempt: replay.grant.attempt.clone(),
        turn: replay.grant.turn,
        dialect: inbound.endpoint.dialect.as_str().to_owned(),
        model: replay.model.clone(),
        account: replay.grant.account.clone(),
        started_at: replay.started_at,
    };
    let of = HeaderValue::from_str(&of).ok()?;
    let clean = headers_of(&headers);
    let head = AnswerHead {
        status,
        first_byte_at: replay.started_at,
        headers: headers_kept(&clean, inbound.request(), Some(&of)),
    };
    let begun = inbound.body().and_then(|request| shared.ledger.begin(&opening, &request)).and_then(|mut spool| {
        spool.answer(&head)?;
        spool.write(&body)?;
        Ok(spool)
    });
    match begun {
        Ok(spool) => replay.spool = Some(spool),
        Err(error) => {
            tracing::error!(%error, "an answer of the ledger cannot be recorded again, so its request goes out");
            return None;
        }
    }
    replay.body = Some(body);
    let mut response = Response::new(Answer::Replay(Box::new(replay)));
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    *response.headers_mut() = clean;
    response.headers_mut().insert(HeaderName::from_static(REPLAY_OF), of);
    Some(response)
}

/// An answer's headers as the ledger kept them, without its length, which the body says itself.
fn headers_of(json: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Ok(Value::Object(kept)) = serde_json::from_str(json) else { return headers };
    for (name, value) in &kept {
        let Ok(name) = name.parse::<HeaderName>() else { continue };
        if name == CONTENT_LENGTH || name == REQUEST || name == REPLAY_OF {
            continue;
        }
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values.iter().filter_map(|value| value.as_str()?.parse().ok()) {
            headers.append(name.clone(), value);
        }
    }
    headers
}

/// The body of an answer out of the ledger.
pub(crate) struct Replay {
    shared: Arc<Shared>,
    grant: Grant,
    model: Option<String>,
    status: u16,
    /// Taken when it is given.
    body: Option<Bytes>,
    spool: Option<Spool>,
    /// Whether it is yet to be settled.
    is_open: bool,
    started_at: outlast_core::Timestamp,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("grant", &self.grant).finish_non_exhaustive()
    }
}

impl Replay {
    /// What is left to give.
    pub(crate) fn left(&self) -> usize {
        self.body.as_ref().map_or(0, Bytes::len)
    }

    /// Gives it, all at once.
    pub(crate) fn give(&mut self) -> Option<Bytes> {
        let body = self.body.take();
        self.settle(Outcome::Complete);
        body
    }

    fn settle(&mut self, outcome: Outcome) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let ended_at = now();
        let exchange_id = self.grant.exchange_id.clone();
        let recorded = self.spool.is_some();
        let unwritten = self.spool.take().map(|spool| {
            let closing = Closing { outcome, ended_at, usage: NOTHING, usd_nanos: Some(0), estimated: false };
            self.shared.backlog.add(exchange_id.clone(), spool.finish(closing), &self.shared.admission)
        });
        self.shared.admission.settle(Settled {
            exchange_id,
            account: self.grant.account.clone(),
            attempt: self.grant.attempt.clone(),
            turn: self.grant.turn,
            model: self.model.take(),
            outcome,
            status: Some(self.status),
            stream_error: None,
            usage: NOTHING,
            usd_nanos: Some(0),
            limits: Vec::new(),
            started_at: self.started_at,
            first_byte_at: Some(self.started_at),
            ended_at,
            recorded,
            replayed: true,
        });
        if let Some(unwritten) = unwritten {
            unwritten.until_written();
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // One that the ledger did not take settles too: whoever handed it out waits for that.
        self.settle(if self.spool.is_some() { Outcome::ClientGone } else { Outcome::Error });
    }
}
