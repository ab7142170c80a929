//! Appending, replaying, and who shares a commit with whom.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};

use outlast_journal::{Entry, Error, Journal, JournalReader};

use crate::support::{entry, read_all};

#[test]
fn what_is_appended_is_replayed_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut entries: Vec<Entry> = (1..=50).map(|revision| entry("task/文档", revision)).collect();
    entries[7].body = "{\"text\":\"é\\u0000\u{1f980}\"}".to_owned();
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.append(entries[..20].to_vec()).unwrap(), 20);
    assert_eq!(journal.append(entries[20..].to_vec()).unwrap(), 50);
    assert_eq!(journal.append(Vec::new()).unwrap(), 50);
    drop(journal);
    assert_eq!(read_all(&path).unwrap(), entries);
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.last_seq(), 50);
    let mut tail = Vec::new();
    let last = journal.replay(45, |seq, entry| {
        tail.push((seq, entry.revision));
        Ok::<_, Error>(())
    });
    assert_eq!((last.unwrap(), tail), (50, (46..=50).map(|n| (n, n)).collect()));
    assert_eq!(journal.replay(50, |_, _| Err(Error::TooLarge { what: "call", value: 1 })).unwrap(), 50);
}

#[test]
fn the_first_error_of_the_callback_ends_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    journal.append((1..=9).map(|revision| entry("run/a", revision)).collect()).unwrap();
    let mut seen = 0;
    let ended = journal.replay(0, |seq, _| {
        seen = seq;
        if seq == 4 { Err(Error::TooLarge { what: "test", value: seq }) } else { Ok(()) }
    });
    assert!(matches!(ended, Err(Error::TooLarge { value: 4, .. })));
    assert_eq!(seen, 4);
}

#[test]
fn a_taken_revision_refuses_its_batch_and_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    journal.append(vec![entry("run/a", 1)]).unwrap();
    let before = journal.commits();
    // The writer is busy with the first while the others queue up, so they share transactions.
    let pending: Vec<_> = (1..=300)
        .map(|n| {
            let taken = n % 10 == 0;
            let last = if taken { entry("run/a", 1) } else { entry(&format!("task/{n}"), 2) };
            (n, taken, journal.append_later(vec![entry(&format!("task/{n}"), 1), last]))
        })
        .collect();
    let mut written = vec![entry("run/a", 1)];
    for (n, taken, pending) in pending {
        match pending.wait() {
            Err(Error::Revision { stream, revision }) => {
                assert_eq!((taken, &*stream, revision), (true, "run/a", 1));
            }
            other => {
                assert!(!taken);
                assert_eq!(other.unwrap(), written.len() as u64 + 2);
                written.extend([entry(&format!("task/{n}"), 1), entry(&format!("task/{n}"), 2)]);
            }
        }
    }
    assert!(journal.commits() - before < 150, "{} commits for 300 batches", journal.commits() - before);
    assert_eq!(read_all(&path).unwrap(), written);
    assert!(matches!(journal.append(vec![entry("b", 1), entry("b", 1)]), Err(Error::Revision { .. })));
    let too_large = Entry { revision: u64::MAX, ..entry("b", 1) };
    assert!(matches!(journal.append(vec![too_large]), Err(Error::TooLarge { .. })));
    assert_eq!(journal.last_seq(), written.len() as u64);
}

#[test]
fn many_appenders_share_few_fsyncs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    std::thread::scope(|scope| {
        for appender in 0..64 {
            let journal = journal.clone();
            scope.spawn(move || {
                for revision in 1..=20 {
                    journal.append(vec![entry(&format!("task/{appender}"), revision)]).unwrap();
                }
            });
        }
    });
    assert_eq!(journal.last_seq(), 64 * 20);
    assert!(journal.commits() <= 64 * 20 / 4, "{} commits for {} appends", journal.commits(), 64 * 20);
    let mut entries = read_all(&path).unwrap();
    entries.sort_by(|a, b| (&a.stream, a.revision).cmp(&(&b.stream, b.revision)));
    let mut expected: Vec<Entry> =
        (0..64).flat_map(|n| (1..=20).map(move |revision| entry(&format!("task/{n}"), revision))).collect();
    expected.sort_by(|a, b| (&a.stream, a.revision).cmp(&(&b.stream, b.revision)));
    assert_eq!(entries, expected);
}

struct Wakes(Sender<()>);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn an_append_can_be_awaited_without_any_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let (sender, woken) = channel();
    let waker = Waker::from(Arc::new(Wakes(sender)));
    let mut pending = pin!(journal.append_later(vec![entry("run/a", 1), entry("run/a", 2)]));
    let seq = loop {
        match pending.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => break answer.unwrap(),
            Poll::Pending => woken.recv().unwrap(),
        }
    };
    assert_eq!((seq, journal.last_seq()), (2, 2));
}

#[test]
fn a_reader_sees_the_writer_of_another_connection_and_never_blocks_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    assert!(matches!(JournalReader::open(&path), Err(Error::Missing { .. })));
    let journal = Journal::open(&path).unwrap();
    journal.append((1..=100).map(|revision| entry("run/a", revision)).collect()).unwrap();
    let reader = JournalReader::open(&path).unwrap();
    let before = reader.data_version().unwrap();
    assert_eq!(before, reader.data_version().unwrap());
    let mut seen = 0;
    reader
        .replay(0, |seq, _| {
            if seq == 50 {
                journal.append(vec![entry("run/a", 101)])?;
            }
            seen = seq;
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(seen, 100, "a replay is of one moment");
    assert_ne!(before, reader.data_version().unwrap());
    assert_eq!(reader.last_seq().unwrap(), 101);
}
