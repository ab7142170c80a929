//! The gateway's port: what it asks and tells goes to the loop, and refusals become what is known of an account.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use outlast_agent::refusal::classify;
use outlast_core::admit::{AttemptNews, Command};
use outlast_core::budget::Estimate;
use outlast_core::{AccountId, AttemptId, Class, ExchangeId, LedgerRow, Timestamp, Usage};
use outlast_gateway::{Admission, Arrived, Ask, Denied, Grant, Recorded, Refusal, RefusalKind, Ruling, Settled};
use outlast_journal::{ExchangeRow, Outcome};
use tokio::sync::oneshot;

use crate::ask::PendingAsk;
use crate::asks::{FREE, MINUTE_LIMIT_MAX};
use crate::context::Context;
use crate::home::RepoHome;
use crate::passed::PassedRefusals;
use crate::replay::{self, Answers, REPLAY};
use crate::room;
use crate::state_loop::{LoopHandle, now};
use crate::turns;

/// The gateway's port, over the loop.
pub(crate) struct EngineAdmission {
    engine: LoopHandle,
    passed: Arc<PassedRefusals>,
    /// What keeps the work of attempts; none for a gateway alone.
    context: Option<Arc<Context>>,
    answers: Answers,
    /// Of the disk that holds the state.
    room: Arc<room::Seen>,
}

impl EngineAdmission {
    pub(crate) fn new(
        engine: LoopHandle,
        passed: Arc<PassedRefusals>,
        context: Option<Arc<Context>>,
        home: &RepoHome,
    ) -> Self {
        let room = Arc::new(room::Seen::new(home.root().to_owned()));
        Self { engine, passed, context, answers: Answers::new(home.journal()), room }
    }
}

impl Admission for EngineAdmission {
    fn admit(&self, ask: Arc<Ask>) -> BoxFuture<'_, Result<Grant, Denied>> {
        Box::pin(async move {
            if let Some(held) = self.context.as_ref().and_then(|context| context.fill.holds(&ask)) {
                // A turn that takes very long to keep does not keep its request for as long.
                drop(tokio::time::timeout(turns::PATIENCE, held.cancelled()).await);
            }
            match &self.context {
                _ if !replay::generates(ask.turn_kind) => {}
                Some(context) => context.until_clear().await,
                // What is paid for is kept: whoever asks waits until it can be.
                None => self.room.until_some().await,
            }
            let (reply, answer) = oneshot::channel();
            let gone = || Denied::NoAccount { reason: "the engine is on its way out".to_owned() };
            let engine = self.engine.clone();
            self.engine.ask(PendingAsk { ask: Arc::clone(&ask), reply, engine }).map_err(|_| gone())?;
            let grant = answer.await.map_err(|_| gone())??.take().ok_or_else(gone)?;
            self.answers.began(&grant, &ask);
            Ok(grant)
        })
    }

    fn knows(&self, path_attempt: Option<String>, key: String) -> BoxFuture<'_, Result<(), Denied>> {
        Box::pin(self.engine.knows(path_attempt, key))
    }

    fn arrived(&self, arrived: Arrived) -> BoxFuture<'static, ()> {
        match &self.context {
            Some(context) => {
                let near = context.fill.near(&arrived.ask);
                turns::keep(Arc::clone(context), arrived, near)
            }
            None if !replay::generates(arrived.ask.turn_kind) => Box::pin(std::future::ready(())),
            None => {
                let room = Arc::clone(&self.room);
                Box::pin(async move { room.until_some().await })
            }
        }
    }

    fn recorded(&self, ask: Arc<Ask>) -> BoxFuture<'_, Option<Recorded>> {
        if ask.path_attempt.is_none() || !replay::generates(ask.turn_kind) {
            return Box::pin(std::future::ready(None));
        }
        let asker = self.engine.asker(Arc::clone(&ask));
        Box::pin(async move {
            let turn = asker.await.ok()??;
            let recorded = self.answers.find(&turn, &ask).await?;
            let AttemptId { run, task, number } = turn.id;
            let news = AttemptNews::Replayed(ExchangeId::new(recorded.of.as_str()));
            // Nobody waits for that record, as nobody waits for that of an answer that is paid for.
            let news = Command::Attempt { run, task, number, epoch: turn.epoch, news };
            self.engine.settled(recorded.grant.exchange_id.clone(), Some(news));
            Some(recorded)
        })
    }

    fn left(&self, exchange_id: &str) {
        self.answers.left(exchange_id);
    }

    fn kept(&self, exchange_id: &str) {
        self.answers.kept(exchange_id);
    }

    fn renewed(&self, account: &AccountId) -> BoxFuture<'_, ()> {
        let account = account.clone();
        Box::pin(async move {
            // An engine that is gone opens it when it begins anew.
            self.engine.tell(Command::OpenAccount(account)).await.unwrap_or_default();
        })
    }

    fn answered(&self, exchange_id: &str) {
        self.engine.answered(exchange_id.to_owned());
    }

    fn faulted(&self, refusal: &Refusal) {
        // The conversation's length, or its history: the agent dies of it in its own way, and may not say by what.
        let class = classify(refusal.status, &refusal.excerpt);
        self.passed.handed(refusal.attempt.clone(), class, refusal.excerpt.clone());
    }

    fn settle(&self, settled: Settled) {
        self.answers.ended(&settled.exchange_id, settled.outcome, settled.recorded);
        if settled.replayed {
            // What was paid for it is on record under the name under which it was paid.
            return;
        }
        crate::fault::point("after_answer");
        if let Some(attempt) = settled.attempt.as_ref().filter(|_| settled.outcome == Outcome::Complete) {
            self.passed.answered(attempt);
        }
        let conversed = settled.attempt.as_ref().filter(|_| is_main(settled.turn, settled.outcome));
        let usage = usage_of(settled.outcome, &settled.usage, settled.usd_nanos);
        if let (Some(context), Some(attempt)) = (&self.context, conversed) {
            context.fill.answered(attempt, usage.total_tokens());
        }
        // More may be billed for a broken answer than it had counted. The loop knows what was reserved for it.
        let is_uncertain = settled.outcome == Outcome::Cut || usage.unpriced + usage.unmetered > 0;
        let reserved = is_uncertain.then(Estimate::default);
        let exchange = ExchangeId::new(settled.exchange_id.as_str());
        let exchanged = settled.attempt.filter(|_| usage != Usage::default()).map(|AttemptId { run, task, number }| {
            let main = is_main(settled.turn, settled.outcome);
            Command::Exchanged { run, task, number, account: settled.account, main, usage, reserved, exchange }
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
                let account = refusal.account.clone();
                // What the key may not do is no word on the account: the next model or agent may be welcome.
                if refusal.status == Some(403) {
                    self.passed.handed(refusal.attempt, class, refusal.excerpt);
                    return Ruling::Pass;
                }
                self.passed.note(class, refusal);
                // Whoever asks again goes to another account, or is told the same.
                return match self.engine.tell(Command::ShutAccount { account, class }).await {
                    Ok(()) => Ruling::Again,
                    Err(_) => Ruling::Pass,
                };
            }
            let (class, until) = closed_for(&refusal, now());
            let close = Command::CloseAccount { account: refusal.account, class, until };
            match self.engine.tell(close).await {
                Ok(()) => Ruling::Again,
                Err(_) => Ruling::Pass,
            }
        })
    }
}

