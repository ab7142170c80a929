//! One screen, whatever the number of tasks.

use serde_json::{Value, json};

use super::*;

/// A run with these tasks at noon.
fn screen(tasks: &[Value]) -> String {
    let whole = json!({
        "schema": "outlast/status/v1", "run": "shop-7f3a", "state": "running", "engine": {"pid": 7},
        "started_at": "2026-01-01T11:00:00Z", "base": "0123456789abcdef", "target": "main", "counts": {},
        "tasks": tasks, "accounts": [],
        "budget": {"usd_used": null, "usd_limit": null, "tokens_used": 0, "tokens_limit": null, "usd_left": null,
                   "tokens_counted": 0, "tokens_left": null, "unmetered": 0, "unpriced": 0, "reached": null},
    });
    let noon: jiff::Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let noon = Timestamp::from_millis(noon.as_millisecond());
    let text = status(&serde_json::from_value(whole).unwrap(), noon);
    anstream::adapter::strip_str(&text).to_string()
}

fn task(id: &str, state: &str, cause: Option<&str>, until: Option<&str>) -> Value {
    json!({
        "id": id, "state": state, "cause": cause, "detail": cause.map(|_| "account `a` is closed"), "reset_at": until,
        "attempts": 1, "turns": 3, "resumed_by": null,
        "tokens": {"input": null, "cache_write": null, "cache_read": null, "output": null, "spent_again": null},
        "usd": null, "workspace": null, "branch": null, "checkpoint": null, "verify": null, "landed": null,
    })
}

fn parked(number: usize) -> Value {
    task(&format!("t{number:02}"), "parked", Some("window_quota"), Some("2026-01-01T14:00:00Z"))
}

#[test]
fn sixty_parked_agents_are_one_line_and_what_differs_stands_beside_them() {
    let mut tasks: Vec<Value> = (1..=60).map(parked).collect();
    tasks.push(task("other", "parked", Some("overload"), Some("2026-01-01T12:01:00Z")));
    let text = screen(&tasks);
    let told = "parked     60 tasks (t01, t02, t03, …)  window_quota: account `a` is closed  goes on in 2 h 0 min";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("parked     other  3 turns  overload"), "{text}");
    assert!(!text.contains("t04") && !text.contains("more"), "{text}");
}

#[test]
fn what_fits_on_the_screen_is_told_one_by_one() {
    let text = screen(&(1..=NAMED_MAX).map(parked).collect::<Vec<_>>());
    assert_eq!(text.matches("window_quota").count(), NAMED_MAX, "{text}");
}

#[test]
fn what_does_not_fit_is_counted_and_a_command_shows_it() {
    let failed = |n: usize| json!({"detail": format!("why {n}")});
    let tasks = (1..=20).map(|n| {
        let mut one = task(&format!("t{n:02}"), "failed", Some("verify"), None);
        one.as_object_mut().unwrap().extend(failed(n).as_object().unwrap().clone());
        one
    });
    let text = screen(&tasks.collect::<Vec<_>>());
    assert!(text.contains("and 8 more; all of them: outlast status --json shop-7f3a"), "{text}");
    assert!(text.contains("outlast retry --run shop-7f3a state:failed  tries them again"), "{text}");
}
