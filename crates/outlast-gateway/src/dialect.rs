//! Which wire format a request speaks, told from its method and path alone.
//!
//! Never looks into a body, and never decides what may be spent: an endpoint that is not listed here is refused, so
//! that no call reaches a provider that the meter could not read.

use http::{HeaderMap, Method};

/// A provider's wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which most other providers and local servers speak too.
    Chat,
    /// Gemini `generateContent`.
    Gemini,
}

impl Dialect {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini];

    /// The name used in the ledger and in views.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "openai-responses",
            Self::Chat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a request asks of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// An answer from the model.
    Generate,
    /// A count of the tokens a request would take; costs nothing.
    CountTokens,
    /// The list of models, or one of them.
    Models,
    /// Is anyone there: some agents send `HEAD` to the bare base address, without a key.
    Probe,
}

/// A dialect and what is asked in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) dialect: Dialect,
    pub(crate) operation: Operation,
}

/// Finds the endpoint of a request whose attempt prefix has been taken off; `None` when the gateway does not serve it.
pub(crate) fn endpoint(method: &Method, path: &str, headers: &HeaderMap) -> Option<Endpoint> {
    let found = |dialect, operation| Some(Endpoint { dialect, operation });
    if *method == Method::HEAD && path.trim_matches('/').is_empty() {
        return found(Dialect::Anthropic, Operation::Probe);
    }
    if let Some(rest) = gemini_models(path) {
        return gemini(method, rest);
    }
    let rest = path.strip_prefix("/v1").unwrap_or(path);
    if *method == Method::POST {
        return match rest {
            "/messages" => found(Dialect::Anthropic, Operation::Generate),
            "/messages/count_tokens" => found(Dialect::Anthropic, Operation::CountTokens),
            "/responses" | "/responses/compact" => found(Dialect::Responses, Operation::Generate),
            "/chat/completions" => found(Dialect::Chat, Operation::Generate),
            _ => None,
        };
    }
    let models = rest.strip_prefix("/models").is_some_and(|id| id.is_empty() || id.starts_with('/'));
    if *method == Method::GET && models {
        return found(guess(path, headers), Operation::Models);
    }
    None
}

/// Whether a path has a segment that climbs (`.` or `..`), however it is written: a provider's own server would take the rest
/// for another endpoint, one that is not served here and that no meter can read.
pub(crate) fn climbs(path: &str) -> bool {
    let mut text = path.to_owned();
    // A server behind a server decodes what was encoded twice.
    for _ in 0..DECODED_MAX {
        text = decoded(&text);
    }
    // What stands behind a `;` belongs to no name (RFC 3986, 3.3).
    let mut names = text.split(['/', '\\']).map(|segment| segment.split(';').next().unwrap_or_default());
    names.any(|name| matches!(name, "." | ".."))
}

/// How often over a path is taken to be encoded.
const DECODED_MAX: usize = 3;

/// A path with what can hide a segment decoded once: dots, slashes, and the percent sign itself.
fn decoded(path: &str) -> String {
    const HIDDEN: [(&str, &str); 5] = [("2e", "."), ("2f", "/"), ("5c", "\\"), ("3b", ";"), ("25", "%")];
    let mut pieces = path.split('%');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let hidden =
            HIDDEN.iter().find(|(code, _)| piece.get(..2).is_some_and(|found| found.eq_ignore_ascii_case(code)));
        match hidden {
            Some((code, plain)) => [plain, &piece[code.len()..]].iter().for_each(|part| text.push_str(part)),
            None => ["%", piece].iter().for_each(|part| text.push_str(part)),
        }
    }
    text
}

/// The dialect whose error shape a client most likely understands, for a path that is not served.
pub(crate) fn guess(path: &str, headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") || path.contains("/messages") {
        Dialect::Anthropic
    } else if headers.contains_key("x-goog-api-key") || path.starts_with("/v1beta") {
        Dialect::Gemini
    } else if path.ends_with("/responses") {
        Dialect::Responses
    } else {
        Dialect::Chat
    }
}

/// What follows `/v1beta/models` (or `/v1alpha/models`) in a Gemini path.
fn gemini_models(path: &str) -> Option<&str> {
    ["/v1beta/models", "/v1alpha/models"].iter().find_map(|prefix| path.strip_prefix(prefix))
}

