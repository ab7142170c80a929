//! The user's configuration, its accounts, and which of several credentials is billed.
//!
//! Whether a credential is there is looked at; what it is is not, and no key command is run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use outlast_agent::{Dialect, Kind, adapter};
use outlast_api::ExitCode;
use outlast_config::{Account, KeyCommand, KeySource, Login, Provider, UserConfig};
use outlast_core::plan::{AgentSpec, Plan};
use outlast_core::{AccountId, AgentName};

use super::agents::of_agent;
use super::found::Found;
use super::logins::{self, Credential, provider_name};
use crate::places::Places;

/// The configuration file and, where it can be read, what is in it.
pub(crate) fn configuration(places: &Places) -> (Vec<Found>, Option<UserConfig>) {
    const NAME: &str = "configuration";
    let path = &places.config;
    if !path.exists() && !places.is_named() {
        let found = Found::skipped(NAME, format!("there is no {} yet", path.display()));
        return (vec![found], Some(UserConfig::default()));
    }
    match places.user_config() {
        Ok(user) => (vec![permissions(NAME, path)], Some(user)),
        Err(failure) => (vec![Found::failed(NAME, &failure)], None),
    }
}

/// Whoever can write the configuration chooses what runs as a key command.
fn permissions(name: &str, path: &Path) -> Found {
    let shown = path.display();
    match fs::metadata(path).map(|facts| facts.permissions().mode()) {
        Ok(mode) if mode & 0o022 != 0 => {
            Found::warning(name, format!("{shown} can be written by others")).fix(format!("chmod go-w {shown}"))
        }
        Ok(_) => Found::ok(name, shown.to_string()),
        Err(error) => Found::warning(name, format!("{shown}: {error}")),
    }
}

/// Every account, every agent that has none, and who is billed.
pub(crate) fn look(user: &UserConfig, plan: Option<&Plan>) -> Vec<Found> {
    let mut found: Vec<Found> = in_order(user).into_iter().map(|(name, account)| credential(name, account)).collect();
    let lying = logins::found();
    if user.accounts.is_empty() {
        found.push(no_account(&lying));
    }
    if let Some(plan) = plan {
        found.extend(plan.agents.iter().filter_map(|(name, agent)| unpaid(plan, name, agent, user)));
    }
    let providers = [Provider::Anthropic, Provider::OpenAi, Provider::Gemini];
    found.extend(providers.into_iter().filter_map(|provider| billing(provider, user, &lying)));
    found
}

/// Accounts in the order in which they are used.
fn in_order(user: &UserConfig) -> Vec<(&AccountId, &Account)> {
    let mut accounts: Vec<(&AccountId, &Account)> = user.accounts.iter().collect();
    accounts.sort_by_key(|(name, account)| (account.priority, *name));
    accounts
}

fn no_account(lying: &[Credential]) -> Found {
    let example =
        lying.first().map_or("account.NAME = { provider = \"…\", key_env = \"…\" }", |found| found.config);
    Found::warning("accounts", "no account is configured: only agents of kind command can work")
        .fix(format!("in your config.toml: {example}"))
}

/// Whether an account's credential is where the configuration says.
fn credential(name: &AccountId, account: &Account) -> Found {
    let title = format!("account {name}");
    let provider = provider_name(account.provider);
    let what = if account.login.is_some() { format!("{provider} login") } else { format!("{provider} key") };
    let missing = |place: &str| Found::error(title.clone(), ExitCode::Provider, format!("{what}: {place}"));
    match (&account.key, account.login) {
        (Some(KeySource::Env(variable)), _) => variable_of(&title, &what, variable),
        (None, Some(Login::Claude)) => variable_of(&title, &what, "CLAUDE_CODE_OAUTH_TOKEN"),
        (Some(KeySource::File(path)), _) => file(&title, &what, Path::new(path)),
        (Some(KeySource::Command(KeyCommand::Argv(argv))), _) => {
            let program = argv.first().map_or("", String::as_str);
            Found::ok(title, format!("{what}, printed by {program}"))
        }
        (Some(KeySource::Command(KeyCommand::Shell(_))), _) => {
            Found::ok(title, format!("{what}, printed by its key_command"))
        }
        (None, Some(Login::Codex)) => match logins::codex_home().map(|home| home.join("auth.json")) {
            Some(path) if logins::has_tokens(&path) => file(&title, &what, &path),
            _ => missing("codex is not logged in").fix("codex login"),
        },
        (None, None) => missing("the configuration names no credential"),
    }
}

