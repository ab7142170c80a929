//! An account's credential: where it comes from, and in which headers it goes upstream.
//!
//! Resolved when first needed, kept, and fetched anew once after the provider refused it: a login may have been
//! renewed by its own tool in the meantime. Nothing here ever writes a credential anywhere.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::secret::Secret;
use crate::upstream::Provider;

/// How long a `key_command` may take: it may ask a password store, never a person who is away.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// What an account pays with.
#[derive(Debug)]
pub enum Credential {
    /// A provider's API key.
    Key(Secret),
    /// The long-lived token of a Claude subscription.
    ClaudeOauth(Secret),
    /// A codex login with a ChatGPT subscription.
    CodexLogin {
        /// The bearer token.
        access_token: Secret,
        /// The ChatGPT account it belongs to.
        account_id: String,
    },
}

/// Where the text of a credential is found.
#[derive(Debug)]
pub enum Source {
    /// An environment variable of this process.
    Env(String),
    /// A program and its arguments, whose standard output is the text.
    Command(Vec<String>),
    /// A command line for `sh -c`, as the user wrote it in the user's own configuration.
    Shell(String),
    /// A file.
    File(PathBuf),
    /// The text itself.
    Text(Secret),
}

/// Which of the credentials the text of a [`Source`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An API key; whitespace around it is cut off.
    Key,
    /// The long-lived token of a Claude subscription.
    ClaudeOauth,
    /// The `auth.json` that codex writes when a person logs in.
    CodexLogin,
}

/// Why there is no credential. Never carries any part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The environment variable is not set, or empty.
    #[error("environment variable {0} is not set")]
    EnvMissing(String),
    /// The file cannot be read.
    #[error("cannot read key file {path}: {why}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's own account.
        why: String,
    },
    /// The command failed or took too long.
    #[error("key command {program}: {why}")]
    Command {
        /// The program, without its arguments.
        program: String,
        /// How it ended.
        why: String,
    },
    /// This process may open no more files now: its source was not even asked.
    #[error("too many files are open to read the credential from {from}")]
    OutOfFiles {
        /// Where it comes from.
        from: String,
    },
    /// What was found is not what it should be.
    #[error("the credential from {from} {why}")]
    Malformed {
        /// Where it came from.
        from: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl CredentialError {
    /// Whether the same would work a little later.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::OutOfFiles { .. })
    }
}

