//! What an agent is told, as people would read it.

use outlast_core::plan::{Output, Step};

use super::*;

fn full() -> Task {
    let mut task =
        Task::new("payment-client", "Move src/pay.py to the new client.\n\nKeep `{scope}` as it is.", "claude");
    task.writes = vec!["src/pay.py".into(), "tests/pay/**".into()];
    task.reads = vec!["docs/http.md".into()];
    task.example = Some("docs/example.md".into());
    task.output = Some(Output { path: Some("report.md".into()), max_words: Some(300) });
    task.verify = vec!["pytest -q tests/pay".into()];
    task.steps = vec![
        Step { name: "imports".into(), command: Some("! grep -q 'import requests' src/pay.py".into()) },
        Step { name: "tests".into(), command: None },
    ];
    task
}

#[test]
fn a_full_prompt_reads_well() {
    insta::assert_snapshot!(prompt(&full()));
}

#[test]
fn what_a_task_leaves_out_leaves_no_trace() {
    let text = prompt(&Task::new("t", "Do it.", "claude"));
    assert!(text.ends_with("The task (t)\nDo it.\n"), "{text}");
    for absent in ["{", "Steps", "patterns", "commands", "Write your result"] {
        assert!(!text.contains(absent), "{absent}");
    }
}

#[test]
fn a_goal_that_looks_like_the_template_is_left_alone() {
    assert!(prompt(&full()).contains("Keep `{scope}` as it is."));
}

#[test]
fn h03_a_handover_keeps_the_prompt_byte_for_byte_and_names_what_is_done() {
    let resumption = Resumption {
        reason: Some("The provider's window was used up.".into()),
        note: None,
        done: vec!["imports".into()],
    };
    let text = handover_prompt(&full(), &resumption);
    assert!(text.starts_with(&prompt(&full())));
    insta::assert_snapshot!(&text[prompt(&full()).len()..]);
}

#[test]
fn only_names_of_steps_count_as_progress() {
    let task = full();
    assert_eq!(finished_steps(&task, "tests\r\n'imports'\nother\nimport"), ["imports", "tests"]);
    assert!(finished_steps(&task, "").is_empty());
}
