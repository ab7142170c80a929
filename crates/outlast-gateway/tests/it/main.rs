//! The gateway over real sockets, between a real client and a provider that plays back exact bytes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]

mod accounting;
mod client_gone;
mod fidelity;
mod holding;
mod keys;
mod lifecycle;
mod replay;
mod secrecy;
mod support;
mod tls;
