//! Which headers belong to one hop and which to the message: the rest passes as it is, names, values and order.
//!
//! Source: RFC 9110, section 7.6.1.

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE, SET_COOKIE,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Response};

use super::key::AUTH_HEADERS;
use crate::secret::Secret;

/// The headers that end at the next hop, whatever `Connection` says.
static HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The headers that go upstream: without the agent's key and this hop's own, and asking for an answer in plain bytes,
/// as a compressed one could not be metered while it passes.
pub(crate) fn for_upstream(headers: &HeaderMap) -> HeaderMap {
    let named = named_by_connection(headers);
    let mut kept = HeaderMap::with_capacity(headers.len() + 2);
    for (name, value) in headers {
        if is_hop(name, &named)
            || AUTH_HEADERS.contains(name)
            || *name == HOST
            || *name == CONTENT_LENGTH
            || *name == EXPECT
        {
            continue;
        }
        if *name == ACCEPT_ENCODING {
            kept.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        } else {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// The headers that go to the client: without the upstream hop's own, and without the account's credential, should a
/// provider repeat it.
pub(crate) fn for_client(headers: &HeaderMap, secret: &Secret) -> HeaderMap {
    let named = named_by_connection(headers);
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if is_hop(name, &named) {
            continue;
        }
        let clean = secret.struck_from(value.as_bytes()).and_then(|v| HeaderValue::from_bytes(&v).ok());
        kept.append(name.clone(), clean.unwrap_or_else(|| value.clone()));
    }
    kept
}

/// A response of the same status and reason with `headers`, which [`for_client`] made.
pub(crate) fn response<B>(upstream: &http::response::Parts, headers: HeaderMap, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = upstream.status;
    *response.headers_mut() = headers;
    if let Some(reason) = upstream.extensions.get::<hyper::ext::ReasonPhrase>() {
        response.extensions_mut().insert(reason.clone());
    }
    response
}

/// The headers that speak of limits, in order.
pub(crate) fn limits(headers: &HeaderMap) -> Vec<(String, String)> {
    const FAMILIES: [&str; 5] = ["anthropic-ratelimit-", "x-ratelimit-", "x-codex-", "retry-after", "ratelimit"];
    let mut found = Vec::new();
    for (name, value) in headers {
        if FAMILIES.iter().any(|family| name.as_str().starts_with(family)) {
            found.push((name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    found
}

/// An answer's headers as a JSON object for the ledger, without cookies; a repeated one becomes an array. What the answer
/// says under a name of `ours` is left out, and what we say under it, if anything, stands there instead.
pub(crate) fn as_json(headers: &HeaderMap, ours: &[(&str, Option<&[u8]>)]) -> String {
    let mut json = String::with_capacity(128 + 64 * headers.len());
    let push_name = |json: &mut String, name: &str| {
        json.push(if json.is_empty() { '{' } else { ',' });
        push_text(json, name.as_bytes());
        json.push(':');
    };
    for name in headers.keys().filter(|name| **name != SET_COOKIE) {
        if ours.iter().any(|(own, _)| name == own) {
            continue;
        }
        push_name(&mut json, name.as_str());
        let mut values = headers.get_all(name).iter();
        if let (Some(only), None) = (values.next(), values.next()) {
            push_text(&mut json, only.as_bytes());
            continue;
        }
        for (index, value) in headers.get_all(name).iter().enumerate() {
            json.push(if index == 0 { '[' } else { ',' });
            push_text(&mut json, value.as_bytes());
        }
        json.push(']');
    }
    for (name, value) in ours {
        if let Some(value) = value {
            push_name(&mut json, name);
            push_text(&mut json, value);
        }
    }
    json.push_str(if json.is_empty() { "{}" } else { "}" });
    json
}

fn push_text(json: &mut String, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let plain = !text.bytes().any(|b| b < b' ' || b == b'"' || b == b'\\');
    if plain {
        json.push('"');
        json.push_str(&text);
        json.push('"');
    } else {
        json.push_str(&serde_json::Value::from(text.as_ref()).to_string());
    }
}

fn is_hop(name: &HeaderName, named: &[HeaderName]) -> bool {
    HOP.contains(name) || named.contains(name)
}

/// The headers that `Connection` names as this hop's own.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).filter_map(|name| name.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_become_json_without_cookies() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("a", "1"), ("b", "x\"\\y\tz"), ("set-cookie", "s"), ("a", "2"), ("c", "")] {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let json: serde_json::Value = serde_json::from_str(&as_json(&headers, &[])).unwrap();
        assert_eq!(json, serde_json::json!({ "a": ["1", "2"], "b": "x\"\\y\tz", "c": "" }));
        let ours = [("b", None), ("C", None), ("d", Some(&b"4"[..]))];
        let json: serde_json::Value = serde_json::from_str(&as_json(&headers, &ours)).unwrap();
        assert_eq!(json, serde_json::json!({ "a": ["1", "2"], "d": "4" }));
        assert_eq!(as_json(&HeaderMap::new(), &[("d", None)]), "{}");
        assert_eq!(as_json(&HeaderMap::new(), &ours), r#"{"d":"4"}"#);
    }
}
