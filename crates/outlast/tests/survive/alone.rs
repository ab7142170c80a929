//! A gateway without a run.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::disk::{in_own_mounts, mount_small};
use crate::filling::fill;
use crate::running::Running;
use crate::world::World;

#[test]
fn e25_a_gateway_alone_holds_requests_on_a_full_disk_and_says_so() {
    in_own_mounts("alone::held_on_a_full_disk");
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn held_on_a_full_disk() {
    let world = World::new();
    mount_small(world.env.outlast_home());
    let mut command = world.command(&["gateway", "--key-env", "CLIENT_KEY"]);
    command.env("CLIENT_KEY", "client");
    let mut gateway = Running::of(command);
    let line = gateway.until(&["ANTHROPIC_BASE_URL="]);
    let address = line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let ballast = world.env.outlast_home().join("ballast");
    drop(fill(&ballast));
    gateway.until(&["the disk is full", "requests wait"]);
    let (sender, answers) = channel();
    let asks = std::thread::spawn(move || sender.send(ask(&address)).unwrap());
    assert!(answers.recv_timeout(Duration::from_secs(2)).is_err(), "it is answered");
    assert!(world.provider.log().is_empty(), "it is sent on");
    fs::remove_file(&ballast).unwrap();
    gateway.until(&["there is room again"]);
    let answer = answers.recv().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    asks.join().unwrap();
    gateway.signal(Signal::SIGTERM);
    gateway.end().ends(0);
}

/// Asks a model something by way of the gateway, and gives its answer.
fn ask(address: &str) -> String {
    let body = r#"{"model":"m","max_tokens":16,"messages":[{"role":"user","content":"Say hello."}]}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nx-api-key: client\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
