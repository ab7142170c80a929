//! The scripted provider over real sockets: the shapes of its answers in each dialect, its faults, windows and bill.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as loudly as the test")]

mod common;

use std::time::{Duration, Instant};

use common::{Got, send};
use http::Method;
use outlast_testkit::provider::{Ended, Fault, Provider, Rule, Running, Says, Script, When, Window, WindowKind};
use serde_json::{Value, json};

const GOAL: &str = "Go.\n```outlast-script\nthink \"hm\"\nrun \"echo hi\"\nsay \"done with it\"\n```";

/// The four ways to ask, each with a shell tool under the name of a real CLI.
#[derive(Clone, Copy, Debug)]
enum Way {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

const WAYS: [Way; 4] = [Way::Anthropic, Way::Responses, Way::Chat, Way::Gemini];

impl Way {
    fn path(self, stream: bool) -> &'static str {
        match (self, stream) {
            (Self::Anthropic, _) => "/t/x/v1/messages?beta=true",
            (Self::Responses, _) => "/t/x/v1/responses",
            (Self::Chat, _) => "/t/x/v1/chat/completions",
            (Self::Gemini, true) => "/t/x/v1beta/models/m:streamGenerateContent?alt=sse",
            (Self::Gemini, false) => "/t/x/v1beta/models/m:generateContent",
        }
    }

    fn key(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Anthropic => ("x-api-key", key.to_owned()),
            Self::Responses | Self::Chat => ("authorization", format!("Bearer {key}")),
            Self::Gemini => ("x-goog-api-key", key.to_owned()),
        }
    }

    fn body(self, goal: &str, stream: bool) -> Value {
        let schema =
            json!({"type": "object", "properties": {"command": {"type": "string"}, "cmd": {"type": "string"}}});
        match self {
            Self::Anthropic => json!({
                "model": "m", "stream": stream, "max_tokens": 10,
                "messages": [{"role": "user", "content": goal}],
                "tools": [{"name": "Bash", "input_schema": schema}],
            }),
            Self::Responses => json!({
                "model": "m", "stream": stream,
                "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": goal}]}],
                "tools": [{"type": "function", "name": "exec_command", "parameters": schema}],
            }),
            Self::Chat => json!({
                "model": "m", "stream": stream,
                "messages": [{"role": "user", "content": goal}],
                "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}],
            }),
            Self::Gemini => json!({
                "contents": [{"role": "user", "parts": [{"text": goal}]}],
                "tools": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": schema}]}],
            }),
        }
    }

    async fn ask(self, provider: &Running, key: &str, goal: &str, stream: bool) -> Got {
        let (name, value) = self.key(key);
        send(provider.addr, Method::POST, self.path(stream), &[(name, &value)], &self.body(goal, stream).to_string())
            .await
    }

    /// Tokens as the client learns them: all input, from the cache, output.
    fn usage(self, got: &Got) -> (u64, u64, u64) {
        let answers =
            if got.header("content-type").starts_with("text/event-stream") { got.events() } else { vec![got.json()] };
        let last =
            |pointer: &str| answers.iter().rev().find_map(|answer| answer.pointer(pointer)?.as_u64()).unwrap_or(0);
        match self {
            Self::Anthropic => {
                let cached = last("/usage/cache_read_input_tokens");
                let input = last("/usage/input_tokens") + cached + last("/usage/cache_creation_input_tokens");
                (input, cached, last("/usage/output_tokens"))
            }
            Self::Responses => {
                let last = |field: &str| last(&format!("/response/usage/{field}")) + last(&format!("/usage/{field}"));
                (last("input_tokens"), last("input_tokens_details/cached_tokens"), last("output_tokens"))
            }
            Self::Chat => (
                last("/usage/prompt_tokens"),
                last("/usage/prompt_tokens_details/cached_tokens"),
                last("/usage/completion_tokens"),
            ),
            Self::Gemini => {
                let thoughts = last("/usageMetadata/thoughtsTokenCount");
                let output = last("/usageMetadata/candidatesTokenCount") + thoughts;
                (last("/usageMetadata/promptTokenCount"), last("/usageMetadata/cachedContentTokenCount"), output)
            }
        }
    }
}

async fn start(script: Script) -> Running {
    Provider::start_local(script).await.unwrap()
}

fn with_fault(fault: Value, when: When, times: Option<u64>) -> Script {
    Script::default().with_fault(Rule { when, fault: serde_json::from_value(fault).unwrap(), times })
}

#[tokio::test]
async fn every_dialect_bills_what_it_says_streamed_or_whole() {
    for way in WAYS {
        for stream in [true, false] {
            let provider = start(Script::default()).await;
            let got = way.ask(&provider, "k", GOAL, stream).await;
            assert_eq!((got.status, got.broken), (200, false), "{way:?}: {}", got.text());
            assert!(got.text().contains("echo hi"), "{way:?}: the tool call is there");
            let bill = provider.bill().await.keys["k"].tokens;
            assert_eq!(way.usage(&got), (bill.all_input(), bill.cache_read, bill.output), "{way:?} stream={stream}");
            assert!(bill.input > 0 && bill.output > 0);
        }
    }
}

