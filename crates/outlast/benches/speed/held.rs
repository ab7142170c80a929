//! What an agent that is held costs the engine: its memory with few and with many of them, the difference by agent.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use outlast_core::Fact;
use outlast_testkit::provider::{Fault, Provider, RefusalKind, Rule, Script, When};

use crate::place::{Place, count, memory};

/// How this program is told to be an agent.
pub(crate) const AGENT: &str = "__held-agent";

/// What one may cost, in KiB.
const COST_MAX: f64 = 64.0;
/// How long requests are.
const BODIES: [usize; 3] = [2 << 10, 100 << 10, 1 << 20];
/// How long the engine has to come to rest after the last agent is held: threads that wait for work end after 10 seconds.
const REST: Duration = Duration::from_secs(12);

/// Prints the figures; whether the bound is kept.
pub(crate) fn measure(numbers: &mut dyn Iterator<Item = u32>) -> bool {
    let (many, few) = (numbers.next().unwrap_or(220), numbers.next().unwrap_or(20));
    println!("{few} and {many} real attempts, each held with one request; memory is what the engine alone takes (PSS)");
    let mut is_kept = true;
    for bytes in BODIES {
        let (with_few, with_many) = (held(bytes, few, many), held(bytes, many, many));
        let each = (with_many as f64 - with_few as f64) / f64::from(many - few);
        is_kept &= each < COST_MAX;
        println!(
            "requests of {:>4} KiB: engine {:.1} MiB with {few}, {:.1} MiB with {many}: {each:.1} KiB each{}",
            bytes >> 10,
            with_few as f64 / 1024.0,
            with_many as f64 / 1024.0,
            if each < COST_MAX { "" } else { " MISSED" },
        );
    }
    is_kept
}

/// What the engine takes, in KiB, while so many agents at once are held, of a plan of `tasks`.
fn held(bytes: usize, at_once: u32, tasks: u32) -> u64 {
    let closed = Fault::Refuse { reason: RefusalKind::WindowQuota, seconds: Some(3 * 3600) };
    let closed = Rule { when: When::default(), fault: closed, times: None };
    let provider = Provider::start_in_background(Script::default().with_fault(closed)).unwrap();
    let place = Place::new(&[("README.md", "# Parts\n"), ("src/lib.rs", "pub fn a() {}\n")]);
    let key = place.env.root().join("key");
    std::fs::write(&key, "sk-real\n").unwrap();
    let account =
        format!("[account.main]\nprovider = \"anthropic\"\nbase_url = {:?}\nkey_file = {key:?}\n", provider.url());
    place.env.write_config(&account).unwrap();
    let program = std::env::current_exe().unwrap();
    let gate = place.env.root().join("gate");
    let mut plan = format!(
        "[run]\nconcurrency = {at_once}\nhold = \"4h\"\n\n[agent.held]\nkind = \"command\"\naccounts = [\"main\"]\n\
         command = [{program:?}, \"{AGENT}\", \"{bytes}\", {gate:?}]\n\n\
         [defaults]\nagent = \"held\"\ntimeout = \"4h\"\nidle_timeout = \"4h\"\nverify = [\"true\"]\n"
    );
    for number in 1..=tasks {
        plan.push_str(&format!(
            "[[task]]\nid = \"t{number}\"\ngoal = \"Do it.\"\nwrites = [\"parts/t{number}.txt\"]\n"
        ));
    }
    place.repo.write("outlast.toml", &plan).unwrap();
    let mut engine = place.start(&["run", "--yes"]);
    // None is started any more once the provider has refused.
    let is_started = |fact: &Fact| matches!(fact, Fact::Spawned { .. });
    place.until(&mut engine, 0, "all are started", |records| count(records, is_started) >= at_once as usize);
    std::fs::write(&gate, "").unwrap();
    let is_held = |fact: &Fact| matches!(fact, Fact::Held { .. });
    place.until(&mut engine, 0, "all are held", |records| count(records, is_held) >= at_once as usize);
    sleep(REST);
    let taken = memory(engine.id(), "Pss:");
    engine.kill().unwrap();
    engine.wait().unwrap();
    taken
}

/// An agent that asks once, as soon as there is a gate, with a request of this length as real ones look, and waits for its answer.
pub(crate) fn agent(bytes: usize, gate: &Path) -> ExitCode {
    while !gate.exists() {
        sleep(Duration::from_millis(50));
    }
    let url = std::env::var("OUTLAST_GATEWAY_URL").unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let (authority, path) = address.split_once('/').unwrap_or((address, ""));
    let goal = "```outlast-script\nwrite parts/a.txt \"a\"\n```\n";
    let text = goal.to_owned() + &"All that the agent has read so far. ".repeat(1 + bytes / 36);
    let body = serde_json::json!({
        "model": "scripted-1",
        "max_tokens": 1024,
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": &text[..bytes]}],
    });
    let body = body.to_string();
    let mut stream = TcpStream::connect(authority).unwrap();
    let head = format!(
        "POST {}/v1/messages HTTP/1.1\r\nhost: {authority}\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        if path.is_empty() { String::new() } else { format!("/{path}") },
        std::env::var("OUTLAST_KEY").unwrap(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = [0; 1024];
    while stream.read(&mut answer).is_ok_and(|read| read > 0) {}
    ExitCode::FAILURE
}