/// Whether a process, or the whole system, has too many files open.
pub(crate) fn is_out_of_files(error: &std::io::Error) -> bool {
    // The same numbers on every system that this runs on.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// A credential that is resolved on first use.
#[derive(Debug)]
pub struct Credentials {
    shape: Shape,
    source: Source,
    /// Held while the source is asked, so that it is asked once however many requests wait.
    current: Mutex<Option<Arc<Credential>>>,
}

impl Credentials {
    /// A credential of this shape from this source; nothing is read yet.
    pub fn new(shape: Shape, source: Source) -> Self {
        Self { shape, source, current: Mutex::new(None) }
    }

    /// The credential, from its source if this is the first time.
    ///
    /// # Errors
    /// When the source has none.
    pub async fn get(&self) -> Result<Arc<Credential>, CredentialError> {
        let mut current = self.current.lock().await;
        if let Some(known) = &*current {
            return Ok(Arc::clone(known));
        }
        let fresh = Arc::new(self.resolve().await?);
        *current = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// The credential after `refused` was refused: asked for anew, unless another request has done so already.
    ///
    /// # Errors
    /// When the source has none any more.
    pub(crate) async fn renew(&self, refused: &Arc<Credential>) -> Result<Arc<Credential>, CredentialError> {
        let mut current = self.current.lock().await;
        if let Some(known) = current.as_ref().filter(|known| !Arc::ptr_eq(known, refused)) {
            return Ok(Arc::clone(known));
        }
        let fresh = Arc::new(self.resolve().await?);
        *current = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Whether a file that it comes from holds another one by now, which is the one from here on. Nothing else is looked at:
    /// a command may ask a person, and the environment does not change.
    pub(crate) async fn is_renewed(&self) -> bool {
        if !matches!(self.source, Source::File(_)) {
            return false;
        }
        let mut current = self.current.lock().await;
        let Ok(fresh) = self.resolve().await else { return false };
        let is_known = current.as_ref().is_some_and(|known| known.secret().expose() == fresh.secret().expose());
        if !is_known {
            *current = Some(Arc::new(fresh));
        }
        !is_known
    }

    async fn resolve(&self) -> Result<Credential, CredentialError> {
        let text = Secret::new(match &self.source {
            Source::Env(name) => std::env::var(name).map_err(|_| CredentialError::EnvMissing(name.clone()))?,
            Source::Command(argv) => {
                let mut words = argv.iter();
                let program =
                    words.next().ok_or(CredentialError::Malformed { from: self.origin(), why: "has no program" })?;
                output(program, Command::new(program).args(words)).await?
            }
            Source::Shell(line) => output("sh", Command::new("sh").arg("-c").arg(line)).await?,
            Source::File(path) => tokio::fs::read_to_string(path).await.map_err(|e| match is_out_of_files(&e) {
                true => CredentialError::OutOfFiles { from: self.origin() },
                false => CredentialError::File { path: path.clone(), why: e.to_string() },
            })?,
            Source::Text(secret) => secret.expose().to_owned(),
        });
        self.shaped(&text)
    }

    fn shaped(&self, text: &Secret) -> Result<Credential, CredentialError> {
        let malformed = |why| CredentialError::Malformed { from: self.origin(), why };
        let one_word = || {
            let word = text.expose().trim();
            if word.is_empty() {
                return Err(malformed("is empty"));
            }
            if HeaderValue::from_str(word).is_err() || word.contains(char::is_whitespace) {
                return Err(malformed("is not one word of plain text"));
            }
            Ok(Secret::new(word))
        };
        match self.shape {
            Shape::Key => Ok(Credential::Key(one_word()?)),
            Shape::ClaudeOauth => Ok(Credential::ClaudeOauth(one_word()?)),
            Shape::CodexLogin => {
                codex_login(text.expose()).ok_or_else(|| malformed("is not a codex login with tokens"))
            }
        }
    }

    /// Where the credential comes from, for people.
    fn origin(&self) -> String {
        match &self.source {
            Source::Env(name) => format!("environment variable {name}"),
            Source::Command(argv) => {
                format!("key command {}", argv.first().map_or("", String::as_str))
            }
            Source::Shell(_) => "the key command".to_owned(),
            Source::File(path) => path.display().to_string(),
            Source::Text(_) => "the configuration".to_owned(),
        }
    }
}

/// The part of codex's `auth.json` that a request needs.
#[derive(serde::Deserialize)]
struct CodexAuth {
    tokens: CodexTokens,
}

#[derive(serde::Deserialize)]
struct CodexTokens {
    access_token: String,
    account_id: String,
}

fn codex_login(text: &str) -> Option<Credential> {
    let auth: CodexAuth = serde_json::from_str(text).ok()?;
    let access_token = Secret::new(auth.tokens.access_token);
    Some(Credential::CodexLogin { access_token, account_id: auth.tokens.account_id })
}

async fn output(program: &str, command: &mut Command) -> Result<String, CredentialError> {
    let failed = |why: String| CredentialError::Command { program: program.to_owned(), why };
    // Its standard error is the user's own terminal: a password store may say there what it waits for.
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let child = child.map_err(|e| match is_out_of_files(&e) {
        true => CredentialError::OutOfFiles { from: format!("key command {program}") },
        false => failed(e.to_string()),
    })?;
    let done = tokio::time::timeout(COMMAND_TIMEOUT, child.wait_with_output()).await;
    let done = done.map_err(|_| failed(format!("no answer in {} s", COMMAND_TIMEOUT.as_secs())))?;
    let done = done.map_err(|e| failed(e.to_string()))?;
    if !done.status.success() {
        return Err(failed(done.status.to_string()));
    }
    String::from_utf8(done.stdout).map_err(|_| failed("its output is not text".to_owned()))
}

impl Credential {
    /// Puts the credential into a request's headers; `false` when its text cannot stand in one.
    pub(crate) fn apply(&self, provider: Provider, headers: &mut HeaderMap) -> bool {
        let named = |name: &'static str, value: Option<HeaderValue>| Some((HeaderName::from_static(name), value?));
        let pair = match (self, provider) {
            (Self::Key(key), Provider::Anthropic) => named("x-api-key", key.header("")),
            (Self::Key(key), Provider::Gemini) => named("x-goog-api-key", key.header("")),
            (Self::Key(key), Provider::OpenAi | Provider::OpenAiCompatible) => {
                named("authorization", key.header("Bearer "))
            }
            (Self::ClaudeOauth(token), _) => named("authorization", token.header("Bearer ")),
            (Self::CodexLogin { access_token, account_id }, _) => {
                let Ok(id) = HeaderValue::from_str(account_id) else {
                    return false;
                };
                headers.insert("chatgpt-account-id", id);
                named("authorization", access_token.header("Bearer "))
            }
        };
        let Some((name, value)) = pair else {
            return false;
        };
        headers.insert(name, value);
        true
    }

    /// The text that must not be seen anywhere but in the request.
    pub(crate) const fn secret(&self) -> &Secret {
        match self {
            Self::Key(secret) | Self::ClaudeOauth(secret) | Self::CodexLogin { access_token: secret, .. } => secret,
        }
    }
}

#[cfg(test)]
mod tests;
