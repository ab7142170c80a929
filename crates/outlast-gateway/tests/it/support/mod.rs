//! What every test here needs: a provider, an admission, a gateway between them, and a client.

mod admission;
mod client;
mod provider;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::AccountId;
use outlast_gateway::{
    Builder, Credentials, Gateway, Provider as Kind, Secret, Settled, Shape, Source, Timeouts, Upstream,
};
use outlast_journal::{ExchangeRow, Journal, JournalReader, Ledger, Selection};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use admission::{AgentKey, TestAdmission};
pub(crate) use client::{Client, Received};
pub(crate) use provider::{Provider, Reply, chunked, sse};

/// The account's key: must never be seen anywhere but at the provider.
pub(crate) const CANARY: &str = "sk-real-canary-9f2c81";
/// The key an agent presents.
pub(crate) const AGENT_KEY: &str = "ol-agent-key";

/// A gateway with a provider behind it.
pub(crate) struct World {
    pub(crate) provider: Provider,
    pub(crate) admission: Arc<TestAdmission>,
    pub(crate) addr: SocketAddr,
    pub(crate) folder: tempfile::TempDir,
    ledger: Option<(Journal, Ledger)>,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<usize>>,
}

/// An account named `acc` at `base_url`, paying with the canary.
pub(crate) fn upstream(kind: Kind, base_url: &str) -> Upstream {
    let credentials = Credentials::new(Shape::Key, Source::Text(Secret::new(CANARY)));
    Upstream::new(AccountId::from("acc"), kind, base_url, credentials).unwrap()
}

impl World {
    /// A gateway to a provider of this kind that gives `replies` in turn.
    pub(crate) async fn new(kind: Kind, replies: Vec<Reply>) -> Self {
        Self::with(kind, replies, |builder| builder).await
    }

    /// The same, with the gateway described further.
    pub(crate) async fn with(kind: Kind, replies: Vec<Reply>, more: impl FnOnce(Builder) -> Builder) -> Self {
        let provider = Provider::start(replies).await;
        let account = upstream(kind, &provider.base_url());
        Self::around(provider, account, more).await
    }

    /// A gateway to `account`, which is at `provider`.
    pub(crate) async fn around(provider: Provider, account: Upstream, more: impl FnOnce(Builder) -> Builder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path().join("journal.db")).unwrap();
        let (ledger, _) = Ledger::open(&journal).unwrap();
        let admission = Arc::new(TestAdmission::default());
        let builder = Gateway::builder()
            .upstreams(vec![account])
            .admission(Arc::clone(&admission) as _)
            .ledger(ledger.clone())
            .timeouts(Timeouts { idle: Duration::from_secs(5), ..Timeouts::default() })
            .bind_tcp("127.0.0.1:0".parse().unwrap());
        let gateway = more(builder).build().await.unwrap();
        let addr = gateway.tcp_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(gateway.serve(async move { drop(stopped.await) }));
        Self {
            provider,
            admission,
            addr,
            folder,
            ledger: Some((journal, ledger)),
            stop: Some(stop),
            served: Some(served),
        }
    }

    /// A connection to the gateway.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr).await
    }

    /// Sends one request with the agent's key and reads the whole answer.
    pub(crate) async fn send(&self, head: &str, body: &[u8]) -> Received {
        let mut client = self.client().await;
        client.send(head, body).await;
        client.receive().await
    }

    /// POSTs JSON to `path` with the agent's key.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Received {
        self.send(&format!("POST {path}\r\nx-api-key: {AGENT_KEY}\r\ncontent-type: application/json"), body.as_bytes())
            .await
    }

    /// Waits for the next exchange to be settled.
    pub(crate) async fn settled(&self) -> Settled {
        self.admission.next_settled().await
    }

    /// Stops the gateway, closes the ledger and reads its rows, by exchange.
    pub(crate) async fn rows(&mut self) -> Vec<ExchangeRow> {
        let reader = self.closed().await;
        let mut rows = reader.exchanges(&Selection::default()).unwrap();
        rows.sort_by(|a, b| a.exchange.cmp(&b.exchange));
        rows
    }

    /// Stops the gateway and closes the ledger; returns a reader of the journal.
    pub(crate) async fn closed(&mut self) -> JournalReader {
        self.stop().await;
        drop(self.ledger.take());
        JournalReader::open(self.journal_path()).unwrap()
    }

    /// Stops the gateway; returns how many answers it left behind.
    pub(crate) async fn stop(&mut self) -> usize {
        drop(self.stop.take());
        match self.served.take() {
            Some(served) => served.await.unwrap(),
            None => 0,
        }
    }

    /// Asks the gateway to stop without waiting for it.
    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// The only body in the ledger's keeping for this hash.
    pub(crate) fn body(reader: &JournalReader, hash: Option<outlast_journal::BodyHash>) -> Vec<u8> {
        reader.body(&hash.expect("no body kept")).unwrap().expect("body lost")
    }

    fn journal_path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }
}
