//! Tests of closings over a clock of the test's own.

use std::time::Duration;

use super::{Closing, Closings, Moment};
use crate::provider::{RefusalKind, Says};
use crate::wire::Dialect;

fn closing(name: &str, after_requests: u64, reason: RefusalKind, says: Says) -> Closing {
    Closing { name: name.to_owned(), after_requests, seconds: 10.0, reason, says }
}

fn at(second: u64) -> Moment {
    Moment { since_start: Duration::from_secs(second), unix: 1_000 + second, unix_ms: (1_000 + second) * 1_000 }
}

/// Asks at a second; `None` when taken, else the status, whether the closing was known, and the stated wait.
fn ask(closings: &mut Closings, second: u64) -> Option<(u16, bool, Option<String>)> {
    let Some(shut) = closings.check(Dialect::Anthropic, at(second)) else {
        closings.take(at(second));
        return None;
    };
    let wait = shut.refusal.headers.iter().find(|(name, _)| name == "retry-after");
    Some((shut.refusal.status, shut.known, wait.map(|(_, value)| value.clone())))
}

#[test]
fn it_begins_by_requests_taken_and_ends_by_the_clock() {
    let storm = closing("storm", 4, RefusalKind::Overload, Says::Nothing);
    let limit = closing("limit", 2, RefusalKind::MinuteLimit, Says::Reset);
    let mut closings = Closings::new(&[storm, limit]);
    assert_eq!((ask(&mut closings, 0), ask(&mut closings, 1)), (None, None));
    closings.settle();
    assert_eq!(ask(&mut closings, 5), Some((429, false, Some("10".to_owned()))), "two were taken");
    assert_eq!(ask(&mut closings, 14), Some((429, true, Some("1".to_owned()))), "the first refusal had told it");
    assert_eq!((ask(&mut closings, 15), ask(&mut closings, 16)), (None, None), "it lasts ten seconds");
    assert_eq!(ask(&mut closings, 17), Some((529, false, None)), "refused requests do not count as taken");
    assert_eq!(ask(&mut closings, 30), None);
    let tallies = closings.tallies();
    let told: Vec<_> = tallies
        .iter()
        .map(|tally| {
            let (from, to) = (tally.began_at_ms - 1_000_000, tally.ends_at_ms - 1_000_000);
            (tally.name.as_str(), from, to, tally.in_flight, tally.refused, tally.taken_again_at_ms)
        })
        .collect();
    let again = |second: u64| Some((1_000 + second) * 1_000);
    assert_eq!(
        told,
        [("limit", 5_000, 15_000, 1, 2, again(15)), ("storm", 17_000, 27_000, 3, 1, again(30))],
        "{tallies:?}"
    );
}
