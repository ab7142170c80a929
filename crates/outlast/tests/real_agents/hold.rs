//! A refusal with a stated end, in the middle of the work: the agent waits at the gateway and never learns of it.

use outlast_core::RunId;
use outlast_journal::Selection;
use outlast_testkit::provider::{Fault, RefusalKind, Rule, Script, When};

use crate::bench::{Bench, CLAUDE, CODEX, Cli, GEMINI, KIMI, OPENCODE, QWEN, wait};

/// Which request is refused.
const REFUSED: u64 = 2;

/// What a CLI prints when it has met a failure, retried or not.
const SIGNS: [&str; 10] = [
    "api_retry",
    "Reconnecting",
    "retrying",
    "Retrying",
    "\"type\":\"error\"",
    "API Error",
    "API error",
    "rate limit",
    "status 429",
    "\"status\":429",
];

fn waits(cli: Cli) {
    let seconds = wait().as_secs();
    let fault = Fault::Refuse { reason: RefusalKind::MinuteLimit, seconds: Some(seconds) };
    let when = When { nth: Some(REFUSED), ..When::default() };
    let script = Script::default()
        .with_scenario(
            "wait",
            "write made.md \"made\\n\"\nrun \"cat made.md > seen.md\"\nsay \"Changed: made.md, seen.md\"",
        )
        .with_fault(Rule { when, fault, times: Some(1) });
    let Some(bench) = Bench::new(&[cli], script) else { return };
    bench.repo.commit_file("README.md", "Nothing yet.\n", "First").unwrap();
    let task = format!(
        "[[task]]\nid = \"wait\"\nagent = \"{}\"\ngoal = \"Write it down. [[scenario:wait]]\"\n\
         writes = [\"made.md\", \"seen.md\"]\nverify = [\"grep -q made seen.md\"]\n",
        cli.program
    );
    bench.plan(&[cli], &task);
    bench.start(&["run", "--yes"]).ends(0);

    let status = bench.status();
    assert_eq!(bench.landed(&status), ["wait"]);
    assert_eq!((&status["tasks"][0]["attempts"], &status["tasks"][0]["turns"]), (&1.into(), &3.into()), "{status:#}");
    let run = status["run"].as_str().unwrap();
    let printed = bench.printed(run, "wait.1");
    assert!(!printed.is_empty());
    for sign in SIGNS {
        assert!(!printed.contains(sign), "it noticed ({sign}): {printed}");
    }

    // The refused request was sent again by the gateway alone, and not before it was time.
    let requests = bench.provider.model_requests();
    let asked: Vec<_> = requests.iter().map(|entry| (entry.step, entry.status)).collect();
    assert_eq!(asked, [(Some(1), 200), (Some(2), 429), (Some(2), 200), (Some(3), 200)]);
    let waited = requests[2].arrived_at_ms - requests[1].arrived_at_ms;
    assert!(waited >= seconds * 1000, "asked again after {waited} ms");
    assert_eq!(bench.provider.bill().requests_into_closed_window, 0);

    // What the agent itself asked: one exchange per turn, each ended as it should, none broken off on its side.
    let mut rows = bench.journal().exchanges(&Selection::run(RunId::new(run))).unwrap();
    rows.sort_by_key(|row| row.started_at);
    let exchanges: Vec<_> = rows.iter().map(|row| (row.turn, row.outcome.as_str())).collect();
    assert_eq!(exchanges, [(1, "complete"), (2, "refused"), (2, "complete"), (3, "complete")]);
}

#[test]
fn claude_waits_through_a_refusal_and_does_not_notice() {
    waits(CLAUDE);
}

#[test]
fn codex_waits_through_a_refusal_and_does_not_notice() {
    waits(CODEX);
}

#[test]
fn opencode_waits_through_a_refusal_and_does_not_notice() {
    waits(OPENCODE);
}

#[test]
fn gemini_waits_through_a_refusal_and_does_not_notice() {
    waits(GEMINI);
}

#[test]
fn qwen_waits_through_a_refusal_and_does_not_notice() {
    waits(QWEN);
}

#[test]
fn kimi_waits_through_a_refusal_and_does_not_notice() {
    waits(KIMI);
}
