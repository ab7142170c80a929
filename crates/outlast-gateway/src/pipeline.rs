//! A request through the stages, from the client's first byte to the head of its answer.
//!
//! Decides nothing about quota or money: it asks `Admission` before every request that goes out, and again after every
//! refusal. What has gone out is finished even when the client leaves; what waits is not.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use outlast_core::AccountId;

use crate::admission::{Denied, Ruling};
use crate::answer::{Answer, OwnError, repeated};
use crate::clock::now;
use crate::credential::{CredentialError, is_out_of_files};
use crate::dialect::{Dialect, Operation};
use crate::gateway::Shared;
use crate::stage::detached::Detached;
use crate::stage::forward::{self, Ready, Tried};
use crate::stage::inbound::{self, Inbound, Routed, Unreadable};
use crate::stage::{account, replay, settle::Exchange};

/// There is no answer to give: the connection is broken off, and its other end asks again or not.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// The client left in the middle of its request.
    #[error("the client left")]
    ClientLeft,
    /// The request was put aside while it waited, and cannot be read any more.
    #[error("the request cannot be read again: {0}")]
    Lost(#[from] outlast_journal::Error),
    /// The gateway stops while the request waits.
    #[error("the gateway stops")]
    Stopping,
}

/// Serves one request.
pub(crate) async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Answer>, NoAnswer> {
    let received_at = now();
    let (parts, body) = request.into_parts();
    let read = match inbound::route(&parts) {
        Ok(routed) if routed.endpoint().operation == Operation::Probe => {
            return Ok(Response::new(Answer::Whole(Some(Bytes::new()))));
        }
        Ok(routed) => match may_be_read(&shared, &parts, &body, &routed).await {
            Ok(()) => inbound::read(parts, body, routed, shared.request_bytes_max, received_at).await,
            Err(denied) => Err(Unreadable::Answer(denied.into(), routed.endpoint().dialect)),
        },
        Err(error) => Err(error),
    };
    match read {
        Ok(inbound) => {
            let dialect = inbound.endpoint.dialect;
            Ok(answer(&shared, inbound).await?.unwrap_or_else(|own| own.response(dialect)))
        }
        Err(Unreadable::Answer(own, dialect)) => Ok(own.response(dialect)),
        Err(Unreadable::Gone) => Err(NoAnswer::ClientLeft),
    }
}

/// A longer request is read only for whoever has a key: one that is shorter costs no more than a connection does.
const UNASKED_BYTES_MAX: u64 = 64 << 10;

async fn may_be_read(shared: &Shared, parts: &Parts, body: &Incoming, routed: &Routed) -> Result<(), Denied> {
    if body.size_hint().upper().is_some_and(|bytes| bytes <= UNASKED_BYTES_MAX) {
        return Ok(());
    }
    let (attempt, key) = inbound::asker(parts, routed);
    shared.admission.knows(attempt, key).await
}

