//! Refusals that an agent never sees, and what becomes of those it must see.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use outlast_core::AccountId;
use outlast_gateway::{Credentials, Provider as Kind, RefusalKind, Ruling, Secret, Shape, Source, Timeouts, Upstream};
use outlast_journal::Outcome;

use crate::support::{AGENT_KEY, CANARY, Provider, Reply, World, upstream};

#[tokio::test]
async fn a01_a_refusal_with_a_stated_time_is_held_and_answered_once_with_the_later_answer() {
    let replies = vec![
        Reply::whole(
            "429 Too Many Requests\r\nretry-after: 1\r\nx-ratelimit-remaining-requests: 0",
            "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}",
        ),
        Reply::json("{\"id\":\"later\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}"),
    ];
    let mut world = World::new(Kind::Anthropic, replies).await;
    world.admission.rule(Ruling::Again);
    let begun = Instant::now();
    let answer = world.post("/v1/messages", "{\"model\":\"m\"}").await;
    assert_eq!((answer.status, answer.json()["id"].as_str()), (200, Some("later")));
    assert!(begun.elapsed() >= Duration::from_secs(1), "asked again before the stated time");
    assert_eq!(world.provider.seen().len(), 2);
    assert_eq!(world.provider.seen()[0].body, world.provider.seen()[1].body);

    let refusal = world.admission.refusals.lock().unwrap()[0].clone();
    assert_eq!((refusal.exchange_id.as_str(), refusal.status, refusal.kind), ("x1", Some(429), RefusalKind::Limit));
    assert_eq!(refusal.retry_at.unwrap().since(refusal.at), Duration::from_secs(1));
    assert_eq!(refusal.limits.len(), 2);
    assert!(refusal.excerpt.contains("rate_limit_error"));
    let asks = world.admission.asks.lock().unwrap().clone();
    assert_eq!(asks.iter().map(|a| a.again_after.as_deref()).collect::<Vec<_>>(), [None, Some("x1")]);
    assert_eq!(asks[0].received_at, asks[1].received_at);
    let outcomes = [world.settled().await, world.settled().await].map(|s| (s.exchange_id, s.outcome));
    assert_eq!(outcomes, [("x1".to_owned(), Outcome::Refused), ("x2".to_owned(), Outcome::Complete)]);
    let rows = world.rows().await;
    assert_eq!(
        rows.iter().map(|r| (r.status, r.usage.output)).collect::<Vec<_>>(),
        [(Some(429), None), (Some(200), Some(2))]
    );
}

/// How many bytes this process has in files of a folder that have no name any more.
fn nameless_bytes(folder: &Path) -> u64 {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
    let nameless = open.filter(|fd| {
        let target = std::fs::read_link(fd).unwrap_or_default();
        target.starts_with(folder) && target.to_string_lossy().ends_with("(deleted)")
    });
    nameless.filter_map(|fd| Some(fd.metadata().ok()?.len())).sum()
}

#[tokio::test]
async fn a_long_request_that_is_held_waits_on_disk_and_goes_out_as_it_came() {
    const LEN: usize = 3 << 20;
    let world = World::new(Kind::Anthropic, vec![Reply::json("{}"), Reply::json("{}")]).await;
    *world.admission.holds.lock().unwrap() = true;
    let body = format!("{{\"model\":\"m\",\"messages\":\"{}\"}}", "said ".repeat(LEN / 5));
    let head = format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}");
    let (mut first, mut second) = (world.client().await, world.client().await);
    first.send(&head, body.as_bytes()).await;
    world.admission.waits.notified().await;
    second.send(&head, b"{}").await;
    world.admission.waits.notified().await;
    let on_disk = async {
        while nameless_bytes(world.folder.path()) < body.len() as u64 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), on_disk).await.expect("it waits in memory");
    assert_eq!(nameless_bytes(world.folder.path()), body.len() as u64, "a short one stays where it is");
    world.admission.goes.notify_waiters();
    assert_eq!((first.receive().await.status, second.receive().await.status), (200, 200));
    let mut seen: Vec<Vec<u8>> = world.provider.seen().into_iter().map(|request| request.body).collect();
    seen.sort_by_key(Vec::len);
    assert!(seen == [b"{}".to_vec(), body.into_bytes()], "{:?}", seen.iter().map(Vec::len).collect::<Vec<_>>());
    assert_eq!(nameless_bytes(world.folder.path()), 0, "nothing is left of it");
}

