//! What the gateway may forward, decided over the core: whose key it is, which account pays, and how long a request
//! waits while every account is closed.
//!
//! A request that waits is held: it lies in [`Asks`] on the loop's thread, is shown as `held`, and is answered in the
//! turn in which an account opens. Nothing of it is lost with the engine: its shim sends it again to the next one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outlast_core::admit::{AttemptNews, Command};
use outlast_core::task::{Attempt, Stage, Task};
use outlast_core::{AccountId, AttemptId, Class, Core, ExchangeId, LedgerRow, RunId, Timestamp, Usage};
use outlast_gateway::{Admission, Ask, Denied, Dialect, Grant, Refusal, RefusalKind, Ruling, Settled, TurnKind};
use outlast_journal::{ExchangeRow, Outcome};
use tokio::sync::oneshot;

use crate::keys::{RunSecret, same};
use crate::passed::PassedRefusals;
use crate::state_loop::{LoopHandle, now};

/// An account as far as choosing one needs it.
#[derive(Debug, Clone)]
pub(crate) struct AccountInfo {
    /// Its name in the user's configuration.
    pub(crate) id: AccountId,
    /// The wire formats that its provider answers.
    pub(crate) dialects: Vec<Dialect>,
    /// Whether its credential is a subscription's login, and not a key.
    pub(crate) login: bool,
}

/// A wire format as the gateway names it.
pub(crate) const fn spoken(dialect: outlast_agent::Dialect) -> Dialect {
    match dialect {
        outlast_agent::Dialect::Messages => Dialect::Anthropic,
        outlast_agent::Dialect::Responses => Dialect::Responses,
        outlast_agent::Dialect::Chat => Dialect::Chat,
        outlast_agent::Dialect::Gemini => Dialect::Gemini,
    }
}

/// A request that wants to be forwarded, and where the answer goes.
#[derive(Debug)]
pub(crate) struct PendingAsk {
    ask: Ask,
    reply: oneshot::Sender<Result<Grant, Denied>>,
}

/// Finds the secret that a run's keys are derived from.
type Secrets = Box<dyn Fn(&RunId) -> Option<RunSecret> + Send>;

/// Every request that waits, on the loop's thread.
pub(crate) struct Asks {
    /// In the user's order of preference.
    accounts: Vec<AccountInfo>,
    secrets: Secrets,
    /// The key of clients that are no attempt: of `outlast gateway` alone.
    client_key: Option<String>,
    waiting: Vec<PendingAsk>,
    /// What is granted and not settled yet, by exchange: an agent that has read its answer may ask again before the end
    /// of that answer is known here.
    open: BTreeMap<String, Open>,
    exchanges: u64,
}

/// A request that is on its way.
struct Open {
    attempt: Option<AttemptId>,
    turn: u32,
    /// Whether a model is asked for anything; a list of models or a count of tokens costs nothing.
    generates: bool,
}

/// Who asks.
enum Asker<'a> {
    Client,
    Attempt { run: RunId, task: &'a Task, attempt: &'a Attempt },
}

/// What becomes of a request now.
enum Fate {
    Go(Grant),
    No(Denied),
    Wait { class: Class, until: Timestamp },
}

impl Asks {
    pub(crate) fn new(
        accounts: Vec<AccountInfo>,
        client_key: Option<String>,
        secrets: impl Fn(&RunId) -> Option<RunSecret> + Send + 'static,
    ) -> Self {
        Self {
            accounts,
            secrets: Box::new(secrets),
            client_key,
            waiting: Vec::new(),
            open: BTreeMap::new(),
            exchanges: 0,
        }
    }

    pub(crate) fn push(&mut self, ask: PendingAsk) {
        self.waiting.push(ask);
    }

    /// Takes note that an exchange is over; whether it is one whose tokens go on record, in the same turn of the loop.
    pub(crate) fn settled(&mut self, exchange_id: &str) -> bool {
        self.open.remove(exchange_id).is_none_or(|open| open.generates)
    }

