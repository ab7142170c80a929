//! Reading `[account.NAME]`.

use outlast_core::plan::Span;

use crate::document::{Table, Value};
use crate::layer::{bare, value};
use crate::reader::{Reader, find};
use crate::{Code, Hours, units};

/// A key or login at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Whose API it speaks.
    pub provider: Provider,
    /// The subscription it is a login of; `None` for an API key.
    pub login: Option<Login>,
    /// Where its key or token is; `None` means where the login's own program keeps it.
    pub key: Option<KeySource>,
    /// The provider's address, where it is not the provider's usual one.
    pub base_url: Option<String>,
    /// Models it is for; empty means any.
    pub models: Vec<String>,
    /// Accounts with a smaller number are used first; 100 where none is given.
    pub priority: u32,
    /// Limits known beforehand.
    pub limits: Limits,
    /// Hours in which it may be used; `None` means always.
    pub hours: Option<Hours>,
    /// Where it is configured.
    pub source: Span,
}

/// Whose API an account speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses and Chat Completions.
    OpenAi,
    /// Gemini generateContent.
    Gemini,
    /// Chat Completions at an address of the user's.
    OpenAiCompatible,
}

/// A subscription that is logged in to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Claude's long-lived token.
    Claude,
    /// The login of Codex.
    Codex,
}

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In this environment variable.
    Env(String),
    /// Printed by this command.
    Command(KeyCommand),
    /// In this file.
    File(String),
}

/// A command that prints a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCommand {
    /// A line for the shell.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// Limits of an account that its owner knows; absent means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests in a minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute.
    pub tokens_per_minute: Option<u64>,
    /// Requests at once.
    pub concurrent: Option<u32>,
}

/// Keys of `[account.NAME]`.
pub(crate) const KEYS: &[&str] =
    &["login", "key_env", "key_command", "key_file", "provider", "base_url", "models", "priority", "limits", "hours"];
/// Keys of `limits`.
pub(crate) const LIMITS: &[&str] = &["requests_per_minute", "tokens_per_minute", "concurrent"];
const PRIORITY_DEFAULT: u32 = 100;
const PER_MINUTE_MAX: u64 = 1_000_000_000;

pub(super) fn read(reader: &mut Reader<'_>, table: &Table, name: &str, at: usize) -> Option<Account> {
    reader.check_keys(table, &format!("`[account.{name}]`"), KEYS);
    let login = reader.parsed(table, "login", "\"claude\" or \"codex\"", |text| match text {
        "claude" => Some(Login::Claude),
        "codex" => Some(Login::Codex),
        _ => None,
    });
    let login = login.map(|login| login.value);
    let key = read_key(reader, table, name);
    if login.is_none() && key.is_none() && find(table, "login").is_none() {
        let message = format!("`[account.{name}]` has no credential");
        reader.note(Code::BadAccount, at, message, "add `login`, `key_env`, `key_command` or `key_file`");
    }
    let provider = read_provider(reader, table, name, at, login);
    let base_url = read_base_url(reader, table);
    if provider == Some(Provider::OpenAiCompatible) && find(table, "base_url").is_none() {
        let message = format!("`[account.{name}]` has no `base_url`");
        reader.note(Code::BadAccount, at, message, "add the server's address, such as \"http://127.0.0.1:11434/v1\"");
    }
    let priority = reader.small(table, "priority", 0, u32::MAX).map_or(PRIORITY_DEFAULT, |priority| priority.value);
    let hours = reader.parsed(table, "hours", "hours such as \"22:00-08:00\"", units::hours);
    let models = reader.texts(table, "models");
    Some(Account {
        provider: provider?,
        login,
        key,
        base_url,
        models: bare(models.as_ref()),
        priority,
        limits: read_limits(reader, table),
        hours: hours.map(|hours| hours.value),
        source: reader.span(at),
    })
}

