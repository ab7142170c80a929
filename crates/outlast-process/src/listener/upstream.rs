//! The gateway, asked over its Unix socket until it answers.
//!
//! Every try has a connection of its own, so that "closed before the answer's head" means one thing only: this request has no
//! answer yet. The gateway tells a repeated try from a new request by `x-outlast-request`.

use std::path::PathBuf;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::absence::Absence;
use crate::socket;

/// Names the request to the gateway: the same for every try of it, never the same for two requests of an attempt.
const REQUEST_HEADER: &str = "x-outlast-request";

#[derive(Debug)]
pub(super) struct Upstream {
    socket: PathBuf,
    path_prefix: String,
    absence: Absence,
}

/// A request as it is sent upstream, as often as it takes.
#[derive(Debug)]
pub(super) struct Kept {
    head: Parts,
    body: Bytes,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    #[error("closed before an answer: {0}")]
    Exchange(#[from] hyper::Error),
}

impl Upstream {
    pub(super) fn new(socket: PathBuf, path_prefix: String) -> Self {
        Self { absence: Absence::new(&socket), socket, path_prefix }
    }

    /// Readies a request of the program for sending; `None` when prefix and path do not make an address.
    pub(super) fn keep(&self, mut head: Parts, body: Bytes, id: u64) -> Option<Kept> {
        let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        head.uri = format!("{}{path}", self.path_prefix).parse::<Uri>().ok()?;
        head.headers.insert(REQUEST_HEADER, HeaderValue::from(id));
        Some(Kept { head, body })
    }

    /// Sends until the head of an answer arrives, however long the gateway is away.
    pub(super) async fn fetch(&self, kept: &Kept) -> Response<Incoming> {
        if let Ok(answer) = self.try_once(kept).await {
            return answer;
        }
        let mut vigil = self.absence.begin();
        loop {
            vigil.mark();
            if let Ok(answer) = self.try_once(kept).await {
                return answer;
            }
            vigil.wait().await;
        }
    }

    /// The folder is opened anew each time: it may have been replaced with the engine.
    async fn connect(&self) -> std::io::Result<UnixStream> {
        let (Some(folder), Some(name)) = (self.socket.parent(), self.socket.file_name()) else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        let opened = socket::folder(folder)?;
        UnixStream::connect(socket::within(&opened, name)).await
    }

    async fn try_once(&self, kept: &Kept) -> Result<Response<Incoming>, Failed> {
        let stream = self.connect().await?;
        let handshake = http1::Builder::new().preserve_header_case(true).handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await?;
        let request = Request::from_parts(kept.head.clone(), Full::new(kept.body.clone()));
        // The connection ends by itself with the answer's body, or when nobody wants that any more.
        drop(tokio::spawn(connection));
        Ok(sender.send_request(request).await?)
    }
}
