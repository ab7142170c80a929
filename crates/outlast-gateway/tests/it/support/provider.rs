//! A provider that plays back exact bytes over a real socket and notes what it was sent, byte for byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Request line and headers, without the blank line.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// All values of a header, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let lines = self.head.lines().skip(1).filter_map(|l| l.split_once(':'));
        lines.filter(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim().to_owned()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.all(name).into_iter().next()
    }

    /// Method and target.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
    }
}

/// One step of an answer.
#[derive(Debug, Clone)]
enum Step {
    Bytes(Vec<u8>),
    /// Waits until the test says go.
    Gate(Arc<Notify>),
    /// Tells the test that everything before it has been taken.
    Tell(Arc<Notify>),
    /// Closes the connection here.
    Cut,
}

/// An answer, step by step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply(Vec<Step>);

impl Reply {
    /// The head of an event stream in chunks.
    pub(crate) const SSE_HEAD: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

    /// An event stream that has only begun.
    pub(crate) fn sse_open() -> Self {
        Self::raw(Self::SSE_HEAD)
    }

    /// Exact bytes from the status line on.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::default().bytes(bytes)
    }

    /// A whole answer with a content length; `head` is the status and headers, without a blank line.
    pub(crate) fn whole(head: &str, body: &str) -> Self {
        Self::raw(format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::whole("200 OK\r\ncontent-type: application/json", body)
    }

    pub(crate) fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push(Step::Bytes(bytes.into()));
        self
    }

    pub(crate) fn gate(mut self, gate: &Arc<Notify>) -> Self {
        self.0.push(Step::Gate(Arc::clone(gate)));
        self
    }

    pub(crate) fn tell(mut self, told: &Arc<Notify>) -> Self {
        self.0.push(Step::Tell(Arc::clone(told)));
        self
    }

    pub(crate) fn cut(mut self) -> Self {
        self.0.push(Step::Cut);
        self
    }
}

/// One chunk of a chunked body.
pub(crate) fn chunked(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// An event stream of these pieces, each one chunk, written apart, and its proper end.
pub(crate) fn sse(pieces: &[&str]) -> Reply {
    let reply = pieces.iter().fold(Reply::sse_open(), |reply, piece| reply.bytes(chunked(piece)));
    reply.bytes(&b"0\r\n\r\n"[..])
}

pub(crate) struct Provider {
    addr: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrived: tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>,
}

impl Provider {
    /// Answers the requests in the order they come with `replies`; more requests than those get a 500.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (said, arrived) = mpsc::unbounded_channel();
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&replies), Arc::clone(&noted), said.clone()));
            }
        });
        Self { addr, seen, arrived: tokio::sync::Mutex::new(arrived) }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The only request.
    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    /// Waits for the next request to have arrived whole.
    pub(crate) async fn arrival(&self) {
        self.arrived.lock().await.recv().await.unwrap();
    }
}

async fn serve(
    mut stream: TcpStream,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrived: mpsc::UnboundedSender<()>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let reply = replies.lock().unwrap().pop_front();
        seen.lock().unwrap().push(request);
        // Nobody may be waiting.
        let _ = arrived.send(());
        let reply = reply.unwrap_or_else(|| Reply::whole("500 Unexpected", "{\"error\":\"no reply is left\"}"));
        for step in reply.0 {
            match step {
                Step::Bytes(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Gate(gate) => gate.notified().await,
                Step::Tell(told) => told.notify_one(),
                Step::Cut => return,
            }
        }
    }
}

/// Reads one request with a content length or none.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
    let mut request = Seen { head, body: Vec::new() };
    let len: usize = request.header("content-length").map_or(0, |v| v.parse().unwrap());
    assert!(request.header("transfer-encoding").is_none(), "the length of a request is known");
    buffer.drain(..head_end + 4);
    while buffer.len() < len {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    request.body = buffer.drain(..len).collect();
    Some(request)
}