fn read_provider(
    reader: &mut Reader<'_>,
    table: &Table,
    name: &str,
    at: usize,
    login: Option<Login>,
) -> Option<Provider> {
    let wanted = "\"anthropic\", \"openai\", \"gemini\" or \"openai-compatible\"";
    let named = reader.parsed(table, "provider", wanted, |text| match text {
        "anthropic" => Some(Provider::Anthropic),
        "openai" => Some(Provider::OpenAi),
        "gemini" => Some(Provider::Gemini),
        "openai-compatible" => Some(Provider::OpenAiCompatible),
        _ => None,
    });
    let implied = login.map(|login| match login {
        Login::Claude => Provider::Anthropic,
        Login::Codex => Provider::OpenAi,
    });
    match (named, implied) {
        (Some(named), Some(implied)) if named.value != implied => {
            let message = format!("`[account.{name}]` has a login of another provider");
            reader.note(Code::BadAccount, &named.at, message, "remove `provider`: the login says it");
            None
        }
        (Some(named), _) => Some(named.value),
        (None, Some(implied)) => Some(implied),
        (None, None) => {
            if find(table, "provider").is_none() && find(table, "login").is_none() {
                let message = format!("`[account.{name}]` has no `provider`");
                reader.note(Code::BadAccount, at, message, format!("add `provider`: {wanted}"));
            }
            None
        }
    }
}

fn read_key(reader: &mut Reader<'_>, table: &Table, name: &str) -> Option<KeySource> {
    let env = reader.text(table, "key_env").map(|variable| KeySource::Env(variable.value));
    let file = reader.text(table, "key_file").map(|path| KeySource::File(path.value));
    let command = read_key_command(reader, table).map(KeySource::Command);
    let mut sources: Vec<KeySource> = [env, command, file].into_iter().flatten().collect();
    if sources.len() > 1 {
        let at = ["key_file", "key_command", "key_env"].iter().find_map(|key| find(table, key)).map_or(0, |e| e.key_at);
        let message = format!("`[account.{name}]` has more than one place for its key");
        reader.note(Code::BadAccount, at, message, "keep one of `key_env`, `key_command` and `key_file`");
    }
    let source = sources.pop()?;
    let blank = match &source {
        KeySource::Env(text) | KeySource::File(text) | KeySource::Command(KeyCommand::Shell(text)) => {
            text.trim().is_empty()
        }
        KeySource::Command(KeyCommand::Argv(words)) => words.first().is_none_or(|program| program.is_empty()),
    };
    if blank {
        let at =
            ["key_env", "key_command", "key_file"].iter().find_map(|key| find(table, key)).map_or(0, |e| e.node.at);
        reader.note(Code::BadAccount, at, format!("the key of `[account.{name}]` is nowhere"), "say where the key is");
    }
    Some(source)
}

fn read_key_command(reader: &mut Reader<'_>, table: &Table) -> Option<KeyCommand> {
    match &find(table, "key_command")?.node.value {
        Value::List(_) => Some(KeyCommand::Argv(bare(reader.texts(table, "key_command").as_ref()))),
        _ => value(reader.text(table, "key_command").as_ref()).map(KeyCommand::Shell),
    }
}

fn read_base_url(reader: &mut Reader<'_>, table: &Table) -> Option<String> {
    let url = reader.text(table, "base_url")?;
    let (plain, rest) = match (url.value.strip_prefix("https://"), url.value.strip_prefix("http://")) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => {
            let message = format!("`base_url` cannot be `{}`", url.value);
            reader.note(Code::BadValue, &url.at, message, "give an address that begins with https://");
            return None;
        }
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    if authority.is_empty() || authority.contains('@') || url.value.contains(char::is_whitespace) {
        let message = "`base_url` needs a host, and neither a password nor a space";
        reader.note(Code::BadValue, &url.at, message, "give an address such as https://api.example.com/v1");
        return None;
    }
    if plain && !is_loopback(authority) {
        let message = format!("`base_url` sends the key to `{authority}` without encryption");
        reader.note(Code::PlainHttp, &url.at, message, "use https://, or a tunnel to 127.0.0.1");
    }
    Some(url.value.trim_end_matches('/').to_owned())
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => authority.split(':').next().unwrap_or(""),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn read_limits(reader: &mut Reader<'_>, table: &Table) -> Limits {
    let Some(limits) = reader.table(table, "limits") else { return Limits::default() };
    reader.check_keys(limits, "`limits`", LIMITS);
    let mut per_minute = |key| reader.integer(limits, key, 1, PER_MINUTE_MAX).map(|limit| limit.value);
    let (requests_per_minute, tokens_per_minute) = (per_minute("requests_per_minute"), per_minute("tokens_per_minute"));
    let concurrent = reader.small(limits, "concurrent", 1, 10_000).map(|limit| limit.value);
    Limits { requests_per_minute, tokens_per_minute, concurrent }
}
