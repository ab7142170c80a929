//! An account at a provider: its address, its credential, and the models it names differently.
//!
//! Knows nothing of windows or budgets: which account serves a request is decided elsewhere.

use std::collections::BTreeMap;

use http::Uri;
use http::uri::{Authority, Scheme};
use outlast_core::AccountId;

use crate::Error;
use crate::credential::Credentials;
use crate::dialect::Dialect;
use crate::price::Tariff;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Anthropic, or another address that speaks Messages.
    Anthropic,
    /// OpenAI: Responses and Chat Completions.
    OpenAi,
    /// Google's Gemini API.
    Gemini,
    /// Another provider or a local server that speaks OpenAI's formats.
    OpenAiCompatible,
}

impl Provider {
    /// Whether this provider understands a dialect as it is.
    pub const fn speaks(self, dialect: Dialect) -> bool {
        match self {
            Self::Anthropic => matches!(dialect, Dialect::Anthropic),
            Self::Gemini => matches!(dialect, Dialect::Gemini),
            Self::OpenAi | Self::OpenAiCompatible => {
                matches!(dialect, Dialect::Responses | Dialect::Chat)
            }
        }
    }

    /// The provider's own address; an OpenAI-compatible one has none that could be guessed.
    pub const fn default_base_url(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::OpenAiCompatible => None,
        }
    }
}

/// One account, ready to be sent to.
#[derive(Debug)]
pub struct Upstream {
    pub(crate) account: AccountId,
    pub(crate) provider: Provider,
    pub(crate) base_url: String,
    pub(crate) credentials: Credentials,
    scheme: Scheme,
    authority: Authority,
    base_path: String,
    models: BTreeMap<String, String>,
}

impl Upstream {
    /// An account at `base_url`, which may have a path: `https://api.openai.com/v1`, `https://host/anthropic`.
    ///
    /// # Errors
    /// [`Error::BaseUrl`] when the address is not a plain `http` or `https` URL.
    pub fn new(
        account: AccountId,
        provider: Provider,
        base_url: &str,
        credentials: Credentials,
    ) -> Result<Self, Error> {
        let refuse =
            |why: &str| Error::BaseUrl { account: account.clone(), url: base_url.to_owned(), why: why.to_owned() };
        let uri: Uri = base_url.parse().map_err(|e: http::uri::InvalidUri| refuse(&e.to_string()))?;
        let parts = uri.into_parts();
        let scheme = parts.scheme.filter(|s| *s == Scheme::HTTP || *s == Scheme::HTTPS);
        let scheme = scheme.ok_or_else(|| refuse("it must start with http:// or https://"))?;
        let authority = parts.authority.ok_or_else(|| refuse("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(Error::BaseUrl {
                account,
                url: format!("{scheme}://…@{}", authority.host()),
                why: "it carries a password: use key_env, key_command or key_file".to_owned(),
            });
        }
        let path = parts.path_and_query.map_or(String::new(), |p| p.path().trim_end_matches('/').to_owned());
        let base_url = format!("{scheme}://{authority}{path}");
        Ok(Self {
            account,
            provider,
            base_url,
            credentials,
            scheme,
            authority,
            base_path: path,
            models: BTreeMap::new(),
        })
    }

    /// The same account, with models that the provider knows by another name: asked for → sent.
    #[must_use]
    pub fn with_models(mut self, models: BTreeMap<String, String>) -> Self {
        self.models = models;
        self
    }

    /// What it charges.
    pub fn tariff(&self) -> Tariff {
        Tariff { provider: self.provider, base_url: self.base_url.clone(), models: self.models.clone() }
    }

    /// The account's name.
    pub fn account(&self) -> &AccountId {
        &self.account
    }

    /// The account's provider.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The name this account's provider has for `model`, where it is another one.
    pub(crate) fn other_name(&self, model: &str) -> Option<&str> {
        self.models.get(model).map(String::as_str)
    }

    /// The address of a request for `path` (which starts with a slash) and `query`.
    ///
    /// The version segment may stand in the account's address, in the path, or in both: it is sent once, the account's
    /// own where they differ (`https://host/api/paas/v4` and `/v1/chat/completions`).
    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> Result<Uri, http::Error> {
        let mut rest = path;
        if !self.base_path.is_empty() {
            let openai = matches!(self.provider, Provider::OpenAi | Provider::OpenAiCompatible);
            let version = path[1..].split('/').next().unwrap_or_default();
            let doubled = self.base_path.rsplit('/').next() == Some(version);
            if !version.is_empty() && (doubled || openai && version == "v1") {
                rest = &path[1 + version.len()..];
            }
        }
        let mut whole = String::with_capacity(self.base_path.len() + rest.len() + query.map_or(0, |q| q.len() + 1));
        whole.push_str(&self.base_path);
        whole.push_str(rest);
        if let Some(query) = query {
            whole.push('?');
            whole.push_str(query);
        }
        Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone()).path_and_query(whole).build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::{Shape, Source};
    use crate::secret::Secret;

    fn upstream(provider: Provider, base_url: &str) -> Result<Upstream, Error> {
        let key = Credentials::new(Shape::Key, Source::Text(Secret::new("k")));
        Upstream::new(AccountId::from("a"), provider, base_url, key)
    }

    #[test]
    fn paths_join_with_one_version() {
        use Provider::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
        for (provider, base, path, expected) in [
            (Anthropic, "https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://h/anthropic/", "/v1/messages", "https://h/anthropic/v1/messages"),
            (Anthropic, "https://h/v1", "/v1/messages", "https://h/v1/messages"),
            (OpenAi, "https://api.openai.com/v1", "/responses", "https://api.openai.com/v1/responses"),
            (OpenAi, "https://api.openai.com/v1", "/v1/responses", "https://api.openai.com/v1/responses"),
            (
                OpenAi,
                "https://chatgpt.com/backend-api/codex",
                "/v1/responses",
                "https://chatgpt.com/backend-api/codex/responses",
            ),
            (
                OpenAiCompatible,
                "https://h/api/paas/v4",
                "/v1/chat/completions",
                "https://h/api/paas/v4/chat/completions",
            ),
            (OpenAiCompatible, "http://127.0.0.1:8080", "/v1/models", "http://127.0.0.1:8080/v1/models"),
            (OpenAiCompatible, "http://127.0.0.1:8080", "/responses", "http://127.0.0.1:8080/responses"),
            (
                Gemini,
                "https://g/v1beta",
                "/v1beta/models/m:generateContent",
                "https://g/v1beta/models/m:generateContent",
            ),
        ] {
            let uri = upstream(provider, base).unwrap().uri(path, None).unwrap();
            assert_eq!(uri.to_string(), expected);
        }
        let uri =
            upstream(Provider::Anthropic, "http://h").unwrap().uri("/v1/messages", Some("beta=true&x=%20")).unwrap();
        assert_eq!(uri.to_string(), "http://h/v1/messages?beta=true&x=%20");
    }

    #[test]
    fn addresses_that_cannot_be_used_are_refused() {
        for bad in ["ftp://h", "api.anthropic.com", "http://", "not a url"] {
            assert!(matches!(upstream(Provider::Anthropic, bad), Err(Error::BaseUrl { .. })), "{bad}");
        }
        let error = upstream(Provider::Anthropic, "https://me:hunter2@h").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
