//! The account's key is seen by its provider and by nobody else, even when the provider shouts it.

use std::fs;
use std::path::Path;

use outlast_gateway::{Provider as Kind, Ruling};
use outlast_journal::Selection;

use crate::support::{AGENT_KEY, CANARY, Reply, World};

#[tokio::test]
async fn the_accounts_key_is_nowhere_but_at_the_provider() {
    let loud = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {CANARY}.\"}}}}");
    let mut replies: Vec<Reply> = ["401 Unauthorized", "403 Forbidden", "429 Wait", "500 Oops"]
        .iter()
        .map(|status| Reply::whole(&format!("{status}\r\nx-echo: key={CANARY};"), &loud))
        .collect();
    replies.push(Reply::whole(&format!("200 OK\r\nx-echo: {CANARY}"), "{}"));
    let count = replies.len();
    let mut world = World::new(Kind::Anthropic, replies).await;
    world.admission.rule(Ruling::Pass);
    let mut heard = String::new();
    for _ in 0..count {
        let answer = world.post("/v1/messages", "{\"model\":\"m\"}").await;
        assert!(answer.whole);
        heard.push_str(&answer.head);
        heard.push_str(answer.text());
        heard.push_str(&format!("{:?}", world.settled().await));
    }
    heard.push_str(&format!("{:?}", world.admission.refusals.lock().unwrap()));
    assert!(heard.contains("Incorrect API key provided: *****") && !heard.contains(CANARY), "{heard}");
    assert!(world.provider.seen().iter().all(|s| s.head.contains(CANARY)), "the search would find it");

    let reader = world.closed().await;
    let rows = reader.exchanges(&Selection::default()).unwrap();
    assert_eq!(rows.len(), count);
    let mut kept = format!("{rows:?}").into_bytes();
    for hash in rows.iter().flat_map(|r| [r.request_hash, r.response_hash]).flatten() {
        kept.extend(reader.body(&hash).unwrap().unwrap());
    }
    files(world.folder.path(), &mut kept);
    for secret in [CANARY, AGENT_KEY] {
        assert!(!contains(&kept, secret), "{secret} was kept");
    }
    fs::write(world.folder.path().join("planted"), CANARY).unwrap();
    files(world.folder.path(), &mut kept);
    assert!(contains(&kept, CANARY), "the search finds a planted copy");
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle.as_bytes())
}

fn files(folder: &Path, into: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), into);
        } else {
            into.extend(fs::read(entry.path()).unwrap());
        }
    }
}
