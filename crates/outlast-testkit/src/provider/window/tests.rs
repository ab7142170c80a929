//! Tests of quota windows over a clock of the test's own.

use std::time::Duration;

use super::{Says, Window, WindowKind, WindowState};
use crate::wire::Dialect;

fn window(requests: Option<u64>, tokens: Option<u64>, concurrent: Option<u64>) -> WindowState {
    let (name, kind, says) = ("5h".to_owned(), WindowKind::Quota, Says::Reset);
    WindowState::new(Window { name, kind, requests, tokens, concurrent, per_seconds: 10.0, says })
}

/// Asks at a second; `None` when admitted (and counted), else whether the closing was known and the stated wait.
fn ask(window: &mut WindowState, key: &str, second: u64) -> Option<(bool, String)> {
    let now = Duration::from_secs(second);
    let Some(closed) = window.check(key, Dialect::Anthropic, now, 1_000 + second) else {
        window.admit(key, now);
        return None;
    };
    let wait = closed.refusal.headers.iter().find(|(name, _)| name == "retry-after");
    Some((closed.known, wait.map(|(_, value)| value.clone()).unwrap_or_default()))
}

#[test]
fn a_window_opens_with_its_first_request_fills_up_and_resets() {
    let mut window = window(Some(2), None, None);
    assert_eq!(ask(&mut window, "a", 5), None);
    assert_eq!(ask(&mut window, "a", 6), None);
    assert_eq!(ask(&mut window, "a", 7), Some((false, "8".to_owned())), "it opened at 5 and lasts 10");
    assert_eq!(ask(&mut window, "a", 14), Some((true, "1".to_owned())), "the key had been told");
    assert_eq!(ask(&mut window, "b", 14), None, "another key has a window of its own");
    assert_eq!(ask(&mut window, "a", 15), None, "reset");
    assert_eq!(ask(&mut window, "a", 16), None, "counted from the reset");
    assert_eq!(ask(&mut window, "a", 17), Some((false, "8".to_owned())), "a new closing is news again");
}

#[test]
fn tokens_close_a_window_once_they_are_billed() {
    let mut window = window(None, Some(100), None);
    assert_eq!(ask(&mut window, "a", 0), None);
    window.settle("a", 99);
    assert_eq!(ask(&mut window, "a", 1), None);
    window.settle("a", 1);
    assert!(ask(&mut window, "a", 2).is_some());
}

#[test]
fn a_limit_on_requests_at_once_opens_when_one_ends() {
    let mut window = window(None, None, Some(1));
    assert_eq!(ask(&mut window, "a", 0), None);
    assert_eq!(ask(&mut window, "a", 0), Some((false, String::new())), "a minute limit that states no time");
    window.settle("a", 10);
    assert_eq!(ask(&mut window, "a", 0), None);
}
