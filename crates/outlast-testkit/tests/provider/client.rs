//! A plain HTTP client for the tests of the provider: it reports what arrived, also when the connection broke.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    /// The status; 0 when not even headers arrived.
    pub(crate) status: u16,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The bytes of the body that arrived.
    pub(crate) body: Vec<u8>,
    /// The connection broke before the body's end.
    pub(crate) broken: bool,
}

impl Got {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// A header's text; empty when it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The JSON data of the server-sent events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text();
        text.lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect()
    }
}

/// Sends one request on a connection of its own.
pub(crate) async fn send(addr: SocketAddr, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
    let stream = TcpStream::connect(addr).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driving = tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", "provider");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let mut got = Got { status: 0, headers: HeaderMap::new(), body: Vec::new(), broken: false };
    match sender.send_request(request).await {
        Ok(response) => {
            let (parts, mut body) = response.into_parts();
            got.status = parts.status.as_u16();
            got.headers = parts.headers;
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => got.body.extend(frame.into_data().unwrap_or_default()),
                    Err(_) => got.broken = true,
                }
            }
        }
        Err(_) => got.broken = true,
    }
    driving.abort();
    got
}
