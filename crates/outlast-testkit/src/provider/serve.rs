//! The HTTP side of the provider: listens, reads requests, sends what the script and the books decide.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::file::Script;
use super::keeper::Keeper;
use super::log::{Bill, LogEntry};
use super::respond::{Responder, respond};
use crate::Result;
use crate::error::Attempt;
use crate::script::Scenario;

/// The scripted provider.
#[derive(Debug)]
pub struct Provider;

/// A provider that is listening; it stops when this is dropped.
pub struct Running {
    /// Where it listens.
    pub addr: SocketAddr,
    keeper: Keeper,
    listening: JoinHandle<()>,
}

impl Provider {
    /// Starts a provider on the current tokio runtime, which must go on turning while others ask it.
    ///
    /// # Errors
    /// [`crate::Error::Script`] when a scenario does not parse, [`crate::Error::Io`] when the address cannot be bound.
    pub async fn start(script: Script, addr: SocketAddr) -> Result<Running> {
        Self::start_logged(script, addr, None).await
    }

    /// Starts a provider on a free port of loopback.
    ///
    /// # Errors
    /// As [`Provider::start`].
    pub async fn start_local(script: Script) -> Result<Running> {
        Self::start(script, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts a provider that also writes each finished exchange to a file, as JSON lines.
    ///
    /// # Errors
    /// As [`Provider::start`].
    pub async fn start_logged(script: Script, addr: SocketAddr, log: Option<File>) -> Result<Running> {
        let scenarios: BTreeMap<String, Scenario> = script.compile()?;
        let listener = TcpListener::bind(addr).await.attempting(|| format!("listening on {addr}"))?;
        let addr = listener.local_addr().attempting(|| "reading the address".to_owned())?;
        let keeper = Keeper::start(&script, log);
        let latency = script.latency();
        let responder = Arc::new(Responder {
            keeper: keeper.clone(),
            scenarios,
            fallback: script.fallback,
            keys: script.keys,
            models: script.models,
            frame_delay: Duration::from_millis(script.frame_delay_ms),
            latency,
        });
        Ok(Running { addr, keeper, listening: tokio::spawn(listen(listener, responder)) })
    }
}

impl Running {
    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The bill so far.
    pub async fn bill(&self) -> Bill {
        self.keeper.bill().await
    }

    /// All requests so far, oldest first.
    pub async fn log(&self) -> Vec<LogEntry> {
        self.keeper.log().await
    }

    /// Waits until the log meets a condition; the log then.
    pub async fn wait_until(&self, met: impl Fn(&[LogEntry]) -> bool) -> Vec<LogEntry> {
        self.keeper.wait_until(met).await
    }

    /// The body of a request by its number; `None` unless the script says `keep_bodies`.
    pub async fn body(&self, number: u64) -> Option<Bytes> {
        self.keeper.body(number).await
    }

    /// The model requests so far: everything but checks, lists and counts.
    pub async fn model_requests(&self) -> Vec<LogEntry> {
        let log = self.log().await;
        log.into_iter().filter(|entry| entry.dialect.is_some()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Accepts connections until it is aborted, which ends them too.
async fn listen(listener: TcpListener, responder: Arc<Responder>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let responder = Arc::clone(&responder);
                connections.spawn(async move {
                    // Each frame must leave at once, as from a provider that thinks between them.
                    drop(stream.set_nodelay(true));
                    let service = service_fn(move |request| respond(Arc::clone(&responder), request));
                    let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
                    // A broken connection is told by the log entry of its exchange.
                    drop(connection.await);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
