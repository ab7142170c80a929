//! What was paid for is on record: the engine is killed between an answer and its record, and the next one bills it, once.

use std::fs;
use std::sync::mpsc::channel;

use notify::{RecursiveMode, Watcher as _};
use outlast_core::RunId;
use outlast_journal::{Journal, JournalReader, Ledger, Selection};
use outlast_testkit::provider::{Fault, Rule, Script, When};
use serde_json::Value;

use crate::running::{LIMIT, Running};
use crate::world::{Plan, World, text};

/// Two tasks of two turns each. They take their time between those: the ledger has an answer when its agent asks again.
fn world(script: Script) -> World {
    let world = World::with_script(script);
    let plan = ["one", "two"].iter().fold(Plan::new("land = \"auto\"\nconcurrency = 1"), |plan, id| {
        let keys = format!("writes = [\"parts/{id}.txt\"]");
        plan.task(id, &format!("run mkdir -p parts && echo 'part {id}' > parts/{id}.txt && sleep 0.5"), &keys)
    });
    world.plan(&plan);
    world
}

/// A command that is killed at a point.
fn killed(world: &World, arguments: &[&str], fault: &str) {
    let mut command = world.command(arguments);
    command.env("OUTLAST_FAULT", fault);
    let ran = Running::of(command).end();
    assert!(ran.was_killed(), "{fault}:\n{}", ran.stderr);
}

/// Tokens by kind, and how many turns, over all tasks of `status --json`.
fn told(status: &Value) -> ([u64; 4], u64) {
    let tasks = status["tasks"].as_array().unwrap();
    let sum = |kind: &str| tasks.iter().map(|task| task["tokens"][kind].as_u64().unwrap()).sum();
    let turns = tasks.iter().map(|task| task["turns"].as_u64().unwrap()).sum();
    (["input", "cache_write", "cache_read", "output"].map(sum), turns)
}

fn billed(world: &World) -> ([u64; 4], u64) {
    let total = world.provider.bill().total;
    let tokens = total.tokens;
    ([tokens.input, tokens.cache_write, tokens.cache_read, tokens.output], total.answered)
}

/// How often a history is told until the kill came while no request was on its way: an agent that has its answer before
/// the ledger has it all may be quick enough to ask again.
const TELLINGS: u32 = 5;

/// Tells a history, up to its kills, until one leaves nothing unknown; then everything is billed.
#[track_caller]
fn billed_after(when: &str, history: impl Fn() -> World) {
    assert!((0..TELLINGS).any(|_| everything_is_billed(&history(), when)), "{when}: always something on its way");
}

/// Goes on to the end; the run, its tasks and the ledger say what the provider says. Where it was never known what a request
/// that was on its way cost, they say that of one, and nothing can be compared.
#[track_caller]
fn everything_is_billed(world: &World, when: &str) -> bool {
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    let status = world.status();
    if status["budget"]["unmetered"] != 0 {
        // The one that was on its way, and nothing else, may be unknown.
        assert_eq!(status["budget"]["unmetered"], 1, "{when}: {status:#}");
        // Two turns of each task, and that one once more. Where the kill came after it was recorded and before it was
        // sent, the provider has not seen it the first time.
        let asked = world.provider.bill().total.requests;
        assert!(asked == 4 || asked == 5, "{when}: asked {asked} times: {status:#}");
        return false;
    }
    assert_eq!(told(&status), billed(world), "{when}: {status:#}");
    let total = world.provider.bill().total;
    assert_eq!(status["budget"]["tokens_used"], total.tokens.total(), "{when}");
    let ledger = journal(world).totals(&Selection::run(RunId::new(text(&status["run"])))).unwrap();
    assert_eq!((ledger.output, ledger.exchanges), (total.tokens.output, total.requests), "{when}");
    true
}

fn journal(world: &World) -> JournalReader {
    JournalReader::open(world.homes()[0].join("journal.db")).unwrap()
}

#[test]
fn killed_between_an_answer_and_its_record_the_totals_are_the_providers_bill() {
    for n in 1..=3 {
        let fault = format!("after_answer:{n}");
        billed_after(&fault, || {
            let world = world(Script::default());
            killed(&world, &["run", "--yes"], &fault);
            assert!(told(&world.status()).1 < world.provider.bill().total.answered, "{fault} lost nothing");
            world
        });
    }
}

