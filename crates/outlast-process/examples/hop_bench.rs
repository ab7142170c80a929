//! What a launch's listener adds to a request: the same request straight to a gateway's Unix socket, and through the listener.
//!
//! `cargo run --release -p outlast-process --example hop_bench [COUNT]`; the gateway is a few lines that answer at once.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_process::{ContainmentChoice, FileRules, HoldProfile, LaunchSpec, Listener, Spawner, Timeouts, files};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let spawner = Spawner::fork_early()?;
    let count = std::env::args().nth(1).map_or(Ok(2000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("gateway");
    let gateway = UnixListener::bind(&socket)?;
    std::thread::spawn(move || {
        for stream in gateway.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    let shim = spawner.spawn(&sleeper(folder.path(), &socket))?;
    let port = files::load_shim(folder.path())?.and_then(|shim| shim.port).ok_or("no port")?;
    for size in [1024, 100 * 1024] {
        let direct = median(count, || exchange(UnixStream::connect(&socket)?, size))?;
        let through = median(count, || exchange(TcpStream::connect(("127.0.0.1", port))?, size))?;
        println!(
            "{size} bytes: straight {direct:.0?}, through the listener {through:.0?}, added {:.0?}",
            through - direct
        );
    }
    shim.kill()?;
    Ok(())
}

fn sleeper(folder: &Path, socket: &Path) -> LaunchSpec {
    let hold = HoldProfile::default();
    LaunchSpec {
        argv: vec!["/bin/sleep".into(), "600".into()],
        env: BTreeMap::new(),
        cwd: "/".into(),
        attempt_dir: folder.to_owned(),
        marker: folder.display().to_string(),
        sandbox: FileRules::system(),
        connect_ports: None,
        containment: ContainmentChoice::Auto,
        timeouts: Timeouts::default(),
        kill_grace: Duration::from_secs(1),
        output_limit_bytes: 1 << 20,
        line_limit_bytes: 1 << 16,
        files: Vec::new(),
        listener: Some(Listener { upstream_socket: socket.to_owned(), path_prefix: "/a/bench".to_owned(), hold }),
    }
}

/// Answers one request with as many bytes as its path's last part says, in chunks of 1 KB.
fn answer(mut stream: UnixStream) -> Result<(), Failure> {
    let head = read_until(&mut stream, b"\r\n\r\n")?;
    let path = std::str::from_utf8(&head)?.split(' ').nth(1).ok_or("no path")?;
    let size: usize = path.rsplit('/').next().ok_or("no size")?.parse()?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
    for _ in 0..size / 1024 {
        stream.write_all(format!("400\r\n{}\r\n", "x".repeat(1024)).as_bytes())?;
    }
    stream.write_all(b"0\r\n\r\n")?;
    Ok(())
}

fn exchange(mut stream: impl Read + Write, size: usize) -> Result<(), Failure> {
    write!(stream, "GET /{size} HTTP/1.1\r\nHost: h\r\n\r\n")?;
    let heard = read_until(&mut stream, b"0\r\n\r\n")?;
    if heard.len() > size { Ok(()) } else { Err(format!("{} bytes of {size}", heard.len()).into()) }
}

fn read_until(stream: &mut impl Read, end: &[u8]) -> Result<Vec<u8>, Failure> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 64 * 1024]);
    while !bytes.ends_with(end) {
        match stream.read(&mut chunk)? {
            0 => return Err("cut off".into()),
            length => bytes.extend_from_slice(&chunk[..length]),
        }
    }
    Ok(bytes)
}

fn median(count: usize, mut once: impl FnMut() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        once()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[count / 2])
}
