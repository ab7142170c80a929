//! What an agent is told, as people would read it.

use outlast_core::plan::{Output, Step};
use outlast_core::research::{
    CommandRun, EditKind, EditMade, Ended, FileRead, LeftOut, Lookup, ResearchState, SubAgent, TodoItem, TodoState,
    Unanswered,
};
use proptest::prelude::*;

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
        interrupted: None,
        made: Vec::new(),
        note: None,
        done: vec!["imports".into()],
    };
    let text = handover_prompt(&full(), &resumption);
    assert!(text.starts_with(&prompt(&full())));
    insta::assert_snapshot!(&text[prompt(&full()).len()..]);
}

fn known() -> ResearchState {
    let read = |path: &str, text: &str| FileRead { path: path.into(), text: Some(text.into()), ..FileRead::default() };
    let ran = |command: &str, exit: i32, tail: &str| CommandRun {
        command: command.into(),
        exit: Some(exit),
        ended: if exit == 0 { Ended::Ok } else { Ended::Failed },
        tail: tail.into(),
        ..CommandRun::default()
    };
    ResearchState {
        read: vec![
            read("src/pay.py", "import httpx\n"),
            read("docs/http.md", "# HTTP\n```py\nclient()\n```\n"),
            FileRead { outdated: true, ..read("tests/pay/test_pay.py", "old") },
        ],
        commands: vec![
            ran("pytest -q tests/pay", 1, "1 failed\n"),
            ran("ruff check", 0, "ok\n"),
            ran("a", 0, ""),
            ran("b", 0, ""),
            ran("c", 0, ""),
        ],
        edits: vec![EditMade {
            path: "src/pay.py".into(),
            kind: EditKind::Changed,
            times: 1,
            hash: None,
            text: None,
            cut: false,
            by: None,
        }],
        lookups: vec![Lookup { what: "Grep requests".into(), found: "src/pay.py:1:import requests".into(), by: None }],
        decisions: vec!["I keep the old name,\nas callers use it.".into(), "Now the tests.".into()],
        todo: vec![
            TodoItem { text: "imports".into(), state: TodoState::Done },
            TodoItem { text: "tests".into(), state: TodoState::Begun },
        ],
        unanswered: vec![Unanswered {
            id: "c1".into(),
            tool: "Bash".into(),
            about: "echo x >> counter".into(),
            is_command: true,
        }],
        sub_agents: vec![SubAgent {
            id: "s".into(),
            about: "Find callers".into(),
            ended: Ended::Ok,
            report: "Two callers.".into(),
        }],
        left_out: LeftOut::default(),
    }
}

fn note(research: &ResearchState) -> String {
    let changed = [("src/pay.py", How::Changed), ("src/new.py", How::Added), ("src/old.py", How::Deleted)]
        .map(|(path, how)| Changed { path: path.into(), how });
    let notes = ["The retry is in the caller.".to_owned(), "httpx has\nno retry of its own.".to_owned()];
    let done = ["imports".to_owned()];
    handover_note(&HandOver { task: &full(), research, done: &done, notes: &notes, changed: &changed, since: None })
}

#[test]
fn h03_a06_a_hand_over_note_reads_well_with_the_most_important_first() {
    insta::assert_snapshot!(note(&known()));
    assert_eq!(note(&known()), note(&known()));
}

