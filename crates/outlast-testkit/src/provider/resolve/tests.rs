//! Tests of finding the place in a scenario from the conversation alone.

use std::collections::BTreeMap;

use serde_json::json;

use super::position;
use crate::script::Scenario;
use crate::wire::{Call, Conversation, Item};

const GOAL: &str = "Do it.\n```outlast-script\nread a\nrun b\n```";

fn user(text: &str) -> Item {
    Item::User { text: text.to_owned() }
}

fn call(id: &str, name: &str) -> Item {
    Item::Call(Call { id: id.to_owned(), name: name.to_owned(), arguments: json!({}) })
}

fn result(id: &str, text: &str) -> Item {
    Item::Result { id: id.to_owned(), name: String::new(), text: text.to_owned() }
}

/// How many calls are answered, and the session of a command that still runs.
fn place(items: &[Item]) -> (usize, Option<u64>) {
    let conversation = Conversation {
        model: String::new(),
        stream: true,
        system: String::new(),
        tools: Vec::new(),
        items: items.to_vec(),
        schema: None,
    };
    let scenarios = BTreeMap::from([("named".to_owned(), Scenario::parse("named", "read x").unwrap())]);
    let position = position(&conversation, &scenarios, None).unwrap().unwrap();
    (position.answered, position.running)
}

#[test]
fn results_since_the_goal_are_counted() {
    let before = [user("hello"), call("0", "Read"), result("0", "x")];
    let after = [user(GOAL), call("1", "Read"), result("1", "x"), call("2", "Bash")];
    assert_eq!(place(&[&before[..], &after].concat()).0, 1, "a call without a result is not done");
}

#[test]
fn a_goal_that_is_repeated_goes_on_and_a_new_one_begins() {
    let told_again = [user(GOAL), call("1", "Read"), result("1", "x"), user(&format!("Continue. {GOAL}"))];
    assert_eq!(place(&told_again).0, 1);
    let new = [user(GOAL), call("1", "Read"), result("1", "x"), user("[[scenario:named]] now")];
    assert_eq!(place(&new).0, 0);
}

#[test]
fn doubled_results_count_once_and_interrupted_calls_are_made_again() {
    let doubled = [user(GOAL), call("1", "Read"), result("1", "x"), result("1", "x")];
    assert_eq!(place(&doubled).0, 1);
    for mark in ["aborted", "[Tool execution was interrupted]"] {
        assert_eq!(place(&[user(GOAL), call("1", "Read"), result("1", mark)]).0, 0);
    }
}

#[test]
fn a_file_that_must_be_read_first_is_read_and_the_call_made_again() {
    let refused = [user(GOAL), call("1", "Edit"), result("1", "File x has not been read in this session.")];
    assert_eq!(place(&refused).0, 0);
    let read = [&refused[..], &[call("2", "Read"), result("2", "text")]].concat();
    assert_eq!(place(&read).0, 0, "the reading is no step of the script");
    let again = [&read[..], &[call("3", "Edit"), result("3", "done")]].concat();
    assert_eq!(place(&again).0, 1);
}

#[test]
fn a_command_that_still_runs_is_waited_for_and_counted_once() {
    let running = "Chunk ID: a\nProcess running with session ID 71\nOutput:";
    let items = [user(GOAL), call("1", "exec_command"), result("1", running)];
    assert_eq!(place(&items), (1, Some(71)));
    let polled = [&items[..], &[call("2", "write_stdin"), result("2", "Process exited with code 0")]].concat();
    assert_eq!(place(&polled), (1, None));
}

#[test]
fn a_call_that_was_cut_off_after_its_effect_is_not_made_again() {
    let goal = "Do it.\n```outlast-script\nedit a.md \"x\" \"xy\"\nread b\n```";
    let calls = "These calls had no result yet when the work stopped; look at the files:\n- Edit";
    let effect = "In the workspace these files have changed since they were asked for:\n- ";
    let answered = |told: &str| place(&[user(goal), user(told)]).0;
    assert_eq!(answered(&format!("{calls} a.md\n{effect}a.md (changed)\nGo on.")), 1);
    assert_eq!(answered(&format!("{calls} a.md\nGo on.")), 0, "nothing is told of its effect");
    assert_eq!(answered(&format!("{calls} a.md\n{effect}b.md (changed)\n")), 0, "another file has changed");
    assert_eq!(answered(&format!("{calls} b.md\n{effect}a.md (changed)\n")), 0, "another call was cut off");
    assert_eq!(
        answered(&format!("{calls} a.md\n{effect}b.md (added)\nDone:\n- a.md (changed)")),
        0,
        "it is told of before"
    );
}

#[test]
fn a_change_that_a_session_has_lost_is_not_made_again_where_its_prompt_tells_of_it() {
    let goal = "Do it.\n```outlast-script\nedit a.md \"x\" \"xy\"\nedit a.md \"y\" \"yz\"\nread b\n```";
    let told = "Done last before that, in case your memory of it is incomplete:\n- the file a.md was changed";
    assert_eq!(place(&[user(goal), user(told)]).0, 1);
    assert_eq!(place(&[user(goal), user(told), call("2", "Edit"), result("2", "x")]).0, 2, "it stays made");
    assert_eq!(place(&[user(goal), user(&told.replace("a.md", "b.md"))]).0, 0, "another file was changed");
    let known = [
        Item::Call(Call { id: "1".to_owned(), name: "Edit".to_owned(), arguments: json!({"new_string": "xy"}) }),
        result("1", "done"),
    ];
    assert_eq!(place(&[&[user(goal)], &known[..], &[user(told)]].concat()).0, 1, "it tells of the one that is known");
    let cut_off = [known[0].clone(), result("1", "aborted")];
    assert_eq!(place(&[&[user(goal)], &cut_off[..], &[user(told)]].concat()).0, 0, "nobody says that this one is made");
}

#[test]
fn a_prompt_that_opencode_has_quoted_is_read_as_it_was_written() {
    let prompt = "Go.\n```outlast-script\nwrite a \"x \\\"y\\\"\"\n```";
    let quoted = format!("\"{}\"", prompt.replace('"', "\\\""));
    assert_eq!(place(&[user(&quoted)]).0, 0);
}

#[test]
fn an_unknown_scenario_is_an_error_and_none_is_none() {
    let conversation = |text: &str| Conversation {
        model: String::new(),
        stream: true,
        system: String::new(),
        tools: Vec::new(),
        items: vec![user(text)],
        schema: None,
    };
    let none = BTreeMap::new();
    assert!(position(&conversation("[[scenario:x]]"), &none, None).is_err());
    assert!(position(&conversation("```outlast-script\nfly\n```"), &none, None).is_err());
    assert!(position(&conversation("hello"), &none, None).unwrap().is_none());
}