#[tokio::test]
async fn a_stream_of_messages_has_the_order_that_clients_rely_on() {
    let provider = start(Script::default()).await;
    let got = Way::Anthropic.ask(&provider, "k", GOAL, true).await;
    let mut kinds: Vec<String> = got.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    kinds.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected = [&["message_start", "ping"][..], &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(kinds, expected);
    let opening = &got.events()[0]["message"]["usage"];
    assert_eq!(opening["output_tokens"], 1, "the opening usage is not the last word");
}

#[tokio::test]
async fn the_same_request_gets_the_same_bytes() {
    let provider = start(Script::default()).await;
    let first = Way::Anthropic.ask(&provider, "k", GOAL, true).await;
    let second = Way::Anthropic.ask(&provider, "k", GOAL, true).await;
    assert_eq!(first.body, second.body);
}

#[tokio::test]
async fn a_key_that_is_not_listed_gets_the_dialects_own_refusal() {
    let provider = start(Script::default().with_keys(["good"])).await;
    for way in WAYS {
        let refused = way.ask(&provider, "bad", GOAL, true).await;
        assert_eq!(refused.status, 401, "{way:?}");
        let error = refused.json();
        let named = match way {
            Way::Anthropic => error["error"]["type"] == "authentication_error" && error["type"] == "error",
            Way::Responses | Way::Chat => error["error"]["code"] == "invalid_api_key",
            Way::Gemini => error["error"]["status"] == "UNAUTHENTICATED" && error["error"]["code"] == 401,
        };
        assert!(named, "{way:?}: {error}");
        assert_eq!(way.ask(&provider, "good", GOAL, true).await.status, 200);
    }
    assert!(!provider.bill().await.keys.contains_key("bad"), "a wrong key is billed nothing");
}

#[tokio::test]
async fn what_is_not_scripted_is_said_and_never_made_up() {
    let provider = start(Script::default()).await;
    for way in WAYS {
        let got = way.ask(&provider, "k", "no script here", false).await;
        assert_eq!(got.status, 400, "{way:?}");
        assert!(got.json()["error"]["message"].as_str().unwrap().contains("names no scenario"));
    }
}

#[tokio::test]
async fn checks_lists_and_counts_are_served_beside_the_answers() {
    let provider = start(Script { models: vec!["m1".to_owned()], ..Script::default() }).await;
    let ask = |method, path, headers: &'static [(&str, &str)]| {
        send(provider.addr, method, path, headers, "{\"messages\": []}")
    };
    assert_eq!(ask(Method::HEAD, "/t/x", &[]).await.status, 200);
    assert_eq!(ask(Method::GET, "/v1/models", &[]).await.json()["data"][0]["id"], "m1");
    assert_eq!(
        ask(Method::GET, "/v1/models", &[("anthropic-version", "2023-06-01")]).await.json()["data"][0]["type"],
        "model"
    );
    assert_eq!(ask(Method::GET, "/v1beta/models", &[]).await.json()["models"][0]["name"], "models/m1");
    assert_eq!(ask(Method::POST, "/v1/messages/count_tokens", &[]).await.json()["input_tokens"], 4);
    assert_eq!(ask(Method::POST, "/v1/elsewhere", &[]).await.status, 404);
    assert_eq!(provider.model_requests().await.len(), 0);
    assert_eq!(provider.log().await.len(), 6);
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
async fn a_request_without_tools_beside_a_goal_is_answered_and_moves_nothing() {
    let provider = start(Script::default()).await;
    let title = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": GOAL}]}).to_string();
    let got = send(provider.addr, Method::POST, "/v1/chat/completions", &[], &title).await;
    assert!(got.text().contains("Scripted title"));
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let title = json!({
        "model": "m", "messages": [{"role": "user", "content": "Title?"}], "tools": [],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    });
    let got = send(provider.addr, Method::POST, "/v1/messages", &[], &title.to_string()).await;
    let text = got.json()["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"title": "Scripted title"}));
    let log = provider.model_requests().await;
    assert!(log.iter().all(|entry| entry.background && entry.step.is_none()));
    assert_eq!(provider.bill().await.scenarios["background"].answered, 2);
}

#[tokio::test]
async fn bill_log_and_bodies_can_be_read() {
    let provider = start(Script { keep_bodies: true, ..Script::default() }).await;
    Way::Chat.ask(&provider, "k", GOAL, true).await;
    let get = |path| send(provider.addr, Method::GET, path, &[], "");
    let bill = get("/__bill").await.json();
    assert_eq!(bill["keys"]["k"]["answered"], 1);
    let log = get("/__log").await.json();
    assert_eq!(
        (log[0]["dialect"].as_str(), log[0]["step"].as_u64(), log[0]["ended"].as_str()),
        (Some("chat"), Some(1), Some("complete"))
    );
    assert!(log[0]["headers"].as_array().unwrap().contains(&json!(["authorization", "Bearer k"])));
    assert_eq!(provider.body(1).await.unwrap(), Way::Chat.body(GOAL, true).to_string());
}
