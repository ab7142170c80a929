//! Stage "key": finds the key an agent presents, and takes every trace of it out of what goes upstream.

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};

/// Headers that may carry an agent's key or login. None of them ever goes upstream.
pub(crate) static AUTH_HEADERS: [HeaderName; 5] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("chatgpt-account-id"),
    HeaderName::from_static("proxy-authorization"),
];

/// The key in the headers or, as Gemini clients may send it, in the query's `key=`.
pub(crate) fn presented(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim).filter(|v| !v.is_empty());
    let bearer = || {
        let value = text("authorization")?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    let in_query = || query?.split('&').find_map(|pair| pair.strip_prefix("key=")).filter(|v| !v.is_empty());
    text("x-api-key").or_else(bearer).or_else(|| text("x-goog-api-key")).or_else(in_query).map(str::to_owned)
}

/// The query without its `key=` parameter; every other byte stays in its place.
pub(crate) fn query_without_key(query: &str) -> String {
    query.split('&').filter(|pair| !pair.starts_with("key=")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_wherever_the_agents_put_it() {
        let with = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            presented(&headers, None)
        };
        assert_eq!(with("x-api-key", "k1").as_deref(), Some("k1"));
        assert_eq!(with("authorization", "Bearer k2").as_deref(), Some("k2"));
        assert_eq!(with("authorization", "bearer  k2 ").as_deref(), Some("k2"));
        assert_eq!(with("authorization", "Basic abc"), None);
        assert_eq!(with("x-goog-api-key", "k3").as_deref(), Some("k3"));
        assert_eq!(presented(&HeaderMap::new(), Some("alt=sse&key=k4")).as_deref(), Some("k4"));
        assert_eq!(presented(&HeaderMap::new(), Some("alt=sse")), None);
    }

    #[test]
    fn only_the_key_leaves_the_query() {
        assert_eq!(query_without_key("alt=sse&key=k&x=%20y&&z"), "alt=sse&x=%20y&&z");
        assert_eq!(query_without_key("monkey=1"), "monkey=1");
    }
}
