//! What CLIs say of requests that failed, in whatever words and shape, and what that comes to.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use outlast_agent::{Exit, Kind, Verdict, adapter};
use outlast_core::reset::Said;
use outlast_core::{Class, Timestamp};
use reading::read;

mod reading;

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
    (class, ends.map(|end| jiff::Timestamp::from_millisecond(end.at().as_millis()).unwrap().to_string()))
}

/// A result of a request that failed.
fn result(text: &str) -> String {
    format!("{}\n", serde_json::json!({"type": "result", "subtype": "success", "is_error": true, "result": text}))
}

/// A result that is called a success.
fn success(text: &str) -> String {
    format!("{}\n", serde_json::json!({"type": "result", "subtype": "success", "result": text}))
}

#[test]
fn a12_a_limit_that_is_told_in_the_result_alone_is_the_cause_in_whatever_wrapper() {
    for (kind, stdout) in [
        (Kind::ClaudeCode, &*result("You've hit your limit · resets 5pm (UTC)")),
        (Kind::ClaudeCode, r#"{"result":"You've hit your limit · resets 5pm (UTC)"}"#),
        (Kind::Command, r#"{"result":"You've hit your limit · resets 5pm (UTC)"}"#),
        (Kind::ClaudeCode, "{\n  \"result\": \"You've hit your limit · resets 5pm (UTC)\"\n}\n"),
        (Kind::Command, "{\n  \"result\": \"You've hit your limit · resets 5pm (UTC)\"\n}\n"),
        (Kind::Command, "{\"result\":\"You've hit your limit · resets 5pm (UTC)\"}\nagent failed\n"),
        (Kind::ClaudeCode, &result("You've hit your limit · resets 5pm (UTC)\n/upgrade for more")),
        (Kind::Command, &success("You've hit your limit · resets 5pm (UTC)\n\nVisit the console.")),
        (Kind::Command, r#"{"result":"You've hit your limit · resets 5pm (UTC)\n/upgrade for more"}"#),
        (Kind::Command, &format!("[{}]\n", result("You've hit your limit · resets 5pm (UTC)").trim())),
    ] {
        let (class, at) = limit(kind, stdout, "", Exit::code(1));
        assert_eq!((class, at.as_deref()), (Some(Class::WindowQuota), Some("2026-07-08T17:00:00Z")), "{kind} {stdout}");
    }
}

#[test]
fn a_limit_that_a_cli_reports_says_when_it_ends() {
    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","resetsAt":1783555200,"utilization":1}}"#;
    let warning = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1783555200,"utilization":0.9}}"#;
    let zero = result("API Error: usage limit is set to $0");
    let crash = result("API Error: something else");
    let turn = r#"{"type":"assistant","message":{"id":"m","model":"sonnet","content":[]}}"#;
    let failed = |text: &str| format!("{}\n", serde_json::json!({"type": "turn.failed", "error": {"message": text}}));
    let (window, minute, five) = (Some(Class::WindowQuota), Some(Class::MinuteLimit), Some("2026-07-08T17:00:00Z"));
    let midnight = Some("2026-07-09T00:00:00Z");
    for (kind, stdout, stderr, code, class, ends) in [
        (Kind::ClaudeCode, &*result("Claude AI usage limit reached|1783555200"), "", 1, window, midnight),
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
        ("half a sent\nsocket hang up\n", "", Some(Class::Network), None),
        ("", "Error: read ECONNRESET\n    at TLSWrap.onStreamRead", Some(Class::Network), None),
        ("", "stream error: stream disconnected before completion", Some(Class::Network), None),
        ("", "Error: socket hang up\nretrying\nloading\nTypeError: x is not a function", Some(Class::Crash), None),
        (
            "editing a.py\nLLM provider error: 403 You've reached your usage limit for this billing cycle.\n",
            "",
            window,
            None,
        ),
        ("You've hit your limit · resets 5pm (UTC)\n", "", window, five),
        ("You've hit your usage limit.\nTry again in 5 hours.\n", "", window, five),
        ("You've hit your Opus limit · resets 5pm (UTC)\n", "", window, five),
        // No longer than the window lasts.
        ("You've hit your session limit · resets 7pm (UTC)\n", "", window, five),
        ("", "ERROR: You've hit your usage limit. Try again at Aug 23rd, 2026", window, Some("2026-08-08T12:00:00Z")),
        ("", "You've reached your monthly limit · resets Jul 8 at 5pm (UTC)", window, five),
        ("You've hit your org's monthly spend limit\n", "", window, None),
        ("", "ThrottlingException: Too many tokens, try again in 5 hours.\nclosing", minute, five),
        ("", "Error: connect ECONNREFUSED 127.0.0.1:5432", Some(Class::Crash), None),
    ] {
        let (found, at) = limit(Kind::Command, stdout, stderr, Exit::code(1));
        assert_eq!((found, at.as_deref()), (class, ends), "{stdout} {stderr}");
    }
}

/// Where in a program an error came from, longer than what is kept of its error output.
const TRACE: &str = "    at TLSWrap.onStreamRead (node:internal/stream_base_commons:216:20)\n    at async run (file:///cli.js:1:2)\n    \
    at a (b:1:1)\n    at c (b:1:1)\n    at d (b:1:1)\n    at e (b:1:1)\n    at f (b:1:1)\n    at g (b:1:1)\n    at h (b:1:1) {\n  \
    errno: -104,\n  code: 'ECONNRESET',\n  syscall: 'read'\n}\n\nNode.js v22.1.0\n";

#[test]
fn a01_a09_a20_a_report_is_seen_in_a_log_before_a_trace_and_before_closing_words_however_it_ends() {
    let overloaded = "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}";
    let long = format!("API Error: 529 {{\"type\":\"error\",\"error\":{{\"message\":\"{}\"}}}}", "x ".repeat(400));
    for (text, class) in [
        (format!("2026-12-01T08:00:00Z ERROR agent: {overloaded}\n"), Class::Overload),
        ("[agent] You've hit your usage limit.\n".to_owned(), Class::WindowQuota),
        (format!("looking\nError: read ECONNRESET\n{TRACE}"), Class::Network),
        (format!("{overloaded}\n{TRACE}"), Class::Overload),
        (format!("{long}\n"), Class::Overload),
        (format!("{overloaded}\nSession saved.\nTotal cost: $0.12\n"), Class::Overload),
        (
            "ThrottlingException: Too many tokens\n\nThe run was aborted after 3 attempts.\n".to_owned(),
            Class::MinuteLimit,
        ),
        ("Error: Premature close\nThe agent stopped.\n".to_owned(), Class::Network),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in run\n    raise e\n\
             openai.RateLimitError: Error code: 429 - slow down\n\nDuring handling of the above exception\n"
                .to_owned(),
            Class::MinuteLimit,
        ),
    ] {
        for (stdout, stderr) in [(&*text, ""), ("", &*text), ("looking\n", &*text)] {
            let (_, summary) = read(Kind::Command, stdout.as_bytes(), stderr.as_bytes());
            let Some(Verdict::Failed { class: at_zero, .. }) = adapter(Kind::Command).last_word(&summary) else {
                panic!("exit 0: {stdout} {stderr}");
            };
            let (at_one, _) = limit(Kind::Command, stdout, stderr, Exit::code(1));
            assert_eq!((at_zero, at_one), (class, Some(class)), "{stdout} {stderr}");
        }
    }
}

