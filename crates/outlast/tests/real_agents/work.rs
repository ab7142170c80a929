//! The main job, in a repository that sets its own address and key in every way it can: three tasks land, every token is
//! accounted for, every turn is one request, and the account's key is nowhere but in its file.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use outlast_core::RunId;
use outlast_journal::{Outcome, Selection};
use outlast_testkit::provider::Script;
use outlast_testkit::wire::Usage;
use serde_json::Value;

use crate::bench::{ACCOUNT_ID, Account, Bench, CLAUDE, CODEX, Cli, GEMINI, KIMI, OPENCODE, QWEN};
use crate::canary::{Sightings, Suspects, search};
use crate::evil::Evil;
use crate::hostile;

/// What the model does in each task: an edit with the CLI's own tool, a new file and a shell command, and a shell command
/// that uses what the first task made.
const SCRIPTS: [(&str, &str); 3] = [
    ("north", "read north.md\nedit north.md \"calm sea\" \"high waves\"\nsay \"Changed: north.md\""),
    (
        "south",
        "write south.md \"still\\n\"\nrun \"wc -l < south.md > count.txt\"\nsay \"Changed: south.md, count.txt\"",
    ),
    ("chart", "read north.md\nrun \"cat north.md > chart.md\"\nsay \"Changed: chart.md\""),
];
/// Each script's two tool calls and its closing account.
const TURNS: [usize; 3] = [1, 2, 3];

fn tasks(agent: &str) -> String {
    format!(
        r#"[[task]]
id = "north"
agent = "{agent}"
goal = "Say that the sea is high. [[scenario:north]]"
writes = ["north.md"]
verify = ["grep -q 'high waves' north.md"]

[[task]]
id = "south"
agent = "{agent}"
goal = "Describe the south. [[scenario:south]]"
writes = ["south.md", "count.txt"]
verify = ["grep -q still south.md", "test $(cat count.txt) -eq 1"]

[[task]]
id = "chart"
agent = "{agent}"
goal = "Draw the chart. [[scenario:chart]]"
needs = ["north"]
writes = ["chart.md"]
verify = ["grep -q 'high waves' chart.md"]
"#
    )
}

fn does_the_main_job(cli: Cli) {
    does_the_main_job_for(cli, Account::Key);
}

fn does_the_main_job_for(cli: Cli, account: Account) {
    let mut script = Script::default();
    for (name, steps) in SCRIPTS {
        script = script.with_scenario(name, steps);
    }
    let Some(bench) = Bench::with_account(&[cli], script, account) else { return };
    let evil = Evil::listen();
    bench.repo.write("north.md", "The north: calm sea.\n").unwrap();
    hostile::repository(bench.repo.dir(), &evil.url);
    bench.plan(&[cli], &tasks(cli.program));

    let run = bench.start(&["run", "--yes"]);
    let suspects = Suspects { ancestor: run.pid(), root: bench.env.root(), canary: bench.canary.clone() };
    let watch = suspects.clone().watch();
    run.ends(0);
    let seen = watch.stop();

    let status = bench.status();
    landed_right(&bench, &status);
    one_request_per_turn(&bench, cli);
    in_the_shape_of_the_account(&bench, account);
    tokens_are_those_billed(&bench, &status, cli);
    evil.heard_nothing();
    the_key_was_nowhere(&bench, &seen);
    a_planted_key_is_found(&bench, &suspects);
}

fn landed_right(bench: &Bench, status: &Value) {
    assert_eq!(status["counts"], serde_json::json!({ "landed": 3 }), "{status:#}");
    let mut landed = bench.landed(status);
    let place = |name: &str| landed.iter().position(|task| task == name);
    assert!(place("north") < place("chart"), "what is needed lands first: {landed:?}");
    landed.sort();
    assert_eq!(landed, ["chart", "north", "south"]);
    for (file, text) in [
        ("north.md", "The north: high waves."),
        ("south.md", "still"),
        ("count.txt", "1"),
        ("chart.md", "The north: high waves."),
    ] {
        assert_eq!(bench.on_target(status, file), text, "{file}");
    }
    for task in status["tasks"].as_array().unwrap() {
        assert_eq!((&task["attempts"], &task["turns"]), (&1.into(), &3.into()), "{task:#}");
    }
}

