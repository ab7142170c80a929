//! Snapshots: the last two are kept, and one that is not whole is never used.

use outlast_journal::{Error, Journal, Snapshot};
use rusqlite::Connection;

use crate::support::{entry, read_all};

#[test]
fn the_last_two_are_kept_and_a_damaged_one_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.snapshot_load().unwrap(), None);
    journal.append((1..=30).map(|revision| entry("run/a", revision)).collect()).unwrap();
    let state = |seq: u64| format!("state after {seq} ").repeat(500).into_bytes();
    let saved = |seq| Snapshot { seq, version: 3, bytes: state(seq) };
    for seq in [10, 20, 30] {
        journal.snapshot_save(seq, 3, &state(seq)).unwrap();
        assert_eq!(journal.snapshot_load().unwrap(), Some(saved(seq)));
    }
    assert!(matches!(journal.snapshot_save(31, 3, b"?"), Err(Error::Ahead { seq: 31, last: 30 })));
    drop(journal);
    let damage = |sql: &str| {
        let connection = Connection::open(&path).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
        connection.close().unwrap();
        Journal::open(&path).unwrap().snapshot_load().unwrap()
    };
    // The same bytes under another number or version are another snapshot.
    assert_eq!(damage("UPDATE snapshot SET version = 4 WHERE seq = 30"), Some(saved(20)));
    assert_eq!(damage("UPDATE snapshot SET version = 3 WHERE seq = 30"), Some(saved(30)));
    let flip =
        "UPDATE snapshot SET bytes = CAST(substr(bytes, 1, 40) || x'00' || substr(bytes, 42) AS BLOB) WHERE seq = ";
    assert_eq!(damage(&format!("{flip}30")), Some(saved(20)));
    assert_eq!(damage("UPDATE snapshot SET bytes = x'' WHERE seq = 20"), None);
    assert_eq!(read_all(&path).unwrap().len(), 30, "everything can still be replayed");
}

#[test]
fn a_snapshot_ahead_of_the_records_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    journal.append((1..=5).map(|revision| entry("run/a", revision)).collect()).unwrap();
    journal.snapshot_save(3, 1, b"three").unwrap();
    journal.snapshot_save(5, 1, b"five").unwrap();
    drop(journal);
    let connection = Connection::open(&path).unwrap();
    connection.execute("DELETE FROM record WHERE seq > 3", []).unwrap();
    connection.close().unwrap();
    let loaded = Journal::open(&path).unwrap().snapshot_load().unwrap().unwrap();
    assert_eq!((loaded.seq, &loaded.bytes[..]), (3, &b"three"[..]));
}
