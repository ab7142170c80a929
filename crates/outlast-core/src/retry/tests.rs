//! How long a task waits before it is tried again.

use super::*;
use crate::TaskId;
use crate::testing::task_spec;

fn task(id: &str, free_retries: u32) -> Task {
    Task { free_retries, waits: free_retries, attempts: free_retries, ..Task::new(TaskId::from(id), task_spec(&[]), 0) }
}

#[test]
fn a_fault_of_the_task_is_tried_again_at_once() {
    for class in [Class::Crash, Class::Verify, Class::Timeout, Class::GaveUp, Class::ContextOverflow] {
        assert_eq!(delay(1, &task("a", 0), class), Duration::ZERO, "{class}");
    }
}

#[test]
fn a16_a_task_that_fails_at_once_each_time_is_tried_ever_later_up_to_a_minute() {
    for (tries_used, plain) in [(0, 0), (1, 0), (2, 1), (3, 2), (6, 16), (8, 60), (20, 60), (u32::MAX, 60)] {
        let delay = delay(1, &Task { tries_used, ..task("a", 0) }, Class::GaveUp);
        let plain = Duration::from_secs(plain);
        assert!(delay >= plain && delay <= plain + plain / 4, "{tries_used}: {delay:?}");
    }
}

#[test]
fn a_fault_of_the_world_is_tried_ever_later_up_to_a_bound_and_a_quarter() {
    for (free_retries, plain) in [(1, 2), (2, 4), (3, 8), (5, 32), (9, 512), (10, 900), (50, 900), (u32::MAX, 900)] {
        let delay = delay(1, &task("a", free_retries), Class::Network);
        let plain = Duration::from_secs(plain);
        assert!(delay >= plain && delay <= plain + plain / 4, "{free_retries}: {delay:?}");
    }
}

#[test]
fn a_vanished_process_is_tried_again_at_once_the_first_time_only() {
    assert_eq!(delay(1, &task("a", 1), Class::Vanished), Duration::ZERO);
    assert!(delay(1, &task("a", 2), Class::Vanished) >= Duration::from_secs(4));
}

#[test]
fn tasks_that_failed_together_do_not_come_back_together() {
    let delays: std::collections::BTreeSet<_> =
        (0..100).map(|i| delay(1, &task(&format!("t{i}"), 4), Class::Overload)).collect();
    assert!(delays.len() > 60, "{} different delays of 100", delays.len());
    assert_eq!(delay(1, &task("a", 4), Class::Overload), delay(1, &task("a", 4), Class::Overload));
}
