//! A paid answer is never lost: the client leaves, the gateway reads on.

use std::sync::Arc;

use outlast_gateway::Provider as Kind;
use outlast_journal::Outcome;
use tokio::sync::Notify;

use crate::support::{AGENT_KEY, Client, Reply, World, chunked};

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":30,\"output_tokens\":1}}}\n\n";
const REST: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":77}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

async fn ask(world: &World) -> Client {
    let mut client = world.client().await;
    client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{\"model\":\"claude-opus-4-8\"}").await;
    client
}

async fn assert_whole_answer_kept(world: &mut World, outcome: Outcome) {
    let settled = world.settled().await;
    let left = world.admission.left.lock().unwrap().iter().any(|exchange| exchange == "x1");
    assert_eq!(left, outcome == Outcome::ClientGone, "who has left early is told of");
    assert_eq!((settled.outcome, settled.usage.input, settled.usage.output), (outcome, Some(30), Some(77)));
    assert!(settled.usd_nanos.is_some() && settled.recorded);
    let reader = world.closed().await;
    let row = reader.exchange("x1").unwrap().unwrap();
    assert_eq!((row.outcome, row.usage.output), (outcome, Some(77)));
    assert_eq!(World::body(&reader, row.response_hash), [START, REST].concat().as_bytes());
}

#[tokio::test]
async fn leaving_in_mid_stream_loses_nothing() {
    let gate = Arc::new(Notify::new());
    let reply = Reply::sse_open().bytes(chunked(START)).gate(&gate).bytes(chunked(REST)).bytes(&b"0\r\n\r\n"[..]);
    let mut world = World::new(Kind::Anthropic, vec![reply]).await;
    let mut client = ask(&world).await;
    client.receive_body_bytes(START.len()).await;
    drop(client);
    gate.notify_one();
    assert_whole_answer_kept(&mut world, Outcome::ClientGone).await;
}

#[tokio::test]
async fn leaving_before_the_answer_began_loses_nothing() {
    let gate = Arc::new(Notify::new());
    let reply = Reply::default()
        .gate(&gate)
        .bytes(Reply::SSE_HEAD)
        .bytes(chunked(START))
        .bytes(chunked(REST))
        .bytes(&b"0\r\n\r\n"[..]);
    let mut world = World::new(Kind::Anthropic, vec![reply]).await;
    let client = ask(&world).await;
    world.provider.arrival().await;
    drop(client);
    gate.notify_one();
    assert_whole_answer_kept(&mut world, Outcome::ClientGone).await;
}

#[tokio::test]
async fn closing_right_after_the_last_event_is_not_leaving_early() {
    let gate = Arc::new(Notify::new());
    let reply = Reply::sse_open().bytes(chunked(START)).bytes(chunked(REST)).gate(&gate).bytes(&b"0\r\n\r\n"[..]);
    let mut world = World::new(Kind::Anthropic, vec![reply]).await;
    let mut client = ask(&world).await;
    client.receive_body_bytes(START.len() + REST.len()).await;
    drop(client);
    gate.notify_one();
    assert_whole_answer_kept(&mut world, Outcome::Complete).await;
}
