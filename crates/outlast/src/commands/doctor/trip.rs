//! A round trip to every provider, in every format that an account answers, through a real gateway.
//!
//! The list of models shows that the address and the credential are right, and costs nothing. Where a model is named by
//! the configuration or the plan, it is asked for one word as well: that costs a few tokens.

mod gate;
mod wire;

use std::time::{Duration, Instant};

use outlast_agent::{Kind, adapter};
use outlast_api::ExitCode;
use outlast_config::{Account, UserConfig};
use outlast_core::plan::Plan;
use outlast_core::{AccountId, Class};
use outlast_gateway::{Dialect, Provider, Refusal, RefusalKind};
use tokio::task::JoinSet;

use super::accounts::answers;
use super::found::Found;
use crate::failure::Failure;
use crate::session;
use gate::{Answer, Gate};
use wire::Wire;

/// A provider that says nothing for this long is as good as unreachable.
const TRIP_MAX: Duration = Duration::from_secs(60);
/// Shown of a provider's own words.
const EXCERPT_CHARS_MAX: usize = 200;

/// One account's trips.
struct Trip {
    place: usize,
    name: AccountId,
    provider: Provider,
    login: bool,
    /// Models that the configuration and the plan name, for each dialect.
    wanted: Vec<(Dialect, Vec<String>)>,
}

/// What is told where nothing is asked.
pub(crate) fn skipped(user: &UserConfig) -> Vec<Found> {
    user.accounts
        .keys()
        .map(|name| Found::skipped(format!("round trip {name}"), "--offline: no provider is asked"))
        .collect()
}

/// Asks every account's provider.
pub(crate) async fn all(user: &UserConfig, plan: Option<&Plan>) -> Vec<Found> {
    let title = "round trip";
    if user.accounts.is_empty() {
        return vec![Found::skipped(title, "there is no account to ask with")];
    }
    let accounts = match session::accounts(user) {
        Ok(accounts) => accounts,
        Err(failure) => return vec![Found::failed(title, &failure)],
    };
    let upstreams: Vec<_> = accounts.into_iter().map(|account| account.upstream).collect();
    let trips: Vec<Trip> =
        upstreams.iter().enumerate().filter_map(|(place, upstream)| trip(place, upstream, user, plan)).collect();
    let gate = match Gate::open(upstreams).await {
        Ok(gate) => gate,
        Err(error) => return vec![Found::failed(title, &Failure::from(error))],
    };
    let mut asked = JoinSet::new();
    for trip in trips {
        let gate = gate.clone();
        asked.spawn(async move { (trip.place, trip.make(&gate).await) });
    }
    let mut answers = asked.join_all().await;
    gate.close().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().flat_map(|(_, found)| found).collect()
}

fn trip(place: usize, upstream: &outlast_gateway::Upstream, user: &UserConfig, plan: Option<&Plan>) -> Option<Trip> {
    let name = upstream.account().clone();
    let account = user.accounts.get(&name)?;
    let provider = upstream.provider();
    let wanted = wire::DIALECTS.into_iter().filter(|&dialect| provider.speaks(dialect));
    let wanted = wanted.map(|dialect| (dialect, wanted_models(dialect, &name, account, plan))).collect();
    Some(Trip { place, provider, login: account.login.is_some(), wanted, name })
}

/// Models that the account names, else those of the plan's agents which it could pay for.
fn wanted_models(dialect: Dialect, name: &AccountId, account: &Account, plan: Option<&Plan>) -> Vec<String> {
    if !account.models.is_empty() {
        return account.models.clone();
    }
    let spoken = wire::as_agents_name_it(dialect);
    let agents = plan.into_iter().flat_map(|plan| plan.agents.values());
    let fitting = agents.filter(|agent| {
        let speaks = |kind: Kind| adapter(kind).capabilities().dialects.contains(&spoken);
        let may = agent.accounts.is_empty() || agent.accounts.contains(name);
        may && answers(account.provider, spoken) && Kind::from_name(&agent.kind).is_some_and(speaks)
    });
    fitting.filter_map(|agent| agent.model.clone()).collect()
}

impl Trip {
    async fn make(&self, gate: &Gate) -> Vec<Found> {
        let listed = self.ask(gate, Wire::models(self.provider, self.login)).await;
        let mut found = Vec::new();
        for (dialect, wanted) in &self.wanted {
            let title = format!("round trip {dialect}, account {}", self.name);
            let models = match &listed {
                Ok(answer) if answer.is_success() => wire::listed(&answer.body),
                Ok(_) => Vec::new(),
                // A login may be allowed to ask a model and not to list them.
                Err(Refused { status: Some(403), .. }) if self.login => Vec::new(),
                Err(refused) => {
                    found.push(refused.told(title));
                    continue;
                }
            };
            found.push(match wire::choose(wanted, &models) {
                Some(model) => self.one_word(gate, title, *dialect, &model).await,
                None => self.only_listed(title, models.len(), &listed),
            });
        }
        found
    }

