//! The body of every response the gateway gives, and the answers it gives itself in the dialect's own error shape.
//!
//! An answer of our own never carries a credential, nor any text that came from a provider.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde_json::json;

use crate::admission::{Denied, Repeated};
use crate::dialect::Dialect;
use crate::stage::relay::{Broken, Relay};
use crate::stage::replay::Replay;

/// A response's body.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The provider's bytes, as they come.
    Relay(Relay),
    /// The provider's bytes, out of the ledger.
    Replay(Box<Replay>),
    /// Bytes that are all there; taken when they have been given.
    Whole(Option<Bytes>),
}

impl Answer {
    /// See [`Relay::read_ahead`]; never ready.
    pub(crate) async fn read_ahead(&mut self) {
        match self {
            Self::Relay(relay) => relay.read_ahead().await,
            Self::Replay(_) | Self::Whole(_) => std::future::pending().await,
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Relay(relay) => Pin::new(relay).poll_frame(context),
            Self::Replay(replay) => Poll::Ready(replay.give().map(|b| Ok(Frame::data(b)))),
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Relay(relay) => relay.is_end_stream(),
            Self::Replay(replay) => replay.left() == 0,
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Relay(relay) => relay.size_hint(),
            Self::Replay(replay) => SizeHint::with_exact(replay.left() as u64),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
        }
    }
}

/// What the gateway says when it cannot let a provider answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnError {
    pub(crate) status: StatusCode,
    /// Stands in the `x-outlast-error` header.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Whether asking again without a change could help.
    pub(crate) again: bool,
}

impl OwnError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), again: status.is_server_error() }
    }

    /// The response in the shape that clients of `dialect` understand.
    pub(crate) fn response(&self, dialect: Dialect) -> Response<Answer> {
        let body = match dialect {
            Dialect::Anthropic => json!({
                "type": "error",
                "error": { "type": self.anthropic_type(), "message": self.message },
            }),
            Dialect::Responses | Dialect::Chat => json!({
                "error": { "message": self.message, "type": self.openai_type(), "param": null, "code": self.code },
            }),
            Dialect::Gemini => json!({
                "error": { "code": self.status.as_u16(), "message": self.message, "status": self.gemini_status() },
            }),
        };
        let mut response = Response::new(Answer::Whole(Some(body.to_string().into())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(HeaderName::from_static("x-outlast-error"), HeaderValue::from_static(self.code));
        if !self.again {
            // Anthropic's and OpenAI's client libraries obey this where a status alone would make them try again.
            headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
        }
        response
    }

    const fn anthropic_type(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            402 => "billing_error",
            404 => "not_found_error",
            413 => "request_too_large",
            400..=499 => "invalid_request_error",
            _ => "api_error",
        }
    }

    const fn openai_type(&self) -> &'static str {
        match self.status.as_u16() {
            402 => "insufficient_quota",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        }
    }

    const fn gemini_status(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "UNAUTHENTICATED",
            402 => "FAILED_PRECONDITION",
            404 => "NOT_FOUND",
            400..=499 => "INVALID_ARGUMENT",
            502 | 503 => "UNAVAILABLE",
            _ => "INTERNAL",
        }
    }
}

/// A refusal as its provider gave it; nothing where it was never asked.
pub(crate) fn repeated(said: &Repeated) -> Option<Response<Answer>> {
    let status = StatusCode::from_u16(said.status?).ok()?;
    let mut response = Response::new(Answer::Whole(Some(said.body.clone())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
    Some(response)
}

impl From<Denied> for OwnError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::UnknownKey => Self::new(
                StatusCode::UNAUTHORIZED,
                "unknown_key",
                "outlast: this key belongs to no attempt and no client",
            ),
            Denied::Revoked => Self::new(
                StatusCode::UNAUTHORIZED,
                "revoked_key",
                "outlast: this attempt has ended and its key is void",
            ),
            Denied::NoAccount { reason } => {
                Self::new(StatusCode::NOT_FOUND, "no_account", format!("outlast: no account can serve this: {reason}"))
            }
            Denied::Refused(said) => {
                let message = format!("outlast: account {}: {}", said.account, String::from_utf8_lossy(&said.body));
                Self { again: false, ..Self::new(StatusCode::BAD_GATEWAY, "no_credential", message) }
            }
            Denied::Budget { reason } => {
                Self::new(StatusCode::PAYMENT_REQUIRED, "budget", format!("outlast: {reason}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_gets_its_own_shape() {
        let error = OwnError::from(Denied::UnknownKey);
        for (dialect, pointer, expected) in [
            (Dialect::Anthropic, "/error/type", "authentication_error"),
            (Dialect::Responses, "/error/code", "unknown_key"),
            (Dialect::Chat, "/error/type", "invalid_request_error"),
            (Dialect::Gemini, "/error/status", "UNAUTHENTICATED"),
        ] {
            let response = error.response(dialect);
            assert_eq!(response.status(), 401);
            assert_eq!(response.headers()["x-outlast-error"], "unknown_key");
            assert_eq!(response.headers()["x-should-retry"], "false");
            let Answer::Whole(Some(body)) = response.into_body() else { panic!("not whole") };
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body.pointer(pointer).and_then(|v| v.as_str()), Some(expected), "{dialect}");
        }
    }
}
