//! A listener that must hear nothing: it writes down the first line of whatever reaches it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub(crate) struct Evil {
    pub(crate) url: String,
    heard: mpsc::Receiver<String>,
}

impl Evil {
    pub(crate) fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, heard) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut head = [0_u8; 1024];
                let read = stream.read(&mut head).unwrap_or(0);
                let line = String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default().to_owned();
                // Whoever asked may be gone already; what it asked counts all the same.
                drop(stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { url, heard }
    }

    /// Checks that nothing has reached it, and that something would have been heard.
    pub(crate) fn heard_nothing(&self) {
        let mut own = TcpStream::connect(self.url.trim_start_matches("http://")).unwrap();
        own.write_all(b"GET /own HTTP/1.1\r\n\r\n").unwrap();
        let first = self.heard.recv_timeout(Duration::from_secs(10)).expect("the listener hears");
        assert_eq!(first, "GET /own HTTP/1.1", "a request went past the gateway");
    }
}
