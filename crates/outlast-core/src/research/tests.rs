//! Bounds, putting together, and the forms of progress.

use proptest::prelude::*;

use super::state::*;
use super::*;
use crate::ids::{Oid, RunId, TaskId};
use crate::plan::Step;

fn read(path: &str, text: &str) -> FileRead {
    FileRead { path: path.into(), hash: Some("ab".into()), text: Some(text.into()), ..FileRead::default() }
}

fn ran(id: &str, command: &str, exit: Option<i32>) -> CommandRun {
    let ended = match exit {
        Some(0) => Ended::Ok,
        Some(_) => Ended::Failed,
        None => Ended::Unknown,
    };
    CommandRun { id: id.into(), command: command.into(), exit, ended, tail: "out\n".into(), by: None }
}

fn edit(path: &str) -> EditMade {
    EditMade { path: path.into(), kind: EditKind::Changed, times: 1, hash: None, text: None, cut: false, by: None }
}

fn full() -> ResearchState {
    ResearchState {
        read: vec![read("src/pay.py", "import requests\n"), read("docs/http.md", "# HTTP\n")],
        commands: vec![ran("c1", "pytest -q", Some(1)), ran("c2", "echo `date`", Some(0))],
        edits: vec![edit("src/pay.py")],
        lookups: vec![Lookup { what: "Grep requests".into(), found: "src/pay.py:1".into(), by: None }],
        decisions: vec!["I keep the old name.\nFor callers.".into()],
        todo: vec![
            TodoItem { text: "move imports".into(), state: TodoState::Done },
            TodoItem { text: "fix tests".into(), state: TodoState::Begun },
        ],
        unanswered: vec![Unanswered {
            id: "c3".into(),
            tool: "Bash".into(),
            about: "echo x >> counter".into(),
            is_command: true,
        }],
        sub_agents: vec![SubAgent {
            id: "a1".into(),
            about: "Find callers".into(),
            ended: Ended::Ok,
            report: "None.".into(),
        }],
        left_out: LeftOut::default(),
    }
}

fn progress() -> Progress {
    let steps = ["imports", "tests", "docs"].map(|name| Step { name: name.into(), command: None });
    let changed = vec!["tests/pay.py".into(), "src/pay.py".into(), "src/pay.py".into()];
    let done = ["tests".into(), "imports".into()];
    let mut progress =
        Progress::new(RunId::from("migrate-7f3a"), TaskId::from("pay"), "running", &steps, &done, changed, full());
    progress.agent = Some("claude".into());
    progress.attempt = Some(2);
    progress.turns = Some(9);
    progress.checkpoint = Some(Oid::from("0123456789abcdef0123456789abcdef01234567"));
    progress.notes = vec!["The retry is in the caller.".into()];
    progress
}

#[test]
fn progress_json_has_the_common_fields_and_ours_and_is_read_again() {
    let text = progress().to_json();
    insta::assert_snapshot!(text);
    assert_eq!(Progress::from_json(&text), Some(progress()));
    assert_eq!(Progress::from_json(&text.replace("/v1", "/v2")), None);
    assert_eq!(Progress::from_json(&text[..text.len() / 2]), None);
}

#[test]
fn a_progress_of_later_days_with_more_fields_is_read_still() {
    let text =
        progress().to_json().replacen('{', "{\"new\": [1],", 1).replace("\"read\": [", "\"newer\": {}, \"read\": [");
    assert_eq!(Progress::from_json(&text), Some(progress()));
}

#[test]
fn progress_md_is_a_page_for_people() {
    insta::assert_snapshot!(progress().to_markdown());
    let bare = Progress::new("r".into(), "t".into(), "ready", &[], &[], Vec::new(), ResearchState::default());
    assert_eq!(bare.to_markdown(), "# t: ready\n\nrun r\n");
}

#[test]
fn files_are_named_from_the_workspace() {
    let mut state = ResearchState {
        read: vec![read("/w/t/src/a", ""), read("/w/tt/b", ""), read("./c", ""), read("/w/t", "")],
        edits: vec![edit("/w/t/d e")],
        ..ResearchState::default()
    };
    state.relative_to("/w/t/");
    let paths: Vec<&str> = state.read.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["src/a", "/w/tt/b", "c", "/w/t"]);
    assert_eq!(state.edits[0].path, "d e");
}