fn gemini(method: &Method, rest: &str) -> Option<Endpoint> {
    let operation = match rest.rsplit_once(':') {
        Some((_, "generateContent" | "streamGenerateContent")) if *method == Method::POST => Operation::Generate,
        Some((_, "countTokens")) if *method == Method::POST => Operation::CountTokens,
        None if *method == Method::GET => Operation::Models,
        _ => return None,
    };
    Some(Endpoint { dialect: Dialect::Gemini, operation })
}

/// The model named in a Gemini path and where it stands, as byte offsets into `path`.
pub(crate) fn gemini_model(path: &str) -> Option<(std::ops::Range<usize>, &str)> {
    let rest = gemini_models(path)?.strip_prefix('/')?;
    let start = path.len() - rest.len();
    let model = rest.split(':').next()?;
    (!model.is_empty()).then(|| (start..start + model.len(), model))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &Method, path: &str) -> Option<(Dialect, Operation)> {
        endpoint(method, path, &HeaderMap::new()).map(|e| (e.dialect, e.operation))
    }

    #[test]
    fn a_path_that_climbs_is_told_however_it_is_written() {
        for path in [
            "/v1beta/models/../cachedContents:generateContent",
            "/v1beta/models/..:generateContent/../x",
            "/v1/models/%2e%2e/files",
            "/v1/models/%2E./files",
            "/v1/models/.%2e",
            "/v1beta/models/x%2f..%2fy:generateContent",
            "/v1beta/models/x%5C..%5Cy:generateContent",
            "/v1/models/%252e%252e/files",
            "/v1/models/..;a=b/files",
            "/v1/./models/x",
            "/..",
        ] {
            assert!(climbs(path), "{path}");
        }
        for path in [
            "/",
            "/v1/messages",
            "/v1beta/models/gemini-2.5-pro:generateContent",
            "/v1/models/a..b",
            "/v1/models/%E6%96%87",
            "/v1/models/accounts%2Ffireworks%2Fmodels%2Fx",
            "/v1/models/100%",
            "/v1/models/...",
        ] {
            assert!(!climbs(path), "{path}");
        }
    }

    #[test]
    fn every_served_endpoint_is_told_from_its_path() {
        use Operation::{CountTokens, Generate, Models, Probe};
        for (method, path, dialect, operation) in [
            (Method::POST, "/v1/messages", Dialect::Anthropic, Generate),
            (Method::POST, "/v1/messages/count_tokens", Dialect::Anthropic, CountTokens),
            (Method::HEAD, "/", Dialect::Anthropic, Probe),
            (Method::POST, "/v1/responses", Dialect::Responses, Generate),
            (Method::POST, "/responses", Dialect::Responses, Generate),
            (Method::POST, "/v1/chat/completions", Dialect::Chat, Generate),
            (Method::POST, "/chat/completions", Dialect::Chat, Generate),
            (Method::GET, "/models", Dialect::Chat, Models),
            (Method::GET, "/v1/models/gpt-5", Dialect::Chat, Models),
            (Method::POST, "/v1beta/models/gemini-2.5-pro:generateContent", Dialect::Gemini, Generate),
            (Method::POST, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", Dialect::Gemini, Generate),
            (Method::POST, "/v1beta/models/gemini-2.5-pro:countTokens", Dialect::Gemini, CountTokens),
            (Method::GET, "/v1beta/models", Dialect::Gemini, Models),
        ] {
            assert_eq!(of(&method, path), Some((dialect, operation)), "{path}");
        }
        for (method, path) in [
            (Method::GET, "/v1/responses"),
            (Method::POST, "/v1/files"),
            (Method::DELETE, "/v1/models/x"),
            (Method::GET, "/"),
        ] {
            assert_eq!(of(&method, path), None, "{path}");
        }
    }

    #[test]
    fn the_gemini_model_is_found_in_the_path() {
        let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
        let (span, model) = gemini_model(path).unwrap();
        assert_eq!((model, &path[span]), ("gemini-2.5-pro", "gemini-2.5-pro"));
        assert!(gemini_model("/v1/messages").is_none());
    }
}
