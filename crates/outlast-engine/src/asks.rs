//! Which requests may go out now, decided over the core: whose key it is, which account pays, what waits and for how long.
//!
//! A request that waits is held: it lies in [`Asks`] on the loop's thread, is shown as `held`, and is answered in the
//! turn in which an account opens. Nothing of it is lost with the engine: its shim sends it again to the next one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_config::is_for_model;
use outlast_core::admit::{AttemptNews, Command};
use outlast_core::budget::{Estimate, Reached, Room};
use outlast_core::run::Run;
use outlast_core::task::{Attempt, Stage, Task};
use outlast_core::{AccountId, AttemptId, Class, Core, RunId, TRIAL_MAX, Timestamp, Window};
use outlast_gateway::{Ask, Denied, Dialect, Grant, TurnKind};

use crate::allowance::Allowance;
use crate::ask::{Granted, PendingAsk};
use crate::keys::{RunSecret, same};
use crate::moves::Moves;
use crate::passed::PassedRefusals;
use crate::turns::Turn;

/// A limit that ends sooner than this is one per minute: a window (5 hours, a week) that is about to end is no different
/// to whoever waits.
pub(crate) const MINUTE_LIMIT_MAX: Duration = Duration::from_secs(120);

/// An account as far as choosing one needs it.
#[derive(Debug, Clone)]
pub(crate) struct AccountInfo {
    /// Its name in the user's configuration.
    pub(crate) id: AccountId,
    /// The wire formats that its provider answers.
    pub(crate) dialects: Vec<Dialect>,
    /// Whether its credential is a subscription's login, and not a key.
    pub(crate) login: bool,
    /// The models that it is for, as the user names them; empty means any.
    pub(crate) models: Vec<String>,
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

/// Finds the secret that a run's keys are derived from.
type Secrets = Box<dyn Fn(&RunId) -> Option<RunSecret> + Send>;

/// Every request that waits, on the loop's thread.
pub(crate) struct Asks {
    /// In the user's order of preference.
    accounts: Vec<AccountInfo>,
    /// Budgets, known limits and hours.
    allowance: Allowance,
    secrets: Secrets,
    /// What accounts say that wait for a person.
    passed: Arc<PassedRefusals>,
    /// The key of clients that are no attempt: of `outlast gateway` alone.
    client_key: Option<String>,
    waiting: Vec<PendingAsk>,
    /// What is granted and not settled yet, by exchange: an agent that has read its answer may ask again before the end
    /// of that answer is known here.
    open: BTreeMap<String, Open>,
    moves: Moves,
    exchanges: u64,
    /// When the first of those that wait for a known limit may go.
    next_look: Option<Timestamp>,
}

/// A request that is on its way.
struct Open {
    attempt: Option<AttemptId>,
    account: AccountId,
    turn: u32,
    /// The account that it would have gone to if that were not closed.
    instead_of: Option<AccountId>,
    /// When it went out.
    granted_at: Timestamp,
    /// Whether the provider has begun to answer.
    answered: bool,
    /// Whether a model is asked for anything; a list of models or a count of tokens costs nothing.
    generates: bool,
}

impl Open {
    /// Whether nobody knows yet what the provider says to it, and others are to wait for that.
    fn is_on_trial(&self, now: Timestamp) -> bool {
        self.generates && !self.answered && self.trial_ends() > now
    }

    fn trial_ends(&self) -> Timestamp {
        self.granted_at.plus(TRIAL_MAX)
    }
}

/// Who asks.
enum Asker<'a> {
    Client,
    Attempt { run: RunId, task: &'a Task, attempt: &'a Attempt },
}

/// A request that may go out.
struct Going {
    grant: Grant,
    estimate: Estimate,
    instead_of: Option<AccountId>,
}

/// What becomes of a request now.
enum Fate {
    Go(Going),
    No(Denied),
    Wait {
        class: Class,
        until: Option<Timestamp>,
    },
    /// Every account that could answer waits for a person: it is told what this one said.
    Refused {
        account: AccountId,
        attempt: Option<AttemptId>,
    },
    /// The run's budget has no room for it.
    TooDear {
        run: RunId,
        reached: Option<Reached>,
    },
}

impl Asks {
    pub(crate) fn new(
        accounts: Vec<AccountInfo>,
        allowance: Allowance,
        client_key: Option<String>,
        passed: Arc<PassedRefusals>,
        secrets: impl Fn(&RunId) -> Option<RunSecret> + Send + 'static,
    ) -> Self {
        Self {
            accounts,
            allowance,
            secrets: Box::new(secrets),
            client_key,
            passed,
            waiting: Vec::new(),
            open: BTreeMap::new(),
            moves: Moves::default(),
            exchanges: 0,
            next_look: None,
        }
    }