#[test]
fn a01_a_report_beside_its_format_is_the_cause_of_a_known_cli_as_well() {
    for (text, class) in [
        ("API Error: 529 Overloaded", Class::Overload),
        ("Credit balance is too low", Class::Billing),
        ("2026-12-01T08:00:00Z ERROR Premature close", Class::Network),
        ("Loading the plugins over the network", Class::Startup),
    ] {
        for kind in [Kind::ClaudeCode, Kind::Codex, Kind::OpenCode, Kind::Gemini, Kind::Qwen] {
            let (found, _) = limit(kind, &format!("{text}\n"), "", Exit::code(1));
            assert_eq!(found, Some(class), "{kind} {text}");
        }
    }
}

#[test]
fn a01_text_behind_a_report_hides_it_only_where_another_error_or_more_work_follows() {
    let ends = |stdout: &str, code| match code {
        0 => {
            let (_, summary) = read(Kind::Command, stdout.as_bytes(), b"");
            adapter(Kind::Command).last_word(&summary).map(|verdict| match verdict {
                Verdict::Failed { class, .. } => class,
                other => panic!("{other:?}"),
            })
        }
        code => limit(Kind::Command, stdout, "", Exit::code(code)).0,
    };
    let overloaded = "API Error: 529 Overloaded";
    for (text, class) in [
        (format!("{overloaded}\nsorry about that\n"), Class::Overload),
        (format!("{overloaded}\nWhat was written so far is in parts/.\nBye.\n"), Class::Overload),
        ("You've hit your limit · resets 5pm (UTC)\nsome text\n".to_owned(), Class::WindowQuota),
        ("Error: Premature close\nbye\n".to_owned(), Class::Network),
        (format!("{overloaded}\nTypeError: x is not a function\n"), Class::Crash),
        (format!("{overloaded}\n{}", "reading a.py\n".repeat(8)), Class::Crash),
        ("Error: Premature close\nretrying\nreading a.py\nbye\n".to_owned(), Class::Crash),
        ("I saw `API Error: 529 Overloaded` in the log.\nbye\n".to_owned(), Class::Crash),
        ("the client answers API Error: 529 Overloaded\nbye\n".to_owned(), Class::Crash),
    ] {
        assert_eq!(ends(&text, 1), Some(class), "{text}");
    }
    // One that says it is done has gone on, and what an agent writes of errors is none.
    for text in [
        "API Error: 529 Overloaded\nAll done.\n",
        "API Error: 529 Overloaded\nThe failed test is fixed.\n",
        "API Error: 529 Overloaded\nI stopped here: nothing is to be changed.\n",
        "The server says:\n\nAPI Error: 529 Overloaded\n\nso a request is sent again.\n",
        "I changed nothing: the file says Too many requests\n",
        "The line `[agent] Premature close` comes from the log.\n",
    ] {
        assert_eq!(ends(text, 0), None, "{text}");
    }
}