fn variable_of(title: &str, what: &str, variable: &str) -> Found {
    if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
        return Found::ok(title, format!("{what} in {variable}"));
    }
    let found = Found::error(title, ExitCode::Provider, format!("{what}: {variable} is not set"));
    match variable {
        "CLAUDE_CODE_OAUTH_TOKEN" => found.fix("claude setup-token, then export CLAUDE_CODE_OAUTH_TOKEN"),
        _ => found.fix(format!("export {variable}, or name another place in your config.toml")),
    }
}

fn file(title: &str, what: &str, path: &Path) -> Found {
    let shown = path.display();
    match fs::File::open(path).and_then(|file| file.metadata()) {
        Ok(facts) if facts.permissions().mode() & 0o077 != 0 => {
            Found::warning(title, format!("{what} in {shown}, which others can read")).fix(format!("chmod 600 {shown}"))
        }
        Ok(_) => Found::ok(title, format!("{what} in {shown}")),
        Err(error) => Found::error(title, ExitCode::Provider, format!("{what}: {shown}: {error}"))
            .fix("mend `key_file` in your config.toml"),
    }
}

/// Whether an account's provider answers a wire format.
pub(super) const fn answers(provider: Provider, dialect: Dialect) -> bool {
    match provider {
        Provider::Anthropic => matches!(dialect, Dialect::Messages),
        Provider::Gemini => matches!(dialect, Dialect::Gemini),
        Provider::OpenAi | Provider::OpenAiCompatible => matches!(dialect, Dialect::Responses | Dialect::Chat),
    }
}

/// An agent of the plan that no account could pay for.
fn unpaid(plan: &Plan, name: &AgentName, agent: &AgentSpec, user: &UserConfig) -> Option<Found> {
    let kind = Kind::from_name(&agent.kind).filter(|kind| *kind != Kind::Command)?;
    let dialects = adapter(kind).capabilities().dialects;
    let fits = |(id, account): (&AccountId, &Account)| {
        let allowed = agent.accounts.is_empty() || agent.accounts.contains(id);
        allowed && dialects.iter().any(|&dialect| answers(account.provider, dialect))
    };
    if user.accounts.iter().any(fits) {
        return None;
    }
    let spoken: Vec<&str> = dialects.iter().map(|dialect| dialect.name()).collect();
    let what = format!("no account speaks {}, which {kind} needs", spoken.join(" or "));
    let found = of_agent(plan, name, format!("agent {name}: account"), ExitCode::Plan, what);
    Some(found.fix("add an account of that provider to your config.toml"))
}

/// Which of a provider's credentials is billed, where there is more than one to choose from.
fn billing(provider: Provider, user: &UserConfig, lying: &[Credential]) -> Option<Found> {
    let accounts: Vec<(&AccountId, &Account)> =
        in_order(user).into_iter().filter(|(_, account)| account.provider == provider).collect();
    let unused: Vec<&Credential> =
        lying.iter().filter(|found| found.provider == provider && !logins::is_used(found, user)).collect();
    let (&(_, first), others) = accounts.split_first()?;
    if others.is_empty() && unused.is_empty() {
        return None;
    }
    let shown = |(name, account): &(&AccountId, &Account)| {
        format!("`{name}` ({})", if account.login.is_some() { "login" } else { "key" })
    };
    let order: Vec<String> = accounts.iter().map(shown).collect();
    let mut detail = format!("outlast bills {}", order.join(", then "));
    let title = format!("billing {}", provider_name(provider));
    if unused.is_empty() {
        return Some(Found::ok(title, detail));
    }
    let places: Vec<&str> = unused.iter().map(|found| found.place.as_str()).collect();
    detail.push_str(&format!("; not {}, which the agent's own program would find by itself", places.join(", ")));
    let other_money = unused.iter().any(|found| found.login != first.login.is_some());
    if !other_money {
        return Some(Found::ok(title, detail));
    }
    Some(Found::warning(title, detail).fix("nothing for outlast; elsewhere, keep only what you mean to pay with"))
}
