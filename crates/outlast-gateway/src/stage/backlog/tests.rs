//! The backlog against a real ledger.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outlast_core::{AccountId, Timestamp};
use outlast_journal::{Closing, Journal, Ledger, Opening, Outcome, Usage};

use super::*;

/// Whoever asks it for anything waits for ever.
struct Nobody;

impl Admission for Nobody {
    fn admit(&self, _: std::sync::Arc<crate::Ask>) -> BoxFuture<'_, Result<crate::Grant, crate::Denied>> {
        Box::pin(std::future::pending())
    }

    fn settle(&self, _: crate::Settled) {}

    fn refused(&self, _: crate::Refusal) -> BoxFuture<'_, crate::Ruling> {
        Box::pin(std::future::pending())
    }
}

fn nobody() -> Arc<dyn Admission> {
    Arc::new(Nobody)
}

fn finished(ledger: &Ledger, number: usize) -> (String, Pending<()>) {
    let exchange = format!("x{number}");
    let opening = Opening {
        exchange: exchange.clone(),
        attempt: None,
        turn: 0,
        dialect: "anthropic".to_owned(),
        model: None,
        account: AccountId::from("acc"),
        started_at: Timestamp::EPOCH,
    };
    let closing = Closing {
        outcome: Outcome::Complete,
        ended_at: Timestamp::EPOCH,
        usage: Usage::default(),
        usd_nanos: None,
        estimated: false,
    };
    (exchange, ledger.begin(&opening, b"{}").unwrap().finish(closing))
}

/// Waits for the row, then gives the room back.
async fn written(mut unwritten: Unwritten) {
    unwritten.row.take().unwrap().await.unwrap();
}

fn has_room(backlog: &Backlog) -> bool {
    // Without the runtime's own limit on how often a task may ask in one go.
    tokio::task::unconstrained(backlog.room()).now_or_never().is_some()
}

#[tokio::test]
async fn a_new_request_waits_only_while_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let backlog = Backlog::default();
    let mut waiting: Vec<Unwritten> = Vec::new();
    for number in 0..UNWRITTEN_MAX + 2 {
        if number < UNWRITTEN_MAX {
            assert!(has_room(&backlog), "{number}");
        }
        let (exchange, row) = finished(&ledger, number);
        waiting.push(backlog.add(exchange, row, &nobody()));
    }
    assert!(!has_room(&backlog), "there is no room left");
    for left in (0..waiting.len()).rev() {
        written(waiting.remove(0)).await;
        assert_eq!(has_room(&backlog), left < UNWRITTEN_MAX, "{left} are left");
    }
    assert_eq!(backlog.0.unwritten.load(Ordering::Acquire), 0, "all room is given back");
}

#[tokio::test]
async fn who_waits_is_told_of_the_room_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let backlog = Backlog::default();
    let add = |number| {
        let (exchange, row) = finished(&ledger, number);
        backlog.add(exchange, row, &nobody())
    };
    let mut waiting: Vec<Unwritten> = (0..UNWRITTEN_MAX + 1).map(add).collect();
    let mut room = Box::pin(backlog.room());
    assert!((&mut room).now_or_never().is_none());
    written(waiting.remove(0)).await;
    assert!((&mut room).now_or_never().is_none(), "one more than there is room for is still too many");
    written(waiting.remove(0)).await;
    assert!(room.now_or_never().is_some());
}

#[tokio::test]
async fn room_is_given_back_by_whoever_writes_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let backlog = Backlog::default();
    for number in 0..UNWRITTEN_MAX {
        let (exchange, row) = finished(&ledger, number);
        backlog.add(exchange, row, &nobody()).until_written();
    }
    backlog.room().await;
    // Its rows are written before it is closed.
    drop(ledger);
    assert_eq!(backlog.0.unwritten.load(Ordering::Acquire), 0, "all room is given back");
}
