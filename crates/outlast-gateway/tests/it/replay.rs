//! Answers that were paid for before, given again out of the ledger.

use outlast_core::AccountId;
use outlast_gateway::{Grant, Provider as Kind, Recorded, recorded_request};
use outlast_journal::Outcome;

use crate::support::{AGENT_KEY, Reply, World};

const ANSWER: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn recorded() -> Recorded {
    let headers =
        r#"{"content-type":"text/event-stream","x-many":["1","2"],"content-length":"7","x-outlast-request":"old"}"#;
    Recorded {
        of: "x0".to_owned(),
        grant: Grant { exchange_id: "x1".to_owned(), attempt: None, account: AccountId::from("acc"), turn: 4 },
        status: 200,
        headers: headers.to_owned(),
        body: ANSWER.into(),
    }
}

#[tokio::test]
async fn an_answer_out_of_the_ledger_is_whole_and_costs_nothing_and_nobody_is_asked() {
    let mut world = World::new(Kind::Anthropic, vec![Reply::json("{}")]).await;
    *world.admission.recorded.lock().unwrap() = Some(recorded());
    let answer = world.post("/t/r1/t.1/v1/messages", "{\"model\":\"m\"}").await;
    assert_eq!((answer.status, answer.whole, answer.text()), (200, true, ANSWER));
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!((answer.header("x-outlast-replay-of"), answer.header("x-outlast-request")), (Some("x0"), None));
    assert_eq!(world.provider.seen().len(), 0);

    let settled = world.settled().await;
    assert!(settled.replayed && settled.recorded);
    assert_eq!((settled.exchange_id.as_str(), settled.outcome, settled.usd_nanos), ("x1", Outcome::Complete, Some(0)));
    let name = world.admission.asks.lock().unwrap()[0].request.clone();
    let reader = world.closed().await;
    let row = reader.exchange("x1").unwrap().unwrap();
    assert_eq!((row.outcome, row.turn, row.usage.output, row.usd_nanos), (Outcome::Complete, 4, Some(0), Some(0)));
    assert_eq!(recorded_request(&row.headers), Some(name));
    assert!(row.headers.contains(r#""x-outlast-replay-of":"x0""#), "{}", row.headers);
    assert_eq!(World::body(&reader, row.response_hash), ANSWER.as_bytes());
}

#[tokio::test]
async fn one_whose_client_leaves_before_it_passes_has_not_arrived() {
    let mut world = World::new(Kind::Anthropic, vec![]).await;
    *world.admission.recorded.lock().unwrap() = Some(recorded());
    *world.admission.keeps_back.lock().unwrap() = true;
    let mut client = world.client().await;
    client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    world.admission.waits.notified().await;
    drop(client);
    assert_eq!(world.settled().await.outcome, Outcome::ClientGone);
    let reader = world.closed().await;
    assert_eq!(reader.exchange("x1").unwrap().unwrap().outcome, Outcome::ClientGone);
}

#[tokio::test]
async fn a_request_has_a_name_of_its_bytes_and_its_path_and_of_nothing_else() {
    let replies = (0..7).map(|_| Reply::json("{}")).collect();
    let mut world = World::new(Kind::Gemini, replies).await;
    let head = |path: &str| format!("POST /t/r1/t.1/v1beta/models/{path}\r\nx-goog-api-key: {AGENT_KEY}");
    let with_key = format!("m:generateContent?key={AGENT_KEY}&a=1");
    let paths = ["m:generateContent", "m:generateContent", "n:generateContent", "m:streamGenerateContent?alt=sse"];
    for path in paths.iter().copied().chain(["m:generateContent?a=1", &with_key]) {
        assert_eq!(world.send(&head(path), b"{}").await.status, 200, "{path}");
    }
    let names: Vec<String> = world.admission.asks.lock().unwrap().iter().map(|ask| ask.request.clone()).collect();
    assert_eq!(names[0], names[1]);
    assert_eq!(names[4], names[5], "a key is no part of it");
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), 4, "{names:?}");
    // Nothing is given again to whoever is no attempt.
    let client = format!("POST /v1beta/models/{}\r\nx-goog-api-key: {AGENT_KEY}", paths[0]);
    assert_eq!(world.send(&client, b"{}").await.status, 200);
    assert_eq!(world.admission.asks.lock().unwrap().last().unwrap().request, "");
    let rows = world.rows().await;
    assert_eq!(recorded_request(&rows[0].headers).as_ref(), Some(&names[0]));
}