    pub(crate) fn push(&mut self, ask: PendingAsk) {
        self.waiting.push(ask);
    }

    /// Takes note that an exchange is over; what of it goes on record, in the same turn of the loop.
    pub(crate) fn settled(&mut self, exchange_id: &str, command: Option<Command>) -> Option<Command> {
        let Some(open) = self.open.remove(exchange_id) else { return command };
        let tokens = match &command {
            Some(Command::Exchanged { usage, .. }) if usage.unmetered == 0 => Some(usage.total_tokens()),
            _ => None,
        };
        let was_reserved = self.allowance.settled(exchange_id, &open.account, tokens);
        let mut command = command.filter(|_| open.generates)?;
        if let Command::Exchanged { reserved: Some(reserved), usage, .. } = &mut command {
            *reserved = was_reserved.unwrap_or_default().where_unknown(usage);
        }
        Some(command)
    }

    /// Answers every request that need not wait; whether that leaves news which nothing else brings up.
    pub(crate) fn settle(&mut self, core: &Core, now: Timestamp) -> bool {
        self.allowance.at(now);
        self.moves.forget_what_is_over(core);
        self.next_look = None;
        let mut leaves_news = false;
        for pending in std::mem::take(&mut self.waiting) {
            if pending.reply.is_closed() {
                continue;
            }
            match self.fate(core, &pending.ask, now) {
                Fate::Go(going) => self.grant(going, pending, now),
                Fate::No(denied) => drop(pending.reply.send(Err(denied))),
                Fate::Refused { account, attempt } => {
                    drop(pending.reply.send(Err(self.passed.hand(&account, attempt))));
                }
                Fate::Wait { until, .. } => {
                    let sooner = |until: &Timestamp| *until > now && self.next_look.is_none_or(|next| *until < next);
                    self.next_look = until.filter(sooner).or(self.next_look);
                    self.waiting.push(pending);
                }
                Fate::TooDear { run, reached } => {
                    let is_told = core.run(&run).is_some_and(|run| run.purse.reached.is_some());
                    leaves_news |= reached.is_some() && !is_told;
                    self.waiting.push(pending);
                }
            }
        }
        if !self.waiting.is_empty() {
            self.next_look = self.next_look.into_iter().chain(self.next_trial(core, now)).min();
        }
        leaves_news
    }

    /// When the next request that tries an account out has been without an answer for too long.
    fn next_trial(&self, core: &Core, now: Timestamp) -> Option<Timestamp> {
        let tried =
            |open: &&Open| open.instead_of.is_some() || matches!(core.window(&open.account), Window::Probing { .. });
        self.open.values().filter(|open| open.is_on_trial(now)).filter(tried).map(Open::trial_ends).min()
    }

    /// A new name for an exchange: by it, the next start knows which rows of the ledger nobody has to pay for.
    fn exchange_id(&self, ask: &Ask, now: Timestamp) -> String {
        let costs = if generates(ask.turn_kind) { "" } else { FREE };
        format!("{:011x}-{:x}{costs}", now.as_millis(), self.exchanges)
    }

