//! Which answer may be given again.

use outlast_core::{AccountId, AttemptId, Epoch, Timestamp};
use outlast_gateway::Dialect;
use outlast_journal::{AnswerHead, Closing, Journal, Ledger, Opening};

use super::*;

const ARRIVED: Stage = Stage::Whole { arrived: true, kept: true };
const UNHEARD: Stage = Stage::Whole { arrived: false, kept: true };

fn exchange(id: &str, request: &str, turn: u32, stage: Stage) -> Exchange {
    Exchange { id: id.to_owned(), request: request.to_owned(), turn, stage }
}

fn known(exchanges: &[(&str, &str, u32, Stage)]) -> Vec<Exchange> {
    let mut known = Vec::new();
    exchanges.iter().for_each(|&(id, request, turn, stage)| note(&mut known, exchange(id, request, turn, stage)));
    known
}

#[test]
fn only_an_answer_that_reached_nobody_is_given_again_and_only_to_the_same_words() {
    let answer = || Found::Answer("x".to_owned());
    for (stage, found) in [
        (UNHEARD, answer()),
        (ARRIVED, Found::Nothing),
        (Stage::UnderWay { left: false }, Found::Nothing),
        (Stage::UnderWay { left: true }, Found::Soon),
        (Stage::Whole { arrived: false, kept: false }, Found::Soon),
        (Stage::Whole { arrived: true, kept: false }, Found::Nothing),
    ] {
        for turn in [0, 3] {
            let known = known(&[("x", "same", turn, stage)]);
            assert_eq!(find(&known, "same"), found, "{stage:?}");
            assert_eq!(find(&known, "other"), Found::Nothing);
        }
    }
    assert_eq!(find(&known(&[("x", "", 1, UNHEARD)]), ""), Found::Nothing, "what has no name is like nothing");
}

#[test]
fn what_was_asked_for_since_ends_the_matter_but_for_agents_beside() {
    let under_way = Stage::UnderWay { left: false };
    for newer in [ARRIVED, UNHEARD, under_way] {
        assert_eq!(find(&known(&[("x", "same", 3, UNHEARD), ("y", "more", 4, newer)]), "same"), Found::Nothing);
    }
    let left = Stage::UnderWay { left: true };
    assert_eq!(find(&known(&[("x", "same", 3, left), ("y", "more", 4, under_way)]), "same"), Found::Nothing);
    let beside = known(&[("x", "same", 0, UNHEARD), ("y", "more", 4, ARRIVED)]);
    assert_eq!(find(&beside, "same"), Found::Answer("x".to_owned()));
    let main = known(&[("x", "same", 3, UNHEARD), ("y", "more", 0, ARRIVED)]);
    assert_eq!(find(&main, "same"), Found::Answer("x".to_owned()));
}

#[test]
fn of_answers_given_twice_the_last_counts() {
    let twice = known(&[("x", "same", 3, UNHEARD), ("y", "same", 3, ARRIVED)]);
    assert_eq!(find(&twice, "same"), Found::Nothing, "it was given again, and arrived");
    let many: Vec<Exchange> = (0..100).fold(Vec::new(), |mut known, n| {
        note(&mut known, exchange(&n.to_string(), &n.to_string(), 0, UNHEARD));
        known
    });
    assert_eq!(many.len(), REMEMBERED_MAX);
    assert_eq!(find(&many, "99"), Found::Answer("99".to_owned()));
}

#[test]
fn the_ledger_says_what_is_whole_and_who_has_it() {
    let row = |outcome| ExchangeRow {
        exchange: "x".to_owned(),
        attempt: None,
        turn: 2,
        dialect: "anthropic".to_owned(),
        model: None,
        account: AccountId::from("main"),
        started_at: Timestamp::EPOCH,
        first_byte_at: None,
        ended_at: Some(Timestamp::EPOCH),
        status: Some(200),
        outcome,
        request_hash: None,
        response_hash: Some(outlast_journal::BodyHash::of(b"answer")),
        request_bytes: 0,
        response_bytes: 6,
        usage: Usage { output: Some(1), ..Usage::UNKNOWN },
        usd_nanos: None,
        estimated: false,
        headers: r#"{"x-outlast-request":"same"}"#.to_owned(),
    };
    let stage = |row: ExchangeRow| in_ledger(&row).map(|exchange| exchange.stage);
    assert_eq!(in_ledger(&row(Outcome::ClientGone)), Some(exchange("x", "same", 2, UNHEARD)));
    assert_eq!(stage(row(Outcome::Complete)), Some(ARRIVED));
    for outcome in [Outcome::Cut, Outcome::Refused, Outcome::Error] {
        assert_eq!(stage(row(outcome)), None, "{outcome:?}");
    }
    // Nobody ended it: the engine was killed, after the last byte or before it.
    let ended = ExchangeRow { ended_at: None, ..row(Outcome::Cut) };
    assert_eq!(stage(ended.clone()), Some(UNHEARD));
    assert_eq!(stage(ExchangeRow { estimated: true, ..ended.clone() }), None);
    assert_eq!(stage(ExchangeRow { usage: Usage::UNKNOWN, ..ended }), None);
    // A full disk has kept only a part of it.
    assert_eq!(stage(ExchangeRow { response_hash: None, ..row(Outcome::ClientGone) }), None);
}

