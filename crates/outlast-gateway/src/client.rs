//! The connections to providers: pooled, HTTP/1.1 and HTTP/2, TLS by rustls with the system's roots.
//!
//! No proxy variable of the environment is read, and certificates are always checked.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// Sends requests to any provider.
pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// How long a connection may lie unused; providers close theirs after a few minutes.
const POOL_IDLE: Duration = Duration::from_secs(90);
/// Most bytes that a connection reads ahead: without a bound each one grows towards half a megabyte, and keeps it.
pub(crate) const READ_BYTES_MAX: usize = 32 << 10;
/// How often a silent connection is asked whether it lives, so that a lost network is noticed in mid-answer.
const ALIVE_EVERY: Duration = Duration::from_secs(30);

/// Which root certificates are trusted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roots {
    /// Beside the system's own (or those in `SSL_CERT_FILE`, `SSL_CERT_DIR`).
    pub(crate) extra: Vec<CertificateDer<'static>>,
}

/// Builds the client; the system's roots are only loaded when `needs_tls`.
pub(crate) fn build(roots: &Roots, needs_tls: bool, connect_timeout: Duration) -> Result<HttpClient, Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(ALIVE_EVERY));
    tcp.set_connect_timeout(Some(connect_timeout));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls(roots, needs_tls)?)
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .http1_max_buf_size(READ_BYTES_MAX)
        .http2_keep_alive_interval(ALIVE_EVERY)
        .http2_adaptive_window(true)
        .build(connector))
}

fn tls(roots: &Roots, needs_tls: bool) -> Result<ClientConfig, Error> {
    let mut store = RootCertStore::empty();
    if needs_tls {
        let system = rustls_native_certs::load_native_certs();
        for error in &system.errors {
            tracing::warn!(%error, "a root certificate cannot be read");
        }
        // Systems carry roots that rustls does not accept; those are left out, as every client does.
        let _counts: (usize, usize) = store.add_parsable_certificates(system.certs);
        for root in &roots.extra {
            store.add(root.clone()).map_err(|e| Error::Roots(e.to_string()))?;
        }
        if store.is_empty() {
            return Err(Error::Roots("the system has none; set SSL_CERT_FILE".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::Roots(e.to_string()))?;
    Ok(config.with_root_certificates(store).with_no_client_auth())
}
