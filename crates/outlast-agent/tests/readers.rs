//! What the CLIs really print, read into events and judged. The recordings are of real runs against a scripted provider,
//! cut down to the fields that carry meaning.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::fs;
use std::path::PathBuf;

use outlast_agent::{ClosingAccount, Event, Exit, ExitStatus, Kind, Source, Unbegun, Verdict, adapter};
use outlast_core::Class;
use proptest::prelude::*;
use reading::read;

mod reading;

fn recorded(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name).with_extension("jsonl"))
        .unwrap()
}

fn kind_of(name: &str) -> Kind {
    match name.split('-').next().unwrap() {
        "claude" => Kind::ClaudeCode,
        other => Kind::from_name(other).unwrap(),
    }
}

fn judge(name: &str, exit: Exit) -> Verdict {
    let kind = kind_of(name);
    let (_, summary) = read(kind, &recorded(name), b"");
    adapter(kind).judge(&exit, &summary)
}

const RECORDINGS: [&str; 24] = [
    "claude-success",
    "claude-401",
    "claude-429",
    "claude-529-killed",
    "claude-killed",
    "codex-success",
    "codex-401",
    "codex-429",
    "codex-529",
    "codex-cut",
    "codex-killed",
    "opencode-success",
    "opencode-401",
    "gemini-success",
    "gemini-401",
    "qwen-success",
    "qwen-401",
    "qwen-cut",
    "kimi-success",
    "kimi-401",
    "kimi-cut",
    "kimi-overload",
    "kimi-retired",
    "claude-sub-agent",
];

#[test]
fn every_recording_reads_as_it_should() {
    for name in RECORDINGS {
        let (events, _) = read(kind_of(name), &recorded(name), b"");
        insta::assert_debug_snapshot!(name, events);
    }
}

#[test]
fn a_verdict_is_never_drawn_from_the_exit_code_alone() {
    let table = [
        ("claude-success", Exit::code(0), None),
        ("codex-success", Exit::code(0), None),
        ("opencode-success", Exit::code(0), None),
        ("gemini-success", Exit::code(0), None),
        ("qwen-success", Exit::code(0), None),
        ("kimi-success", Exit::code(0), None),
        // A success that then ended badly is none: whoever ended it had a reason.
        ("claude-success", Exit::signal(15), Some(Class::Crash)),
        ("claude-success", Exit::code(1), Some(Class::Crash)),
        ("claude-401", Exit::code(1), Some(Class::Auth)),
        ("claude-429", Exit::code(1), Some(Class::MinuteLimit)),
        ("claude-529-killed", Exit::signal(9), Some(Class::Crash)),
        ("claude-killed", Exit::signal(9), Some(Class::Crash)),
        // Claude Code leaves with 0 and no result when it is interrupted.
        ("claude-killed", Exit::code(0), Some(Class::GaveUp)),
        ("codex-401", Exit::code(1), Some(Class::Auth)),
        ("codex-429", Exit::code(1), Some(Class::MinuteLimit)),
        ("codex-529", Exit::code(1), Some(Class::Overload)),
        ("codex-cut", Exit::code(1), Some(Class::Network)),
        ("codex-killed", Exit::code(1), Some(Class::Crash)),
        ("opencode-401", Exit::code(1), Some(Class::Auth)),
        ("gemini-401", Exit::code(145), Some(Class::Auth)),
        // Qwen Code leaves with 0 and a success for both.
        ("qwen-401", Exit::code(0), Some(Class::Auth)),
        ("qwen-cut", Exit::code(0), Some(Class::Network)),
        ("kimi-401", Exit::code(1), Some(Class::Auth)),
        ("kimi-cut", Exit::code(75), Some(Class::Network)),
        ("kimi-overload", Exit::code(1), Some(Class::Overload)),
        // Its last release ends every call with 0 and this one sentence.
        ("kimi-retired", Exit::code(0), Some(Class::Startup)),
    ];
    for (name, exit, wanted) in table {
        match (judge(name, exit), wanted) {
            (Verdict::Finished { .. }, None) => {}
            (Verdict::Failed { class, .. }, Some(wanted)) if class == wanted => {}
            (got, _) => panic!("{name} {exit:?}: {got:?}, not {wanted:?}"),
        }
    }
}

