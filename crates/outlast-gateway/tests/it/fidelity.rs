//! The fidelity probe: what goes in comes out, row by row of the checks that other gateways fail.

use std::sync::Arc;

use outlast_gateway::{Provider as Kind, TurnKind};
use outlast_journal::Outcome;
use tokio::sync::Notify;

use crate::support::{AGENT_KEY, CANARY, Reply, World, chunked, sse};

/// An answer with everything that a typed proxy loses: comments, pings, unknown events, signatures, odd spacing.
const EVENTS: [&str; 7] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"claude-opus-4-8\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    ": a comment\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_start\r\ndata:{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\r\n\r\n",
    "event: future_event\nid: 7\nretry: 10\ndata: {\"type\":\"future_event\",  \"x\":[1,2 ]}\ndata: second line\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];

/// Odd spacing, escapes, a non-ASCII string, unknown members, a number no parser would print again.
const BODY: &str = "{ \"model\" :\"claude-opus-4-8\",\t\"thinking\":{\"type\":\"adaptive\"},\n\"context_management\":{\"edits\":[ ]},\
    \"output_config\":{\"effort\":\"high\"},\"tools\":[{\"name\":\"Bash\"}],\"x\":1.0e+2,\"z\":\"\\u00e9\u{e9}\",\"stream\":true,\
    \"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"c2ln\"}]}] }\n";

#[tokio::test]
async fn a_stream_passes_byte_for_byte_both_ways() {
    let mut world = World::new(Kind::Anthropic, vec![sse(&EVENTS)]).await;
    let head = format!(
        "POST /t/r1/tidy.2/v1/messages?beta=true&x=%2F%20\r\nX-Api-Key: {AGENT_KEY}\r\nContent-Type: application/json\r\n\
         anthropic-version: 2023-06-01\r\nanthropic-beta: future-flag-2031-01-01,oauth-2025-04-20\r\n\
         anthropic-beta: second-2027\r\nX-Claude-Code-Session-Id: 6a1e\r\nx-unknown: a  b\r\naccept-encoding: gzip, br\r\n\
         connection: keep-alive, x-hop\r\nx-hop: 1\r\nuser-agent: claude-cli/2.1"
    );
    let answer = world.send(&head, BODY.as_bytes()).await;
    assert_eq!((answer.status, answer.whole), (200, true));
    assert_eq!(answer.text(), EVENTS.concat());
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));

    let seen = world.provider.only();
    assert_eq!(seen.line(), "POST /v1/messages?beta=true&x=%2F%20");
    assert_eq!(seen.body, BODY.as_bytes());
    assert_eq!(seen.all("anthropic-beta"), ["future-flag-2031-01-01,oauth-2025-04-20", "second-2027"]);
    for (name, value) in [
        ("anthropic-version", "2023-06-01"),
        ("x-claude-code-session-id", "6a1e"),
        ("x-unknown", "a  b"),
        ("user-agent", "claude-cli/2.1"),
        ("content-type", "application/json"),
        ("accept-encoding", "identity"),
        ("x-api-key", CANARY),
    ] {
        assert_eq!(seen.all(name), [value], "{name}");
    }
    assert_eq!(seen.header("x-hop"), None, "named by Connection");
    assert!(!seen.head.contains(AGENT_KEY) && !seen.head.contains("gateway.test"));

    let ask = world.admission.asks.lock().unwrap()[0].clone();
    assert_eq!(ask.path_attempt.as_deref(), Some("r1/tidy.2"));
    assert_eq!((ask.model.as_deref(), ask.turn_kind), (Some("claude-opus-4-8"), TurnKind::Main));
    let settled = world.settled().await;
    assert_eq!((settled.outcome, settled.usage.input, settled.usage.output), (Outcome::Complete, Some(3), Some(9)));
    let reader = world.closed().await;
    let row = reader.exchange("x1").unwrap().unwrap();
    assert_eq!(World::body(&reader, row.request_hash), BODY.as_bytes());
    assert_eq!(World::body(&reader, row.response_hash), EVENTS.concat().as_bytes());
    assert_eq!((row.usage.output, row.outcome, row.turn), (Some(9), Outcome::Complete, 1));
}

