//! A gateway for one look: on a socket that only this user can open, over a ledger that is thrown away, granting every
//! request to the account that its path names.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use outlast_core::AccountId;
use outlast_engine::Error;
use outlast_gateway::{Admission, Ask, Denied, Gateway, Grant, Refusal, Ruling, Settled, Timeouts, Upstream};
use outlast_journal::{Journal, Ledger};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::wire::Wire;

/// Longest answer that is read: a list of models is a few hundred kilobytes at most.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// How long the gateway waits, well within a trip's own limit.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(15),
    head: Duration::from_secs(45),
    idle: Duration::from_secs(15),
    client: Duration::from_secs(45),
};

/// How long its ledger may take to write what was answered, before the folder is removed under it.
const GRACE: Duration = Duration::from_secs(5);

/// The living gateway.
#[derive(Clone)]
pub(super) struct Gate {
    socket: PathBuf,
    desk: Arc<Desk>,
    life: Arc<Mutex<Option<Life>>>,
}

/// What ends with the gateway.
struct Life {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<usize>,
    _journal: Journal,
    _folder: TempDir,
}

/// An answer that came through.
pub(super) struct Answer {
    status: StatusCode,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// Status and the beginning of what it says.
    pub(super) fn shown(&self) -> String {
        let text: String = String::from_utf8_lossy(&self.body).chars().take(super::EXCERPT_CHARS_MAX).collect();
        format!("{}: {text}", self.status.as_u16())
    }
}

impl Gate {
    pub(super) async fn open(upstreams: Vec<Upstream>) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("outlast-").tempdir();
        let folder = folder.map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
        let journal = Journal::open(folder.path().join("journal.db"))?;
        let (ledger, _recovery) = Ledger::open(&journal)?;
        let socket = folder.path().join("gateway");
        let accounts = upstreams.iter().map(|upstream| upstream.account().clone()).collect();
        let desk = Arc::new(Desk { accounts, refused: Mutex::default(), granted: AtomicU64::new(0) });
        let admission: Arc<dyn Admission> = desk.clone();
        let gateway = Gateway::builder()
            .upstreams(upstreams)
            .admission(admission)
            .ledger(ledger)
            .timeouts(TIMEOUTS)
            .grace(GRACE)
            .bind_unix(&socket)
            .build()
            .await?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(gateway.serve(async move { drop(stopped.await) }));
        let life = Life { stop, serving, _journal: journal, _folder: folder };
        Ok(Self { socket, desk, life: Arc::new(Mutex::new(Some(life))) })
    }

    /// Sends a request on the account in this place.
    pub(super) async fn ask(&self, place: usize, wire: Wire) -> Result<Answer, String> {
        let told = |error: &dyn std::error::Error| format!("the gateway: {error}");
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| told(&error))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
        let driving = tokio::spawn(connection);
        let mut request = Request::builder().method(wire.method).uri(format!("/t/{place}/doctor{}", wire.path));
        request = request.header("host", "127.0.0.1").header("content-type", "application/json");
        for (name, value) in wire.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(wire.body))).map_err(|error| told(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| told(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        driving.abort();
        Ok(Answer { status, body: body.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes() })
    }

    /// The account's last refusal, told once.
    pub(super) fn refusal(&self, account: &AccountId) -> Option<Refusal> {
        self.desk.refused.lock().unwrap_or_else(PoisonError::into_inner).remove(account)
    }

    /// Ends the gateway and removes what it wrote.
    pub(super) async fn close(self) {
        let life = self.life.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(life) = life {
            // It may have ended already.
            let _ = life.stop.send(());
            drop(life.serving.await);
        }
    }
}

/// Grants what a path names, and keeps what is refused.
struct Desk {
    accounts: Vec<AccountId>,
    refused: Mutex<BTreeMap<AccountId, Refusal>>,
    granted: AtomicU64,
}

type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Admission for Desk {
    fn admit(&self, ask: Arc<Ask>) -> Later<'_, Result<Grant, Denied>> {
        let place = ask.path_attempt.as_deref().and_then(|path| path.split('/').next()?.parse::<usize>().ok());
        let account = place.and_then(|place| self.accounts.get(place)).cloned();
        let number = self.granted.fetch_add(1, Ordering::Relaxed);
        let grant = move |account| Grant { exchange_id: format!("doctor-{number}"), attempt: None, account, turn: 0 };
        Box::pin(async move { account.map(grant).ok_or(Denied::UnknownKey) })
    }

    fn settle(&self, _: Settled) {}

    fn refused(&self, refusal: Refusal) -> Later<'_, Ruling> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(refusal.account.clone(), refusal);
        Box::pin(async { Ruling::Pass })
    }
}
