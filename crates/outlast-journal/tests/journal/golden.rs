//! The files of every released schema are read for ever; `tests/golden/README.md` says how they came to be.

use std::fs;
use std::path::{Path, PathBuf};

use outlast_core::Timestamp;
use outlast_journal::{BodyHash, Closing, Entry, Journal, JournalReader, Ledger, Outcome, Selection, Snapshot, Usage};
use rusqlite::Connection;

use crate::support::{closing, head, opening, read_all};

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version)
}

/// The entries in the golden journal of version 1.
fn entries() -> Vec<Entry> {
    let entry = |stream: &str, revision, version, body: &str| Entry {
        stream: stream.to_owned(),
        revision,
        at: Timestamp::from_millis(1_780_000_000_000 + i64::try_from(revision).unwrap()),
        version,
        body: body.to_owned(),
    };
    vec![
        entry("host", 1, 1, r#"{"type":"run_started","run":"migrate-7f3a"}"#),
        entry("run/migrate-7f3a", 1, 1, r#"{"type":"plan_taken","tasks":2}"#),
        entry("task/migrate-7f3a/文档.Client", 1, 1, r#"{"type":"attempt_started","number":1,"epoch":1}"#),
        entry("task/migrate-7f3a/文档.Client", 2, 2, "{\"type\":\"attempt_ended\",\"note\":\"\u{1f980}\"}"),
        entry("host", 9_007_199_254_740_993, 65_535, "{}"),
    ]
}

const REQUEST: &[u8] = b"{\"model\": \"sonnet\", \"messages\": []}";
const ANSWER: &[u8] = b"event: message_stop\ndata: {}\n\n";

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(|file| file.unwrap().path()) {
        let target = to.join(file.file_name().unwrap());
        if file.is_dir() {
            copy(&file, &target);
        } else {
            fs::copy(&file, &target).unwrap();
        }
    }
}

#[test]
fn the_journal_of_version_1_is_read_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    copy(&golden("v1"), folder.path());
    let path = folder.path().join("journal.db");
    assert_eq!(read_all(&path).unwrap(), entries());
    let reader = JournalReader::open(&path).unwrap();
    let snapshot = Snapshot { seq: 4, version: 7, bytes: b"{\"state\":4}".to_vec() };
    assert_eq!(reader.snapshot_load().unwrap(), Some(snapshot));
    let row = reader.exchange("whole").unwrap().unwrap();
    assert_eq!((row.attempt, row.status, row.outcome), (opening("", 1).attempt, Some(200), Outcome::Complete));
    assert_eq!(row.usage, closing(Outcome::Complete).usage);
    assert_eq!(reader.body(&row.request_hash.unwrap()).unwrap().unwrap(), REQUEST);
    assert_eq!(reader.body(&row.response_hash.unwrap()).unwrap().unwrap(), ANSWER);
    let row = reader.exchange("refused").unwrap().unwrap();
    assert_eq!((row.usage, row.usd_nanos, row.response_hash), (Usage::default(), None, None));
    assert_eq!((row.outcome, row.ended_at), (Outcome::Refused, Some(Timestamp::from_millis(1_900))));
}

#[test]
fn the_spool_of_each_version_is_recovered_for_ever() {
    for version in ["v1", "spool2"] {
        recovered(version);
    }
}

fn recovered(version: &str) {
    let folder = tempfile::tempdir().unwrap();
    copy(&golden(version), folder.path());
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let (_ledger, recovery) = Ledger::open(&journal).unwrap();
    // The third file's exchange is in the ledger already.
    assert_eq!(recovery.kept, ["cut", "ended"]);
    let reader = journal.reader().unwrap();
    let row = reader.exchange("cut").unwrap().unwrap();
    assert_eq!((row.outcome, row.ended_at, row.status), (Outcome::Cut, None, Some(200)));
    assert_eq!(reader.body(&row.response_hash.unwrap()).unwrap().unwrap(), ANSWER[..10]);
    let row = reader.exchange("ended").unwrap().unwrap();
    assert_eq!((row.outcome, row.usage), (Outcome::ClientGone, closing(Outcome::Complete).usage));
    assert_eq!(row.response_hash, Some(BodyHash::of(ANSWER)));
    assert_eq!(reader.exchanges(&Selection::default()).unwrap().len(), 4);
    assert_eq!(journal.append(vec![Entry { revision: 2, ..entries().remove(0) }]).unwrap(), 6);
}

#[test]
#[ignore = "makes the golden files of the present version; they are made once"]
fn make() {
    let target = golden("spool2");
    assert!(!target.exists(), "{} is there; it must never change", target.display());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    journal.append(entries()).unwrap();
    journal.snapshot_save(4, 7, b"{\"state\":4}").unwrap();
    // All four at once, so that each has a file of its own.
    let [whole, refused, cut, ended] = ["whole", "refused", "cut", "ended"].map(|exchange| {
        let mut spool = ledger.begin(&opening(exchange, 1), REQUEST).unwrap();
        spool.answer(&head()).unwrap();
        spool
    });
    let (mut whole, mut cut, mut ended) = (whole, cut, ended);
    whole.write(ANSWER).unwrap();
    cut.write(&ANSWER[..10]).unwrap();
    ended.write(ANSWER).unwrap();
    let unknown = Closing { usage: Usage::default(), usd_nanos: None, ..closing(Outcome::Refused) };
    refused.finish(unknown).wait().unwrap();
    // While another holds the database, an exchange that has ended is in its spool file alone.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let whole = whole.finish(closing(Outcome::Complete));
    let ended = ended.finish(closing(Outcome::ClientGone));
    copy(&folder.path().join("spool"), &target.join("spool"));
    other.execute_batch("ROLLBACK").unwrap();
    whole.wait().unwrap();
    drop(journal);
    // The database as it is without the last two, which only the spool has: they are taken out again.
    ended.wait().unwrap();
    drop((cut, ledger));
    other
        .execute_batch("DELETE FROM exchange WHERE exchange IN ('cut', 'ended'); PRAGMA wal_checkpoint(TRUNCATE);")
        .unwrap();
    other.close().unwrap();
    copy(&folder.path().join("blobs"), &target.join("blobs"));
    fs::copy(&path, target.join("journal.db")).unwrap();
}
