//! Stage "account": the granted account's address, its name for the model, and the request as it will be sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use outlast_core::AccountId;

use super::facts;
use super::inbound::Inbound;
use crate::answer::OwnError;
use crate::dialect::{self, Dialect};
use crate::upstream::Upstream;

/// The accounts by name.
pub(crate) type Accounts = BTreeMap<AccountId, Arc<Upstream>>;

/// A request for one account, complete but for its credential.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: Arc<HeaderMap>,
    pub(crate) body: Bytes,
    /// The model as the provider will read it.
    pub(crate) model: Option<String>,
    /// See [`crate::Ask::request`].
    pub(crate) request: String,
}

/// Finds the granted account; it must speak the request's dialect.
pub(crate) fn find(accounts: &Accounts, account: &AccountId, dialect: Dialect) -> Result<Arc<Upstream>, OwnError> {
    let fail = |why: &str| {
        OwnError::new(StatusCode::BAD_GATEWAY, "account_unusable", format!("outlast: account {account} {why}"))
    };
    let upstream = accounts.get(account).ok_or_else(|| fail("is not known to the gateway"))?;
    if !upstream.provider.speaks(dialect) {
        return Err(fail(&format!("does not speak {dialect}")));
    }
    Ok(Arc::clone(upstream))
}

/// Makes the request that goes to `upstream`; `body` is the one that came in.
pub(crate) fn outgoing(inbound: &Inbound, mut body: Bytes, upstream: &Upstream) -> Result<Outgoing, OwnError> {
    let asked = inbound.facts.model.as_deref();
    let other = asked.and_then(|model| upstream.other_name(model));
    let mut path = inbound.path.as_str().into();
    if let Some(other) = other {
        body = facts::with_model(&body, &inbound.facts, other);
        path = path_with_model(inbound, other);
    }
    let uri = upstream.uri(&path, inbound.query.as_deref()).map_err(|_| {
        OwnError::new(StatusCode::BAD_REQUEST, "path_unusable", "outlast: the path cannot be sent to this account")
    })?;
    Ok(Outgoing {
        method: inbound.method.clone(),
        uri,
        headers: Arc::clone(&inbound.headers),
        body,
        model: other.or(asked).map(str::to_owned),
        request: inbound.request().to_owned(),
    })
}

/// In Gemini's format the model stands in the path.
fn path_with_model<'a>(inbound: &'a Inbound, other: &str) -> std::borrow::Cow<'a, str> {
    match dialect::gemini_model(&inbound.path) {
        Some((span, _)) if inbound.endpoint.dialect == Dialect::Gemini => {
            [&inbound.path[..span.start], other, &inbound.path[span.end..]].concat().into()
        }
        _ => inbound.path.as_str().into(),
    }
}