#[test]
fn what_was_known_before_a_conversation_began_anew_stays_known() {
    let later = ResearchState {
        read: vec![read("docs/http.md", "newer")],
        commands: vec![ran("c2", "echo `date`", Some(0)), ran("c9", "ls", Some(0))],
        edits: vec![edit("docs/http.md")],
        ..ResearchState::default()
    };
    let both = later.after(&full());
    let paths: Vec<&str> = both.read.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["src/pay.py", "docs/http.md"]);
    assert_eq!(both.read[1].text.as_deref(), Some("newer"));
    let commands: Vec<(&str, Ended)> = both.commands.iter().map(|run| (&*run.command, run.ended)).collect();
    assert_eq!(
        commands,
        [
            ("pytest -q", Ended::Failed),
            ("echo `date`", Ended::Ok),
            ("echo x >> counter", Ended::Interrupted),
            ("ls", Ended::Ok)
        ],
        "a command that nobody saw end was cut off"
    );
    assert_eq!(both.edits.len(), 2);
    assert_eq!(both.decisions, full().decisions);
    assert_eq!(both.todo, full().todo);
    assert!(both.unanswered.is_empty());
    assert_eq!(both.clone().after(&full()), both, "once is enough");
}

#[test]
fn turn_after_turn_the_first_words_stay_the_first_and_nothing_is_counted_twice() {
    let turn = |count: usize| {
        let mut state = ResearchState {
            decisions: (0..count).map(|n| format!("text {n}")).collect(),
            commands: (0..2 * count).map(|n| ran(&n.to_string(), "ls", Some(0))).collect(),
            ..ResearchState::default()
        };
        state.bound();
        state
    };
    let mut kept = ResearchState::default();
    for count in 1..100 {
        kept = turn(count).after(&kept);
        assert_eq!(kept, turn(count), "{count} texts");
    }
    let anew = ResearchState { decisions: vec!["a fresh start".into()], ..ResearchState::default() };
    let both = anew.after(&kept);
    assert_eq!(both.decisions.first().map(String::as_str), Some("text 0"));
    assert_eq!(both.decisions.last().map(String::as_str), Some("a fresh start"));
    assert_eq!(both.left_out.decisions, kept.left_out.decisions + 1);
}

#[test]
fn what_a_cli_clears_from_its_conversation_stays_known() {
    let cleared = |times: u32| ResearchState {
        read: vec![
            FileRead { text: None, hash: None, outdated: true, ..read("src/pay.py", "") },
            FileRead { text: None, hash: None, ..read("docs/http.md", "") },
        ],
        commands: vec![CommandRun { tail: String::new(), ..ran("c1", "pytest -q", None) }],
        edits: vec![EditMade { times, ..edit("src/pay.py") }],
        ..ResearchState::default()
    };
    let both = cleared(1).after(&full());
    assert_eq!(both.read, full().read);
    assert_eq!(both.commands[0], full().commands[1], "which the conversation does not hold at all");
    assert_eq!(both.commands[1], full().commands[0]);
    let edited_again = cleared(2).after(&full());
    assert!(edited_again.read[0].outdated && edited_again.read[0].text.is_none());
    assert_eq!(edited_again.read[1], full().read[1]);
    let mut elsewhere = cleared(1);
    elsewhere.commands[0].id = "another conversation's".into();
    assert!(elsewhere.after(&full()).read[0].outdated, "an edit that the earlier state did not see");
}

#[test]
fn a_file_changed_since_it_was_read_is_said_to_be() {
    let later = ResearchState { edits: vec![edit("docs/http.md")], ..ResearchState::default() };
    let both = later.after(&full());
    assert!(both.read[1].outdated && both.read[1].hash.is_none());
    assert!(!both.read[0].outdated, "its text shows the edit that was made then");
}

