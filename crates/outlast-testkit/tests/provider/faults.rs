//! What goes wrong on cue: refusals, broken and silent connections, windows that fill up.

use std::time::{Duration, Instant};

use outlast_testkit::provider::{Closing, Ended, Fault, RefusalKind, Rule, Says, Script, When, Window, WindowKind};
use serde_json::{Value, json};

use crate::way::{GOAL, WAYS, Way, start};

fn with_fault(fault: Value, when: When, times: Option<u64>) -> Script {
    Script::default().with_fault(Rule { when, fault: serde_json::from_value(fault).unwrap(), times })
}

#[tokio::test]
async fn a_refusal_has_the_providers_headers_and_body_and_costs_nothing() {
    let refuse = |reason: &str, seconds: Option<u64>| json!({"kind": "refuse", "reason": reason, "seconds": seconds});
    let cases = [
        (Way::Anthropic, refuse("minute-limit", Some(7)), 429, "retry-after", "7", "rate_limit_error"),
        (
            Way::Anthropic,
            refuse("window-quota", Some(7)),
            429,
            "anthropic-ratelimit-unified-status",
            "rejected",
            "rate_limit_error",
        ),
        (Way::Anthropic, refuse("overload", None), 529, "retry-after", "", "overloaded_error"),
        (Way::Anthropic, refuse("billing-cycle", None), 403, "retry-after", "", "usage limit for this billing cycle"),
        (Way::Anthropic, refuse("too-long", None), 400, "retry-after", "", "prompt is too long"),
        (
            Way::Responses,
            refuse("window-quota", Some(60)),
            429,
            "x-codex-primary-reset-after-seconds",
            "60",
            "resets_in_seconds\":60",
        ),
        (Way::Chat, refuse("insufficient-funds", None), 429, "retry-after", "", "insufficient_quota"),
        (Way::Gemini, refuse("minute-limit", Some(3)), 429, "retry-after", "", "\"retryDelay\":\"3s\""),
        (Way::Gemini, refuse("window-quota", Some(3)), 429, "retry-after", "", "QUOTA_EXHAUSTED"),
    ];
    for (way, fault, status, header, value, words) in cases {
        let provider = start(with_fault(fault.clone(), When::default(), Some(1))).await;
        let got = way.ask(&provider, "k", GOAL, true).await;
        assert_eq!((got.status, got.header(header)), (status, value), "{way:?} {fault}");
        assert!(got.text().contains(words), "{way:?} {fault}: {}", got.text());
        let bill = provider.bill().await.total;
        assert_eq!((bill.requests, bill.refused, bill.answered, bill.tokens.total()), (1, 1, 0, 0));
        assert_eq!(way.ask(&provider, "k", GOAL, true).await.status, 200, "the second try is not hit");
    }
}

#[tokio::test]
async fn a_cut_answer_breaks_and_bills_only_what_was_declared() {
    let cut = json!({"kind": "cut", "after_frames": 4, "and_bytes": 5});
    for way in WAYS {
        for stream in [true, false] {
            let provider = start(with_fault(cut.clone(), When::default(), None)).await;
            let got = way.ask(&provider, "k", GOAL, stream).await;
            assert!(got.broken, "{way:?} stream={stream}: the reader notices");
            let log = provider.model_requests().await;
            assert_eq!((log[0].ended, log[0].fault.as_deref()), (Ended::Cut, Some("cut")));
            let declared = log[0].billed.map_or(0, |usage| usage.output);
            let expected = u64::from(stream && matches!(way, Way::Anthropic));
            assert_eq!(declared, expected, "{way:?} stream={stream}: only Messages name an output (1) at the start");
        }
    }
}

#[tokio::test]
async fn each_fault_does_what_its_name_says() {
    let ask = async |fault: Value| {
        let provider = start(with_fault(fault, When::default(), None)).await;
        let started = Instant::now();
        let got = Way::Anthropic.ask(&provider, "k", GOAL, true).await;
        (got, started.elapsed())
    };
    let (dropped, _) = ask(json!({"kind": "drop"})).await;
    assert!(dropped.broken && dropped.status == 0);
    let (held, time) = ask(json!({"kind": "hold", "seconds": 0.3})).await;
    assert!(!held.broken && time >= Duration::from_millis(300));
    let (hung, time) = ask(json!({"kind": "hang", "after_frames": 3, "seconds": 0.3})).await;
    assert!(hung.text().contains("message_stop") && time >= Duration::from_millis(300));
    let (slow, time) = ask(json!({"kind": "slow", "per_frame_ms": 20})).await;
    assert!(slow.text().contains("message_stop") && time >= Duration::from_millis(200));
    let (error, _) = ask(json!({"kind": "error-event", "after_frames": 3})).await;
    assert_eq!((error.status, &error.events()[3]["error"]["type"]), (200, &json!("overloaded_error")));
    let (malformed, _) = ask(json!({"kind": "malformed", "after_frames": 3})).await;
    assert!(malformed.text().ends_with("data: {\"type\": \"mess\n\n") && malformed.events().len() == 3);
    let (typed, _) = ask(json!({"kind": "content-type", "value": "text/html"})).await;
    assert_eq!((typed.header("content-type"), typed.text().contains("message_stop")), ("text/html", true));
    let (status, _) = ask(json!({"kind": "status", "status": 418, "headers": {"x-a": "b"}, "body": "tea"})).await;
    assert_eq!((status.status, status.header("x-a"), status.text().as_str()), (418, "b", "tea"));
}

