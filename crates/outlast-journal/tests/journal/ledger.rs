//! Exchanges: their spool, their bodies, their rows, and what is left of them after a crash.

use std::fs;
use std::path::Path;

use nix::sys::resource::{Resource, setrlimit};
use outlast_core::{AttemptId, RunId, TaskId, Timestamp};
use outlast_journal::{BodyHash, Closing, Error, ExchangeRow, Journal, JournalReader, Ledger, Outcome, Recovery};
use outlast_journal::{Reckoning, Selection, Spool, Totals, Usage};

use crate::golden::copy;
use crate::support::{closing, entry, head, opening};

struct Open {
    folder: tempfile::TempDir,
    journal: Journal,
    ledger: Ledger,
}

fn open() -> Open {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let (ledger, recovery) = Ledger::open(&journal).unwrap();
    assert_eq!(recovery, Recovery::default());
    Open { folder, journal, ledger }
}

impl Open {
    fn begin(&self, exchange: &str, request: &[u8], answer: &[&[u8]]) -> Spool {
        let mut spool = self.ledger.begin(&opening(exchange, 1), request).unwrap();
        spool.answer(&head()).unwrap();
        for part in answer {
            spool.write(part).unwrap();
        }
        spool
    }

    fn row(&self, exchange: &str) -> ExchangeRow {
        self.journal.reader().unwrap().exchange(exchange).unwrap().unwrap()
    }

    fn body(&self, hash: Option<BodyHash>) -> Vec<u8> {
        self.journal.reader().unwrap().body(&hash.unwrap()).unwrap().unwrap()
    }
}

/// Bytes that do not compress, the same for the same `seed`.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn files(folder: &Path, name: &str) -> Vec<(String, u64)> {
    let mut files: Vec<_> = fs::read_dir(folder.join(name))
        .unwrap()
        .map(|file| file.unwrap())
        .map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().len()))
        .collect();
    files.sort();
    files
}

#[test]
fn an_exchange_is_kept_as_it_passed() {
    let open = open();
    let spool = open.begin("x1", b"{\"model\":  \"sonnet\"}", &[b"data: one\n\n", b"", b"data: two\n\n"]);
    spool.finish(closing(Outcome::Complete)).wait().unwrap();
    let row = open.row("x1");
    let expected = ExchangeRow {
        exchange: "x1".to_owned(),
        attempt: opening("x1", 1).attempt,
        turn: 1,
        dialect: "anthropic".to_owned(),
        model: Some("sonnet".to_owned()),
        account: "max".into(),
        started_at: Timestamp::from_millis(1_000),
        first_byte_at: Some(Timestamp::from_millis(1_200)),
        ended_at: Some(Timestamp::from_millis(1_900)),
        status: Some(200),
        outcome: Outcome::Complete,
        request_hash: Some(BodyHash::of(b"{\"model\":  \"sonnet\"}")),
        response_hash: Some(BodyHash::of(b"data: one\n\ndata: two\n\n")),
        request_bytes: 20,
        response_bytes: 22,
        usage: Usage { input: Some(12), cache_read: Some(3_400), output: Some(56), ..Usage::default() },
        usd_nanos: Some(789),
        estimated: false,
        headers: r#"{"request-id":"req_1"}"#.to_owned(),
    };
    assert_eq!(row, expected);
    assert_eq!(open.body(row.request_hash), b"{\"model\":  \"sonnet\"}");
    assert_eq!(open.body(row.response_hash), b"data: one\n\ndata: two\n\n");
    let used = files(open.folder.path(), "spool");
    open.begin("x2", b"?", &[b"short"]).finish(closing(Outcome::Complete)).wait().unwrap();
    assert_eq!(open.body(open.row("x2").response_hash), b"short");
    assert_eq!(files(open.folder.path(), "spool"), used, "the spool file waits for the next");
    let Open { folder, ledger, .. } = open;
    drop(ledger);
    assert_eq!(files(folder.path(), "spool"), [("0.spool".to_owned(), 0)], "nothing is left in it");
}

#[test]
fn what_was_not_said_is_unknown_and_never_zero() {
    let open = open();
    let spool = open.ledger.begin(&opening("x1", 1), b"").unwrap();
    let unknown = Closing { usage: Usage::default(), usd_nanos: None, ..closing(Outcome::Error) };
    spool.finish(unknown).wait().unwrap();
    let row = open.row("x1");
    assert_eq!((row.status, row.first_byte_at, row.usage, row.usd_nanos), (None, None, Usage::default(), None));
    assert_eq!((row.request_hash, row.response_hash, row.outcome), (None, None, Outcome::Error));
    let totals = open.journal.reader().unwrap().totals(&Selection::default()).unwrap();
    assert_eq!(totals, Totals { exchanges: 1, unmetered: 1, unpriced: 1, ..Totals::default() });
}