#[test]
fn a01_kimi_says_of_its_provider_on_its_output() {
    for text in [
        "LLM provider error: 403 You've reached your usage limit for this billing cycle.",
        "LLM provider error: Error code: 403 - {'error': {'message': \"You've reached your usage\nlimit for this billing cycle.\"}}",
    ] {
        let (class, _) = limit(Kind::Kimi, &format!("{text}\n"), "", Exit::code(1));
        assert_eq!(class, Some(Class::WindowQuota), "{text}");
    }
    let (class, _) = limit(Kind::Kimi, "LLM provider error: 403 no such plan\n", "", Exit::code(1));
    assert_eq!(class, Some(Class::Auth));
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
fn b06_an_event_of_an_end_that_no_window_has_is_of_a_week() {
    // Half a day, a month, and what is no time of any limit.
    for (resets, ends) in [
        (1_783_555_200, Some("2026-07-09T00:00:00Z")),
        (1_786_190_400, Some("2026-07-15T12:00:00Z")),
        (1_983_555_200, None),
    ] {
        let info = serde_json::json!({"status": "rejected", "rateLimitType": "seven_day", "resetsAt": resets});
        let event = serde_json::json!({"type": "rate_limit_event", "rate_limit_info": info}).to_string();
        let (class, at) = limit(Kind::ClaudeCode, &event, "", Exit::code(1));
        assert_eq!((class, at.as_deref()), (Some(Class::WindowQuota), ends));
    }
}
