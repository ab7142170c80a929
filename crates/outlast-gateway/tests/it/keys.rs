//! Keys: who may ask, and what those hear who may not.

use std::time::Duration;

use outlast_core::AccountId;
use outlast_gateway::{Credentials, Denied, Provider as Kind, Repeated, Secret, Shape, Source, Timeouts, Upstream};

use crate::support::{AGENT_KEY, AgentKey, Provider, Reply, World};

#[tokio::test]
async fn a_wrong_or_void_key_is_answered_in_the_dialects_shape_and_nothing_is_sent() {
    for (kind, target, header, pointer, expected) in [
        (Kind::Anthropic, "POST /t/r1/tidy.2/v1/messages", "x-api-key: ", "/error/type", "authentication_error"),
        (Kind::OpenAi, "POST /v1/responses", "authorization: Bearer ", "/error/type", "invalid_request_error"),
        (Kind::OpenAi, "POST /v1/chat/completions", "authorization: Bearer ", "/error/type", "invalid_request_error"),
        (Kind::Gemini, "POST /v1beta/models/m:generateContent", "x-goog-api-key: ", "/error/status", "UNAUTHENTICATED"),
    ] {
        let world = World::new(kind, vec![Reply::json("{}")]).await;
        world.admission.set_key("void", AgentKey::Revoked);
        for (key, code) in [("wrong", "unknown_key"), ("void", "revoked_key")] {
            let answer = world.send(&format!("{target}\r\n{header}{key}"), b"{}").await;
            assert_eq!((answer.status, answer.header("x-outlast-error")), (401, Some(code)), "{target}");
            assert_eq!(answer.json().pointer(pointer).unwrap(), expected);
        }
        let without = world.send(target, b"{}").await;
        assert_eq!(without.header("x-outlast-error"), Some("unknown_key"));
        assert!(world.provider.seen().is_empty());
        assert!(world.admission.is_quiet().await, "what was not granted is not settled");
    }
}

#[tokio::test]
async fn a_gemini_key_in_the_query_does_not_go_upstream() {
    let world = World::new(Kind::Gemini, vec![Reply::json("{}")]).await;
    let answer = world.send(&format!("POST /v1beta/models/m:generateContent?key={AGENT_KEY}&alt=json"), b"{}").await;
    assert_eq!(answer.status, 200);
    assert_eq!(world.provider.only().line(), "POST /v1beta/models/m:generateContent?alt=json");
}

#[tokio::test]
async fn a_spent_budget_and_an_unknown_path_are_said_so() {
    let world = World::new(Kind::Anthropic, vec![]).await;
    world.admission.set_key("poor", AgentKey::OverBudget);
    let answer = world.send("POST /v1/messages\r\nx-api-key: poor", b"{}").await;
    assert_eq!((answer.status, answer.header("x-outlast-error")), (402, Some("budget")));
    assert_eq!(answer.json()["error"]["message"], "outlast: the task's budget is spent");
    let answer = world.send(&format!("POST /v1/files\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    assert_eq!((answer.status, answer.header("x-outlast-error")), (404, Some("not_served")));
}

#[tokio::test]
async fn a_path_that_climbs_is_refused_in_every_dialect_and_nothing_is_sent() {
    for (kind, paths) in [
        (
            Kind::Gemini,
            &["/v1beta/models/../files:generateContent", "/v1beta/models/%2e%2E%2ffiles:generateContent"][..],
        ),
        (Kind::Anthropic, &["/v1/../v1/messages", "/v1/%2e%2e/messages"]),
        (Kind::OpenAi, &["/v1/models/..", "/v1/models/%2E%2e", "/v1/./responses", "/v1/chat/../chat/completions"]),
    ] {
        let world = World::new(kind, vec![Reply::json("{}")]).await;
        for path in paths {
            for method in ["POST", "GET"] {
                let target =
                    format!("{method} {path}\r\nauthorization: Bearer {AGENT_KEY}\r\nx-goog-api-key: {AGENT_KEY}");
                let answer = world.send(&target, b"{}").await;
                assert_eq!((answer.status, answer.header("x-outlast-error")), (400, Some("path_climbs")), "{path}");
            }
        }
        assert!(world.provider.seen().is_empty());
    }
}

#[tokio::test]
async fn an_account_that_does_not_fit_is_refused_and_settled() {
    let world = World::new(Kind::Gemini, vec![]).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.header("x-outlast-error")), (502, Some("account_unusable")));
    assert_eq!(world.settled().await.exchange_id, "x1");
    *world.admission.account.lock().unwrap() = AccountId::from("no-such");
    assert_eq!(world.post("/v1/messages", "{}").await.header("x-outlast-error"), Some("account_unusable"));
    assert_eq!(world.settled().await.exchange_id, "x2");
}

