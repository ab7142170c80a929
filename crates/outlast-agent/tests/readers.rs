//! What the CLIs really print, read into events and judged. The recordings are of real runs against a scripted provider,
//! cut down to the fields that carry meaning.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::fs;
use std::path::PathBuf;

use outlast_agent::{ClosingAccount, Event, Exit, ExitStatus, Kind, Source, Summary, Verdict, adapter};
use outlast_core::reset::Said;
use outlast_core::{Class, Timestamp};
use proptest::prelude::*;

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

fn read(kind: Kind, stdout: &[u8], stderr: &[u8]) -> (Vec<Event>, Summary) {
    let mut reader = adapter(kind).reader();
    let mut events = reader.feed(Source::Stdout, stdout);
    events.extend(reader.feed(Source::Stderr, stderr));
    events.extend(reader.finish());
    let mut summary = Summary::default();
    events.iter().for_each(|event| summary.note(event));
    (events, summary)
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

/// How each CLI reports what its provider said of its conversation.
fn refused(kind: Kind, text: &str) -> (String, Exit) {
    use serde_json::json;
    match kind {
        Kind::ClaudeCode => (
            json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": 400,
                   "result": format!("API Error: 400 {text}")})
            .to_string(),
            Exit::code(1),
        ),
        Kind::Qwen => (
            json!({"type": "result", "subtype": "success", "result": format!("[API Error: 400 {text}]")}).to_string(),
            Exit::code(0),
        ),
        Kind::Codex => (
            json!({"type": "turn.failed", "error": {"message": format!("unexpected status 400 Bad Request: {text}")}})
                .to_string(),
            Exit::code(1),
        ),
        Kind::OpenCode => (
            json!({"type": "error", "error": {"name": "APIError", "data": {"message": text, "statusCode": 400}}})
                .to_string(),
            Exit::code(1),
        ),
        Kind::Gemini => (
            json!({"type": "result", "status": "error", "error": {"message": format!("[API Error: {text}]")}})
                .to_string(),
            Exit::code(400 & 0xff),
        ),
        Kind::Kimi => (format!("Error code: 400 - {{'error': {{'message': \"{text}\"}}}}"), Exit::code(1)),
        Kind::Command => (format!("Error code: 400 - {text}"), Exit::code(1)),
    }
}

#[test]
fn h01_h07_a_broken_conversation_is_one_in_the_words_of_every_wire_format_and_cli() {
    for kind in Kind::ALL {
        for text in [
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "No tool output found for function call call_1.",
            "The encrypted content gAAA...Rg== could not be verified.",
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            "Function call is missing a thought_signature in functionCall parts.",
        ] {
            let (stdout, exit) = refused(kind, text);
            let (_, summary) = read(kind, stdout.as_bytes(), b"");
            let verdict = adapter(kind).judge(&exit, &summary);
            assert!(
                matches!(verdict, Verdict::Failed { class: Class::CorruptSession, .. }),
                "{kind}: {text}: {verdict:?}"
            );
        }
    }
}