    fn grant(&mut self, going: Going, pending: PendingAsk, now: Timestamp) {
        let Going { grant, estimate, instead_of } = going;
        let generates = generates(pending.ask.turn_kind);
        if generates {
            let run = grant.attempt.as_ref().map(|attempt| attempt.run.clone());
            self.allowance.granted(&grant.exchange_id, run, &grant.account, estimate, now);
        }
        let (attempt, account, turn) = (grant.attempt.clone(), grant.account.clone(), grant.turn);
        let open = Open { attempt, account, turn, instead_of, granted_at: now, answered: false, generates };
        self.open.insert(grant.exchange_id.clone(), open);
        // Who has left meanwhile settles it unsent: see `Granted`.
        drop(pending.reply.send(Ok(Granted::new(grant, pending.engine))));
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
        self.allowance.at(now);
        let mut news = self.allowance.hours_news(core, now);
        let mut held: BTreeMap<AttemptId, (Class, Option<Timestamp>)> = BTreeMap::new();
        for pending in &self.waiting {
            let Ok(Asker::Attempt { run, task, attempt }) = self.asker(core, &pending.ask) else { continue };
            let (class, until) = match self.fate_of_attempt(core, &pending.ask, &run, task, attempt.number, now) {
                Fate::Wait { class, until } => (class, steady(attempt, class, until, now)),
                Fate::TooDear { run, reached } => {
                    news.extend(reached.map(|reached| Command::ReachBudget { run, reached }));
                    (Class::OwnBudget, None)
                }
                Fate::Go(..) | Fate::No(_) | Fate::Refused { .. } => continue,
            };
            held.insert(AttemptId { run, task: task.id.clone(), number: attempt.number }, (class, until));
        }
        for run in core.runs.values() {
            for task in run.active() {
                let Some(attempt) = task.attempt().filter(|attempt| attempt.stage == Stage::Working) else { continue };
                let id = AttemptId { run: run.id.clone(), task: task.id.clone(), number: attempt.number };
                let news_of_it = match held.get(&id) {
                    Some(&(class, until)) => AttemptNews::Held { class, until },
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
        core.wake_at(now).map(|(at, _)| at).into_iter().chain(self.next_look).min()
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
        let mut wait: Option<(Class, Option<Timestamp>)> = None;
        let (mut known, mut shut, mut instead_of) = (false, None, None);
        let mut other_models = Vec::new();
        for account in accounts {
            let Some(info) = self.accounts.iter().find(|info| info.id == *account) else { continue };
            known = true;
            if !info.dialects.contains(&ask.dialect) {
                continue;
            }
            if ask.model.as_ref().is_some_and(|model| !is_for_model(&info.models, model)) {
                other_models.push(format!("`{account}` is for {}", info.models.join(", ")));
                continue;
            }
            if core.is_shut(account) {
                shut = shut.or(Some(account));
                instead_of = instead_of.or(Some(account));
                continue;
            }
            let waits = self.waits_for(core, ask, account, now);
            let Some((class, until)) = waits.or_else(|| self.moves_for(core, ask, instead_of?, account, now)) else {
                let exchange_id = self.exchange_id(ask, now);
                let run = attempt.as_ref().and_then(|attempt| core.run(&attempt.run));
                let estimate = self.allowance.estimate(run, ask, account);
                return match run.filter(|_| generates(ask.turn_kind)).and_then(|run| self.too_dear(run, estimate)) {
                    Some(fate) => fate,
                    None => {
                        let grant = Grant { exchange_id, attempt, account: account.clone(), turn };
                        Fate::Go(Going { grant, estimate, instead_of: instead_of.cloned() })
                    }
                };
            };
            match core.window(account) {
                // It is over in no time, and the provider's cache of the conversation is worth more than that.
                Window::Closed { class: Class::MinuteLimit, until, .. } if until.since(now) <= MINUTE_LIMIT_MAX => {
                    return Fate::Wait { class, until: Some(until) };
                }
                Window::Probing { class: Class::MinuteLimit, .. } => return Fate::Wait { class, until: None },
                Window::Closed { .. } | Window::Probing { .. } => instead_of = instead_of.or(Some(account)),
                Window::Open | Window::Shut { .. } => {}
            }
            // What is being tried out at this moment is over soonest.
            if wait.is_none_or(|(_, known)| until < known) {
                wait = Some((class, until));
            }
        }
        match wait {
            Some((class, until)) => Fate::Wait { class, until },
            None if let Some(account) = shut => Fate::Refused { account: account.clone(), attempt },
            None if !other_models.is_empty() => {
                let (model, others) = (ask.model.as_deref().unwrap_or_default(), other_models.join("; "));
                let reason = format!("no account of this agent is for `{model}` (config.toml, `models`): {others}");
                Fate::No(Denied::NoAccount { reason })
            }
            None if known => {
                Fate::No(Denied::NoAccount { reason: format!("no account of this agent answers {:?}", ask.dialect) })
            }
            None => Fate::No(Denied::NoAccount {
                reason: "the user's config.toml names no account for this agent".to_owned(),
            }),
        }
    }

    /// Why a request may not go out on an account now, and until when where that is known.
    fn waits_for(
        &self,
        core: &Core,
        ask: &Ask,
        account: &AccountId,
        now: Timestamp,
    ) -> Option<(Class, Option<Timestamp>)> {
        let limited = || self.allowance.waits_for(account, ask).filter(|_| generates(ask.turn_kind));
        match core.window(account) {
            Window::Open | Window::Shut { .. } => limited(),
            Window::Closed { class, until, .. } => Some((class, Some(until))),
            window @ Window::Probing { class, .. } => {
                let tries = |open: &&Open| open.is_on_trial(now) && open.account == *account;
                let on_trial = u32::try_from(self.open.values().filter(tries).count()).unwrap_or(u32::MAX);
                let is_full = window.on_trial_max().is_some_and(|max| on_trial >= max);
                (is_full && generates(ask.turn_kind)).then_some((class, None)).or_else(limited)
            }
        }
    }

    /// Why a request may not move from an account that is closed to this one now: a crowd that is turned away at one must
    /// not run into the next together.
    fn moves_for(
        &self,
        core: &Core,
        ask: &Ask,
        from: &AccountId,
        to: &AccountId,
        now: Timestamp,
    ) -> Option<(Class, Option<Timestamp>)> {
        let moves =
            |open: &&Open| open.is_on_trial(now) && open.account == *to && open.instead_of.as_ref() == Some(from);
        let on_trial = u32::try_from(self.open.values().filter(moves).count()).unwrap_or(u32::MAX);
        let is_full = self.moves.on_trial_max(from, to).is_some_and(|max| on_trial >= max);
        let class = match core.window(from) {
            Window::Closed { class, .. } | Window::Shut { class } | Window::Probing { class, .. } => class,
            Window::Open => return None,
        };
        (is_full && generates(ask.turn_kind)).then_some((class, None))
    }

    /// What becomes of a request for which the run's budget has no room.
    fn too_dear(&self, run: &Run, wants: Estimate) -> Option<Fate> {
        let reached = match self.allowance.room(run, wants) {
            Room::Fits => return None,
            Room::Later => None,
            Room::Gone(lack) => Some(Reached { lack, wants }),
        };
        Some(Fate::TooDear { run: run.id.clone(), reached })
    }

    /// Takes note that the provider has begun to answer; what that says of the account.
    pub(crate) fn answered(&mut self, exchange_id: &str) -> Option<Command> {
        let open = self.open.get_mut(exchange_id).filter(|open| open.generates)?;
        open.answered = true;
        if let Some(from) = &open.instead_of {
            self.moves.took_one(from, &open.account);
        }
        Some(Command::AccountAnswered(open.account.clone()))
    }

    /// Which turn of which attempt a request is; nothing where its key is void, or it is no attempt's.
    pub(crate) fn turn_of(&self, core: &Core, ask: &Ask) -> Option<Turn> {
        let Ok(Asker::Attempt { run, task, attempt }) = self.asker(core, ask) else { return None };
        let id = AttemptId { run, task: task.id.clone(), number: attempt.number };
        Some(Turn { number: self.turn(ask, &id, task), id, epoch: attempt.epoch })
    }

    /// Finds out who asks: the path names an attempt and the key proves it.
    fn asker<'a>(&self, core: &'a Core, ask: &Ask) -> Result<Asker<'a>, Denied> {
        self.asker_of(core, ask.path_attempt.as_deref(), &ask.key)
    }

    /// Whether anybody has this key.
    pub(crate) fn knows(&self, core: &Core, path: Option<&str>, key: &str) -> Result<(), Denied> {
        self.asker_of(core, path, key).map(drop)
    }

    fn asker_of<'a>(&self, core: &'a Core, path: Option<&str>, key: &str) -> Result<Asker<'a>, Denied> {
        let Some(path) = path else {
            let client = self.client_key.as_ref().is_some_and(|own| same(own, key));
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
            if !same(&secret.key(&id, attempt.epoch), key) {
                return Err(Denied::UnknownKey);
            }
            let void = matches!(attempt.stage, Stage::Ending(_));
            return if void { Err(Denied::Revoked) } else { Ok(Asker::Attempt { run: run.id.clone(), task, attempt }) };
        }
        Err(Denied::Revoked)
    }
}

/// Until when a request is said to wait. The end of a known limit moves with every other request that goes out first:
/// what was said stands until it is over.
fn steady(attempt: &Attempt, class: Class, until: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let said = attempt.held.as_ref().filter(|held| held.class == class && class == Class::MinuteLimit);
    said.and_then(|held| held.until).filter(|said| *said > now && until.is_none_or(|until| *said <= until)).or(until)
}

/// How the name of an exchange ends that asks no model for anything.
pub(crate) const FREE: &str = "-free";

/// Whether a model is asked for anything; a list of models or a count of tokens costs nothing.
const fn generates(kind: TurnKind) -> bool {
    !matches!(kind, TurnKind::CountTokens | TurnKind::Models)
}

#[cfg(test)]
mod tests;