#[tokio::test]
async fn an_overlong_request_is_refused_before_it_is_asked_for() {
    let world = World::with(Kind::Anthropic, vec![], |b| b.request_bytes_max(100)).await;
    let answer = world.post("/v1/messages", &"x".repeat(101)).await;
    assert_eq!((answer.status, answer.header("x-outlast-error")), (413, Some("request_too_long")));
    assert_eq!(answer.json()["error"]["type"], "request_too_large");
    assert!(world.admission.asks.lock().unwrap().is_empty());
}

#[tokio::test]
async fn one_that_says_that_it_is_overlong_need_not_be_sent_first() {
    let world = World::with(Kind::OpenAi, vec![], |b| b.request_bytes_max(100)).await;
    let mut client = world.client().await;
    let head = format!("POST /v1/chat/completions\r\nauthorization: Bearer {AGENT_KEY}\r\ncontent-length: 101");
    // Not a byte of its body follows.
    client.send(&head, b"").await;
    let answer = tokio::time::timeout(Duration::from_secs(10), client.receive()).await.expect("its body is waited for");
    assert_eq!((answer.status, answer.header("x-outlast-error")), (413, Some("request_too_long")));
    assert_eq!(answer.json()["error"]["code"], "request_too_long");
    assert!(world.admission.asks.lock().unwrap().is_empty());
}