#[tokio::test]
async fn the_first_event_passes_before_the_second_exists() {
    let gate = Arc::new(Notify::new());
    let reply =
        Reply::sse_open().bytes(chunked(EVENTS[0])).gate(&gate).bytes(chunked(EVENTS[6])).bytes(&b"0\r\n\r\n"[..]);
    let world = World::new(Kind::Anthropic, vec![reply]).await;
    let mut client = world.client().await;
    client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    assert_eq!(client.receive_body_bytes(EVENTS[0].len()).await, EVENTS[0].as_bytes());
    gate.notify_one();
    assert_eq!(client.receive().await.text(), [EVENTS[0], EVENTS[6]].concat());
}

#[tokio::test]
async fn headers_of_the_answer_keep_their_names() {
    let head = "200 OK\r\ncontent-type: application/json\r\nrequest-id: req_1\r\nanthropic-ratelimit-unified-status: allowed\r\n\
        anthropic-ratelimit-unified-reset: 1790000000\r\nx-future: yes\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nkeep-alive: timeout=5\r\nx-gone: 1\r\nconnection: keep-alive, x-gone";
    let world = World::new(Kind::Anthropic, vec![Reply::whole(head, "{\"usage\":{}}")]).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!(answer.header("request-id"), Some("req_1"));
    assert_eq!(answer.header("anthropic-ratelimit-unified-status"), Some("allowed"));
    assert_eq!(answer.header("x-future"), Some("yes"));
    assert_eq!(answer.head.matches("set-cookie:").count(), 2);
    assert_eq!(
        (answer.header("keep-alive"), answer.header("x-gone"), answer.header("x-outlast-error")),
        (None, None, None)
    );
    let limits = world.settled().await.limits;
    assert_eq!(limits[1], ("anthropic-ratelimit-unified-reset".to_owned(), "1790000000".to_owned()));
}

#[tokio::test]
async fn count_tokens_is_the_providers_own_count() {
    let world = World::new(Kind::Anthropic, vec![Reply::json("{\"input_tokens\":4242}")]).await;
    let answer =
        world.post("/t/r1/tidy.2/v1/messages/count_tokens?beta=true", "{\"model\":\"m\",\"messages\":[]}").await;
    assert_eq!(answer.text(), "{\"input_tokens\":4242}");
    assert_eq!(world.provider.only().line(), "POST /v1/messages/count_tokens?beta=true");
    assert_eq!(world.admission.asks.lock().unwrap()[0].turn_kind, TurnKind::CountTokens);
    assert_eq!(world.settled().await.usage.input, None, "a count is no usage");
}

#[tokio::test]
async fn a_passed_refusal_keeps_status_headers_and_body() {
    let body = "{\"type\":\"error\",  \"error\":{\"type\":\"overloaded_error\"}}";
    let statuses = [
        "429 Too Many Requests",
        "529 ",
        "403 Forbidden",
        "500 Internal Server Error",
        "503 Busy Now",
        "400 Bad Request",
        "404 Not Found",
    ];
    let replies =
        statuses.iter().map(|s| Reply::whole(&format!("{s}\r\nretry-after: 2\r\nrequest-id: r"), body)).collect();
    let world = World::new(Kind::Anthropic, replies).await;
    for status in statuses {
        let answer = world.post("/v1/messages", "{}").await;
        assert_eq!(answer.head.lines().next().unwrap(), format!("HTTP/1.1 {status}"));
        assert_eq!(
            (answer.text(), answer.header("retry-after"), answer.header("request-id")),
            (body, Some("2"), Some("r"))
        );
        assert_eq!(world.settled().await.outcome, Outcome::Refused, "{status}");
        *world.admission.refusals.lock().unwrap() = Vec::new();
    }
    assert_eq!(world.provider.seen().len(), statuses.len());
}

#[tokio::test]
async fn an_error_event_in_mid_stream_is_forwarded_and_told() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let world = World::new(Kind::Anthropic, vec![sse(&[EVENTS[0], error])]).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.text(), answer.whole), ([EVENTS[0], error].concat().as_str(), true));
    let settled = world.settled().await;
    assert_eq!((settled.stream_error.as_deref(), settled.outcome), (Some("overloaded_error"), Outcome::Cut));
}

#[tokio::test]
async fn an_answer_without_a_body_was_not_left_by_its_client() {
    let world = World::new(Kind::Anthropic, vec![Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.whole, answer.text()), (200, true, ""));
    assert_eq!(world.settled().await.outcome, Outcome::Complete);
}