#[test]
fn h04_a_session_that_is_gone_is_told_by_the_error_output() {
    let result = br#"{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0}"#;
    let (_, summary) = read(Kind::ClaudeCode, result, b"No conversation found with session ID: x\n");
    let verdict = adapter(Kind::ClaudeCode).judge(&Exit::code(1), &summary);
    assert!(matches!(verdict, Verdict::Failed { class: Class::CorruptSession, .. }), "{verdict:?}");
    for kind in Kind::ALL {
        for line in [
            "Session s-1 does not exist",
            "Error: session \"s-1\" not found",
            "No saved session found with ID s-1.",
            "Failed to resume session s-1",
            "Error resuming session: Invalid session identifier \"s-1\".",
        ] {
            let (_, summary) = read(kind, b"", line.as_bytes());
            let verdict = adapter(kind).judge(&Exit::code(1), &summary);
            assert!(
                matches!(verdict, Verdict::Failed { class: Class::CorruptSession, .. }),
                "{kind}: {line}: {verdict:?}"
            );
        }
    }
    let (_, summary) = read(Kind::Command, b"Session s-1 does not exist\n", b"");
    let verdict = adapter(Kind::Command).judge(&Exit::code(1), &summary);
    assert!(matches!(verdict, Verdict::Failed { class: Class::CorruptSession, .. }), "{verdict:?}");
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

/// What a limit that a CLI reports comes to: its class, and when it ends in UTC; said on 2026-07-08 at noon there.
fn limit(kind: Kind, stdout: &str, stderr: &str, exit: Exit) -> (Option<Class>, Option<String>) {
    let (_, summary) = read(kind, stdout.as_bytes(), stderr.as_bytes());
    let (class, report) = match adapter(kind).judge(&exit, &summary) {
        Verdict::Failed { class, report, .. } => (Some(class), report),
        _ => (None, String::new()),
    };
    let zone = jiff::tz::TimeZone::UTC;
    let at = Timestamp::from_millis(1_783_512_000_000);
    let ends = summary.limit_ends(&report, Said { at, zone: &zone });
    (class, ends.map(|at| jiff::Timestamp::from_millisecond(at.as_millis()).unwrap().to_string()))
}

#[test]
fn a_limit_that_a_cli_reports_says_when_it_ends() {
    let result = |text: &str| {
        format!("{}\n", serde_json::json!({"type": "result", "subtype": "success", "is_error": true, "result": text}))
    };
    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","resetsAt":1783555200,"utilization":1}}"#;
    let warning = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1783555200,"utilization":0.9}}"#;
    let zero = result("API Error: usage limit is set to $0");
    let crash = result("API Error: something else");
    let turn = r#"{"type":"assistant","message":{"id":"m","model":"sonnet","content":[]}}"#;
    let failed = |text: &str| format!("{}\n", serde_json::json!({"type": "turn.failed", "error": {"message": text}}));
    let (window, minute, five) = (Some(Class::WindowQuota), Some(Class::MinuteLimit), Some("2026-07-08T17:00:00Z"));
    let midnight = Some("2026-07-09T00:00:00Z");
    for (kind, stdout, stderr, code, class, ends) in [
        // A12: in the result alone, in whatever wrapper.
        (Kind::ClaudeCode, &*result("You've hit your limit · resets 5pm (UTC)"), "", 1, window, five),
        (Kind::ClaudeCode, r#"{"result":"You've hit your limit · resets 5pm (UTC)"}"#, "", 1, window, five),
        (Kind::Command, r#"{"result":"You've hit your limit · resets 5pm (UTC)"}"#, "", 1, window, five),
        (Kind::ClaudeCode, &result("Claude AI usage limit reached|1783555200"), "", 1, window, midnight),
        (Kind::ClaudeCode, &result("5-hour limit reached ∙ resets 5pm"), "", 1, window, five),
        // B06: the structured event first; B07: a warning is none, and neither is one that work followed on.
        (Kind::ClaudeCode, &format!("{event}\n{zero}"), "", 1, window, midnight),
        (Kind::ClaudeCode, &format!("{event}\n{crash}"), "", 1, window, midnight),
        (Kind::ClaudeCode, &format!("{event}\n"), "", 1, window, midnight),
        (Kind::ClaudeCode, &format!("{event}\n{turn}\n{crash}"), "", 1, Some(Class::Unknown), None),
        (Kind::ClaudeCode, &format!("{warning}\n{crash}"), "", 1, Some(Class::Unknown), None),
        (Kind::ClaudeCode, &zero, "", 1, window, None),
        // A11: in the error output alone.
        (
            Kind::Command,
            "",
            "ERROR: You've hit your usage limit or try again at Jul 9th, 2026 12:00 AM.",
            1,
            window,
            midnight,
        ),
        (Kind::Command, "", "You've hit your usage limit.\nTry again in 5 hours.", 1, window, five),
        (Kind::Codex, &failed("You've hit your usage limit… try again in 5 hours."), "", 1, window, five),
        (
            Kind::Codex,
            &failed("stream disconnected before completion: Rate limit is exceeded. Try again in 5 hours."),
            "",
            1,
            minute,
            five,
        ),
        // What an agent writes of limits is no limit.
        (Kind::Command, "usage limit reached, resets 5pm (UTC)\n", "", 1, Some(Class::Crash), None),
    ] {
        let (found, at) = limit(kind, stdout, stderr, Exit::code(code));
        assert_eq!((found, at.as_deref()), (class, ends), "{kind:?} {stdout} {stderr}");
    }
}

#[test]
fn a_program_that_prints_results_has_not_said_its_last_word() {
    for line in [r#"{"result":"halfway"}"#, r#"{"result":"You've hit your limit · resets 5pm (UTC)"}"#] {
        let (_, summary) = read(Kind::Command, format!("{line}\nand on it goes\n").as_bytes(), b"");
        assert!(!summary.is_over(), "{line}");
    }
}

#[test]
fn a01_a09_a11_what_a_program_prints_last_of_its_provider_is_the_cause() {
    let (window, minute, five) = (Some(Class::WindowQuota), Some(Class::MinuteLimit), Some("2026-07-08T17:00:00Z"));
    let billing_cycle = "403 You've reached your usage limit for this billing cycle.";
    for (stdout, stderr, class, ends) in [
        (&*format!("editing a.py\n{billing_cycle}\n"), "", window, None),
        ("", billing_cycle, window, None),
        ("half a sent\nConnection closed mid-response\n", "", Some(Class::Network), None),
        ("", "API Error: Connection closed mid-response", Some(Class::Network), None),
        ("You've hit your limit · resets 5pm (UTC)\n", "", window, five),
        ("You've hit your usage limit.\nTry again in 5 hours.\n", "", window, five),
        ("", "ThrottlingException: Too many tokens, try again in 5 hours.\nclosing", minute, five),
        ("", "Error: connect ECONNREFUSED 127.0.0.1:5432", Some(Class::Crash), None),
    ] {
        let (found, at) = limit(Kind::Command, stdout, stderr, Exit::code(1));
        assert_eq!((found, at.as_deref()), (class, ends), "{stdout} {stderr}");
    }
}

#[test]
fn a_limit_and_its_end_come_from_one_report() {
    let named = "ERROR: You've hit your usage limit.";
    for (stderr, ends) in [
        // What is said elsewhere of a time is of something else.
        (format!("the licence of a tool resets on Jul 9th, 2026 12:00 AM\nstarting\n{named}\n"), None),
        (format!("{named}\nclosing\nlogs are kept, try again in 90 days\n"), None),
        (format!("rate limit reached, try again in 5 hours\nworking\n{named}\n"), None),
        (format!("{named}\nTry again in 5 hours.\nclosing\n"), Some("2026-07-08T17:00:00Z")),
        (format!("{named} Try again in 5 hours.\n{named}\n"), Some("2026-07-08T17:00:00Z")),
    ] {
        let (class, at) = limit(Kind::Command, "", &stderr, Exit::code(1));
        assert_eq!((class, at.as_deref()), (Some(Class::WindowQuota), ends), "{stderr}");
    }
    // An error result of the CLI itself, and error output that speaks of another limit.
    let result = r#"{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit"}"#;
    let (class, at) = limit(Kind::ClaudeCode, result, "quota of the disk resets in 300 days", Exit::code(1));
    assert_eq!((class, at), (Some(Class::WindowQuota), None));
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
    assert!(waits(b"", b"Reading additional input from stdin...\n"));
    assert!(!waits(b"", b""));
    assert!(!waits(b"", b"Reading additional input from stdin...\nreading a.py\n"));
    assert!(!waits(b"working\n", b"Reading additional input from stdin...\n"));
}

#[test]
fn b06_an_event_of_an_end_that_no_window_has_is_none() {
    for (resets, ends) in [(1_783_555_200, Some("2026-07-09T00:00:00Z")), (1_786_190_400, None)] {
        let info = serde_json::json!({"status": "rejected", "rateLimitType": "seven_day", "resetsAt": resets});
        let event = serde_json::json!({"type": "rate_limit_event", "rate_limit_info": info}).to_string();
        let (class, at) = limit(Kind::ClaudeCode, &event, "", Exit::code(1));
        assert_eq!((class, at.as_deref()), (Some(Class::WindowQuota), ends));
    }
}
