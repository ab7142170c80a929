//! The gateway as a whole: what it is built from, and the loop that accepts connections.

mod builder;
mod listen;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use outlast_journal::Ledger;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use builder::Builder;

use crate::admission::Admission;
use crate::client::{HttpClient, READ_BYTES_MAX};
use crate::pipeline;
use crate::price;
use crate::stage::account::Accounts;
use crate::stage::backlog::Backlog;

/// How long the gateway waits for a provider, and for a client.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the head of an answer: a model may think for minutes before it says anything.
    pub head: Duration,
    /// For the next byte of an answer that has begun.
    pub idle: Duration,
    /// For the head of a client's next request: longer than clients keep a connection that they do not use (the most patient
    /// do for 90 seconds), so that none is closed under a request.
    pub client: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            head: Duration::from_secs(1_800),
            idle: Duration::from_secs(600),
            client: Duration::from_secs(120),
        }
    }
}

/// What every request needs.
pub(crate) struct Shared {
    pub(crate) accounts: Accounts,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) ledger: Ledger,
    pub(crate) client: HttpClient,
    pub(crate) timeouts: Timeouts,
    pub(crate) request_bytes_max: usize,
    /// Answers that go on without their connection, and what is left to do after an answer.
    pub(crate) tasks: TaskTracker,
    /// What the ledger has yet to write.
    pub(crate) backlog: Backlog,
    /// Cancelled when the gateway stops: whatever waits for a grant stops waiting.
    pub(crate) stopping: CancellationToken,
}

/// A gateway that listens; nothing is answered before [`serve`](Self::serve).
pub struct Gateway {
    shared: Arc<Shared>,
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
    grace: Duration,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("tcp", &self.tcp).field("unix", &self.unix).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts to describe a gateway.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The TCP address it listens on, with the port the system chose.
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.tcp.as_ref()?.local_addr().ok()
    }

    /// Decodes the prices that its accounts may need, on a thread of its own, while nobody waits for one.
    ///
    /// For whoever is about to start agents: an answer whose price has to wait for that would be on record so late that a
    /// killed engine had forgotten it.
    pub fn warm(&self) {
        let providers: Vec<_> = self.shared.accounts.values().map(|upstream| upstream.provider).collect();
        if !providers.is_empty() {
            self.shared.tasks.spawn(price::warm(providers));
        }
    }

    /// Serves until `shutdown` is done, then lets the answers under way come to their end for the time of grace.
    ///
    /// Requests that wait for a grant are broken off at once, so that their senders keep them for the next gateway.
    /// Returns how many answers were still under way when the grace was over; the ledger has what they had delivered.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> usize {
        let Self { shared, tcp, unix, grace } = self;
        let connections = TaskTracker::new();
        let accepting = async {
            tokio::join!(
                async {
                    if let Some(tcp) = &tcp {
                        accept_tcp(tcp, &shared, &connections).await;
                    }
                },
                async {
                    if let Some(unix) = &unix {
                        accept_unix(unix, &shared, &connections).await;
                    }
                },
            )
        };
        tokio::select! {
            _ = accepting => {}
            () = shutdown => {}
        }
        drop((tcp, unix));
        shared.stopping.cancel();
        connections.close();
        shared.tasks.close();
        let quiet = async {
            connections.wait().await;
            shared.tasks.wait().await;
        };
        match tokio::time::timeout(grace, quiet).await {
            Ok(()) => 0,
            Err(_) => connections.len() + shared.tasks.len(),
        }
    }
}

async fn accept_tcp(listener: &TcpListener, shared: &Arc<Shared>, connections: &TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection was gone before it was served");
                    continue;
                }
                connections.spawn(connection(stream, Arc::clone(shared)));
            }
            Err(error) => listen::after_refused_accept(&error).await,
        }
    }
}

async fn accept_unix(listener: &UnixListener, shared: &Arc<Shared>, connections: &TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(connection(stream, Arc::clone(shared)))),
            Err(error) => listen::after_refused_accept(&error).await,
        }
    }
}

/// Serves one connection to its end.
async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, shared: Arc<Shared>) {
    let (stopping, client_max) = (shared.stopping.clone(), shared.timeouts.client);
    let service = service_fn(move |request| pipeline::handle(Arc::clone(&shared), request));
    let served = http1::Builder::new()
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .header_read_timeout(client_max)
        .max_buf_size(READ_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let done = tokio::select! {
        done = served.as_mut() => done,
        () = stopping.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a connection ended early");
    }
}
