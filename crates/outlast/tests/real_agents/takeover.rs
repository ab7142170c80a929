//! A task begun by one CLI is finished by another, of another provider, from the hand-over note alone.

use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::bench::{Bench, CLAUDE, CODEX, Cli};

/// What the first knows when it is stopped, its third turn under way: a file, and how the work is to go on.
const FIRST: &str = "read north.md\nsay \"Only the word for the sea changes. Go on by [[scenario:second]].\"\n\
                     write log.md \"north.md was read\\n\"\nsay \"Changed: log.md\"";
/// The second reads nothing: what it replaces, it knows from the note.
const SECOND: &str = "edit north.md \"calm sea\" \"high waves\"\nrun \"echo north.md was changed >> log.md\"\n\
                      say \"Changed: north.md, log.md\"";

fn is_finished_by(first: Cli, second: Cli) {
    let when = When { scenario: Some("first".to_owned()), step: Some(3), ..When::default() };
    let silence = Rule { when, fault: Fault::Hold { seconds: None }, times: None };
    let script = Script { fallback: Some("first".to_owned()), ..Script::default() };
    let script = script.with_scenario("first", FIRST).with_scenario("second", SECOND).with_fault(silence);
    let clis = [first, second];
    let Some(bench) = Bench::new(&clis, script) else { return };
    bench.repo.commit_file("north.md", "The north: calm sea.\n", "First").unwrap();
    let task = format!(
        "[[task]]\nid = \"north\"\nagent = \"{}\"\ngoal = \"Say that the sea is high.\"\n\
         writes = [\"north.md\", \"log.md\"]\nverify = [\"grep -q 'high waves' north.md\"]\n",
        first.program
    );
    bench.plan(&clis, &task);
    let run = bench.start(&["run", "--yes"]);
    bench.provider.wait_until(|log| log.iter().any(|entry| entry.step == Some(3)));
    bench.start(&["stop"]).ends(0);
    run.ends(0);
    let asked_before = bench.provider.model_requests().len();
    bench.start(&["retry", "north", "--agent", second.program]).ends(0);

    let status = bench.status();
    let task = &status["tasks"][0];
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"hand_over".into()), "{task:#}");
    assert_eq!(bench.landed(&status), ["north"]);
    assert_eq!(bench.on_target(&status, "north.md"), "The north: high waves.");
    assert_eq!(bench.on_target(&status, "log.md"), "north.md was read\nnorth.md was changed");

    let requests = bench.provider.model_requests();
    assert_ne!(requests[0].dialect, requests[asked_before].dialect, "another provider");
    assert!(requests[asked_before..].iter().all(|entry| entry.scenario.as_deref() == Some("second")), "{requests:#?}");
    let note = bench.bodies(&requests[asked_before..]).remove(0);
    for fact in ["The north: calm sea.", "log.md (added)", "Only the word for the sea changes."] {
        assert!(note.contains(fact), "{fact} is not in {note}");
    }
}

/// Its conversation is almost full after the seventh turn: a fresh session goes on in the same workspace, from a note.
#[test]
fn near_the_models_window_claude_goes_on_in_a_fresh_session() {
    let parts: String = (1..=6).map(|n| format!("write part-{n}.md \"part {n}\\n\"\n")).collect();
    let script = Script { fallback: Some("long".to_owned()), ..Script::default() }
        .with_scenario("long", &format!("{parts}say \"Six of seven. [[scenario:rest]]\"\nusage in=800000 out=100\nrun \"wc -l part-6.md\"\nwrite never.md \"-\"\nsay \"-\""))
        .with_scenario("rest", "write part-7.md \"part 7\\n\"\nsay \"Changed: part-7.md\"");
    let Some(bench) = Bench::new(&[CLAUDE], script) else { return };
    bench.repo.commit_file("README.md", "Parts.\n", "First").unwrap();
    let task = "[[task]]\nid = \"parts\"\nagent = \"claude\"\ngoal = \"Write seven parts.\"\n\
                writes = [\"*.md\"]\nverify = [\"cat part-1.md part-6.md part-7.md\"]\n";
    bench.plan(&[CLAUDE], task);
    bench.start(&["run", "--yes"]).ends(0);

    let status = bench.status();
    let task = &status["tasks"][0];
    // The plan allows no second try, so none was used.
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"hand_over".into()), "{task:#}");
    assert_eq!(bench.landed(&status), ["parts"]);
    let ended = bench.last_event("parts", "attempt_exited");
    assert_eq!(ended["number"], 2);
    let requests = bench.provider.model_requests();
    let asked: Vec<_> =
        requests.iter().map(|entry| (entry.scenario.as_deref().unwrap(), entry.step.unwrap())).collect();
    let long = (1..=7).map(|step| ("long", step));
    assert_eq!(asked, long.chain([("rest", 1), ("rest", 2)]).collect::<Vec<_>>(), "what is full is not asked again");
    let note = bench.bodies(&requests[7..]).remove(0);
    for fact in ["part-6.md (added)", "wc -l part-6.md", "Six of seven.", "context_near_full"] {
        assert!(note.contains(fact), "{fact} is not in {note}");
    }
}

#[test]
fn what_claude_has_begun_codex_finishes() {
    is_finished_by(CLAUDE, CODEX);
}

#[test]
fn what_codex_has_begun_claude_finishes() {
    is_finished_by(CODEX, CLAUDE);
}
