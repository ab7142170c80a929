//! A client that shows the exact bytes of an answer.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// One connection.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) status: u16,
    /// Status line and headers.
    pub(crate) head: String,
    /// The body without its framing, as far as it came.
    pub(crate) body: Vec<u8>,
    /// Whether the body came to its proper end.
    pub(crate) whole: bool,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|l| l.split_once(':'));
        lines.into_iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        Self::over(TcpStream::connect(addr).await.unwrap())
    }

    pub(crate) fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        Self { stream: Box::new(stream), buffer: Vec::new() }
    }

    /// Sends a request; `head` is `METHOD target` and headers, without version, host and length.
    pub(crate) async fn send(&mut self, head: &str, body: &[u8]) {
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let text = format!("{line} HTTP/1.1\r\nhost: gateway.test\r\n{headers}{length}\r\n");
        self.stream.write_all(&[text.as_bytes(), body].concat()).await.unwrap();
    }

    /// Sends these bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads until the body, without its framing, has at least `len` bytes; the answer must be in chunks.
    pub(crate) async fn receive_body_bytes(&mut self, len: usize) -> Vec<u8> {
        let head_end = self.head_end().await.unwrap();
        loop {
            let (body, _) = dechunk(&self.buffer[head_end + 4..]);
            if body.len() >= len {
                return body;
            }
            assert_ne!(self.stream.read_buf(&mut self.buffer).await.unwrap(), 0, "closed after {} bytes", body.len());
        }
    }

    /// Reads one answer to its end or to the connection's.
    pub(crate) async fn receive(&mut self) -> Received {
        self.try_receive().await.expect("closed without an answer")
    }

    /// `None` when the connection ends without a whole head.
    pub(crate) async fn try_receive(&mut self) -> Option<Received> {
        let head_end = self.head_end().await?;
        let head = String::from_utf8(self.buffer[..head_end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut received = Received { status, head, body: Vec::new(), whole: false };
        self.buffer.drain(..head_end + 4);
        let is_chunked = received.header("transfer-encoding") == Some("chunked");
        let len = received.header("content-length").map(|v| v.parse::<usize>().unwrap());
        loop {
            let used = if is_chunked {
                let (body, used) = dechunk(&self.buffer);
                received.body = body;
                used
            } else {
                let len = len.unwrap_or(0);
                received.body = self.buffer[..len.min(self.buffer.len())].to_vec();
                (self.buffer.len() >= len).then_some(len)
            };
            if let Some(used) = used {
                received.whole = true;
                self.buffer.drain(..used);
                return Some(received);
            }
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(n) if n > 0 => {}
                _ => return Some(received),
            }
        }
    }

    async fn head_end(&mut self) -> Option<usize> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                return Some(at);
            }
            if self.stream.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }
}

/// The body in `bytes`, and how many of them it takes when it is whole.
fn dechunk(bytes: &[u8]) -> (Vec<u8>, Option<usize>) {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(eol) = bytes[at..].windows(2).position(|w| w == b"\r\n") else { return (body, None) };
        let len = usize::from_str_radix(std::str::from_utf8(&bytes[at..at + eol]).unwrap(), 16).unwrap();
        let start = at + eol + 2;
        if bytes.len() < start + len + 2 {
            body.extend_from_slice(&bytes[start.min(bytes.len())..(start + len).min(bytes.len())]);
            return (body, None);
        }
        if len == 0 {
            return (body, Some(start + 2));
        }
        body.extend_from_slice(&bytes[start..start + len]);
        at = start + len + 2;
    }
}