    /// Answers every request that need not wait.
    pub(crate) fn settle(&mut self, core: &Core, now: Timestamp) {
        for pending in std::mem::take(&mut self.waiting) {
            if pending.reply.is_closed() {
                continue;
            }
            match self.fate(core, &pending.ask, now) {
                Fate::Go(grant) => self.grant(grant, pending),
                Fate::No(denied) => drop(pending.reply.send(Err(denied))),
                Fate::Wait { .. } => self.waiting.push(pending),
            }
        }
    }

    /// A new name for an exchange: by it, the next start knows which rows of the ledger nobody has to pay for.
    fn exchange_id(&self, ask: &Ask, now: Timestamp) -> String {
        let costs = if generates(ask.turn_kind) { "" } else { FREE };
        format!("{:011x}-{:x}{costs}", now.as_millis(), self.exchanges)
    }

    fn grant(&mut self, grant: Grant, pending: PendingAsk) {
        let generates = generates(pending.ask.turn_kind);
        let open = Open { attempt: grant.attempt.clone(), turn: grant.turn, generates };
        let exchange = grant.exchange_id.clone();
        // Who has left meanwhile sends nothing, and so settles nothing.
        if pending.reply.send(Ok(grant)).is_ok() {
            self.open.insert(exchange, open);
        }
    }

    /// Which turn of its task a request is: that of the request it repeats, else the next one.
    fn turn(&self, ask: &Ask, attempt: &AttemptId, task: &Task) -> u32 {
        if ask.turn_kind != TurnKind::Main {
            return 0;
        }
        if let Some(refused) = ask.again_after.as_ref().and_then(|refused| self.open.get(refused)) {
            return refused.turn;
        }
        let open = self.open.values().filter(|open| open.attempt.as_ref() == Some(attempt)).map(|open| open.turn);
        open.fold(task.turns, u32::max) + 1
    }

    /// What has changed about who is held.
    pub(crate) fn news(&mut self, core: &Core, now: Timestamp) -> Vec<Command> {
        self.waiting.retain(|pending| !pending.reply.is_closed());
        let mut held: BTreeMap<AttemptId, (Class, Timestamp)> = BTreeMap::new();
        for pending in &self.waiting {
            let Ok(Asker::Attempt { run, task, attempt }) = self.asker(core, &pending.ask) else { continue };
            if let Fate::Wait { class, until } =
                self.fate_of_attempt(core, &pending.ask, &run, task, attempt.number, now)
            {
                held.insert(AttemptId { run, task: task.id.clone(), number: attempt.number }, (class, until));
            }
        }
        let mut news = Vec::new();
        for run in core.runs.values() {
            for task in run.active() {
                let Some(attempt) = task.attempt().filter(|attempt| attempt.stage == Stage::Working) else { continue };
                let id = AttemptId { run: run.id.clone(), task: task.id.clone(), number: attempt.number };
                let news_of_it = match held.get(&id) {
                    Some(&(class, until)) => AttemptNews::Held { class, until: Some(until) },
                    None if attempt.held.is_some() => AttemptNews::Released,
                    None => continue,
                };
                let AttemptId { run, task, number } = id;
                news.push(Command::Attempt { run, task, number, epoch: attempt.epoch, news: news_of_it });
            }
        }
        news
    }

    /// When the loop is to look again.
    pub(crate) fn wake_at(&self, core: &Core, now: Timestamp) -> Option<Timestamp> {
        core.wake_at(now).map(|(at, _)| at)
    }

    fn fate(&mut self, core: &Core, ask: &Ask, now: Timestamp) -> Fate {
        self.exchanges += 1;
        match self.asker(core, ask) {
            Err(denied) => Fate::No(denied),
            Ok(Asker::Client) => self.choose(core, ask, self.accounts.iter().map(|a| &a.id), None, 0, now),
            Ok(Asker::Attempt { run, task, attempt }) => {
                self.fate_of_attempt(core, ask, &run, task, attempt.number, now)
            }
        }
    }

    fn fate_of_attempt(&self, core: &Core, ask: &Ask, run: &RunId, task: &Task, number: u32, now: Timestamp) -> Fate {
        let id = AttemptId { run: run.clone(), task: task.id.clone(), number };
        let turn = self.turn(ask, &id, task);
        self.choose(core, ask, task.spec.accounts.iter(), Some(id), turn, now)
    }