#[test]
fn equal_bodies_are_stored_once_and_a_pack_is_plain_zstd() {
    let open = open();
    let (question, first, second) = (noise(1, 5_000), noise(2, 70_000), noise(3, 9_000));
    for (exchange, answer) in [("x1", &first), ("x2", &first), ("x3", &second)] {
        open.begin(exchange, &question, &[answer]).finish(closing(Outcome::Complete)).wait().unwrap();
    }
    let packs = files(open.folder.path(), "blobs");
    assert_eq!(packs.len(), 1);
    let pack = fs::read(open.folder.path().join("blobs/00000001.zst")).unwrap();
    assert_eq!(zstd::decode_all(&*pack).unwrap(), [question.clone(), first.clone(), second].concat());
    assert_eq!(open.body(open.row("x2").response_hash), first);
    assert_eq!(open.body(open.row("x3").request_hash), question);
    assert_eq!(open.journal.reader().unwrap().body(&BodyHash::of(b"?")).unwrap(), None);
}

#[test]
fn totals_are_per_run_task_and_attempt() {
    let open = open();
    let attempts = [("r1", "a", 1), ("r1", "a", 2), ("r1", "b", 1), ("r2", "a", 1)];
    for (turn, (run, task, number)) in (1_u32..).zip(attempts) {
        let attempt = AttemptId { run: RunId::from(run), task: TaskId::from(task), number };
        let opening = outlast_journal::Opening { attempt: Some(attempt), ..opening(&format!("x{turn}"), turn) };
        let spool = open.ledger.begin(&opening, b"?").unwrap();
        let usage = Usage { input: Some(10_u64.pow(turn)), output: Some(1), ..Usage::default() };
        spool.finish(Closing { usage, usd_nanos: Some(5), ..closing(Outcome::Complete) }).wait().unwrap();
    }
    let reader = open.journal.reader().unwrap();
    let input = |selection: &Selection| reader.totals(selection).unwrap().input;
    let (run, task) = (RunId::from("r1"), TaskId::from("a"));
    assert_eq!(input(&Selection::default()), 11_110);
    assert_eq!(input(&Selection::run(run.clone())), 1_110);
    assert_eq!(input(&Selection::task(run.clone(), task.clone())), 110);
    assert_eq!(input(&Selection { attempt: Some(2), ..Selection::task(run.clone(), task.clone()) }), 100);
    let by_task = reader.totals_by_task(&run).unwrap();
    let by_task: Vec<_> = by_task.iter().map(|(id, sums)| (id.as_str(), sums.input, sums.usd_nanos)).collect();
    assert_eq!(by_task, [("a", 110, 10), ("b", 1_000, 5)]);
    let rows = reader.exchanges(&Selection::task(run, task)).unwrap();
    assert_eq!(rows.iter().map(|row| row.turn).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_dropped_spool_is_cut_and_keeps_what_passed() {
    let open = open();
    drop(open.begin("x1", b"?", &[b"half an ans"]));
    // The keeper works in order, so the next one's end is after the dropped one's.
    open.begin("x2", b"?", &[b"!"]).finish(closing(Outcome::ClientGone)).wait().unwrap();
    let row = open.row("x1");
    assert_eq!((row.outcome, row.ended_at, row.usage), (Outcome::Cut, None, Usage::default()));
    assert_eq!(open.body(row.response_hash), b"half an ans");
    assert_eq!(open.row("x2").outcome, Outcome::ClientGone);
}

#[test]
fn one_exchange_has_one_row() {
    let open = open();
    open.begin("x1", b"?", &[b"first"]).finish(closing(Outcome::Complete)).wait().unwrap();
    let again = open.begin("x1", b"?", &[b"second"]).finish(closing(Outcome::Complete)).wait();
    assert!(matches!(again, Err(Error::DuplicateExchange { exchange }) if exchange == "x1"));
    assert_eq!(open.body(open.row("x1").response_hash), b"first");
    assert_eq!(open.journal.reader().unwrap().body(&BodyHash::of(b"second")).unwrap(), None);
    open.begin("x3", b"?", &[b"third"]).finish(closing(Outcome::Complete)).wait().unwrap();
    assert_eq!(open.body(open.row("x3").response_hash), b"third");
}

#[test]
fn the_ledger_is_opened_once_and_outlives_the_journals_handle() {
    let Open { folder, journal, ledger } = open();
    assert!(matches!(Ledger::open(&journal), Err(Error::Locked { .. })));
    let spool = ledger.begin(&opening("x1", 1), b"?").unwrap();
    drop((journal, ledger));
    drop(spool.finish(closing(Outcome::Complete)));
    let reader = JournalReader::open(folder.path().join("journal.db")).unwrap();
    assert!(reader.exchange("x1").unwrap().is_some(), "dropping the last handle waits for what was finished");
}

#[test]
fn records_and_exchanges_share_commits() {
    let open = open();
    let pending: Vec<_> = (0..200)
        .map(|n| {
            let spool = open.begin(&format!("x{n}"), &noise(n, 300), &[&noise(n + 1_000, 900)]);
            (spool.finish(closing(Outcome::Complete)), open.journal.append_later(vec![entry("run/a", n)]))
        })
        .collect();
    for (exchange, record) in pending {
        exchange.wait().unwrap();
        record.wait().unwrap();
    }
    assert!(open.journal.commits() < 200, "{} commits for 400 writes", open.journal.commits());
    let rows = open.journal.reader().unwrap().exchanges(&Selection::default()).unwrap();
    assert_eq!(rows.len(), 200);
    for (n, row) in (0..).zip(rows) {
        assert_eq!(open.body(row.request_hash), noise(n, 300));
        assert_eq!(open.body(row.response_hash), noise(n + 1_000, 900));
    }
}

#[test]
fn a_damaged_or_missing_pack_is_said_and_writing_goes_on() {
    let Open { folder, journal, ledger } = open();
    let path = journal.path().to_owned();
    let mut spool = ledger.begin(&opening("x1", 1), b"?").unwrap();
    spool.write(&noise(1, 4_000)).unwrap();
    spool.finish(closing(Outcome::Complete)).wait().unwrap();
    drop((journal, ledger));
    let pack = folder.path().join("blobs/00000001.zst");
    let whole = fs::read(&pack).unwrap();
    let mut changed = whole.clone();
    changed[2_000] ^= 1;
    for content in [Some(&changed[..]), Some(&whole[..3_000]), None] {
        match content {
            Some(content) => fs::write(&pack, content).unwrap(),
            None => fs::remove_file(&pack).unwrap(),
        }
        let read = JournalReader::open(&path).unwrap().body(&BodyHash::of(&noise(1, 4_000)));
        assert!(matches!(&read, Err(Error::Damaged { path, .. }) if *path == pack), "{read:?}");
    }
    let journal = Journal::open(&path).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let mut spool = ledger.begin(&opening("x2", 1), b"?").unwrap();
    spool.write(b"!").unwrap();
    spool.finish(closing(Outcome::Complete)).wait().unwrap();
    assert_eq!(journal.reader().unwrap().body(&BodyHash::of(b"!")).unwrap().unwrap(), b"!");
}

#[test]
fn what_a_crash_left_unfinished_is_reckoned_and_what_had_ended_is_not() {
    let open = open();
    let cut = open.begin("cut", b"?", &[b"half of "]);
    let never = open.ledger.begin(&opening("never", 1), b"?").unwrap();
    // While another holds the database, an exchange that has ended is in its spool file alone.
    let other = rusqlite::Connection::open(open.journal.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ended = open.begin("ended", b"?", &[b"all of it"]).finish(closing(Outcome::ClientGone));
    let crashed = tempfile::tempdir().unwrap();
    copy(open.folder.path(), crashed.path());
    other.execute_batch("ROLLBACK").unwrap();
    ended.wait().unwrap();
    drop((cut, never));

    let journal = Journal::open(crashed.path().join("journal.db")).unwrap();
    let usage = Usage { input: Some(3), ..Usage::default() };
    let reckoning = Reckoning { outcome: Outcome::Refused, usage, usd_nanos: Some(9), estimated: true };
    let (_ledger, recovery) = Ledger::open_with(&journal, |unfinished| {
        let id = unfinished.opening.exchange.as_str();
        let begun = unfinished.head.is_some();
        assert_eq!((begun, unfinished.answer), if id == "cut" { (true, &b"half of "[..]) } else { (false, &b""[..]) });
        if begun { reckoning } else { Reckoning::CUT }
    })
    .unwrap();
    let mut kept = recovery.kept;
    kept.sort();
    assert_eq!(kept, ["cut", "ended", "never"]);
    let mut rows = Vec::new();
    let reader = journal.reader().unwrap();
    assert_eq!(reader.exchanges_after(0, |row| rows.push(row)).unwrap(), 3);
    rows.sort_by(|a, b| a.exchange.cmp(&b.exchange));
    let told = |row: &ExchangeRow| (row.outcome, row.usage, row.usd_nanos, row.estimated, row.ended_at.is_some());
    assert_eq!(told(&rows[0]), (Outcome::Refused, usage, Some(9), true, false));
    let said = closing(Outcome::ClientGone);
    assert_eq!(told(&rows[1]), (Outcome::ClientGone, said.usage, said.usd_nanos, said.estimated, true));
    assert_eq!(told(&rows[2]), (Outcome::Cut, Usage::UNKNOWN, None, false, false));
    assert_eq!(reader.exchanges_after(2, |row| rows.push(row)).unwrap(), 3);
    assert_eq!(rows.len(), 4, "only what is new");
    assert_eq!(reader.exchanges_after(3, |_| panic!("there is nothing new")).unwrap(), 3);
}

#[test]
fn a_number_that_no_database_holds_keeps_no_row_from_being_written() {
    let open = open();
    let usage = Usage { input: Some(u64::MAX), output: Some(5), reasoning: Some(1 << 63), ..Usage::UNKNOWN };
    open.begin("x1", b"?", &[b"!"]).finish(Closing { usage, ..closing(Outcome::Complete) }).wait().unwrap();
    assert_eq!(open.row("x1").usage, Usage { output: Some(5), ..Usage::UNKNOWN });
}

#[test]
fn what_is_read_later_is_read_by_the_ledger_and_after_a_crash_reckoned() {
    let open = open();
    let here = std::thread::current().id();
    let said = Closing { usd_nanos: Some(7), ..closing(Outcome::ClientGone) };
    let read = said.clone();
    let unread = |outcome| Closing { usage: Usage::UNKNOWN, usd_nanos: None, ..closing(outcome) };
    let written = open.begin("read", b"?", &[b"all of it"]).finish_unread(unread(Outcome::Complete), move || {
        assert_ne!(std::thread::current().id(), here, "whoever ends it does not wait for this");
        read
    });
    written.wait().unwrap();
    let told = |row: &ExchangeRow| (row.outcome, row.usage, row.usd_nanos, row.ended_at.is_some());
    assert_eq!(told(&open.row("read")), (Outcome::ClientGone, said.usage, Some(7), true));

    let other = rusqlite::Connection::open(open.journal.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let unwritten = open.begin("lost", b"?", &[b"all of it"]).finish_unread(unread(Outcome::Complete), move || said);
    let crashed = tempfile::tempdir().unwrap();
    copy(open.folder.path(), crashed.path());
    other.execute_batch("ROLLBACK").unwrap();
    unwritten.wait().unwrap();

    let journal = Journal::open(crashed.path().join("journal.db")).unwrap();
    let usage = Usage { input: Some(3), ..Usage::default() };
    let reckoning = Reckoning { outcome: Outcome::Cut, usage, usd_nanos: Some(9), estimated: false };
    let (_ledger, recovery) = Ledger::open_with(&journal, |unfinished| {
        assert_eq!((unfinished.opening.exchange.as_str(), unfinished.answer), ("lost", &b"all of it"[..]));
        reckoning
    })
    .unwrap();
    assert_eq!(recovery.kept, ["lost"]);
    let row = journal.reader().unwrap().exchange("lost").unwrap().unwrap();
    assert_eq!(told(&row), (Outcome::Complete, usage, Some(9), true), "that it was whole is known");
}

#[test]
fn very_many_exchanges_that_a_crash_left_are_kept_by_a_process_that_may_open_few_files() {
    // The limit is of a whole process.
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "ledger::with_few_files", "--ignored", "--nocapture"]);
    assert!(child.status().unwrap().success());
}

#[test]
#[ignore = "its parent runs it in a process of its own"]
fn with_few_files() {
    const LEFT: usize = 600;
    let crashed = tempfile::tempdir().unwrap();
    {
        let open = open();
        let under_way: Vec<Spool> = (0..LEFT).map(|n| open.begin(&format!("x{n:03}"), b"?", &[b"half of "])).collect();
        copy(open.folder.path(), crashed.path());
        drop(under_way);
    }
    setrlimit(Resource::RLIMIT_NOFILE, 120, 120).unwrap();
    let journal = Journal::open(crashed.path().join("journal.db")).unwrap();
    let (_ledger, recovery) = Ledger::open(&journal).unwrap();
    assert_eq!((recovery.kept.len(), recovery.unreadable.len()), (LEFT, 0));
    let mut rows = 0;
    journal.reader().unwrap().exchanges_after(0, |_| rows += 1).unwrap();
    assert_eq!(rows, LEFT);
    // What is left of the folder is free: it is there to be used again, and opened by the next start.
    let spool = files(crashed.path(), "spool");
    assert!(spool.iter().all(|(_, len)| *len == 0) && spool.len() <= 32, "{}", spool.len());
}
