//! Budgets: what fits, what waits, what unknown parts count, and what can never be overdrawn.

use proptest::prelude::*;

use super::*;

const CENT: u64 = 10_000_000;

fn purse(usd_nanos: Option<u64>, tokens: Option<u64>) -> Purse {
    Purse::new(Allowed { usd_nanos, tokens })
}

fn priced(usd_nanos: u64, tokens: u64) -> Usage {
    Usage { input: tokens, usd_nanos: i64::try_from(usd_nanos).unwrap(), exchanges: 1, ..Usage::default() }
}

fn wants(usd_nanos: u64, tokens: u64) -> Estimate {
    Estimate { usd_nanos: Some(usd_nanos), tokens }
}

#[test]
fn a_request_waits_for_those_on_their_way_before_the_budget_counts_as_gone() {
    let purse = purse(Some(10 * CENT), None);
    let busy = Sum { usd_nanos: 8 * CENT, tokens: 100 };
    assert_eq!(purse.room(Sum::default(), wants(10 * CENT, 0)), Room::Fits);
    assert_eq!(purse.room(busy, wants(2 * CENT, 0)), Room::Fits);
    assert_eq!(purse.room(busy, wants(3 * CENT, 0)), Room::Later);
    assert_eq!(purse.room(Sum::default(), wants(11 * CENT, 0)), Room::Gone(Lack::Usd));
}

#[test]
fn i10_a_price_that_is_not_known_falls_to_the_token_budget_or_stops() {
    let unknown = Estimate { usd_nanos: None, tokens: 500 };
    assert_eq!(purse(Some(CENT), None).room(Sum::default(), unknown), Room::Gone(Lack::Price));
    assert_eq!(purse(Some(CENT), Some(500)).room(Sum::default(), unknown), Room::Fits);
    assert_eq!(purse(Some(CENT), Some(499)).room(Sum::default(), unknown), Room::Gone(Lack::Tokens));
    assert_eq!(purse(None, None).room(Sum::default(), unknown), Room::Fits);
}

#[test]
fn i10_what_stays_unknown_counts_as_it_was_reserved_or_as_the_dearest() {
    let mut purse = purse(Some(100 * CENT), None);
    purse.settle(&priced(3 * CENT, 40), None);
    let unknown = Usage { unpriced: 1, unmetered: 1, exchanges: 1, ..Usage::default() };
    purse.settle(&unknown, Some(wants(5 * CENT, 70)));
    assert_eq!(purse.spent, Sum { usd_nanos: 8 * CENT, tokens: 110 });
    // An engine that was killed has taken its reservations with it.
    purse.settle(&unknown, None);
    assert_eq!(purse.spent, Sum { usd_nanos: 11 * CENT, tokens: 150 });
    assert_eq!(purse.dearest, Sum { usd_nanos: 3 * CENT, tokens: 40 }, "a guess is no history");
    // The answer broke off: more may be billed than it had counted.
    purse.settle(&priced(CENT, 10), Some(wants(2 * CENT, 5)));
    assert_eq!(purse.spent, Sum { usd_nanos: 13 * CENT, tokens: 160 });
}

#[test]
fn of_an_exchange_only_what_is_not_known_counts_as_what_was_reserved() {
    let complete = |unpriced, unmetered| Usage { unpriced, unmetered, exchanges: 1, ..Usage::default() };
    let was = wants(5 * CENT, 70);
    // A model without a price: its tokens are known.
    assert_eq!(was.where_unknown(&complete(1, 0)), wants(5 * CENT, 0));
    assert_eq!(was.where_unknown(&complete(1, 1)), was);
    assert_eq!(was.where_unknown(&complete(0, 0)), Estimate { usd_nanos: None, tokens: 0 });
    assert_eq!(was.where_unknown(&Usage { cut: 1, ..complete(1, 0) }), was, "it broke off");
}

#[test]
fn i11_twenty_turns_of_a_cached_context_are_cheap() {
    let mut purse = purse(Some(20 * CENT), Some(60_000));
    for _ in 0..20 {
        let turn = Usage { cache_read: 25_000, output: 100, usd_nanos: 3_000_000, exchanges: 1, ..Usage::default() };
        let estimate = purse.estimate(wants(3_000_000, 2_600));
        assert_eq!(purse.room(Sum::default(), estimate), Room::Fits, "{:?}", purse.spent);
        purse.settle(&turn, None);
    }
    assert_eq!(purse.spent, Sum { usd_nanos: 6 * CENT, tokens: 52_000 });
}

#[test]
fn a_request_is_never_estimated_below_the_dearest_so_far() {
    let mut purse = purse(Some(100 * CENT), None);
    purse.settle(&priced(3 * CENT, 40), None);
    assert_eq!(purse.estimate(wants(CENT, 90)), wants(3 * CENT, 90));
    assert_eq!(purse.estimate(wants(4 * CENT, 1)), wants(4 * CENT, 40));
    assert_eq!(purse.estimate(Estimate { usd_nanos: None, tokens: 1 }).usd_nanos, None);
}

#[test]
fn reservations_add_up_by_run_and_are_given_back_once() {
    let mut reserved = Reservations::default();
    reserved.add("1".into(), "a".into(), wants(5, 6));
    reserved.add("2".into(), "a".into(), Estimate { usd_nanos: None, tokens: 7 });
    reserved.add("3".into(), "b".into(), wants(1, 1));
    assert_eq!(reserved.of(&"a".into()), Sum { usd_nanos: 5, tokens: 13 });
    assert_eq!((reserved.take("1"), reserved.take("1")), (Some(wants(5, 6)), None));
    assert_eq!(reserved.of(&"a".into()), Sum { usd_nanos: 0, tokens: 7 });
    reserved.take("2");
    assert_eq!(reserved.of(&"a".into()), Sum::default());
}

proptest! {
    /// However requests and answers meet, what is billed is at most what is allowed and what answers cost beyond their
    /// reservations.
    #[test]
    fn a_budget_is_overdrawn_by_what_goes_beyond_reservations_alone(
        usd in 0..2_000_u64,
        tokens in 0..2_000_u64,
        steps in prop::collection::vec((any::<bool>(), 0..200_u64, 0..200_u64, 0..300_u64, 0..300_u64), 0..80),
    ) {
        let run = RunId::from("r");
        let mut purse = purse(Some(usd), Some(tokens));
        let mut reserved = Reservations::default();
        let mut open: Vec<(String, Estimate)> = Vec::new();
        let (mut billed, mut beyond) = (Sum::default(), Sum::default());
        for (i, (asks, usd_quote, token_quote, usd_billed, tokens_billed)) in steps.into_iter().enumerate() {
            if asks {
                let estimate = purse.estimate(wants(usd_quote, token_quote));
                if purse.room(reserved.of(&run), estimate) == Room::Fits {
                    reserved.add(i.to_string(), run.clone(), estimate);
                    open.push((i.to_string(), estimate));
                }
            } else if let Some((exchange, estimate)) = open.pop() {
                reserved.take(&exchange);
                purse.settle(&priced(usd_billed, tokens_billed), None);
                billed.add(Sum { usd_nanos: usd_billed, tokens: tokens_billed });
                let was = Sum::from(estimate);
                beyond.add(Sum {
                    usd_nanos: usd_billed.saturating_sub(was.usd_nanos),
                    tokens: tokens_billed.saturating_sub(was.tokens),
                });
            }
            prop_assert_eq!(purse.spent, billed);
            prop_assert!(billed.usd_nanos <= usd + beyond.usd_nanos);
            prop_assert!(billed.tokens <= tokens + beyond.tokens);
        }
    }
}
