//! Which request this is, from method and path. Any prefix is allowed, as gateways put tasks into the path.

use http::{HeaderMap, Method, Uri};

use crate::wire::Dialect;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// `HEAD` anywhere: a reachability check.
    Reachable,
    /// A list of models.
    Models(Dialect),
    /// How many tokens a request would have.
    CountTokens(Dialect),
    /// A model's answer. Gemini says model and streaming in the path.
    Generate { dialect: Dialect, path_model: Option<String>, path_stream: bool },
    /// The provider's bill.
    Bill,
    /// The provider's log.
    Log,
    /// Anything else.
    Unknown,
}

/// Reads method and URL.
pub(super) fn route(method: &Method, uri: &Uri, headers: &HeaderMap) -> Route {
    let path = uri.path();
    if method == Method::HEAD {
        return Route::Reachable;
    }
    if method == Method::GET {
        return match path {
            "/__bill" => Route::Bill,
            "/__log" => Route::Log,
            _ if path.ends_with("/v1beta/models") => Route::Models(Dialect::Gemini),
            _ if path.ends_with("/models") && headers.contains_key("anthropic-version") => {
                Route::Models(Dialect::Anthropic)
            }
            _ if path.ends_with("/models") && uri.query().is_some_and(|query| query.contains("client_version=")) => {
                Route::Models(Dialect::Responses)
            }
            _ if path.ends_with("/models") => Route::Models(Dialect::Chat),
            _ => Route::Unknown,
        };
    }
    if method != Method::POST {
        return Route::Unknown;
    }
    if let Some((model, verb)) = path.rsplit_once("/models/").and_then(|(_, tail)| tail.rsplit_once(':')) {
        let generate =
            |path_stream| Route::Generate { dialect: Dialect::Gemini, path_model: Some(model.to_owned()), path_stream };
        return match verb {
            "generateContent" => generate(false),
            "streamGenerateContent" => generate(true),
            "countTokens" => Route::CountTokens(Dialect::Gemini),
            _ => Route::Unknown,
        };
    }
    let generate = |dialect| Route::Generate { dialect, path_model: None, path_stream: false };
    match path {
        _ if path.ends_with("/messages/count_tokens") => Route::CountTokens(Dialect::Anthropic),
        _ if path.ends_with("/messages") => generate(Dialect::Anthropic),
        _ if path.ends_with("/chat/completions") => generate(Dialect::Chat),
        _ if path.ends_with("/responses") => generate(Dialect::Responses),
        _ => Route::Unknown,
    }
}

/// The key that a request carries, in any dialect's place for it.
pub(super) fn key(headers: &HeaderMap, query: Option<&str>) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let in_query = || query.into_iter().flat_map(|query| query.split('&')).find_map(|pair| pair.strip_prefix("key="));
    text("x-api-key").or(bearer).or(text("x-goog-api-key")).or_else(in_query).unwrap_or_default().to_owned()
}
