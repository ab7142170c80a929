//! Records, kept for ever: each line of a golden file is a record as that version wrote it, and reads as the same.
//!
//! A change that makes this test fail makes every journal in the world unreadable: give the new shape a new name or a
//! default instead.

use outlast_core::budget::{Allowed, Estimate, Lack, Reached};
use outlast_core::record::{
    Assigned, EndReason, LandingCause, Outcome, RunEnd, RunSpec, Rung, ShimRef, TaskSpec, Verdict,
};
use outlast_core::{AccountId, AgentName, Class, Epoch, ExchangeId, Fact, Oid, TaskId, Timestamp, Usage};

/// What version 1 wrote.
const V1: &str = include_str!("golden/facts-v1.jsonl");
/// What version 2 wrote and version 1 did not.
const V2: &str = include_str!("golden/facts-v2.jsonl");
/// What version 3 writes and version 2 did not.
const V3: &str = include_str!("golden/facts-v3.jsonl");

fn oid() -> Oid {
    Oid::new("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
}

const USAGE: Usage = Usage {
    input: 1200,
    cache_write: 30,
    cache_read: 4000,
    output: 77,
    usd_nanos: 12_345,
    unpriced: 0,
    unmetered: 0,
    exchanges: 1,
    cut: 0,
};

fn facts_of_v3() -> Vec<Fact> {
    let (class, until) = (Class::WindowQuota, Some(Timestamp::from_millis(1_796_000_000_000)));
    let why = || "resets 5pm (UTC)".to_owned();
    vec![
        Fact::RetryRequested,
        Fact::TriedNow,
        Fact::Assigned(Assigned {
            agent: AgentName::new("codex"),
            accounts: vec![AccountId::new("api")],
            needs_quota: true,
        }),
        Fact::AccountShut { class: Class::Billing },
        Fact::AttemptExited { number: 1, outcome: Outcome::Failed { class, why: why(), until } },
        Fact::AttemptEnding { number: 1, reason: EndReason::Failed { class, why: why(), until } },
        Fact::Landed { commit: oid(), was_there: true },
    ]
}

fn facts_of_v2() -> Vec<Fact> {
    let exchange = Some(ExchangeId::new("019a2b3c4d5-7"));
    vec![
        Fact::Exchanged {
            number: 1,
            account: AccountId::new("api"),
            main: true,
            usage: USAGE,
            reserved: None,
            exchange,
        },
        Fact::LedgerCounted { row: 4711 },
        Fact::RunStarted(RunSpec {
            plan: "9f".to_owned(),
            base: oid(),
            target: "outlast/x".to_owned(),
            concurrency: 5,
            auto_land: true,
            seed: 7,
            budget: Allowed { usd_nanos: Some(40_000_000_000), tokens: None },
            hold_max_ms: None,
        }),
        Fact::BudgetReached(Reached { lack: Lack::Price, wants: Estimate { usd_nanos: None, tokens: 9000 } }),
        Fact::BudgetChanged(Allowed { usd_nanos: Some(60_000_000_000), tokens: Some(20_000_000) }),
        Fact::Exchanged {
            number: 1,
            account: AccountId::new("api"),
            main: true,
            usage: Usage { unpriced: 1, ..USAGE },
            reserved: Some(Estimate { usd_nanos: Some(2_000_000), tokens: 9000 }),
            exchange: Some(ExchangeId::new("019a2b3c4d5-8")),
        },
        Fact::LandingRefused { cause: LandingCause::Filter, detail: "there".to_owned() },
        Fact::AccountClosed { class: Class::Overload, until: Timestamp::from_millis(1_796_000_000_000), guessed: true },
        Fact::AccountAnswered,
        Fact::Replayed { number: 2, exchange: ExchangeId::new("019a2b3c4d5-8") },
    ]
}

fn facts_of_v1() -> Vec<Fact> {
    let shim = ShimRef { pid: 4711, start_time: 99, boot_id: "0b1d".to_owned() };
    let task = TaskSpec {
        needs: vec![TaskId::new("models")],
        writes: vec!["src/**".to_owned()],
        agent: AgentName::new("claude"),
        accounts: vec![AccountId::new("api")],
        retries: 2,
        needs_quota: true,
        startup_retries: None,
        empty_retries: None,
    };
    let run = RunSpec {
        plan: "9f".to_owned(),
        base: oid(),
        target: "outlast/x".to_owned(),
        concurrency: 5,
        auto_land: true,
        seed: 7,
        budget: Allowed::default(),
        hold_max_ms: None,
    };
    vec![
        Fact::RunStarted(run),
        Fact::RunPaused,
        Fact::RunStopped,
        Fact::RunResumed,
        Fact::RunFinished { state: RunEnd::Degraded },
        Fact::TaskAdded(task),
        Fact::AttemptStarted { number: 1, epoch: Epoch(1), rung: Rung::Fresh },
        Fact::AttemptStarted { number: 2, epoch: Epoch(2), rung: Rung::Session("s-1".to_owned()) },
        Fact::AttemptStarted { number: 3, epoch: Epoch(3), rung: Rung::HandOver },
        Fact::WorkspaceReady { number: 1, base: oid() },
        Fact::Spawned { number: 1, shim },
        Fact::SessionSeen { number: 1, session: "s-1".to_owned() },
        Fact::Held { number: 1, class: Class::WindowQuota, until: Some(Timestamp::from_millis(1_796_000_000_000)) },
        Fact::Held { number: 1, class: Class::Overload, until: None },
        Fact::Released { number: 1 },
        Fact::Exchanged {
            number: 1,
            account: AccountId::new("api"),
            main: true,
            usage: USAGE,
            reserved: None,
            exchange: None,
        },
        Fact::Checkpointed { number: 1, commit: oid() },
        Fact::AttemptExited { number: 1, outcome: Outcome::Finished },
        Fact::AttemptExited {
            number: 1,
            outcome: Outcome::Failed { class: Class::Crash, why: "exit 1".to_owned(), until: None },
        },
        Fact::AttemptEnding { number: 1, reason: EndReason::Finished },
        Fact::AttemptEnding { number: 1, reason: EndReason::Parked },
        Fact::AttemptEnding { number: 1, reason: EndReason::Discarded },
        Fact::AttemptEnding {
            number: 1,
            reason: EndReason::Failed { class: Class::Timeout, why: "late".to_owned(), until: None },
        },
        Fact::AttemptEnded { number: 1 },
        Fact::Verified { number: 1, verdict: Verdict::Passed { result: oid() } },
        Fact::Verified { number: 1, verdict: Verdict::Failed { class: Class::Verify, why: "red".to_owned() } },
        Fact::LandRequested,
        Fact::LandingStarted { old: None, new: oid() },
        Fact::LandingStarted { old: Some(oid()), new: oid() },
        Fact::Landed { commit: oid(), was_there: false },
        Fact::LandingRefused { cause: LandingCause::TargetCheckedOut, detail: "there".to_owned() },
        Fact::DiscardRequested,
        Fact::Discarded,
        Fact::AccountClosed {
            class: Class::MinuteLimit,
            until: Timestamp::from_millis(1_796_000_000_000),
            guessed: false,
        },
        Fact::AccountOpened,
    ]
}

#[test]
fn every_fact_is_written_as_it_always_was_and_reads_as_the_same() {
    for (facts, golden) in [(facts_of_v1(), V1), (facts_of_v2(), V2), (facts_of_v3(), V3)] {
        let written: Vec<String> = facts.iter().map(|fact| serde_json::to_string(fact).unwrap()).collect();
        let golden: Vec<&str> = golden.lines().collect();
        assert_eq!(written, golden);
        let read: Vec<Fact> = golden.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, facts);
    }
}

#[test]
fn a_record_stays_small() {
    for fact in facts_of_v1().into_iter().chain(facts_of_v2()).chain(facts_of_v3()) {
        assert!(serde_json::to_string(&fact).unwrap().len() < 300, "{fact:?}");
    }
}