    /// The first account in order of preference that speaks the dialect and is open; else the first that opens.
    fn choose<'a>(
        &self,
        core: &Core,
        ask: &Ask,
        accounts: impl Iterator<Item = &'a AccountId>,
        attempt: Option<AttemptId>,
        turn: u32,
        now: Timestamp,
    ) -> Fate {
        let mut wait: Option<(Timestamp, Class)> = None;
        let mut known = false;
        for account in accounts {
            let Some(info) = self.accounts.iter().find(|info| info.id == *account) else { continue };
            known = true;
            if !info.dialects.contains(&ask.dialect) {
                continue;
            }
            let Some((until, class)) = core.closed_until(account, now) else {
                let exchange_id = self.exchange_id(ask, now);
                return Fate::Go(Grant { exchange_id, attempt, account: account.clone(), turn });
            };
            if wait.is_none_or(|(known, _)| until < known) {
                wait = Some((until, class));
            }
        }
        match wait {
            Some((until, class)) => Fate::Wait { class, until },
            None if known => {
                Fate::No(Denied::NoAccount { reason: format!("no account of this agent answers {:?}", ask.dialect) })
            }
            None => Fate::No(Denied::NoAccount {
                reason: "the user's config.toml names no account for this agent".to_owned(),
            }),
        }
    }

    /// Finds out who asks: the path names an attempt and the key proves it.
    fn asker<'a>(&self, core: &'a Core, ask: &Ask) -> Result<Asker<'a>, Denied> {
        let Some(path) = &ask.path_attempt else {
            let client = self.client_key.as_ref().is_some_and(|key| same(key, &ask.key));
            return if client { Ok(Asker::Client) } else { Err(Denied::UnknownKey) };
        };
        let (run, name) = path.split_once('/').ok_or(Denied::UnknownKey)?;
        let run = core.runs.get(&RunId::new(run)).ok_or(Denied::UnknownKey)?;
        let secret = (self.secrets)(&run.id).ok_or(Denied::UnknownKey)?;
        for task in run.active() {
            let Some(attempt) = task.attempt() else { continue };
            let id = AttemptId { run: run.id.clone(), task: task.id.clone(), number: attempt.number };
            if id.slug() != name {
                continue;
            }
            if !same(&secret.key(&id, attempt.epoch), &ask.key) {
                return Err(Denied::UnknownKey);
            }
            let void = matches!(attempt.stage, Stage::Ending(_));
            return if void { Err(Denied::Revoked) } else { Ok(Asker::Attempt { run: run.id.clone(), task, attempt }) };
        }
        Err(Denied::Revoked)
    }
}

/// How the name of an exchange ends that asks no model for anything.
const FREE: &str = "-free";

/// Whether a model is asked for anything; a list of models or a count of tokens costs nothing.
const fn generates(kind: TurnKind) -> bool {
    !matches!(kind, TurnKind::CountTokens | TurnKind::Models)
}

/// The gateway's port, over the loop.
#[derive(Debug)]
pub(crate) struct EngineAdmission {
    engine: LoopHandle,
    passed: Arc<PassedRefusals>,
    /// How often in a row each account failed without saying when to come back.
    strikes: Mutex<BTreeMap<AccountId, u32>>,
    /// Spreads the ends of back-offs.
    salt: AtomicU64,
}

/// The first pause after a failure that names no end.
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);
/// The longest: an overload is over within minutes, and each probe is one request.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);

/// A limit that ends sooner than this is one per minute: a window (5 hours, a week) that is about to end is no different
/// to whoever waits.
const MINUTE_LIMIT_MAX: Duration = Duration::from_secs(120);

impl EngineAdmission {
    pub(crate) const fn new(engine: LoopHandle, passed: Arc<PassedRefusals>) -> Self {
        Self { engine, passed, strikes: Mutex::new(BTreeMap::new()), salt: AtomicU64::new(0) }
    }

    fn strike(&self, account: &AccountId) -> u32 {
        let mut strikes = self.strikes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let strikes = strikes.entry(account.clone()).or_default();
        *strikes += 1;
        *strikes
    }

