//! A gateway and a program in bare bytes: what passes between them is compared as it is, not as a library sees it.

use std::path::Path;

use outlast_process::{HoldProfile, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};

/// A listener for a gateway at `socket`, holding without a byte.
pub(crate) fn listener_to(socket: &Path) -> Listener {
    Listener { upstream_socket: socket.to_owned(), path_prefix: "/a/k1".to_owned(), hold: HoldProfile::default() }
}

/// A request as the gateway gets it, waiting to be answered.
pub(crate) struct Taken {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    stream: UnixStream,
}

/// Takes the next request.
pub(crate) async fn take(gateway: &UnixListener) -> Taken {
    let (mut stream, _) = gateway.accept().await.unwrap();
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the request broke off");
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = bytes.split_off(end + 4);
    while body.len() < length.unwrap_or(0) {
        assert!(stream.read_buf(&mut body).await.unwrap() > 0, "the request broke off");
    }
    Taken { head, body, stream }
}

impl Taken {
    /// Sends bytes as they are.
    pub(crate) async fn say(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// A whole answer with a length.
    pub(crate) async fn answer(mut self, body: &str) {
        self.say(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
    }

    /// Waits until the other side has hung up.
    pub(crate) async fn hung_up(mut self) {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "{rest:?}");
    }

    /// The value of `x-outlast-request`.
    pub(crate) fn id(&self) -> u64 {
        self.head.lines().find_map(|line| line.strip_prefix("x-outlast-request: ")).unwrap().parse().unwrap()
    }
}

/// The program's side of one connection.
pub(crate) struct Caller(pub(crate) TcpStream);

impl Caller {
    pub(crate) async fn dial(port: u16) -> Self {
        Self(TcpStream::connect(("127.0.0.1", port)).await.unwrap())
    }

    /// Dials and sends a POST.
    pub(crate) async fn post(port: u16, body: &str) -> Self {
        let mut caller = Self::dial(port).await;
        let length = body.len();
        caller
            .say(&format!("POST /v1/messages?beta=true HTTP/1.1\r\nHost: h\r\ncontent-length: {length}\r\n\r\n{body}"))
            .await;
        caller
    }

    pub(crate) async fn say(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Reads until what was read ends with `end`.
    pub(crate) async fn hear_until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            let length = self.0.read_buf(&mut bytes).await.unwrap();
            assert!(length > 0, "cut off after {:?}", String::from_utf8_lossy(&bytes));
        }
        String::from_utf8(bytes).unwrap()
    }

    /// Reads until the connection ends.
    pub(crate) async fn hear_all(&mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }
}