#[test]
fn what_reached_the_ledger_and_no_record_is_counted_as_well() {
    billed_after("with the row in the ledger", || {
        let world = world(Script::default());
        killed(&world, &["run", "--yes"], "after_answer:1");
        let journal = Journal::open(world.homes()[0].join("journal.db")).unwrap();
        drop(Ledger::open(&journal).unwrap());
        world
    });
}

#[test]
fn killed_while_it_counts_what_was_missing_nothing_is_counted_twice() {
    for fault in ["before_append:1", "after_append:1"] {
        billed_after(fault, || {
            let world = world(Script::default());
            killed(&world, &["run", "--yes"], "after_answer:1");
            killed(&world, &["resume"], fault);
            world
        });
    }
}

/// Waits until an answer that is under way has come this far.
fn until_spooled(world: &World, part: &[u8]) {
    let spool = world.homes()[0].join("spool");
    let (sender, changes) = channel();
    let mut watcher = notify::recommended_watcher(move |change| drop(sender.send(change))).unwrap();
    watcher.watch(&spool, RecursiveMode::NonRecursive).unwrap();
    let is_there = || {
        let mut files = fs::read_dir(&spool).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
        files.any(|bytes| bytes.windows(part.len()).any(|window| window == part))
    };
    while !is_there() {
        changes.recv_timeout(LIMIT).unwrap().unwrap();
    }
}

#[test]
fn an_answer_cut_by_the_kill_counts_as_far_as_it_is_known_and_never_as_nothing() {
    // One frame of the first answer, which names its input, and then nothing for as long as the engine lives.
    let hang = Fault::Hang { after_frames: 1, seconds: None };
    let rule = Rule { when: When { step: Some(1), ..When::default() }, fault: hang, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    until_spooled(&world, b"message_start");
    run.kill_9();
    world.run(&["resume"]).ends(0);
    let rows = journal(&world).exchanges(&Selection::default()).unwrap();
    let cut = rows.iter().find(|row| row.ended_at.is_none()).unwrap();
    assert!(cut.usage.input.is_some() && cut.estimated, "{cut:#?}");
    // Everything that the rows name is on record, and none of it twice.
    let known: u64 = rows.iter().filter_map(|row| row.usage.input).sum();
    let (told, _) = told(&world.status());
    assert_eq!(told[0], known, "{rows:#?}");
}

#[test]
fn an_answer_that_had_not_begun_at_the_kill_is_unknown_and_is_said_to_be() {
    let hold = Fault::Hold { seconds: None };
    let rule = Rule { when: When { step: Some(1), ..When::default() }, fault: hold, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| log.iter().any(|entry| entry.step == Some(1)));
    run.kill_9();
    world.run(&["resume"]).ends(0);
    let status = world.status();
    let unknown = (&status["budget"]["unmetered"], &status["tasks"][0]["tokens"]["unmetered"]);
    assert_eq!(unknown, (&1.into(), &1.into()), "{status:#}");
    assert!(status["budget"]["usd_used"].is_null(), "a part of the price is unknown: {status:#}");
    assert_eq!(status["budget"]["tokens_used"], world.provider.bill().total.tokens.total(), "{status:#}");
}

/// An agent without retries of its own dies of it when its engine is killed in the middle of an answer. The kill may come a
/// moment before the answer has begun at the agent, which then waits for it: so it is done until the agent has died of it.
#[test]
fn an_agent_whose_answer_is_cut_by_the_death_of_its_engine_uses_no_try() {
    let dies_of_it = || {
        let hang = Fault::Hang { after_frames: 3, seconds: None };
        let rule = Rule { when: When { step: Some(1), ..When::default() }, fault: hang, times: Some(1) };
        let world = World::with_script(Script::default().with_fault(rule));
        let keys = "writes = [\"parts/one.txt\"]\nretries = 0";
        world.plan(&Plan::new("land = \"auto\"").task("one", "write parts/one.txt \"part one\\n\"", keys));
        let run = world.start(&["run", "--yes"]);
        world.provider_saw("a request", |log| !log.is_empty());
        until_spooled(&world, b"content_block_start");
        assert!(run.kill_9().was_killed());
        world.run(&["resume"]).ends(0);
        world.all_are("landed");
        let log = world.run(&["log", "one"]).ends(0).stdout;
        assert!(!log.contains("crash"), "{log}");
        world.nothing_is_left();
        log.contains("network: an answer to it broke in the middle")
    };
    assert!((0..5).any(|_| dies_of_it()), "no agent died of it");
}
