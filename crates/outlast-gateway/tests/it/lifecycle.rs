//! Listening, stopping, and what is under way then.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use outlast_gateway::{Error, Gateway, Provider as Kind};
use outlast_journal::{Journal, Ledger, Outcome};
use tokio::net::UnixStream;
use tokio::sync::Notify;

use crate::support::{AGENT_KEY, Client, Reply, TestAdmission, World, upstream};

#[tokio::test]
async fn agents_reach_it_over_a_socket_that_only_their_user_can_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let world = World::with(Kind::Anthropic, vec![Reply::json("{\"id\":1}")], |b| b.bind_unix(&path)).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = Client::over(UnixStream::connect(&path).await.unwrap());
    client.send(&format!("POST /t/r1/tidy.2/v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    assert_eq!(client.receive().await.text(), "{\"id\":1}");
    assert_eq!(world.settled().await.outcome, Outcome::Complete);
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let world =
        World::new(Kind::Anthropic, vec![Reply::json("1"), crate::support::sse(&["data: 2\n\n"]), Reply::json("3")])
            .await;
    let mut client = world.client().await;
    for expected in ["1", "data: 2\n\n", "3"] {
        client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
        assert_eq!(client.receive().await.text(), expected);
    }
}

#[tokio::test]
async fn stopping_breaks_off_what_waits_and_finishes_what_is_paid_for() {
    let gate = Arc::new(Notify::new());
    let mut world = World::new(
        Kind::Anthropic,
        vec![Reply::default().gate(&gate).bytes(&b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"[..])],
    )
    .await;
    let mut paid = world.client().await;
    paid.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    world.provider.arrival().await;
    *world.admission.shut.lock().unwrap() = true;
    let mut waiting = world.client().await;
    waiting.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    world.admission.waits.notified().await;

    world.begin_stop();
    assert_eq!(
        waiting.try_receive().await,
        None,
        "a hold ends without an answer, so that its sender keeps the request"
    );
    gate.notify_one();
    assert_eq!(paid.receive().await.text(), "{}");
    assert_eq!(world.stop().await, 0);
    assert_eq!(world.settled().await.outcome, Outcome::Complete);
    assert_eq!(world.rows().await.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let builder = || {
        let admission = Arc::new(TestAdmission::default());
        Gateway::builder()
            .admission(admission)
            .ledger(ledger.clone())
            .upstreams(vec![upstream(Kind::Anthropic, "http://127.0.0.1:1")])
    };
    assert!(matches!(builder().build().await, Err(Error::Incomplete("listener"))));
    let everywhere = builder().bind_tcp("0.0.0.0:0".parse().unwrap()).build().await;
    assert!(matches!(everywhere, Err(Error::NotLoopback(_))));
    let loopback = "127.0.0.1:0".parse().unwrap();
    let twice = vec![upstream(Kind::Anthropic, "http://h"), upstream(Kind::OpenAi, "http://h")];
    assert!(matches!(builder().upstreams(twice).bind_tcp(loopback).build().await, Err(Error::DuplicateAccount(_))));

    let path = folder.path().join("s");
    let _first = builder().bind_unix(&path).build().await.unwrap();
    assert!(
        matches!(builder().bind_unix(&path).build().await, Err(Error::BindUnix { .. })),
        "a living socket is not taken"
    );
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    assert!(builder().bind_unix(folder.path().join("file")).build().await.is_err());
    assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "mine");
}