#[tokio::test]
async fn of_whoever_has_no_key_no_long_request_is_read() {
    let world = World::new(Kind::Anthropic, vec![Reply::json("{}")]).await;
    for length in ["content-length: 100000", "transfer-encoding: chunked"] {
        let mut client = world.client().await;
        // Not a byte of its body follows.
        client.send(&format!("POST /v1/messages\r\nx-api-key: nobody's\r\n{length}"), b"").await;
        let answer = tokio::time::timeout(Duration::from_secs(10), client.receive()).await;
        assert_eq!(answer.expect("its body is waited for").status, 401, "{length}");
    }
    assert!(world.admission.asks.lock().unwrap().is_empty());
    let mut client = world.client().await;
    client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), &vec![b' '; 100_000]).await;
    assert_eq!(client.receive().await.status, 200);
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed_after_a_while() {
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let timeouts = Timeouts { client: Duration::from_millis(200), ..Timeouts::default() };
    let slow = Reply::default().gate(&gate).bytes(&b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"[..]);
    let world = World::with(Kind::Anthropic, vec![slow], |b| b.timeouts(timeouts)).await;
    // One that has said what it wants is not, however long its answer takes.
    let mut asks = world.client().await;
    asks.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    world.provider.arrival().await;
    for begun in ["", "POST /v1/messages HTTP/1.1\r\nhost: x\r\n"] {
        let mut client = world.client().await;
        client.write(begun.as_bytes()).await;
        let answer = tokio::time::timeout(Duration::from_secs(10), client.try_receive()).await;
        assert!(answer.is_ok(), "it is kept for ever after {begun:?}");
    }
    gate.notify_one();
    assert_eq!(asks.receive().await.status, 200);
}

#[tokio::test]
async fn logins_go_upstream_in_their_own_shape() {
    let codex = r#"{"tokens":{"access_token":"codex-token","account_id":"acc-7"}}"#;
    for (kind, shape, text, target, authorization, account_id) in [
        (Kind::Anthropic, Shape::ClaudeOauth, "claude-token", "POST /v1/messages", "Bearer claude-token", None),
        (Kind::OpenAi, Shape::CodexLogin, codex, "POST /v1/responses", "Bearer codex-token", Some("acc-7")),
    ] {
        let provider = Provider::start(vec![Reply::json("{}")]).await;
        let credentials = Credentials::new(shape, Source::Text(Secret::new(text)));
        let account = Upstream::new(AccountId::from("acc"), kind, &provider.base_url(), credentials).unwrap();
        let world = World::around(provider, account, |b| b).await;
        let head = format!(
            "{target}\r\nauthorization: Bearer {AGENT_KEY}\r\nchatgpt-account-id: made-up\r\nanthropic-beta: oauth-2025-04-20"
        );
        assert_eq!(world.send(&head, b"{}").await.status, 200);
        let seen = world.provider.only();
        assert_eq!(seen.all("authorization"), [authorization]);
        assert_eq!(seen.header("chatgpt-account-id").as_deref(), account_id);
        assert_eq!((seen.header("x-api-key"), seen.all("anthropic-beta")), (None, vec!["oauth-2025-04-20".to_owned()]));
    }
}

#[tokio::test]
async fn a_refused_credential_is_fetched_anew_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "old").unwrap();
    let refused = || Reply::whole("401 Unauthorized", "{}");
    let provider = Provider::start(vec![Reply::json("{}"), refused(), Reply::json("{}"), refused()]).await;
    let credentials = Credentials::new(Shape::Key, Source::File(path.clone()));
    let account = Upstream::new(AccountId::from("acc"), Kind::Anthropic, &provider.base_url(), credentials).unwrap();
    let world = World::around(provider, account, |b| b).await;
    assert_eq!(world.post("/v1/messages", "{}").await.status, 200);
    std::fs::write(&path, "new").unwrap();
    assert_eq!(world.post("/v1/messages", "{}").await.status, 200, "the new key was read");
    assert_eq!(world.post("/v1/messages", "{}").await.status, 401, "the same key is not tried twice");
    let keys: Vec<_> = world.provider.seen().iter().map(|s| s.header("x-api-key").unwrap()).collect();
    assert_eq!(keys, ["old", "old", "new", "new"]);
    assert_eq!(world.admission.refusals.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_refusal_for_good_is_repeated_until_the_file_holds_another_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "old").unwrap();
    let provider = Provider::start(vec![Reply::json("{}"), Reply::json("{}")]).await;
    let credentials = Credentials::new(Shape::Key, Source::File(path.clone()));
    let account = Upstream::new(AccountId::from("acc"), Kind::Anthropic, &provider.base_url(), credentials).unwrap();
    let world = World::around(provider, account, |b| b).await;
    assert_eq!(world.post("/v1/messages", "{}").await.status, 200);
    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"made-up"}}"#;
    let said = Repeated { account: AccountId::from("acc"), status: Some(401), body: body.into() };
    *world.admission.refused.lock().unwrap() = Some(Denied::Refused(Box::new(said)));
    for _ in 0..3 {
        let answer = world.post("/v1/messages", "{}").await;
        assert_eq!((answer.status, answer.text()), (401, body), "in the provider's own words");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    std::fs::write(&path, "new").unwrap();
    assert_eq!(world.post("/v1/messages", "{}").await.status, 200, "the new key was read");
    let keys: Vec<_> = world.provider.seen().iter().map(|s| s.header("x-api-key").unwrap()).collect();
    assert_eq!(keys, ["old", "new"]);
}

#[tokio::test]
async fn an_empty_balance_that_looks_like_a_broken_request_is_told_from_one() {
    let of = |message: &str| {
        let error = format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
        Reply::whole("400 Bad Request", &error)
    };
    let replies = vec![of("Your credit balance is too low to access the API."), of("messages: at least one is needed")];
    let world = World::new(Kind::Anthropic, replies).await;
    for _ in 0..2 {
        assert_eq!(world.post("/v1/messages", "{}").await.status, 400);
    }
    let kinds: Vec<_> = world.admission.refusals.lock().unwrap().iter().map(|refusal| refusal.kind).collect();
    assert_eq!(kinds, [outlast_gateway::RefusalKind::Billing]);
}

#[tokio::test]
async fn an_account_without_a_credential_is_never_called() {
    let provider = Provider::start(vec![]).await;
    let credentials = Credentials::new(Shape::Key, Source::Env("OUTLAST_TEST_NO_SUCH_KEY".to_owned()));
    let account = Upstream::new(AccountId::from("acc"), Kind::Anthropic, &provider.base_url(), credentials).unwrap();
    let world = World::around(provider, account, |b| b).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.header("x-outlast-error")), (502, Some("no_credential")));
    assert!(answer.text().contains("OUTLAST_TEST_NO_SUCH_KEY"));
    assert!(world.provider.seen().is_empty());
    let refusal = world.admission.refusals.lock().unwrap().pop().unwrap();
    assert_eq!((refusal.kind, refusal.status), (outlast_gateway::RefusalKind::Auth, None));
    assert_eq!(world.settled().await.outcome, outlast_journal::Outcome::Error);
}