#[test]
fn d03_an_agent_that_lingers_after_its_last_word_has_finished() {
    let exit = Exit { status: ExitStatus::Signal(9), lingered: true };
    for name in
        ["claude-success", "codex-success", "opencode-success", "gemini-success", "qwen-success", "kimi-success"]
    {
        assert!(matches!(judge(name, exit), Verdict::Finished { .. }), "{name}");
    }
    // Having been ended for it makes nothing out of a failure.
    assert!(matches!(judge("claude-401", exit), Verdict::Failed { class: Class::Auth, .. }));
}

#[test]
fn d02_d05_an_agent_that_never_began_failed_at_the_start() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Command) {
        let (_, summary) = read(kind, b"", b"Reading additional input from stdin...\n");
        let Verdict::Failed { class, why, .. } = adapter(kind).judge(&Exit::code(1), &summary) else {
            panic!("{kind}")
        };
        assert_eq!(class, Class::Startup, "{kind}");
        assert!(why.contains("Reading additional input"), "{why}");
    }
}

#[test]
fn gemini_tells_of_retries_in_its_error_output_and_of_the_status_in_its_exit_code() {
    let stderr = b"Attempt 1 failed with status 429. Retrying with backoff... made up\n";
    let (events, _) = read(Kind::Gemini, b"", stderr);
    assert!(matches!(&events[..], [Event::Retry { status: Some(429), .. }]), "{events:?}");
    let result = br#"{"type":"result","status":"error","error":{"message":"no status here"}}"#;
    let (_, summary) = read(Kind::Gemini, result, b"");
    let verdict = adapter(Kind::Gemini).judge(&Exit::code(429 & 0xff), &summary);
    assert!(matches!(verdict, Verdict::Failed { class: Class::MinuteLimit, .. }), "{verdict:?}");
}

#[test]
fn an_ended_limit_of_turns_is_no_refusal() {
    let result = br#"{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":3}"#;
    let (_, summary) = read(Kind::ClaudeCode, result, b"");
    let verdict = adapter(Kind::ClaudeCode).judge(&Exit::code(1), &summary);
    assert!(matches!(verdict, Verdict::Failed { class: Class::GaveUp, .. }), "{verdict:?}");
}

#[test]
fn a_command_is_judged_by_its_exit_code_and_its_closing_words() {
    let judge = |stdout: &str, exit: Exit| {
        let (_, summary) = read(Kind::Command, stdout.as_bytes(), b"a last complaint\n");
        adapter(Kind::Command).judge(&exit, &summary)
    };
    let account = ClosingAccount { changed: vec!["a.txt".into()], ..ClosingAccount::default() };
    assert_eq!(judge("working\nChanged: a.txt\nBlocked: none\n", Exit::code(0)), Verdict::Finished { account });
    assert_eq!(judge("", Exit::code(0)), Verdict::Finished { account: ClosingAccount::default() });
    assert_eq!(judge("", Exit::code(75)), Verdict::TryLater);
    let question = judge("Blocked: question: which one?\n", Exit::code(0));
    assert_eq!(question, Verdict::Question { text: "which one?".into() });
    let limit = b"ERROR: You've hit your usage limit, try again at Apr 16th, 2026 12:04 AM.\nexit\n";
    let (_, summary) = read(Kind::Command, b"", limit);
    let verdict = adapter(Kind::Command).judge(&Exit::code(1), &summary);
    assert!(matches!(verdict, Verdict::Failed { class: Class::WindowQuota, .. }), "a11: {verdict:?}");
    for exit in [Exit::code(1), Exit::code(127), Exit::signal(11)] {
        let Verdict::Failed { class: Class::Crash, why, .. } = judge("Changed: a.txt\n", exit) else {
            panic!("{exit:?}")
        };
        assert!(why.ends_with("a last complaint"), "{why}");
    }
}