#[tokio::test]
async fn a_client_that_leaves_a_hold_costs_nothing_more() {
    let world = World::new(Kind::Anthropic, vec![Reply::whole("429 Wait\r\nretry-after: 300", "{}")]).await;
    world.admission.rule(Ruling::Again);
    let mut client = world.client().await;
    client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
    world.admission.waits.notified().await;
    drop(client);
    assert_eq!(world.settled().await.outcome, Outcome::Refused);
    assert_eq!(world.provider.seen().len(), 1);
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_a_refusal_without_a_status() {
    let provider = Provider::start(vec![Reply::default().cut(), Reply::json("{}")]).await;
    let account = upstream(Kind::Anthropic, &provider.base_url());
    let world = World::around(provider, account, |b| b).await;
    world.admission.rule(Ruling::Again);
    assert_eq!(world.post("/v1/messages", "{}").await.status, 200, "asked again after the line broke");
    let refusal = world.admission.refusals.lock().unwrap().pop().unwrap();
    assert_eq!((refusal.status, refusal.kind, refusal.retry_at), (None, RefusalKind::Network, None));
    assert_eq!(world.settled().await.outcome, Outcome::Error);

    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let account = upstream(Kind::OpenAi, &format!("http://{closed}"));
    let world = World::around(Provider::start(vec![]).await, account, |b| b).await;
    let answer = world.send(&format!("POST /v1/chat/completions\r\nauthorization: Bearer {AGENT_KEY}"), b"{}").await;
    assert_eq!((answer.status, answer.header("x-outlast-error")), (502, Some("upstream_unreachable")));
    assert_eq!(answer.json()["error"]["type"], "server_error");
    assert!(!answer.text().contains(CANARY));
}

#[tokio::test]
async fn a_silent_provider_is_a_broken_one() {
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let replies = vec![
        Reply::sse_open().bytes(crate::support::chunked("data: {}\n\n")).gate(&gate),
        Reply::default().gate(&gate),
    ];
    let timeouts =
        Timeouts { idle: Duration::from_millis(200), head: Duration::from_millis(200), ..Timeouts::default() };
    let world = World::with(Kind::Anthropic, replies, |b| b.timeouts(timeouts)).await;
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!((answer.status, answer.whole, answer.text()), (200, false, "data: {}\n\n"));
    assert_eq!(world.settled().await.outcome, Outcome::Cut);
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!(answer.header("x-outlast-error"), Some("upstream_unreachable"));
}

#[tokio::test]
async fn a_paid_answer_that_is_kept_back_is_read_on_while_its_provider_need_not_wait() {
    let taken = std::sync::Arc::new(tokio::sync::Notify::new());
    // More than sockets hold on the way.
    let piece = format!("data: {}\n\n", "x".repeat(64 << 10));
    let reply = (0..100).fold(Reply::sse_open(), |reply, _| reply.bytes(crate::support::chunked(&piece)));
    let mut world = World::new(Kind::Anthropic, vec![reply.bytes(&b"0\r\n\r\n"[..]).tell(&taken).cut()]).await;
    *world.admission.keeps_back.lock().unwrap() = true;
    let mut client = world.client().await;
    client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{\"model\":\"m\"}").await;
    let taken = tokio::time::timeout(Duration::from_secs(10), taken.notified()).await;
    assert!(taken.is_ok(), "the provider is kept waiting, and breaks the answer off");
    world.admission.kept.notify_one();
    let answer = client.receive().await;
    assert_eq!((answer.status, answer.whole, answer.text() == piece.repeat(100)), (200, true, true));
    let row = world.rows().await.remove(0);
    assert_eq!(row.response_bytes, 100 * piece.len() as u64);
}

#[test]
fn a_request_for_which_no_file_can_be_opened_is_held() {
    // The limit is of a whole process.
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "holding::with_no_file_left", "--ignored", "--nocapture"]);
    assert!(child.status().unwrap().success());
}

#[tokio::test]
#[ignore = "its parent runs it in a process of its own"]
async fn with_no_file_left() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), CANARY).unwrap();
    let from_file = || Credentials::new(Shape::Key, Source::File(key.path().to_owned()));
    let from_memory = || Credentials::new(Shape::Key, Source::Text(Secret::new(CANARY)));
    for credentials in [from_memory(), from_file()] {
        let provider = Provider::start(vec![Reply::json("{}")]).await;
        let account =
            Upstream::new(AccountId::from("acc"), Kind::Anthropic, &provider.base_url(), credentials).unwrap();
        let world = World::around(provider, account, |b| b).await;
        let mut client = world.client().await;
        client.send("GET /nothing", b"").await;
        assert_eq!(client.receive().await.status, 404, "its connection is served");
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 3, hard).unwrap();
        client.send(&format!("POST /v1/messages\r\nx-api-key: {AGENT_KEY}"), b"{}").await;
        let answered = tokio::time::timeout(Duration::from_millis(500), client.receive()).await;
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        assert!(answered.is_err(), "{answered:?}");
        assert_eq!(client.receive().await.status, 200);
        assert!(world.admission.refusals.lock().unwrap().is_empty(), "no account is at fault");
    }
}