/// The answer, held back until what the agent has done so far is kept.
async fn answer(shared: &Arc<Shared>, mut inbound: Inbound) -> Result<Result<Response<Answer>, OwnError>, NoAnswer> {
    let dialect = inbound.endpoint.dialect;
    let kept = shared.admission.arrived(inbound.arrived()?);
    let mut answer = match replayed(shared, &inbound).await? {
        Some(response) => Ok(response),
        None => ask(shared, &mut inbound, dialect).await?,
    };
    let ahead = async {
        match &mut answer {
            Ok(response) => response.body_mut().read_ahead().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        // An answer that is paid for and may pass does, also while the gateway stops.
        biased;
        () = kept => {}
        () = shared.stopping.cancelled() => return Err(NoAnswer::Stopping),
        () = ahead => {}
    }
    Ok(answer)
}

/// The answer that the ledger holds, where it may be given.
async fn replayed(shared: &Arc<Shared>, inbound: &Inbound) -> Result<Option<Response<Answer>>, NoAnswer> {
    let recorded = tokio::select! {
        recorded = shared.admission.recorded(inbound.ask()) => recorded,
        () = shared.stopping.cancelled() => return Err(NoAnswer::Stopping),
    };
    Ok(recorded.and_then(|recorded| replay::response(shared, inbound, recorded)))
}

/// How long a request is held in memory.
const ASIDE_AFTER: Duration = Duration::from_millis(100);

/// Waits for what holds a request up; one that waits for more than a moment does so on disk.
async fn held_by<T>(shared: &Shared, inbound: &mut Inbound, what: impl Future<Output = T>) -> Result<T, NoAnswer> {
    tokio::pin!(what);
    tokio::select! {
        biased;
        done = &mut what => return Ok(done),
        () = shared.stopping.cancelled() => return Err(NoAnswer::Stopping),
        () = tokio::time::sleep(ASIDE_AFTER), if inbound.fills_memory() => {}
    }
    inbound.put_aside(&shared.ledger);
    tokio::select! {
        done = what => Ok(done),
        () = shared.stopping.cancelled() => Err(NoAnswer::Stopping),
    }
}

/// Asks, sends, and asks again until there is an answer to pass on.
async fn ask(
    shared: &Arc<Shared>,
    inbound: &mut Inbound,
    dialect: Dialect,
) -> Result<Result<Response<Answer>, OwnError>, NoAnswer> {
    let mut again_after = None;
    loop {
        let ask = again_after.take().map_or_else(|| inbound.ask(), |refused| inbound.ask_after(refused));
        let tried = match try_once(shared, inbound, ask, dialect).await? {
            Ok(tried) => tried,
            Err(own) => return Ok(Err(own)),
        };
        let refused = match tried {
            Tried::Answer(response) => return Ok(Ok(response)),
            Tried::Refused(refused) => refused,
        };
        let exchange_id = refused.refusal.exchange_id.clone();
        let ruling = held_by(shared, inbound, shared.admission.refused(refused.refusal.clone())).await?;
        let response = refused.settle(dialect);
        match ruling {
            Ruling::Pass => return Ok(Ok(response)),
            Ruling::Again => again_after = Some(exchange_id),
        }
    }
}

/// One grant and what became of it.
async fn try_once(
    shared: &Arc<Shared>,
    inbound: &mut Inbound,
    ask: Arc<crate::Ask>,
    dialect: Dialect,
) -> Result<Result<Tried, OwnError>, NoAnswer> {
    let grant = loop {
        match held_by(shared, inbound, shared.admission.admit(Arc::clone(&ask))).await? {
            Ok(grant) => break grant,
            Err(Denied::Refused(said)) if is_renewed(shared, &said.account).await => {
                shared.admission.renewed(&said.account).await;
            }
            Err(Denied::Refused(said)) => {
                return Ok(repeated(&said).map(Tried::Answer).ok_or_else(|| Denied::Refused(said).into()));
            }
            Err(denied) => return Ok(Err(denied.into())),
        }
    };
    let unsent = |grant| shared.admission.settle(crate::admission::Settled::unsent(grant, now()));
    let upstream = match account::find(&shared.accounts, &grant.account, dialect) {
        Ok(upstream) => upstream,
        Err(own) => {
            unsent(grant);
            return Ok(Err(own));
        }
    };
    // Whoever sent it still has it, and sends it again where the connection breaks.
    let body = match inbound.body() {
        Ok(body) => body,
        Err(error) => {
            unsent(grant);
            return Err(error.into());
        }
    };
    let mut exchange =
        Exchange::new(Arc::clone(&shared.admission), shared.backlog.clone(), Arc::clone(&upstream), grant);
    let outgoing = match account::outgoing(inbound, body, &upstream) {
        Ok(outgoing) => outgoing,
        Err(own) => return Ok(Err(own)),
    };
    // Up to here a client that leaves ends its request; from here on it is paid for.
    let ready = async {
        shared.backlog.room().await;
        let credential = held(|| upstream.credentials.get(), CredentialError::is_passing).await;
        if credential.is_ok() {
            held(|| std::future::ready(exchange.begin(&shared.ledger, dialect, &outgoing)), is_passing).await?;
        }
        Ok::<_, outlast_journal::Error>(credential)
    };
    let ready = tokio::select! {
        ready = ready => ready,
        () = shared.stopping.cancelled() => return Err(NoAnswer::Stopping),
    };
    let credential = match ready {
        Ok(credential) => credential,
        Err(error) => {
            tracing::error!(%error, "an exchange cannot be recorded, so it is not sent");
            let message = format!("outlast: the ledger takes no exchange: {error}");
            return Ok(Err(OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "ledger_unavailable", message)));
        }
    };
    let leaving = Leaving { shared, exchange_id: Some(exchange.grant().exchange_id.clone()) };
    let ready = Ready { upstream, exchange, dialect, outgoing, credential };
    let tried = Detached::new(&shared.tasks, forward::send(Arc::clone(shared), ready)).await;
    leaving.answered();
    Ok(Ok(tried))
}

/// How long what this host has too little of is waited for before it is asked for again: nobody tells when there is more.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Does something, again and again while it fails for what passes: a request that waits survives, one that is refused may
/// not.
async fn held<T, E, F: Future<Output = Result<T, E>>>(
    mut work: impl FnMut() -> F,
    passes: impl Fn(&E) -> bool,
) -> Result<T, E> {
    loop {
        match work().await {
            Err(error) if passes(&error) => tokio::time::sleep(AGAIN_AFTER).await,
            done => return done,
        }
    }
}

/// Whether the ledger fails for want of room, or of files that this process may have open.
fn is_passing(error: &outlast_journal::Error) -> bool {
    match error {
        outlast_journal::Error::NoSpace { .. } => true,
        outlast_journal::Error::Io { source, .. } => is_out_of_files(source),
        _ => false,
    }
}

/// Whether an account has another credential than the one that was refused.
async fn is_renewed(shared: &Shared, account: &AccountId) -> bool {
    match shared.accounts.get(account) {
        Some(upstream) => upstream.credentials.is_renewed().await,
        None => false,
    }
}

/// Tells that a client has left while its answer had not begun.
struct Leaving<'a> {
    shared: &'a Shared,
    exchange_id: Option<String>,
}

impl Leaving<'_> {
    /// The answer has begun, and whoever passes it on tells from here on.
    fn answered(mut self) {
        self.exchange_id = None;
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(exchange_id) = &self.exchange_id {
            self.shared.admission.left(exchange_id);
        }
    }
}
