//! An admission with a real policy of its own: keys, a window that closes until the stated time, a record of all it heard.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use outlast_core::{AccountId, AttemptId, RunId, TaskId, Timestamp};
use outlast_gateway::{Admission, Arrived, Ask, Denied, Grant, Recorded, Refusal, Ruling, Settled};
use tokio::sync::{Notify, mpsc};

use super::AGENT_KEY;

/// What a key stands for.
#[derive(Debug, Clone)]
pub(crate) enum AgentKey {
    Attempt(AttemptId),
    Revoked,
    OverBudget,
}

pub(crate) struct TestAdmission {
    keys: Mutex<BTreeMap<String, AgentKey>>,
    turns: AtomicU32,
    /// Requests wait until then.
    closed_until: Mutex<Option<Timestamp>>,
    /// Every request waits while this is set.
    pub(crate) shut: Mutex<bool>,
    /// Every request waits while this is set, until it is told that it may go.
    pub(crate) holds: Mutex<bool>,
    /// Lets a request go that is held.
    pub(crate) goes: Notify,
    /// What every request is told, until the account has another credential.
    pub(crate) refused: Mutex<Option<Denied>>,
    pub(crate) ruling: Mutex<Ruling>,
    pub(crate) asks: Mutex<Vec<Arc<Ask>>>,
    pub(crate) refusals: Mutex<Vec<Refusal>>,
    /// Told when a request begins to wait.
    pub(crate) waits: Notify,
    settled: (mpsc::UnboundedSender<Settled>, tokio::sync::Mutex<mpsc::UnboundedReceiver<Settled>>),
    pub(crate) account: Mutex<AccountId>,
    /// What the next request is answered out of the ledger.
    pub(crate) recorded: Mutex<Option<Recorded>>,
    /// The exchanges whose clients have left.
    pub(crate) left: Mutex<Vec<String>>,
    /// What an agent has done is not kept while this is set, and so no answer passes.
    pub(crate) keeps_back: Mutex<bool>,
    /// Lets an answer pass that is kept back.
    pub(crate) kept: Arc<Notify>,
}

impl Default for TestAdmission {
    fn default() -> Self {
        let attempt = AttemptId { run: RunId::from("r1"), task: TaskId::from("tidy"), number: 2 };
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            keys: Mutex::new(BTreeMap::from([(AGENT_KEY.to_owned(), AgentKey::Attempt(attempt))])),
            turns: AtomicU32::new(0),
            closed_until: Mutex::new(None),
            shut: Mutex::new(false),
            holds: Mutex::default(),
            goes: Notify::new(),
            refused: Mutex::default(),
            ruling: Mutex::new(Ruling::Pass),
            asks: Mutex::new(Vec::new()),
            refusals: Mutex::new(Vec::new()),
            waits: Notify::new(),
            settled: (sender, tokio::sync::Mutex::new(receiver)),
            account: Mutex::new(AccountId::from("acc")),
            recorded: Mutex::default(),
            left: Mutex::default(),
            keeps_back: Mutex::default(),
            kept: Arc::default(),
        }
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::EPOCH.plus(SystemTime::now().duration_since(UNIX_EPOCH).unwrap())
}

impl TestAdmission {
    pub(crate) fn set_key(&self, key: &str, is: AgentKey) {
        self.keys.lock().unwrap().insert(key.to_owned(), is);
    }

    pub(crate) fn rule(&self, ruling: Ruling) {
        *self.ruling.lock().unwrap() = ruling;
    }

    pub(crate) async fn next_settled(&self) -> Settled {
        let next = async { self.settled.1.lock().await.recv().await.unwrap() };
        tokio::time::timeout(Duration::from_secs(10), next).await.expect("nothing was settled")
    }

    /// Whether anything else was settled.
    pub(crate) async fn is_quiet(&self) -> bool {
        self.settled.1.lock().await.try_recv().is_err()
    }

    fn wait(&self) -> Option<Duration> {
        let until = (*self.closed_until.lock().unwrap())?;
        let wait = until.since(now());
        (!wait.is_zero()).then_some(wait)
    }
}

impl Admission for TestAdmission {
    fn admit(&self, ask: Arc<Ask>) -> BoxFuture<'_, Result<Grant, Denied>> {
        Box::pin(async move {
            let key = self.keys.lock().unwrap().get(&ask.key).cloned();
            self.asks.lock().unwrap().push(ask);
            let attempt = match key {
                Some(AgentKey::Attempt(attempt)) => attempt,
                Some(AgentKey::Revoked) => return Err(Denied::Revoked),
                Some(AgentKey::OverBudget) => {
                    return Err(Denied::Budget { reason: "the task's budget is spent".into() });
                }
                None => return Err(Denied::UnknownKey),
            };
            if let Some(denied) = self.refused.lock().unwrap().clone() {
                return Err(denied);
            }
            if *self.shut.lock().unwrap() {
                self.waits.notify_one();
                std::future::pending::<()>().await;
            }
            if *self.holds.lock().unwrap() {
                self.waits.notify_one();
                self.goes.notified().await;
            }
            while let Some(wait) = self.wait() {
                self.waits.notify_one();
                tokio::time::sleep(wait).await;
            }
            let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
            let account = self.account.lock().unwrap().clone();
            Ok(Grant { exchange_id: format!("x{turn}"), attempt: Some(attempt), account, turn })
        })
    }

    fn knows(&self, _: Option<String>, key: String) -> BoxFuture<'_, Result<(), Denied>> {
        let known = self.keys.lock().unwrap().contains_key(&key);
        Box::pin(std::future::ready(if known { Ok(()) } else { Err(Denied::UnknownKey) }))
    }

    fn renewed(&self, account: &AccountId) -> BoxFuture<'_, ()> {
        assert_eq!(*account, *self.account.lock().unwrap());
        *self.refused.lock().unwrap() = None;
        Box::pin(std::future::ready(()))
    }

    fn arrived(&self, _: Arrived) -> BoxFuture<'static, ()> {
        if *self.keeps_back.lock().unwrap() {
            self.waits.notify_one();
            return Box::pin(Arc::clone(&self.kept).notified_owned());
        }
        Box::pin(std::future::ready(()))
    }

    fn recorded(&self, ask: Arc<Ask>) -> BoxFuture<'_, Option<Recorded>> {
        let recorded = self.recorded.lock().unwrap().take();
        if recorded.is_some() {
            self.asks.lock().unwrap().push(ask);
        }
        Box::pin(std::future::ready(recorded))
    }

    fn left(&self, exchange_id: &str) {
        self.left.lock().unwrap().push(exchange_id.to_owned());
    }

    fn settle(&self, settled: Settled) {
        drop(self.settled.0.send(settled));
    }

    fn refused(&self, refusal: Refusal) -> BoxFuture<'_, Ruling> {
        Box::pin(async move {
            let ruling = *self.ruling.lock().unwrap();
            if ruling == Ruling::Again {
                *self.closed_until.lock().unwrap() = refusal.retry_at;
            }
            self.refusals.lock().unwrap().push(refusal);
            ruling
        })
    }
}
