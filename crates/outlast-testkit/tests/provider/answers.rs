//! What the provider answers when nothing goes wrong, and what it refuses by itself.

use http::Method;
use outlast_testkit::provider::Script;
use serde_json::{Value, json};

use crate::client::send;
use crate::way::{GOAL, WAYS, Way, start};

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
    assert_eq!(ask(Method::GET, "/v1/models?client_version=1", &[]).await.json(), json!({"models": []}));
    assert_eq!(ask(Method::POST, "/v1/messages/count_tokens", &[]).await.json()["input_tokens"], 4);
    assert_eq!(ask(Method::POST, "/v1/elsewhere", &[]).await.status, 404);
    assert_eq!(provider.model_requests().await.len(), 0);
    assert_eq!(provider.log().await.len(), 7);
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
