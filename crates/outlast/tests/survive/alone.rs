//! A gateway without a run.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::signal::Signal;
use outlast_journal::{JournalReader, Outcome, Usage};

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
    let (mut gateway, address) = start(&world);
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

#[test]
fn i06_what_passes_a_gateway_alone_is_metered_and_priced_also_where_it_is_killed_at_once() {
    let world = World::new();
    let (gateway, address) = start(&world);
    for stream in [false, true] {
        let answer = ask_for(&address, "claude-opus-4-8", stream);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // Rows are made later than answers end: what was passed on is in the spool alone by now, or just behind it.
    gateway.kill_9();
    let (gateway, address) = start(&world);
    for stream in [false, true] {
        ask_for(&address, "claude-opus-4-8", stream);
    }
    gateway.signal(Signal::SIGTERM);
    gateway.end().ends(0);

    let homes = fs::read_dir(world.env.outlast_home()).unwrap().map(|entry| entry.unwrap().path());
    let journal = homes.map(|home| home.join("journal.db")).find(|path| path.is_file()).unwrap();
    let mut rows = Vec::new();
    JournalReader::open(journal).unwrap().exchanges_after(0, |row| rows.push(row)).unwrap();
    let bill = world.provider.bill().total;
    assert_eq!((rows.len() as u64, bill.answered), (4, 4));
    let sum = |count: fn(&Usage) -> Option<u64>| rows.iter().map(|row| count(&row.usage).unwrap()).sum::<u64>();
    assert_eq!(sum(|usage| usage.input), bill.tokens.input);
    assert_eq!(sum(|usage| usage.output), bill.tokens.output);
    for (number, row) in rows.iter().enumerate() {
        // The kill may come between an answer's last byte and the word that it was the last.
        let was_killed = number < 2;
        assert!(row.outcome == Outcome::Complete || was_killed && row.outcome == Outcome::Cut, "{row:#?}");
        assert!(!row.estimated, "{row:#?}");
        // 5 USD for a million tokens that are read, 25 for those produced, and less or more for what caches serve or take.
        let least = row.usage.input.unwrap() * 500 + row.usage.output.unwrap() * 25_000;
        assert!(row.usd_nanos.unwrap().cast_unsigned() >= least && least > 0, "{row:#?}");
    }
}

/// A gateway, and where it listens.
fn start(world: &World) -> (Running, String) {
    let mut command = world.command(&["gateway", "--key-env", "CLIENT_KEY"]);
    command.env("CLIENT_KEY", "client");
    let mut gateway = Running::of(command);
    let line = gateway.until(&["ANTHROPIC_BASE_URL="]);
    let address = line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    (gateway, address)
}

/// Asks a model something by way of the gateway, and gives its answer.
fn ask(address: &str) -> String {
    ask_for(address, "m", false)
}

fn ask_for(address: &str, model: &str, stream: bool) -> String {
    let body = format!(
        r#"{{"model":"{model}","stream":{stream},"max_tokens":16,"messages":[{{"role":"user","content":"Say hello."}}]}}"#
    );
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