#[test]
fn a_sub_agents_part_stands_under_its_name_once() {
    let mut state = full();
    let part = ResearchState {
        read: vec![read("lib/x", "x"), read("docs/http.md", "stale")],
        commands: vec![ran("s1", "make", Some(2))],
        edits: vec![edit("src/pay.py")],
        ..ResearchState::default()
    };
    state.absorb("agent-7", &part);
    let once = state.clone();
    state.absorb("agent-7", &part);
    assert_eq!(state.read.len(), 3);
    assert_eq!(state.read[0].by.as_deref(), Some("agent-7"));
    assert_eq!(state.commands[0].by.as_deref(), Some("agent-7"));
    assert_eq!(state.read, once.read);
    assert_eq!(state.commands, once.commands);
    assert!(state.read.iter().any(|file| file.path == "src/pay.py" && file.outdated), "it was edited behind its back");
}

#[test]
fn the_first_words_and_the_last_are_kept() {
    let mut state = ResearchState { decisions: (0..100).map(|n| n.to_string()).collect(), ..ResearchState::default() };
    state.bound();
    assert_eq!(state.decisions.len(), DECISIONS_MAX);
    assert_eq!((state.decisions[0].as_str(), state.decisions[39].as_str()), ("0", "99"));
    assert_eq!(state.left_out.decisions, 60);
}

/// All text in a state, in bytes.
fn text_len(state: &ResearchState) -> usize {
    let opt = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let read = state.read.iter().map(|f| f.path.len() + opt(&f.hash) + opt(&f.text) + opt(&f.by));
    let edits = state.edits.iter().map(|e| e.path.len() + opt(&e.hash) + opt(&e.text) + opt(&e.by));
    let commands = state.commands.iter().map(|c| c.id.len() + c.command.len() + c.tail.len() + opt(&c.by));
    let lookups = state.lookups.iter().map(|l| l.what.len() + l.found.len() + opt(&l.by));
    let unanswered = state.unanswered.iter().map(|u| u.id.len() + u.tool.len() + u.about.len());
    let agents = state.sub_agents.iter().map(|a| a.id.len() + a.about.len() + a.report.len());
    read.chain(edits).chain(commands).chain(lookups).chain(unanswered).chain(agents).sum::<usize>()
        + state.decisions.iter().map(String::len).sum::<usize>()
        + state.todo.iter().map(|item| item.text.len()).sum::<usize>()
}

proptest! {
    // Each case is many megabytes of text.
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_state_is_bounded_whatever_is_put_in(count in 0usize..400, len in 0usize..20_000, long in 0usize..3) {
        let text = "é".repeat(len / 2 + 1);
        let path = |n: usize| format!("{n}{}", "p".repeat(if n % 3 == long { len % 700 } else { 9 }));
        let by = Some(text.clone());
        let mut state = ResearchState {
            read: (0..count).map(|n| FileRead { path: path(n), hash: by.clone(), text: by.clone(), by: by.clone(), ..FileRead::default() }).collect(),
            commands: (0..count.min(90)).map(|_| CommandRun { id: text.clone(), command: text.clone(), tail: text.clone(), by: by.clone(), ..CommandRun::default() }).collect(),
            edits: (0..count).map(|n| EditMade { hash: by.clone(), text: by.clone(), by: by.clone(), ..edit(&path(n)) }).collect(),
            lookups: (0..count.min(90)).map(|_| Lookup { what: text.clone(), found: text.clone(), by: by.clone() }).collect(),
            decisions: vec![text.clone(); count.min(90)],
            todo: vec![TodoItem { text: text.clone(), state: TodoState::Open }; count.min(90)],
            unanswered: vec![Unanswered { id: text.clone(), tool: text.clone(), about: text.clone(), is_command: true }; count.min(90)],
            sub_agents: (0..count.min(90)).map(|_| SubAgent { id: text.clone(), about: text.clone(), ended: Ended::Ok, report: text.clone() }).collect(),
            left_out: LeftOut::default(),
        };
        state.bound();
        prop_assert!(text_len(&state) <= STATE_LEN_MAX, "{}", text_len(&state));
        prop_assert!(state.read.iter().all(|file| file.path.len() <= PATH_LEN_MAX));
        let once = state.clone();
        state.bound();
        prop_assert_eq!(&state, &once, "bounding twice is bounding once");
        prop_assert_eq!(serde_json::from_str::<ResearchState>(&serde_json::to_string(&once).unwrap()).unwrap(), once);
    }
}