#[tokio::test]
async fn a_hang_for_ever_sends_the_headers_and_a_hold_for_ever_sends_nothing() {
    for (fault, expected) in [(Fault::Hang { after_frames: 0, seconds: None }, 200), (Fault::Hold { seconds: None }, 0)]
    {
        let provider = start(Script::default().with_fault(Rule { when: When::default(), fault, times: None })).await;
        let asking = Way::Anthropic.ask(&provider, "k", GOAL, true);
        assert!(tokio::time::timeout(Duration::from_millis(200), asking).await.is_err(), "no end comes");
        let entry = provider.wait_until(|log| log[0].ended != Ended::Open).await.remove(0);
        assert_eq!((entry.ended, entry.status), (Ended::ClientGone, expected));
        assert_eq!(
            entry.billed.is_some(),
            expected == 200,
            "an answer that has begun is paid although the client left"
        );
    }
}

#[tokio::test]
async fn a_fault_inside_a_goal_hits_its_turn_as_often_as_it_says() {
    let provider = start(Script::default()).await;
    let goal = "```outlast-script\nfault 2 {\"kind\": \"refuse\", \"reason\": \"overload\"}\nrun \"true\"\n```";
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(Way::Anthropic.ask(&provider, "k", goal, true).await.status);
    }
    assert_eq!(statuses, [529, 529, 200]);
    let other = format!("Another goal.\n{goal}");
    assert_eq!(Way::Anthropic.ask(&provider, "k", &other, true).await.status, 529, "each goal has its own count");
}

#[tokio::test]
async fn a_full_window_refuses_until_its_reset_and_counts_who_knew() {
    let window = Window {
        name: "5h".to_owned(),
        kind: WindowKind::Quota,
        requests: Some(2),
        tokens: None,
        concurrent: None,
        per_seconds: 1.2,
        says: Says::Reset,
    };
    let provider = start(Script::default().with_window(window)).await;
    let ask = |key: &'static str| Way::Anthropic.ask(&provider, key, GOAL, true);
    let (first, second) = (ask("a").await, ask("a").await);
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(second.header("anthropic-ratelimit-unified-5h-utilization"), "1.00", "its headroom is told beforehand");
    let closed = ask("a").await;
    assert_eq!((closed.status, closed.header("anthropic-ratelimit-unified-status")), (429, "rejected"));
    assert_eq!(ask("b").await.status, 200, "each key has its own window");
    assert_eq!(ask("a").await.status, 429);
    let bill = provider.bill().await;
    assert_eq!((bill.requests_into_closed_window, bill.keys["a"].refused), (1, 2));
    let log = provider.model_requests().await;
    let known: Vec<bool> = log.iter().map(|entry| entry.into_closed_window).collect();
    assert_eq!(known, [false, false, false, false, true]);
    assert_eq!(log[4].window.as_deref(), Some("5h"));
    let wait: u64 = closed.header("retry-after").parse().unwrap();
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(ask("a").await.status, 200, "open again after the stated wait");
}

#[tokio::test]
async fn a_closing_refuses_every_key_and_what_was_taken_before_it_is_answered() {
    let closing = Closing {
        name: "storm".to_owned(),
        after_requests: 1,
        seconds: 1.2,
        reason: RefusalKind::Overload,
        says: Says::Reset,
    };
    let script = Script { latency_ms: 300, ..Script::default() };
    let provider = start(script.with_closing(closing)).await;
    let ask = |key: &'static str| Way::Anthropic.ask(&provider, key, GOAL, true);
    let second = async {
        provider.wait_until(|log| !log.is_empty()).await;
        ask("b").await
    };
    let (taken, refused) = tokio::join!(ask("a"), second);
    assert_eq!((taken.status, refused.status), (200, 529));
    assert!(taken.text().contains("message_stop"), "it is answered to its end");
    assert_eq!(ask("a").await.status, 529);
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(ask("a").await.status, 200, "open again after the stated wait");

    let bill = provider.bill().await;
    assert_eq!((bill.total.refused, bill.requests_into_closed_window, bill.in_flight), (2, 1, 0));
    let [tally] = bill.closings.as_slice() else { panic!("one closing has begun: {:?}", bill.closings) };
    assert_eq!((tally.in_flight, tally.refused), (1, 2));
    assert!(tally.taken_again_at_ms.is_some_and(|again| again >= tally.ends_at_ms), "{tally:?}");
}

#[tokio::test]
async fn a_model_thinks_before_the_first_byte_and_who_leaves_meanwhile_pays() {
    let provider = start(Script { latency_ms: 60_000, ..Script::default() }).await;
    let asking = Way::Anthropic.ask(&provider, "k", GOAL, true);
    assert!(tokio::time::timeout(Duration::from_millis(200), asking).await.is_err(), "no answer yet");
    let entry = provider.wait_until(|log| log[0].ended != Ended::Open).await.remove(0);
    assert_eq!((entry.ended, entry.status), (Ended::ClientGone, 0));
    assert!(entry.billed.is_some_and(|usage| usage.output > 0), "{entry:?}");
}
