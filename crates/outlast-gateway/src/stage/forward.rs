//! Stage "forward": one request to one account, up to the head of the answer.
//!
//! A request goes out once per grant, or twice when the account's credential was refused and could be fetched anew.
//! Whether a refusal is tried again is never decided here.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use jiff::tz::TimeZone;
use outlast_core::reset::Said;
use outlast_journal::Outcome;

use super::account::Outgoing;
use super::headers;
use super::relay::Relay;
use super::settle::Exchange;
use crate::admission::{Refusal, RefusalKind};
use crate::answer::{Answer, OwnError};
use crate::clock::now;
use crate::credential::{Credential, CredentialError};
use crate::dialect::Dialect;
use crate::gateway::Shared;
use crate::meter::{Meter, Reading};
use crate::refusal;
use crate::secret::Secret;
use crate::upstream::Upstream;

/// The longest refusal that is read; no provider sends one of a hundredth of this.
const REFUSAL_BYTES_MAX: usize = 4 << 20;
/// How much of a refusal is shown to `Admission`.
const EXCERPT_BYTES_MAX: usize = 4 << 10;

/// What became of one try.
pub(crate) enum Tried {
    /// An answer, or an error that is the request's own fault.
    Answer(Response<Answer>),
    /// To be ruled on.
    Refused(Box<Refused>),
}

/// A refusal with everything needed to pass it on.
pub(crate) struct Refused {
    pub(crate) refusal: Refusal,
    exchange: Exchange,
    /// The provider's own answer; none when there was none.
    response: Result<Response<Answer>, OwnError>,
}

impl Refused {
    /// Settles the exchange and gives what the agent gets if the refusal is passed on.
    pub(crate) fn settle(self, dialect: Dialect) -> Response<Answer> {
        let outcome = if self.exchange.status().is_some() { Outcome::Refused } else { Outcome::Error };
        if let Some(unwritten) = self.exchange.finish(outcome, Reading::default(), None) {
            unwritten.until_written();
        }
        self.response.unwrap_or_else(|own| own.response(dialect))
    }
}

/// A request that may go out.
pub(crate) struct Ready {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) exchange: Exchange,
    pub(crate) dialect: Dialect,
    pub(crate) outgoing: Outgoing,
    /// The account's credential, or why there is none; where there is one, the exchange has begun.
    pub(crate) credential: Result<Arc<Credential>, CredentialError>,
}

/// Sends the request and waits for the head of the answer.
pub(crate) async fn send(shared: Arc<Shared>, ready: Ready) -> Tried {
    let Ready { upstream, exchange, dialect, outgoing, credential } = ready;
    let mut credential = match credential {
        Ok(credential) => credential,
        Err(error) => return no_credential(exchange, &upstream, &error.to_string()),
    };
    let mut answer = call(&shared, &upstream, &outgoing, &credential).await;
    if answer.as_ref().is_ok_and(|a| a.status() == StatusCode::UNAUTHORIZED)
        && let Ok(renewed) = upstream.credentials.renew(&credential).await
        && renewed.secret().expose() != credential.secret().expose()
    {
        credential = renewed;
        answer = call(&shared, &upstream, &outgoing, &credential).await;
    }
    match answer {
        Ok(answer) if refusal::is_refusal(answer.status()) => {
            refused(&shared, exchange, answer, credential.secret()).await
        }
        // An empty balance may look like a fault of the request; any other one is the agent's to hear.
        Ok(answer) if answer.status() == StatusCode::BAD_REQUEST => {
            match refused(&shared, exchange, answer, credential.secret()).await {
                Tried::Refused(refused) if refused.refusal.kind != RefusalKind::Billing => {
                    shared.admission.faulted(&refused.refusal);
                    Tried::Answer(refused.settle(dialect))
                }
                tried => tried,
            }
        }
        Ok(answer) => relay(&shared, exchange, answer, credential.secret(), dialect),
        Err(why) => unreachable(exchange, &upstream, why),
    }
}