/// What a refusal that waiting mends says of its account, and until when where that is stated.
fn closed_for(refusal: &Refusal, now: Timestamp) -> (Class, Option<Timestamp>) {
    // An end that has passed is none: whoever says so refuses all the same, and is asked ever later.
    let until = refusal.retry_at.filter(|until| *until > now);
    let class = match (refusal.kind, until) {
        (RefusalKind::Limit, Some(until)) if until.since(now) <= MINUTE_LIMIT_MAX => Class::MinuteLimit,
        // Without an end, the words tell a window (a billing cycle, a day's quota) from a limit per minute.
        (RefusalKind::Limit, None)
            if refusal.status == Some(429) && classify(refusal.status, &refusal.excerpt) != Class::WindowQuota =>
        {
            Class::MinuteLimit
        }
        (RefusalKind::Limit, _) => Class::WindowQuota,
        (RefusalKind::Overload | RefusalKind::Server, _) => Class::Overload,
        // What no waiting mends is passed on.
        (RefusalKind::Network | RefusalKind::Billing | RefusalKind::Auth, _) => Class::Network,
    };
    (class, until)
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
        cut: u32::from(outcome == Outcome::Cut),
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
    if exchange.ends_with(FREE) || exchange.ends_with(REPLAY) || usage == Usage::default() {
        return None;
    }
    Some(LedgerRow { exchange: ExchangeId::new(exchange), attempt: attempt?, account, main, usage })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_limit_without_an_end_is_what_its_words_say() {
        let now = Timestamp::EPOCH.plus(Duration::from_secs(1000));
        let class = |status, text: &str, after: Option<u64>| {
            let refusal = Refusal {
                exchange_id: "x".to_owned(),
                account: AccountId::new("a"),
                attempt: None,
                status: Some(status),
                limits: Vec::new(),
                excerpt: text.to_owned(),
                kind: RefusalKind::Limit,
                retry_at: after.map(|seconds| now.plus(Duration::from_secs(seconds))),
                at: now,
            };
            closed_for(&refusal, now).0
        };
        for window in [
            "You've reached your usage limit for this billing cycle. Your quota will be refreshed in the next cycle.",
            r#"{"error":{"message":"Request limit of the current Billing Cycle reached"}}"#,
            r#"{"error":{"type":"usage_limit_reached"}}"#,
            "You've hit your weekly limit",
            r#"{"error":{"code":"1308","message":"已达到 5小时的使用上限"}}"#,
            "Free allocated quota exceeded",
            r#"{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}"#,
        ] {
            for status in [429, 403] {
                assert_eq!(class(status, window, None), Class::WindowQuota, "{status} {window}");
            }
            assert_eq!(class(429, window, Some(9000)), Class::WindowQuota);
            assert_eq!(class(429, window, Some(60)), Class::MinuteLimit, "it is over in no time: {window}");
        }
        for minute in ["", "rate_limit_exceeded", "max organization concurrency: 1", r#"{"error":{"code":"1302"}}"#] {
            assert_eq!(class(429, minute, None), Class::MinuteLimit, "{minute}");
        }
    }
}