#[test]
fn h01_a_session_is_told_what_was_running_and_what_it_did_last() {
    let interrupted = last_acts(&known(), None);
    insta::assert_snapshot!(resume_prompt(&Resumption { interrupted, ..Resumption::default() }));
    assert_eq!(last_acts(&ResearchState::default(), None), None);
    let mut cut_off = ResearchState { commands: known().commands, ..ResearchState::default() };
    cut_off.commands.push(CommandRun {
        command: "make install".into(),
        ended: Ended::Interrupted,
        ..CommandRun::default()
    });
    assert!(last_acts(&cut_off, None).unwrap().contains("\nmake install\n"), "a call that its CLI marks as cut off");
    let written = Unanswered { tool: "Write".into(), about: "src/x.py".into(), ..Unanswered::default() };
    let told = last_acts(&ResearchState { unanswered: vec![written], ..ResearchState::default() }, None).unwrap();
    assert!(told.contains("- Write src/x.py"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_note_is_bounded_and_its_fences_hold(count in 0usize..300, len in 0usize..14_000, odd in "[`é\n ]{0,9}") {
        let text = format!("{odd}{}", "xé`\n".repeat(len / 5));
        let known = known();
        let mut state = ResearchState {
            read: (0..count).map(|n| FileRead { path: format!("f{n}"), text: Some(text.clone()), ..FileRead::default() }).collect(),
            edits: (0..count).map(|n| EditMade { path: format!("e{n}"), text: Some(text.clone()), ..known.edits[0].clone() }).collect(),
            commands: (0..count).map(|n| CommandRun { id: n.to_string(), command: text.clone(), tail: text.clone(), ..CommandRun::default() }).collect(),
            decisions: vec![text.clone(); count],
            unanswered: vec![Unanswered { about: text.clone(), ..known.unanswered[0].clone() }; count],
            lookups: (0..count).map(|_| Lookup { found: text.clone(), ..known.lookups[0].clone() }).collect(),
            ..known
        };
        state.bound();
        let note = note(&state);
        prop_assert!(note.len() <= NOTE_LEN_MAX, "{}", note.len());
        let mut open: Option<&str> = None;
        for line in note.lines().filter(|line| line.starts_with("```") && line.trim_start_matches('`').is_empty()) {
            match open {
                None => open = Some(line),
                Some(fence) if fence == line => open = None,
                Some(fence) => prop_assert!(line.len() < fence.len(), "a fence is closed by what it holds"),
            }
        }
        prop_assert!(open.is_none(), "a fence is left open");
    }
}

#[test]
fn what_a_command_that_was_cut_off_has_done_to_the_files_is_told() {
    let call =
        Unanswered { tool: "Bash".into(), about: "make install".into(), is_command: true, ..Unanswered::default() };
    let state = ResearchState { unanswered: vec![call], ..ResearchState::default() };
    let nothing = last_acts(&state, Some(&[])).unwrap();
    assert!(nothing.contains("\nmake install\n"), "{nothing}");
    assert!(nothing.contains("No file of the workspace has changed since it was asked for."), "{nothing}");
    let many: Vec<Changed> = (0..25).map(|n| Changed { path: format!("out/{n}\nx"), how: How::Added }).collect();
    let told = last_acts(&state, Some(&many)).unwrap();
    assert!(
        told.contains("these files have changed since it was asked for:\n- out/0 x (added)\n- out/1 x (added)"),
        "{told}"
    );
    assert!(told.contains("\n- and 5 more\nIt may have done all"), "{told}");
    assert!(!last_acts(&state, None).unwrap().contains("since it was asked for"), "what is not known is not said");
}

#[test]
fn what_an_edit_that_nobody_saw_the_end_of_has_done_to_the_files_is_told() {
    let call = |tool: &str, about: &str| Unanswered { tool: tool.into(), about: about.into(), ..Unanswered::default() };
    let mut state =
        ResearchState { unanswered: vec![call("Edit", "a.md"), call("Edit", "b.md")], ..Default::default() };
    let changed = [Changed { path: "a.md".into(), how: How::Changed }];
    let told = last_acts(&state, Some(&changed)).unwrap();
    assert!(
        told.ends_with("- Edit a.md\n- Edit b.md\nIn the workspace these files have changed since they were asked for:\n- a.md (changed)"),
        "{told}"
    );
    let told = last_acts(&state, Some(&[])).unwrap();
    assert!(told.ends_with("\nNo file of the workspace has changed since they were asked for."), "{told}");
    assert!(!last_acts(&state, None).unwrap().contains("asked for"), "what is not known is not said");
    // Beside a command it is said once.
    state.unanswered.push(Unanswered { is_command: true, ..call("Bash", "make") });
    let told = last_acts(&state, Some(&changed)).unwrap();
    assert_eq!(told.matches("these files have changed").count(), 1, "{told}");
}

#[test]
fn a06_a_session_is_told_what_is_made_within_a_bound() {
    let changed = |n: usize| {
        let one = |at| Changed { path: format!("artifacts/{at:06}.png"), how: How::Added };
        (0..n).map(one).collect::<Vec<_>>()
    };
    assert_eq!(made(&changed(1)), ["artifacts/000000.png (added)"]);
    let many = made(&changed(10_000));
    assert!(many.iter().map(String::len).sum::<usize>() < 8 * 1024, "{}", many.len());
    let told = many.len() - 1;
    assert_eq!(many[told], format!("and {} more", 10_000 - told));
    let text = resume_prompt(&Resumption { made: made(&changed(2)), ..Resumption::default() });
    assert!(text.contains("made again:\n- artifacts/000000.png (added)\n- artifacts/000001.png (added)\n"), "{text}");
}