async fn call(
    shared: &Shared,
    upstream: &Upstream,
    outgoing: &Outgoing,
    credential: &Arc<Credential>,
) -> Result<Response<Incoming>, String> {
    let mut request = Request::new(Full::new(outgoing.body.clone()));
    *request.method_mut() = outgoing.method.clone();
    *request.uri_mut() = outgoing.uri.clone();
    request.headers_mut().clone_from(&outgoing.headers);
    if !credential.apply(upstream.provider, request.headers_mut()) {
        return Err("its credential cannot stand in a header".to_owned());
    }
    let head_max = shared.timeouts.head;
    match tokio::time::timeout(head_max, shared.client.request(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(causes(&error)),
        Err(_) => Err(format!("no answer began within {} s", head_max.as_secs())),
    }
}

/// An error with its causes, which hyper leaves out of its own text.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

fn relay(
    shared: &Shared,
    mut exchange: Exchange,
    answer: Response<Incoming>,
    secret: &Secret,
    dialect: Dialect,
) -> Tried {
    let (head, body) = answer.into_parts();
    let clean = headers::for_client(&head.headers, secret);
    exchange.answered(&head, &clean);
    if head.status.is_success() {
        shared.admission.answered(&exchange.grant().exchange_id);
    }
    let meter = Meter::new(dialect, &head.headers);
    let relay = Relay::new(body, exchange, meter, shared.timeouts.idle, shared.tasks.clone());
    Tried::Answer(headers::response(&head, clean, Answer::Relay(relay)))
}

async fn refused(shared: &Shared, mut exchange: Exchange, answer: Response<Incoming>, secret: &Secret) -> Tried {
    let (head, body) = answer.into_parts();
    let at = now();
    let clean = headers::for_client(&head.headers, secret);
    exchange.answered(&head, &clean);
    let (bytes, whole) = read_refusal(body, shared.timeouts.idle).await;
    let bytes = secret.struck_from(&bytes).map_or(bytes, Bytes::from);
    exchange.pass(&bytes);
    let refusal = Refusal {
        exchange_id: exchange.grant().exchange_id.clone(),
        account: exchange.grant().account.clone(),
        attempt: exchange.grant().attempt.clone(),
        status: exchange.status(),
        limits: exchange.limits().to_vec(),
        excerpt: String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES_MAX)]).into_owned(),
        kind: refusal::kind(head.status, &bytes),
        retry_at: refusal::retry_at(&head.headers, &bytes, Said { at, zone: &TimeZone::system() }),
        at,
    };
    let response = if whole {
        Ok(headers::response(&head, clean, Answer::Whole(Some(bytes))))
    } else {
        Err(OwnError::new(StatusCode::BAD_GATEWAY, "refusal_broken", "outlast: the provider refused and broke off"))
    };
    Tried::Refused(Box::new(Refused { refusal, exchange, response }))
}

/// The bytes of a refusal, and whether they are all of it.
async fn read_refusal(mut body: Incoming, idle_max: Duration) -> (Bytes, bool) {
    let mut bytes = BytesMut::new();
    while let Ok(next) = tokio::time::timeout(idle_max, body.frame()).await {
        match next {
            None => return (bytes.freeze(), true),
            Some(Err(_)) => break,
            Some(Ok(frame)) => bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d)),
        }
        if bytes.len() > REFUSAL_BYTES_MAX {
            break;
        }
    }
    (bytes.freeze(), false)
}

fn unreachable(exchange: Exchange, upstream: &Upstream, why: String) -> Tried {
    let message = format!("outlast: account {} cannot be reached: {why}", upstream.account);
    let own = OwnError::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", message);
    without_answer(exchange, RefusalKind::Network, why, own)
}

fn no_credential(exchange: Exchange, upstream: &Upstream, why: &str) -> Tried {
    let message = format!("outlast: account {} has no credential: {why}", upstream.account);
    let mut own = OwnError::new(StatusCode::BAD_GATEWAY, "no_credential", message);
    own.again = false;
    without_answer(exchange, RefusalKind::Auth, why.to_owned(), own)
}

fn without_answer(exchange: Exchange, kind: RefusalKind, excerpt: String, own: OwnError) -> Tried {
    let grant = exchange.grant();
    let refusal = Refusal {
        exchange_id: grant.exchange_id.clone(),
        account: grant.account.clone(),
        attempt: grant.attempt.clone(),
        status: None,
        limits: Vec::new(),
        excerpt,
        kind,
        retry_at: None,
        at: now(),
    };
    Tried::Refused(Box::new(Refused { refusal, exchange, response: Err(own) }))
}
