//! Tests of the step language.

use super::{Action, LocalStep, Scenario, Step, inline_script, parse_steps};
use crate::Error;
use crate::provider::{Fault, InlineFault, RefusalKind};

#[test]
fn every_step_is_read_with_its_arguments() {
    let script = r#"
        # a comment
        write "a b.txt" "one\n"
        append a.txt "two"
        edit a.txt "x\"y" "z"
        read a.txt
        run cargo test -q -- "two words"
        run "exit 3"
        die 9
        fail-first 2 touch x
        usage in=1000 out=50 cache_read=7
        fault 2 {"kind": "refuse", "reason": "overload"}
    "#;
    let text = |text: &str| text.to_owned();
    let steps = parse_steps(script).unwrap();
    assert_eq!(steps[0], Step::Act(Action::Write { path: text("a b.txt"), text: text("one\n") }));
    assert_eq!(steps[2], Step::Act(Action::Edit { path: text("a.txt"), old: text("x\"y"), new: text("z") }));
    assert_eq!(steps[4], Step::Act(Action::Run { command: text("cargo test -q -- \"two words\"") }));
    assert_eq!(steps[5], Step::Act(Action::Run { command: text("exit 3") }));
    assert_eq!(steps[6], Step::Act(Action::Local(LocalStep::Die(9))));
    assert_eq!(steps[7], Step::Act(Action::Local(LocalStep::FailFirst { attempts: 2, command: text("touch x") })));
    let Step::Usage(usage) = steps[8] else { panic!("{:?}", steps[8]) };
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.cache_write), (Some(1000), Some(50), Some(7), None));
    let refused = Fault::Refuse { reason: RefusalKind::Overload, seconds: None };
    assert_eq!(steps[9], Step::Fault(InlineFault { times: 2, fault: refused }));
}

#[test]
fn a_block_keeps_every_character_and_needs_its_end() {
    let steps = parse_steps("write x <<END\n  a ``` \"b\"\n\nEND\nread x").unwrap();
    let text = "  a ``` \"b\"\n\n".to_owned();
    assert_eq!(steps[0], Step::Act(Action::Write { path: "x".to_owned(), text }));
    assert_eq!(steps.len(), 2);
    assert!(matches!(parse_steps("write x <<END\na"), Err(Error::Script { line: 1, .. })));
}

#[test]
fn what_is_no_step_is_refused_with_its_line() {
    for (script, line) in
        [("read a\nfly", 2), ("write a", 1), ("read a b", 1), ("die x", 1), ("sleep -1", 1), ("usage in=x", 1)]
    {
        let Err(Error::Script { line: at, .. }) = parse_steps(script) else { panic!("{script} was read") };
        assert_eq!(at, line, "{script}");
    }
}

#[test]
fn local_steps_survive_the_way_through_a_tool_call() {
    let script = "die 3\nfork-detached \"sleep 5 & echo \\\"x\\\"\"\nsleep 0.5\nfail-first 1 \"a b\"\nfrom-attempt 2 touch y\nlinger";
    for step in parse_steps(script).unwrap() {
        let Step::Act(Action::Local(local)) = &step else { panic!("{step:?}") };
        assert_eq!(parse_steps(&local.to_string()).unwrap(), vec![step]);
    }
}

#[test]
fn talk_joins_the_next_turn_and_the_last_turn_only_talks() {
    let scenario = Scenario::parse("x", "think a\nsay b\nread f\nsay c\nsay d").unwrap();
    assert_eq!(scenario.turns().len(), 2);
    let (first, closing) = (&scenario.turns()[0], &scenario.turns()[1]);
    assert_eq!((first.think.as_deref(), first.say.as_deref()), (Some("a"), Some("b")));
    assert_eq!((closing.say.as_deref(), &closing.action), (Some("c\nd"), &None));
    assert_eq!(scenario.turn(99).0, 1, "a script that is through keeps closing");
}

#[test]
fn a_script_is_found_in_a_prompt_whatever_stands_around_it() {
    let plain = "Do it.\n```outlast-script\nread a\n```\nThanks.";
    assert_eq!(inline_script(plain).as_deref(), Some("read a\n"));
    let indented = "- x\n  ````outlast-script\n  write a <<T\n  ```\n  T\n  ````\n";
    assert_eq!(inline_script(indented).as_deref(), Some("write a <<T\n```\nT\n"));
    assert_eq!(inline_script("\"```outlast-script\nread a\n```\n\"").as_deref(), Some("read a\n"));
    assert_eq!(inline_script("```sh\nread a\n```"), None);
    assert_eq!(inline_script("```outlast-script\nread a"), None, "a block that never closes is no script");
}