fn one_request_per_turn(bench: &Bench, cli: Cli) {
    let requests = bench.provider.model_requests();
    let beside: Vec<_> = requests.iter().filter(|entry| entry.background).collect();
    assert!(beside.is_empty(), "requests beside the conversation: {beside:#?}");
    for (name, _) in SCRIPTS {
        assert_eq!(bench.turns(name), TURNS, "{name}: one request per turn");
    }
    let log = bench.provider.log();
    assert!(log.iter().all(|entry| entry.key == bench.canary), "every request carries the account's key: {log:#?}");
    assert!(log.iter().all(|entry| entry.headers.iter().all(|(name, _)| name != "x-evil")), "{log:#?}");
    let last = |name| requests.iter().rfind(|entry| entry.scenario.as_deref() == Some(name));
    let mut called = Vec::new();
    for body in bench.bodies([last("north"), last("south")].into_iter().flatten()) {
        calls(&serde_json::from_str(&body).unwrap(), &mut called);
    }
    assert!(called.iter().any(|name| name == cli.edit_tool), "its own tool made the changes: {called:?}");
}

/// With a login, the CLI sends what it sends for a subscription, and the gateway puts the real login in.
fn in_the_shape_of_the_account(bench: &Bench, account: Account) {
    let has = |header: &str, text: &str| {
        let requests = bench.provider.model_requests();
        let found = |name: &str, value: &str| name == header && value.contains(text);
        requests.iter().filter(|entry| entry.headers.iter().any(|(name, value)| found(name, value))).count()
    };
    let all = SCRIPTS.len() * TURNS.len();
    let login = |name| if account == Account::Login(name) { all } else { 0 };
    assert_eq!(has("anthropic-beta", "oauth-2025-04-20"), login("claude"));
    assert_eq!(has("chatgpt-account-id", ACCOUNT_ID), login("codex"));
}

/// The tools that a conversation's calls name, in whatever dialect.
fn calls(value: &Value, called: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| calls(value, called)),
        Value::Object(map) => {
            let has_arguments = ["input", "arguments", "args"].iter().any(|key| map.contains_key(*key));
            called.extend(map.get("name").and_then(Value::as_str).filter(|_| has_arguments).map(str::to_owned));
            map.values().for_each(|value| calls(value, called));
        }
        _ => {}
    }
}

/// Of a task, of the run, in the status and in the ledger: always what the provider billed, by kind of token.
fn tokens_are_those_billed(bench: &Bench, status: &Value, cli: Cli) {
    let bill = bench.provider.bill();
    let mut of_tasks = Usage::default();
    for task in status["tasks"].as_array().unwrap() {
        let billed = bill.scenarios[task["id"].as_str().unwrap()].tokens;
        let told = &task["tokens"];
        let kinds = ["input", "cache_write", "cache_read", "output"].map(|kind| told[kind].as_u64().unwrap());
        assert_eq!(kinds, [billed.input, billed.cache_write, billed.cache_read, billed.output], "{task:#}");
        of_tasks += billed;
    }
    assert_eq!(of_tasks, bill.total.tokens, "nothing was billed beside the tasks");
    assert_eq!(status["budget"]["tokens_used"], bill.total.tokens.total());
    // A price is known of all of it or of none: what is no turn (a list of models) is not counted among the unpriced.
    let priced = status["tasks"].as_array().unwrap().iter().filter(|task| task["usd"].is_number()).count();
    assert_eq!(priced, if cli.is_priced { SCRIPTS.len() } else { 0 }, "{status:#}");

    let journal = bench.journal();
    let run = RunId::new(status["run"].as_str().unwrap());
    let ledger = journal.totals(&Selection::run(run.clone())).unwrap();
    let written = ledger.cache_write_5m + ledger.cache_write_1h;
    assert_eq!(
        [ledger.input, written, ledger.cache_read, ledger.output, ledger.reasoning],
        {
            let billed = bill.total.tokens;
            [billed.input, billed.cache_write, billed.cache_read, billed.output, billed.reasoning]
        },
        "{ledger:?}"
    );
    assert_eq!(ledger.estimated, 0, "{ledger:?}");
    let mut rows = journal.exchanges(&Selection::run(run)).unwrap();
    // They enter the ledger side by side, each when it is whole on disk.
    rows.sort_by_key(|row| row.started_at);
    let mut turns: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.turn > 0) {
        assert_eq!(row.outcome, Outcome::Complete, "{row:#?}");
        assert!(row.usage.input.is_some() && row.usage.output.is_some(), "{row:#?}");
        turns.entry(row.attempt.as_ref().unwrap().task.to_string()).or_default().push(row.turn);
    }
    assert_eq!(turns.len(), SCRIPTS.len());
    assert!(turns.values().all(|turns| turns == &[1, 2, 3]), "{turns:?}");
    for row in rows.iter().filter(|row| row.turn > 0) {
        let body = journal.body(&row.response_hash.unwrap()).unwrap().expect("the answer is kept");
        assert_eq!(body.len() as u64, row.response_bytes, "{row:#?}");
    }
}

