//! Tests of the rules that say when a fault strikes.

use std::time::Duration;

use super::{Fault, Rule, RuleState, Subject, When};
use crate::wire::Dialect;

const SUBJECT: Subject<'static> =
    Subject { scenario: Some("a"), step: Some(0), key: "k", dialect: Dialect::Chat, since_start: Duration::ZERO };

/// Which of these subjects are struck.
fn strikes(when: When, times: Option<u64>, subjects: &[Subject<'_>]) -> Vec<bool> {
    let mut rule = RuleState::new(Rule { when, fault: Fault::Drop, times });
    subjects.iter().map(|subject| rule.strike(subject).is_some()).collect()
}

#[test]
fn the_nth_counts_only_requests_that_meet_the_other_conditions() {
    let other = Subject { scenario: Some("b"), ..SUBJECT };
    let when = When { scenario: Some("b".to_owned()), nth: Some(2), ..When::default() };
    assert_eq!(strikes(when, None, &[other, SUBJECT, other, other]), [false, false, true, false]);
}

#[test]
fn every_kth_is_struck_at_most_as_often_as_allowed() {
    let when = When { every: Some(2), ..When::default() };
    assert_eq!(strikes(when, Some(1), &[SUBJECT; 5]), [false, true, false, false, false]);
}

#[test]
fn step_key_dialect_and_time_are_conditions() {
    let second = Subject { step: Some(1), ..SUBJECT };
    let background = Subject { step: None, ..SUBJECT };
    let step = When { step: Some(2), ..When::default() };
    assert_eq!(strikes(step, None, &[SUBJECT, second, background]), [false, true, false]);
    let key = When { key: Some("other".to_owned()), ..When::default() };
    assert_eq!(strikes(key, None, &[SUBJECT, Subject { key: "other", ..SUBJECT }]), [false, true]);
    let dialect = When { dialect: Some(Dialect::Gemini), ..When::default() };
    assert_eq!(strikes(dialect, None, &[SUBJECT, Subject { dialect: Dialect::Gemini, ..SUBJECT }]), [false, true]);
    let time = When { after_seconds: Some(2.0), before_seconds: Some(4.0), ..When::default() };
    let at = |seconds| Subject { since_start: Duration::from_secs(seconds), ..SUBJECT };
    assert_eq!(strikes(time, None, &[at(1), at(3), at(5)]), [false, true, false]);
}

#[test]
fn a_fault_with_a_word_too_many_is_refused() {
    let read = |text: &str| serde_json::from_str::<Fault>(text);
    assert!(read(r#"{"kind": "hang", "after_frames": 2}"#).is_ok());
    assert!(read(r#"{"kind": "hang", "after_frame": 2}"#).is_err());
    assert!(read(r#"{"kind": "explode"}"#).is_err());
}
