//! Keys and logins that lie around on this machine, whether or not the configuration names them.
//!
//! What is looked at is whether they are there. No value is kept, printed or sent anywhere.

use std::env;
use std::path::{Path, PathBuf};

use outlast_config::{KeySource, Login, Provider, UserConfig};

/// A key or login that agents' programs would find by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    /// Whose it is.
    pub(crate) provider: Provider,
    /// Whether it is a subscription's login, and not a key.
    pub(crate) login: bool,
    /// Where it is: a variable's name or a file's path.
    pub(crate) place: String,
    /// How the configuration would name it.
    pub(crate) config: &'static str,
}

/// Variables that hold a credential, whether it is a login's, and how the configuration names it.
const VARIABLES: [(&str, Provider, bool, &str); 5] = [
    ("CLAUDE_CODE_OAUTH_TOKEN", Provider::Anthropic, true, "account.claude = { login = \"claude\" }"),
    (
        "ANTHROPIC_API_KEY",
        Provider::Anthropic,
        false,
        "account.anthropic = { provider = \"anthropic\", key_env = \"ANTHROPIC_API_KEY\" }",
    ),
    (
        "OPENAI_API_KEY",
        Provider::OpenAi,
        false,
        "account.openai = { provider = \"openai\", key_env = \"OPENAI_API_KEY\" }",
    ),
    (
        "GEMINI_API_KEY",
        Provider::Gemini,
        false,
        "account.gemini = { provider = \"gemini\", key_env = \"GEMINI_API_KEY\" }",
    ),
    (
        "GOOGLE_API_KEY",
        Provider::Gemini,
        false,
        "account.gemini = { provider = \"gemini\", key_env = \"GOOGLE_API_KEY\" }",
    ),
];

/// Every credential found, in the order of providers.
pub(crate) fn found() -> Vec<Credential> {
    search(|name| env::var_os(name).is_some_and(|value| !value.is_empty()), env::home_dir().as_deref(), codex_home())
}

fn search(is_set: impl Fn(&str) -> bool, home: Option<&Path>, codex: Option<PathBuf>) -> Vec<Credential> {
    let mut found: Vec<Credential> = VARIABLES
        .into_iter()
        .filter(|(name, ..)| is_set(name))
        .map(|(name, provider, login, config)| Credential { provider, login, place: name.to_owned(), config })
        .collect();
    let claude = home.map(|home| home.join(".claude/.credentials.json")).filter(|file| file.is_file());
    found.extend(claude.map(|file| Credential {
        provider: Provider::Anthropic,
        login: true,
        place: file.display().to_string(),
        // What lies there expires within hours and is the program's own; agents beside it need the long-lived one.
        config: "claude setup-token, then CLAUDE_CODE_OAUTH_TOKEN and account.claude = { login = \"claude\" }",
    }));
    let codex = codex.map(|home| home.join("auth.json")).filter(|file| has_tokens(file));
    found.extend(codex.map(|file| Credential {
        provider: Provider::OpenAi,
        login: true,
        place: file.display().to_string(),
        config: "account.codex = { login = \"codex\" }",
    }));
    found.sort_by_key(|credential| provider_name(credential.provider));
    found
}

/// Where codex keeps what is its own.
pub(crate) fn codex_home() -> Option<PathBuf> {
    env::var_os("CODEX_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".codex")))
}

/// Whether codex's file holds a login; it may hold an API key alone.
pub(crate) fn has_tokens(file: &Path) -> bool {
    let text = std::fs::read(file).unwrap_or_default();
    let login: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    login.is_some_and(|login| login["tokens"]["access_token"].is_string())
}

/// Whether an account of the configuration uses this credential.
pub(crate) fn is_used(credential: &Credential, user: &UserConfig) -> bool {
    user.accounts.values().any(|account| match (&account.key, account.login) {
        (Some(KeySource::Env(name)), _) => *name == credential.place,
        (Some(KeySource::File(path)), _) => *path == credential.place,
        (None, Some(Login::Claude)) => credential.place == "CLAUDE_CODE_OAUTH_TOKEN",
        (None, Some(Login::Codex)) => credential.login && credential.provider == Provider::OpenAi,
        (Some(KeySource::Command(_)), _) | (None, None) => false,
    })
}

/// A provider's name in the configuration.
pub(crate) const fn provider_name(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "anthropic",
        Provider::OpenAi => "openai",
        Provider::Gemini => "gemini",
        Provider::OpenAiCompatible => "openai-compatible",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_of_codex_counts_only_when_it_holds_tokens() {
        let home = tempfile::tempdir().unwrap();
        let codex = home.path().join(".codex");
        std::fs::create_dir(&codex).unwrap();
        let found = || search(|name| name == "OPENAI_API_KEY", Some(home.path()), Some(codex.clone()));
        let places = || found().into_iter().map(|credential| (credential.place, credential.login)).collect::<Vec<_>>();
        std::fs::write(codex.join("auth.json"), r#"{"OPENAI_API_KEY":"k","tokens":null}"#).unwrap();
        assert_eq!(places(), [("OPENAI_API_KEY".to_owned(), false)]);
        std::fs::write(codex.join("auth.json"), r#"{"tokens":{"access_token":"t","account_id":"a"}}"#).unwrap();
        let file = codex.join("auth.json").display().to_string();
        assert_eq!(places(), [("OPENAI_API_KEY".to_owned(), false), (file, true)]);
    }
}