fn the_key_was_nowhere(bench: &Bench, seen: &Sightings) {
    assert!(seen.found.is_empty(), "{seen:#?}");
    let attempts: Vec<_> = seen.attempts.iter().filter(|marker| marker.ends_with(".1")).collect();
    assert!(attempts.len() >= SCRIPTS.len(), "every attempt was seen: {seen:#?}");
    assert!(seen.looks > 20, "{seen:#?}");
    let searched = search(&bench.env.root(), &bench.canary, &bench.key_file());
    assert!(searched.found.is_empty(), "{searched:#?}");
    assert!(searched.packs > 0 && searched.repositories >= 2 && searched.files > 100, "{searched:?}");
}

/// The same searches find a key in a file, in a pack of bodies, in an environment and in a command line.
fn a_planted_key_is_found(bench: &Bench, suspects: &Suspects) {
    let plain = bench.state().join("planted");
    fs::write(&plain, format!("before {} after", bench.canary)).unwrap();
    let packed = bench.state().join("blobs/planted.zst");
    let frames = [&b"another body"[..], bench.canary.as_bytes()].map(|body| zstd::encode_all(body, 0).unwrap());
    fs::write(&packed, frames.concat()).unwrap();
    let mut searched = search(&bench.env.root(), &bench.canary, &bench.key_file());
    searched.found.sort();
    assert_eq!(searched.found, [packed, plain]);

    // A shell that waits for its input's end: it is still there when it is looked at, with both copies.
    let mut child = Command::new("sh")
        .args(["-c", "read line", &bench.canary])
        .env_clear()
        .env("PLANTED", &bench.canary)
        .env("OUTLAST_ATTEMPT", bench.state())
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = Sightings::default();
    suspects.look(&mut seen);
    let pid = child.id();
    drop(child.stdin.take());
    child.wait().unwrap();
    let places: Vec<&str> = seen.found.iter().map(String::as_str).collect();
    assert_eq!(places, [format!("/proc/{pid}/cmdline"), format!("/proc/{pid}/environ")]);
}

#[test]
fn claude_does_the_main_job_in_a_hostile_repository() {
    does_the_main_job(CLAUDE);
}

#[test]
fn codex_does_the_main_job_in_a_hostile_repository() {
    does_the_main_job(CODEX);
}

#[test]
fn claude_does_the_main_job_with_a_login() {
    does_the_main_job_for(CLAUDE, Account::Login("claude"));
}

#[test]
fn codex_does_the_main_job_with_a_login() {
    does_the_main_job_for(CODEX, Account::Login("codex"));
}

#[test]
fn opencode_does_the_main_job_in_a_hostile_repository() {
    does_the_main_job(OPENCODE);
}

#[test]
fn gemini_does_the_main_job_in_a_hostile_repository() {
    does_the_main_job(GEMINI);
}

#[test]
fn qwen_does_the_main_job_in_a_hostile_repository() {
    does_the_main_job(QWEN);
}

#[test]
fn kimi_does_the_main_job_in_a_hostile_repository() {
    does_the_main_job(KIMI);
}