    /// How long an account is left alone that did not say how long it wants to be.
    fn back_off(&self, account: &AccountId) -> Duration {
        let doublings = self.strike(account).saturating_sub(1).min(10);
        let plain = BACK_OFF_FIRST.saturating_mul(1 << doublings).min(BACK_OFF_MAX);
        let salt = self.salt.fetch_add(1, Ordering::Relaxed);
        let share = u32::try_from(outlast_core::hash::fnv1a(&salt.to_le_bytes()) % 256).unwrap_or(0);
        plain + plain.saturating_mul(share) / 1024
    }
}

impl Admission for EngineAdmission {
    fn admit(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Denied>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let gone = || Denied::NoAccount { reason: "the engine is on its way out".to_owned() };
            self.engine.ask(PendingAsk { ask, reply }).map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn settle(&self, settled: Settled) {
        if settled.outcome == Outcome::Complete {
            self.strikes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&settled.account);
        }
        crate::fault::point("after_answer");
        let usage = usage_of(settled.outcome, &settled.usage, settled.usd_nanos);
        let exchanged = settled.attempt.filter(|_| usage != Usage::default()).map(|AttemptId { run, task, number }| {
            let main = is_main(settled.turn, settled.outcome);
            let exchange = ExchangeId::new(settled.exchange_id.clone());
            Command::Exchanged { run, task, number, account: settled.account, main, usage, reserved: None, exchange }
        });
        self.engine.settled(settled.exchange_id, exchanged);
    }

    fn refused(&self, refusal: Refusal) -> BoxFuture<'_, Ruling> {
        Box::pin(async move {
            // Waiting helps neither: a person has to pay or to log in.
            let hopeless = match refusal.kind {
                RefusalKind::Billing => Some(Class::Billing),
                RefusalKind::Auth => Some(Class::Auth),
                _ => None,
            };
            if let Some(class) = hopeless {
                if let Some(attempt) = refusal.attempt {
                    self.passed.note(attempt, class, refusal.excerpt);
                }
                return Ruling::Pass;
            }
            let until = refusal.retry_at.unwrap_or_else(|| now().plus(self.back_off(&refusal.account)));
            let class = match refusal.kind {
                RefusalKind::Limit if until.since(now()) <= MINUTE_LIMIT_MAX => Class::MinuteLimit,
                RefusalKind::Limit => Class::WindowQuota,
                RefusalKind::Overload | RefusalKind::Server => Class::Overload,
                // What no waiting mends has been passed on above.
                RefusalKind::Network | RefusalKind::Billing | RefusalKind::Auth => Class::Network,
            };
            let close = Command::CloseAccount { account: refusal.account, class, until };
            match self.engine.tell(close).await {
                Ok(()) => Ruling::Again,
                Err(_) => Ruling::Pass,
            }
        })
    }
}

/// What an exchange consumed, in the core's terms; nothing where nothing was asked of a model.
fn usage_of(outcome: Outcome, usage: &outlast_journal::Usage, usd_nanos: Option<i64>) -> Usage {
    if !matches!(outcome, Outcome::Complete | Outcome::ClientGone | Outcome::Cut) {
        return Usage::default();
    }
    let known = usage.input.is_some() || usage.output.is_some();
    Usage {
        input: usage.input.unwrap_or(0),
        cache_write: usage.cache_write_5m.unwrap_or(0) + usage.cache_write_1h.unwrap_or(0),
        cache_read: usage.cache_read.unwrap_or(0),
        output: usage.output.unwrap_or(0),
        usd_nanos: usd_nanos.unwrap_or(0),
        unpriced: u32::from(usd_nanos.is_none()),
        unmetered: u32::from(!known),
        exchanges: 1,
    }
}

/// Whether an exchange was a main turn of an agent.
fn is_main(turn: u32, outcome: Outcome) -> bool {
    turn > 0 && outcome != Outcome::Refused
}

/// A row of the ledger as it goes on record; nothing where it costs nothing, or is no attempt's.
pub(crate) fn ledger_row(row: ExchangeRow) -> Option<LedgerRow> {
    let usage = usage_of(row.outcome, &row.usage, row.usd_nanos);
    let main = is_main(row.turn, row.outcome);
    let ExchangeRow { exchange, attempt, account, .. } = row;
    if exchange.ends_with(FREE) || usage == Usage::default() {
        return None;
    }
    Some(LedgerRow { exchange: ExchangeId::new(exchange), attempt: attempt?, account, main, usage })
}
