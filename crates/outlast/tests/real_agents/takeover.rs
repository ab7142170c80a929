//! A task begun by one CLI is finished by another, of another provider, from the hand-over note alone.

use outlast_testkit::provider::{Fault, Rule, Script, When};
use outlast_testkit::wire::Item;

use crate::bench::{Bench, CLAUDE, CODEX, Cli, Said};

/// The file that both change, and what it holds at first, in lines.
const PATH: &str = "north.md";
const OLD: [&str; 3] = ["The north.", "It has a calm sea.", "Depth unknown."];
/// What measures the depth, and what it prints: the second task's file must hold it, and no file does.
const MEASURE: &str = "expr 4600000 + 110547";
const MEASURED: &str = "4710547";
/// How the work is to go on: said by the first, and known from nowhere else.
const DECIDED: &str = "Only the word for the sea changes, to high waves.";
const WORD: &str = "high waves";

/// What the first has done and knows when it is stopped, its fourth turn under way. The marker, too, is in what it said: a
/// second that was not told of it would play the first one's script again.
fn first() -> String {
    format!(
        "read {PATH}\nrun {MEASURE}\nsay \"{DECIDED} Go on by [[scenario:second]].\"\n\
         write log.md \"{PATH} was read\\n\"\nsay \"Changed: log.md\""
    )
}

/// How the second changes the file. Both fail where the file does not hold, to the letter, what the note says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With a command that prints nothing: it compares the whole file with what was known, and writes it anew.
    Command,
    /// With the CLI's own tool.
    Tool,
}

/// What the second makes of the file, in lines.
fn new() -> [String; 3] {
    [OLD[0].to_owned(), OLD[1].replace("calm sea", WORD), format!("Depth {MEASURED}.")]
}

/// The second's script: its turns, but for the last one.
fn second(way: Way) -> [String; 2] {
    let lines = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let new = new();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let change = match way {
        Way::Tool => format!("edit {PATH} {:?} {:?}", lines(&OLD[1..]), lines(&new[1..])),
        Way::Command => {
            let quoted = |lines: &[&str]| lines.iter().map(|line| format!(" '{line}'")).collect::<String>();
            format!("run printf '%s\\n'{} | cmp -s - {PATH} && printf '%s\\n'{} > {PATH}", quoted(&OLD), quoted(&new))
        }
    };
    [change, "run grep -q . log.md && echo changed >> log.md".to_owned()]
}

fn is_finished_by(first_cli: Cli, second_cli: Cli, way: Way) {
    let when = When { scenario: Some("first".to_owned()), step: Some(4), ..When::default() };
    let silence = Rule { when, fault: Fault::Hold { seconds: None }, times: None };
    let script = Script { fallback: Some("first".to_owned()), ..Script::default() };
    let steps = format!("{}\nsay \"Changed: {PATH}, log.md\"", second(way).join("\n"));
    let script = script.with_scenario("first", &first()).with_scenario("second", &steps).with_fault(silence);
    let clis = [first_cli, second_cli];
    let Some(bench) = Bench::new(&clis, script) else { return };
    bench.repo.commit_file(PATH, OLD.map(|line| format!("{line}\n")).concat(), "First").unwrap();
    let task = format!(
        "[[task]]\nid = \"north\"\nagent = \"{}\"\ngoal = \"Bring the file up to date.\"\n\
         writes = [\"{PATH}\", \"log.md\"]\nverify = [\"test -s log.md\"]\n",
        first_cli.program
    );
    bench.plan(&clis, &task);
    let run = bench.start(&["run", "--yes"]);
    bench.provider.wait_until(|log| log.iter().any(|entry| entry.step == Some(4)));
    bench.start(&["stop"]).ends(0);
    run.ends(0);
    let asked_before = bench.provider.model_requests().len();
    bench.start(&["retry", "north", "--agent", second_cli.program]).ends(0);

    let status = bench.status();
    let task = &status["tasks"][0];
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"hand_over".into()), "{task:#}");
    assert_eq!(bench.landed(&status), ["north"]);
    assert_eq!(bench.on_target(&status, PATH), new().join("\n"));
    assert_eq!(bench.on_target(&status, "log.md"), format!("{PATH} was read\nchanged"));

    let requests = bench.provider.model_requests();
    assert_ne!(requests[0].dialect, requests[asked_before].dialect, "another provider");
    assert!(requests[asked_before..].iter().all(|entry| entry.scenario.as_deref() == Some("second")), "{requests:#?}");

    // Every fact that the second script is made of stands in the note, and in nothing that the first was told.
    let (told_first, note) = (bench.said(&requests[0]), bench.said(&requests[asked_before]).by_people());
    let facts = OLD.iter().chain([&MEASURED, &DECIDED, &WORD, &PATH]);
    for fact in facts.chain([&"log.md (added)"]) {
        assert!(note.contains(fact), "{fact} is not in {note}");
        let is_goals = *fact == PATH;
        assert!(is_goals || !told_first.by_people().contains(fact), "{fact} was known from the start");
    }
    knows_all_from_the_note(&bench.said(requests.last().unwrap()), second_cli, way);
}

/// The second's whole conversation holds the calls of its script, no reading, and the file's text in none of their results.
fn knows_all_from_the_note(said: &Said, cli: Cli, way: Way) {
    let mut calls = said.calls();
    if (cli.program, way) == (CLAUDE.program, Way::Tool) {
        // This one's tool takes no edit of a file that its session has not read: it asks for just that, and gets it.
        let (refused, why) = calls.remove(0);
        assert_eq!(refused.name, cli.edit_tool);
        assert!(why.unwrap().contains("has not been read"), "{why:?}");
        let (demanded, _) = calls.remove(0);
        assert_eq!(demanded.name, "Read");
        assert!(demanded.arguments["file_path"].as_str().unwrap().ends_with(PATH), "{demanded:?}");
    } else {
        let results = said.0.iter().filter(|item| matches!(item, Item::Result { .. }));
        let shown: Vec<_> = results.filter(|item| OLD.iter().any(|line| format!("{item:?}").contains(line))).collect();
        assert!(shown.is_empty(), "the file was shown: {shown:#?}");
    }
    let [change, append] = second(way);
    assert_eq!(calls.len(), 2, "{calls:#?}");
    let arguments: Vec<String> = calls.iter().map(|(call, _)| call.argument_texts()).collect();
    match way {
        Way::Command => assert!(arguments[0].contains(change.strip_prefix("run ").unwrap()), "{arguments:#?}"),
        Way::Tool => assert_eq!(calls[0].0.name, cli.edit_tool, "{calls:#?}"),
    }
    assert!(arguments[1].contains(append.strip_prefix("run ").unwrap()), "{arguments:#?}");
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
fn what_claude_has_begun_codex_finishes_without_a_look_at_the_file() {
    is_finished_by(CLAUDE, CODEX, Way::Command);
}

#[test]
fn what_claude_has_begun_codex_finishes_with_its_own_tool() {
    is_finished_by(CLAUDE, CODEX, Way::Tool);
}

#[test]
fn what_codex_has_begun_claude_finishes_without_a_look_at_the_file() {
    is_finished_by(CODEX, CLAUDE, Way::Command);
}

#[test]
fn what_codex_has_begun_claude_finishes_with_its_own_tool() {
    is_finished_by(CODEX, CLAUDE, Way::Tool);
}
