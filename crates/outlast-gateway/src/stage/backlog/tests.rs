//! The backlog against a real ledger.

use futures_util::FutureExt;
use outlast_core::{AccountId, Timestamp};
use outlast_journal::{Closing, Journal, Ledger, Opening, Outcome, Usage};

use super::*;

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
        waiting.push(backlog.add(exchange, row));
    }
    assert!(!has_room(&backlog), "there is no room left");
    for unwritten in waiting {
        unwritten.written().await;
    }
    backlog.room().await;
    assert_eq!(backlog.0.available_permits(), UNWRITTEN_MAX, "all room is given back, and no more than that");
}
