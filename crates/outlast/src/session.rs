//! Opening an engine for a command: accounts from the user's configuration, a runtime, the repository.

use std::future::Future;

use outlast_api::{Diagnostic, ExitCode};
use outlast_config::{Account as Configured, KeyCommand, KeySource, Limits, Login, Provider, UserConfig};
use outlast_core::AccountId;
use outlast_engine::{Account, Engine, Setup};
use outlast_gateway::{Credentials, Shape, Source, Upstream};
use outlast_git::UserRepo;
use outlast_process::Spawner;

use crate::failure::Failure;
use crate::places::Places;

/// What a command that needs an engine is given.
pub(crate) struct Session {
    pub(crate) places: Places,
    pub(crate) spawner: Spawner,
    pub(crate) user: UserConfig,
}

impl Session {
    /// Opens an engine over a repository. Without `starts` it begins no attempt.
    pub(crate) async fn open(self, repository: UserRepo, starts: bool) -> Result<Engine, Failure> {
        let setup = Setup {
            home: self.places.home,
            repository: Some(repository),
            spawner: self.spawner,
            accounts: accounts(&self.user)?,
            starts,
            memory_percent: self.user.ceiling.memory_percent,
            clients: None,
        };
        Ok(Engine::open(setup).await?)
    }
}

/// Where a ChatGPT login is answered, which is not where OpenAI answers its keys (the address in codex-cli 0.171.0).
const CHATGPT_BASE_URL: &str = "https://chatgpt.com/backend-api/codex";

/// Runs a command's asynchronous part.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    on(tokio::runtime::Builder::new_multi_thread(), work)
}

/// As [`block_on`], on this thread alone: what passes bytes on is fastest where no other core has to be woken.
pub(crate) fn block_on_one_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    on(tokio::runtime::Builder::new_current_thread(), work)
}

fn on<T>(mut runtime: tokio::runtime::Builder, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime.enable_all().build().map_err(|error| {
        Failure::from(Diagnostic::error("host/cannot", ExitCode::Host, format!("no threads to run on: {error}")))
    })?;
    runtime.block_on(work)
}

/// The user's accounts, in order of preference.
pub(crate) fn accounts(user: &UserConfig) -> Result<Vec<Account>, Failure> {
    let mut configured: Vec<(&AccountId, &Configured)> = user.accounts.iter().collect();
    configured.sort_by_key(|(name, account)| (account.priority, *name));
    configured.into_iter().map(|(name, configured)| account(name, configured)).collect()
}

fn account(name: &AccountId, configured: &Configured) -> Result<Account, Failure> {
    let refused = |why: String| Failure::from(Diagnostic::error("config/bad-account", ExitCode::Plan, why));
    let provider = match configured.provider {
        Provider::Anthropic => outlast_gateway::Provider::Anthropic,
        Provider::OpenAi => outlast_gateway::Provider::OpenAi,
        Provider::Gemini => outlast_gateway::Provider::Gemini,
        Provider::OpenAiCompatible => outlast_gateway::Provider::OpenAiCompatible,
    };
    let (shape, default) = match configured.login {
        None => (Shape::Key, None),
        Some(Login::Claude) => (Shape::ClaudeOauth, Some(Source::Env("CLAUDE_CODE_OAUTH_TOKEN".to_owned()))),
        Some(Login::Codex) => (Shape::CodexLogin, codex_login()),
    };
    let source = configured.key.as_ref().map(source).or(default);
    let source = source.ok_or_else(|| refused(format!("account `{name}` names no credential")))?;
    let default = match configured.login {
        Some(Login::Codex) => Some(CHATGPT_BASE_URL),
        _ => provider.default_base_url(),
    };
    let base_url = configured.base_url.as_deref().or(default);
    let base_url = base_url.ok_or_else(|| refused(format!("account `{name}` needs a `base_url`")))?;
    let upstream = Upstream::new(name.clone(), provider, base_url, Credentials::new(shape, source));
    let upstream = upstream.map_err(|error| refused(error.to_string()))?;
    let Limits { requests_per_minute, tokens_per_minute, concurrent } = configured.limits;
    let limits = outlast_core::pace::Limits { requests: requests_per_minute, tokens: tokens_per_minute, concurrent };
    let (login, models) = (configured.login.is_some(), configured.models.clone());
    Ok(Account { upstream, login, models, limits, hours: configured.hours })
}

fn source(key: &KeySource) -> Source {
    match key {
        KeySource::Env(name) => Source::Env(name.clone()),
        KeySource::File(path) => Source::File(path.into()),
        KeySource::Command(KeyCommand::Shell(line)) => Source::Shell(line.clone()),
        KeySource::Command(KeyCommand::Argv(argv)) => Source::Command(argv.clone()),
    }
}

/// Where codex keeps its login.
fn codex_login() -> Option<Source> {
    let home = std::env::var_os("CODEX_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".codex")))?;
    Some(Source::File(home.join("auth.json")))
}