fn turn() -> Turn {
    let id = AttemptId { run: "r".into(), task: "t".into(), number: 2 };
    Turn { id, epoch: Epoch(2), number: 3 }
}

fn ask(request: &str) -> Ask {
    Ask {
        path_attempt: Some("r/t.2".to_owned()),
        key: String::new(),
        dialect: Dialect::Anthropic,
        model: None,
        context_tokens: None,
        request_bytes: 4,
        request: request.to_owned(),
        turn_kind: TurnKind::Main,
        sub_agent: None,
        received_at: Timestamp::EPOCH,
        again_after: None,
    }
}

/// Puts an answer into the ledger whose client had left.
async fn record(ledger: &Ledger, exchange: &str, request: &str) {
    let opening = Opening {
        exchange: exchange.to_owned(),
        attempt: Some(AttemptId { number: 1, ..turn().id }),
        turn: 2,
        dialect: "anthropic".to_owned(),
        model: None,
        account: AccountId::from("main"),
        started_at: Timestamp::EPOCH,
    };
    let headers = format!(r#"{{"x-outlast-request":"{request}"}}"#);
    let mut spool = ledger.begin(&opening, b"body").unwrap();
    spool.answer(&AnswerHead { status: 200, first_byte_at: Timestamp::EPOCH, headers }).unwrap();
    spool.write(format!("answer of {exchange}").as_bytes()).unwrap();
    let usage = Usage { output: Some(1), ..Usage::UNKNOWN };
    let (outcome, ended_at) = (Outcome::ClientGone, Timestamp::EPOCH);
    spool.finish(Closing { outcome, ended_at, usage, usd_nanos: None, estimated: false }).await.unwrap();
}

#[tokio::test]
async fn what_an_engine_before_this_one_has_left_is_given_once_and_again_only_where_it_did_not_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    record(&ledger, "x", "same").await;
    let answers = Answers::new(path.clone());
    assert_eq!(answers.find(&turn(), &ask("other")).await, None);

    let first = answers.find(&turn(), &ask("same")).await.unwrap();
    assert_eq!((first.of.as_str(), &first.body[..], first.status), ("x", &b"answer of x"[..], 200));
    assert_eq!((first.grant.turn, first.grant.attempt), (2, Some(turn().id)));
    let id = &first.grant.exchange_id;
    assert!(id.ends_with(REPLAY), "{id}");
    assert_eq!(answers.find(&turn(), &ask("same")).await, None, "somebody is getting it");

    // It did not arrive either: its own row has it, once that is written.
    answers.ended(id, Outcome::ClientGone, true);
    record(&ledger, id, "same").await;
    answers.kept(id);
    let second = answers.find(&turn(), &ask("same")).await.unwrap();
    assert_eq!(&second.of, id);
    answers.ended(&second.grant.exchange_id, Outcome::Complete, true);
    answers.kept(&second.grant.exchange_id);
    assert_eq!(answers.find(&turn(), &ask("same")).await, None, "it arrived");
    assert!(answers.lock().open.is_empty(), "nothing is remembered that is over");
}

#[tokio::test]
async fn who_asks_again_waits_for_an_answer_that_is_under_way_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let answers = Answers::new(path);
    let grant = |id: &str| Grant {
        exchange_id: id.to_owned(),
        attempt: Some(turn().id),
        account: AccountId::from("main"),
        turn: 2,
    };
    answers.began(&grant("x"), &ask("same"));
    let (turn, ask) = (turn(), ask("same"));
    assert_eq!(answers.find(&turn, &ask).await, None, "its client may still be there");
    answers.left("x");
    let mut waits = pin!(answers.find(&turn, &ask));
    assert!(futures_util::poll!(&mut waits).is_pending());
    answers.ended("x", Outcome::ClientGone, true);
    assert!(futures_util::poll!(&mut waits).is_pending(), "the ledger does not have it yet");
    record(&ledger, "x", "same").await;
    answers.kept("x");
    assert_eq!(waits.await.unwrap().of, "x");

    // One that breaks off is no answer: whoever waited asks the provider.
    answers.began(&grant("y"), &ask);
    answers.left("y");
    let mut waits = pin!(answers.find(&turn, &ask));
    assert!(futures_util::poll!(&mut waits).is_pending());
    answers.ended("y", Outcome::Cut, true);
    assert_eq!(waits.await, None);
}
