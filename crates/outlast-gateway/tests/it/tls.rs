//! Providers over TLS, HTTP/2 and HTTP/1.1, with a certificate of a private authority.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use outlast_gateway::{Provider as Kind, RefusalKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::{CANARY, Provider, World, upstream};

/// A provider for `localhost` that answers with the protocol it was spoken to in; returns its address and authority.
async fn start(alpn: &[u8]) -> (String, CertificateDer<'static>) {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(vec![]).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_cert = ca.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let cert = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
        .unwrap();
    config.alpn_protocols = vec![alpn.to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                drop(builder.serve_connection(TokioIo::new(stream), service_fn(echo)).await);
            });
        }
    });
    (format!("https://localhost:{port}"), ca_cert.der().clone())
}

async fn echo(request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let key = request.headers()["x-api-key"].to_str().unwrap() == CANARY;
    let start = format!("{:?} {} {key} ", request.version(), request.uri().path());
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new([start.as_bytes(), &body].concat().into())))
}

#[tokio::test]
async fn both_protocols_work_over_tls_with_an_added_root() {
    for (alpn, version) in [(&b"h2"[..], "HTTP/2.0"), (b"http/1.1", "HTTP/1.1")] {
        let (base_url, root) = start(alpn).await;
        let account = upstream(Kind::Anthropic, &base_url);
        let world = World::around(Provider::start(vec![]).await, account, |b| b.extra_roots(vec![root])).await;
        for _ in 0..2 {
            let answer = world.post("/v1/messages", "{ }").await;
            assert_eq!(answer.text(), format!("{version} /v1/messages true {{ }}"));
        }
    }
}

#[tokio::test]
async fn a_certificate_of_nobody_we_trust_is_refused() {
    let (base_url, _) = start(b"http/1.1").await;
    let (_, other_root) = start(b"http/1.1").await;
    let account = upstream(Kind::Anthropic, &base_url);
    let world = World::around(Provider::start(vec![]).await, account, |b| b.extra_roots(vec![other_root])).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.header("x-outlast-error")), (502, Some("upstream_unreachable")));
    let refusal = world.admission.refusals.lock().unwrap().pop().unwrap();
    assert_eq!((refusal.kind, refusal.status), (RefusalKind::Network, None));
    assert!(refusal.excerpt.contains("certificate"), "{}", refusal.excerpt);
}