#[test]
fn d16_a_line_of_5_mb_is_read_and_one_without_end_does_not_hide_the_result() {
    let result = br#"{"type":"result","subtype":"success","is_error":false,"result":"All done."}"#;
    let large = format!(
        r#"{{"type":"user","session_id":"s","message":{{"content":[{{"type":"tool_result","content":"{}"}}]}}}}"#,
        "x".repeat(5 * 1024 * 1024)
    );
    for (first, wanted) in [(large.into_bytes(), Event::ToolEnded), (vec![b'{'; 9 * 1024 * 1024], Event::Skipped)] {
        let stdout = [&first[..], b"\n", result, b"\n"].concat();
        let (events, summary) = read(Kind::ClaudeCode, &stdout, b"");
        assert!(events.contains(&wanted), "{wanted:?}");
        assert_eq!(summary.result, Some((true, "All done.".to_owned())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_read_in_other_pieces_say_the_same(
        recording in 0..RECORDINGS.len(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let (kind, bytes) = (kind_of(RECORDINGS[recording]), recorded(RECORDINGS[recording]));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut reader = adapter(kind).reader();
        let mut events = Vec::new();
        for pair in cuts.windows(2) {
            events.extend(reader.feed(Source::Stdout, &bytes[pair[0]..pair[1]]));
        }
        events.extend(reader.finish());
        prop_assert_eq!(events, read(kind, &bytes, b"").0);
    }
}

#[test]
fn a20_the_last_word_of_one_that_says_it_is_done() {
    let last = |kind: Kind, stdout: &str, stderr: &str| {
        let (_, summary) = read(kind, stdout.as_bytes(), stderr.as_bytes());
        match adapter(kind).last_word(&summary) {
            Some(Verdict::Failed { class, .. }) => Some(class),
            None => None,
            Some(other) => panic!("{other:?}"),
        }
    };
    let throttled = "ThrottlingException: Too many tokens, please wait before trying again.";
    let retry = r#"{"type":"system","subtype":"api_retry","error_status":429,"error":"rate_limit"}"#;
    let turn = r#"{"type":"assistant","message":{"id":"m","model":"sonnet","content":[]}}"#;
    for (kind, stdout, stderr, class) in [
        (Kind::Command, format!("looking\n{throttled}\n"), "", Some(Class::MinuteLimit)),
        (Kind::Command, String::new(), throttled, Some(Class::MinuteLimit)),
        (Kind::Command, "Credit balance is too low\n".to_owned(), "", Some(Class::Billing)),
        (Kind::Command, "Invalid API key · Please run /login\n".to_owned(), "", Some(Class::Auth)),
        (Kind::Command, "You've hit your limit · resets 5pm (UTC)".to_owned(), "", Some(Class::WindowQuota)),
        (Kind::Command, format!("{throttled}\nAll done.\n"), "", None),
        (Kind::ClaudeCode, format!("{retry}\n"), "", Some(Class::MinuteLimit)),
        (Kind::ClaudeCode, format!("{retry}\n{turn}\n"), "", None),
        (Kind::Command, "All done.\n".to_owned(), "warning: 3 deprecated calls", None),
    ] {
        assert_eq!(last(kind, &stdout, stderr), class, "{kind} {stdout} {stderr}");
    }
}

#[test]
fn a13_refusals_in_a_row_are_counted_until_something_else_happens() {
    let count = |stdout: &str, stderr: &str| read(Kind::Command, stdout.as_bytes(), stderr.as_bytes()).1.refusals;
    let loops = "Error: 429 Too Many Requests\nretrying in 5 s\n".repeat(40);
    assert_eq!(count("", &loops), 40);
    assert!(count(&loops, "") >= 40);
    assert_eq!(count("Error: 429 Too Many Requests\nread a.py\n", ""), 0);
}

#[test]
fn d02_one_that_waits_for_its_input_has_not_begun() {
    let waits = |stdout: &[u8], stderr: &[u8]| read(Kind::Command, stdout, stderr).1.waits_for_input();
    for line in [
        "Reading additional input from stdin...",
        "Waiting for input on stdin",
        "Waiting for user input...",
        "reading the prompt from standard input",
        "No prompt given; waiting for data on stdin (press Ctrl-D to end)",
    ] {
        assert!(waits(b"", format!("{line}\n").as_bytes()), "{line}");
        assert!(waits(format!("{line}\n").as_bytes(), b""), "{line}");
    }
    assert!(!waits(b"I made the program read its standard configuration\n", b""));
    assert!(!waits(b"", b""));
    assert!(!waits(b"", b"Reading additional input from stdin...\nreading a.py\n"));
    assert!(!waits(b"working\n", b"Reading additional input from stdin...\n"));
}

#[test]
fn d05_a_question_of_a_known_cli_is_heard_though_it_is_none_of_its_format() {
    let question = "Do you trust the files in this folder? (y/n)";
    // Kimi is judged by what it prints beside its format.
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Kimi) {
        let line = format!("{question}\n");
        for (stdout, stderr) in [(&*line, ""), ("", &*line)] {
            let (_, summary) = read(kind, stdout.as_bytes(), stderr.as_bytes());
            assert_eq!(summary.unbegun(), Some(Unbegun::Asks(question)), "{kind}");
        }
    }
    let init = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}\n";
    let (_, summary) = read(Kind::ClaudeCode, format!("{init}{question}\n").as_bytes(), b"");
    assert_eq!(summary.unbegun(), None, "what has a session has begun");
}
