//! Sends one request after another on kept connections and times each to its last byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::Outcome;

/// What one slice of time came to.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    /// From the first byte out to the last byte in, in microseconds, sorted.
    pub(crate) micros: Vec<f64>,
    pub(crate) elapsed: Duration,
}

impl Slice {
    fn new(mut micros: Vec<f64>, elapsed: Duration) -> Self {
        micros.sort_unstable_by(f64::total_cmp);
        Self { micros, elapsed }
    }

    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let last = self.micros.len().saturating_sub(1);
        self.micros.get(last * percent / 100).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.micros.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// One connection.
pub(crate) fn alone(addr: SocketAddr, request: &[u8], slice: Duration) -> Outcome<Slice> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    let mut reader = Answer::default();
    let mut micros = Vec::new();
    let begun = Instant::now();
    // The first requests open connections behind the target, which happens once and is not what is measured.
    let mut unmeasured = 20;
    while begun.elapsed() < slice {
        let sent = Instant::now();
        stream.write_all(request)?;
        while !reader.is_whole()? {
            let free = reader.free();
            let got = stream.read(free)?;
            reader.got(got)?;
        }
        reader.clear();
        if unmeasured > 0 {
            unmeasured -= 1;
            continue;
        }
        micros.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Slice::new(micros, begun.elapsed()))
}

/// Many connections at once.
pub(crate) fn many(addr: SocketAddr, request: &[u8], slice: Duration, connections: usize) -> Outcome<Slice> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..connections {
            let request = request.to_vec();
            tasks.spawn(async move { one_of_many(addr, &request, begun, slice).await.map_err(|e| e.to_string()) });
        }
        let mut micros = Vec::new();
        while let Some(done) = tasks.join_next().await {
            micros.extend(done??);
        }
        Ok(Slice::new(micros, begun.elapsed()))
    })
}

async fn one_of_many(addr: SocketAddr, request: &[u8], begun: Instant, slice: Duration) -> Outcome<Vec<f64>> {
    let mut stream = tokio::net::TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let mut reader = Answer::default();
    let mut micros = Vec::new();
    while begun.elapsed() < slice {
        let sent = Instant::now();
        stream.write_all(request).await?;
        while !reader.is_whole()? {
            let free = reader.free();
            let got = stream.read(free).await?;
            reader.got(got)?;
        }
        reader.clear();
        micros.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    Ok(micros)
}

/// An answer as it comes in. Only its end is looked for.
struct Answer {
    bytes: Vec<u8>,
    len: usize,
}

impl Default for Answer {
    fn default() -> Self {
        Self { bytes: vec![0; 256 << 10], len: 0 }
    }
}

impl Answer {
    fn free(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len..]
    }

    fn got(&mut self, count: usize) -> Outcome<()> {
        if count == 0 {
            return Err("the target closed in mid-answer".into());
        }
        self.len += count;
        Ok(())
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    fn is_whole(&self) -> Outcome<bool> {
        let bytes = &self.bytes[..self.len];
        let Some(head_end) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(false) };
        let head = std::str::from_utf8(&bytes[..head_end])?;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(format!("the target answered {head}").into());
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        Ok(match length {
            Some(length) => self.len >= head_end + 4 + length,
            None => bytes.ends_with(b"0\r\n\r\n"),
        })
    }
}