#[tokio::test]
async fn a_cut_upstream_is_a_cut_for_the_client() {
    let half = Reply::sse_open().bytes(chunked(EVENTS[0])).bytes(chunked(EVENTS[2])).cut();
    let short = Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"usage\":").cut();
    let mut world = World::new(Kind::Anthropic, vec![half, short]).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.whole), (200, false));
    assert_eq!(answer.text(), [EVENTS[0], EVENTS[2]].concat());
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.whole, answer.text()), (200, false, "{\"usage\":"));
    let rows = world.rows().await;
    assert_eq!(rows.iter().map(|r| r.outcome).collect::<Vec<_>>(), [Outcome::Cut, Outcome::Cut]);
    assert_eq!((rows[0].usage.input, rows[0].estimated), (Some(3), true));
    assert_eq!(rows[1].usage.input, None);
}

#[tokio::test]
async fn a_stream_without_its_own_end_counts_as_cut_though_the_transport_ended_well() {
    let world = World::new(Kind::Anthropic, vec![sse(&EVENTS[..3])]).await;
    assert!(world.post("/v1/messages", "{}").await.whole);
    assert_eq!(world.settled().await.outcome, Outcome::Cut);
}

#[tokio::test]
async fn the_bare_address_answers_a_probe_by_itself() {
    let world = World::new(Kind::Anthropic, vec![]).await;
    for target in ["HEAD /t/r1/tidy.2", "HEAD /"] {
        assert_eq!(world.send(target, b"").await.status, 200);
    }
    assert!(world.provider.seen().is_empty());
}

#[tokio::test]
async fn an_account_may_name_a_model_differently() {
    let provider = crate::support::Provider::start(vec![Reply::json("{}"), Reply::json("{}")]).await;
    let names = [("sonnet".to_owned(), "vendor/sonnet-5".to_owned())].into();
    let account =
        crate::support::upstream(Kind::Anthropic, &format!("{}/anthropic", provider.base_url())).with_models(names);
    let world = World::around(provider, account, |b| b).await;
    world.post("/v1/messages", "{ \"model\" : \"sonnet\" , \"n\":1}").await;
    world.post("/v1/messages", "{ \"model\" : \"opus\" }").await;
    let seen = world.provider.seen();
    assert_eq!(seen[0].line(), "POST /anthropic/v1/messages");
    assert_eq!(seen[0].body, b"{ \"model\" : \"vendor/sonnet-5\" , \"n\":1}");
    assert_eq!(seen[1].body, b"{ \"model\" : \"opus\" }");
}

#[tokio::test]
async fn openai_and_gemini_pass_the_same_way() {
    let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n: keep-alive\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    for (kind, target, auth, chunk) in [
        (Kind::OpenAi, "POST /v1/chat/completions", "authorization: Bearer ", chat),
        (
            Kind::OpenAi,
            "POST /responses",
            "authorization: Bearer ",
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}}\n\n",
        ),
        (
            Kind::Gemini,
            "POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            "x-goog-api-key: ",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":2}}\r\n\r\n",
        ),
    ] {
        let world = World::new(kind, vec![sse(&[chunk])]).await;
        let body = "{ \"model\":\"m\",\"tools\":[{}] , \"u\":null}";
        let answer = world.send(&format!("{target}\r\n{auth}{AGENT_KEY}"), body.as_bytes()).await;
        assert_eq!(answer.text(), chunk);
        let seen = world.provider.only();
        assert_eq!((seen.line(), seen.body.as_slice()), (target, body.as_bytes()));
        assert!(seen.head.contains(&format!("{auth}{CANARY}")) && !seen.head.contains(AGENT_KEY), "{}", seen.head);
        let settled = world.settled().await;
        assert_eq!(
            (settled.outcome, settled.usage.input, settled.usage.output),
            (Outcome::Complete, Some(10), Some(2)),
            "{target}"
        );
    }
}

#[tokio::test]
async fn the_list_of_models_is_the_providers() {
    let world = World::new(Kind::OpenAi, vec![Reply::json("{\"data\":[]}")]).await;
    let answer = world
        .send(&format!("GET /t/r1/tidy.2/models?client_version=1\r\nauthorization: Bearer {AGENT_KEY}"), b"")
        .await;
    assert_eq!((answer.text(), world.provider.only().line()), ("{\"data\":[]}", "GET /models?client_version=1"));
    assert_eq!(world.admission.asks.lock().unwrap()[0].turn_kind, TurnKind::Models);
}