    /// One request to a model.
    async fn one_word(&self, gate: &Gate, title: String, dialect: Dialect, model: &str) -> Found {
        let started = Instant::now();
        let request = Wire::one_word(dialect, self.provider, self.login, model);
        match self.ask(gate, request).await {
            Ok(answer) if answer.is_success() => {
                Found::ok(title, format!("{model} answered in {} ms", started.elapsed().as_millis()))
            }
            Ok(answer) => Found::warning(title, format!("{model}: {}", answer.shown()))
                .fix("check the model's name in `models` of the account, or in the plan"),
            Err(refused) => refused.told(title),
        }
    }

    fn only_listed(&self, title: String, models: usize, listed: &Result<Answer, Refused>) -> Found {
        let advice = "name a model in `models` of the account, and it is asked for one word";
        match listed {
            Ok(answer) if answer.is_success() => {
                Found::ok(title, format!("the credential is accepted, {models} models are listed; {advice}"))
            }
            Ok(answer) => Found::warning(title, format!("it lists no models: {}", answer.shown())).fix(advice),
            Err(refused) => {
                Found::warning(title, format!("it lists no models to this login: {}", refused.why)).fix(advice)
            }
        }
    }

    /// Sends one request on this account; a provider's refusal is told apart from an answer.
    async fn ask(&self, gate: &Gate, wire: Wire) -> Result<Answer, Refused> {
        let asked = tokio::time::timeout(TRIP_MAX, gate.ask(self.place, wire)).await;
        let refusal = gate.refusal(&self.name);
        match (asked, refusal) {
            (_, Some(refusal)) => Err(Refused::of(&refusal)),
            (Ok(Ok(answer)), None) => Ok(answer),
            (Ok(Err(why)), None) => Err(Refused::network(why)),
            (Err(_), None) => Err(Refused::network(format!("no answer in {} s", TRIP_MAX.as_secs()))),
        }
    }
}

/// Why there was no answer.
struct Refused {
    class: Class,
    status: Option<u16>,
    why: String,
}

impl Refused {
    fn of(refusal: &Refusal) -> Self {
        let class = match refusal.kind {
            RefusalKind::Limit => Class::WindowQuota,
            RefusalKind::Billing => Class::Billing,
            RefusalKind::Auth => Class::Auth,
            RefusalKind::Overload | RefusalKind::Server => Class::Overload,
            RefusalKind::Network => Class::Network,
        };
        let said: String = refusal.excerpt.chars().take(EXCERPT_CHARS_MAX).collect();
        let status = refusal.status.map_or_else(String::new, |status| format!("{status}: "));
        let until = refusal.retry_at.map(|at| format!("; come back at {}", outlast_api::rfc3339(at)));
        Self { class, status: refusal.status, why: format!("{status}{said}{}", until.unwrap_or_default()) }
    }

    fn network(why: String) -> Self {
        Self { class: Class::Network, status: None, why }
    }

    /// A limit is no fault: the way is open and the credential right.
    fn told(&self, title: String) -> Found {
        let detail = format!("{}: {}", self.class, self.why);
        let fix = match self.class {
            Class::WindowQuota => {
                return Found::warning(title, detail).fix("nothing: a run waits until the window opens");
            }
            Class::Auth => "mend the account's credential in your config.toml, or log in again",
            Class::Billing => "pay for the account, or put another one before it (`priority`)",
            Class::Network => "check the network, a proxy in between, and `base_url` of the account",
            _ => "try again later; the provider itself fails",
        };
        Found::error(title, ExitCode::Provider, detail).fix(fix)
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::Timestamp;

    use super::*;

    fn refusal(kind: RefusalKind, status: Option<u16>, excerpt: &str) -> Refusal {
        Refusal {
            exchange_id: "e".to_owned(),
            account: AccountId::new("a"),
            attempt: None,
            status,
            limits: Vec::new(),
            excerpt: excerpt.to_owned(),
            kind,
            retry_at: (kind == RefusalKind::Limit).then(|| Timestamp::from_millis(1_800_000_000_000)),
            at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn a_used_up_window_is_no_fault_and_everything_else_is_one_of_its_class() {
        let told = |kind, status, excerpt| {
            let found = Refused::of(&refusal(kind, status, excerpt)).told("t".to_owned());
            (found.check.state, found.exit, found.check.detail)
        };
        let (state, exit, detail) = told(RefusalKind::Limit, Some(429), "slow\ndown");
        assert_eq!((state.as_str(), exit), ("warning", ExitCode::Ok));
        assert_eq!(detail, "window_quota: 429: slow down; come back at 2027-01-15T08:00:00Z");
        for (kind, class) in [
            (RefusalKind::Auth, "auth"),
            (RefusalKind::Billing, "billing"),
            (RefusalKind::Overload, "overload"),
            (RefusalKind::Server, "overload"),
            (RefusalKind::Network, "network"),
        ] {
            let (state, exit, detail) = told(kind, None, "no");
            assert_eq!((state.as_str(), exit, detail), ("error", ExitCode::Provider, format!("{class}: no")));
        }
    }
}
