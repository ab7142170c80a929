//! Named points at which a test can have the engine killed, to prove that nothing is lost there.
//!
//! `OUTLAST_FAULT=point:n` kills the process with SIGKILL when it passes `point` for the n-th time. Builds without
//! debug assertions have no fault points.

/// Every point, for the tests that go through all of them.
pub const POINTS: &[&str] = &[
    "before_append",
    "after_append",
    "before_workspace",
    "after_workspace",
    "before_spawn",
    "after_spawn",
    "after_answer",
    "turn_before_checkpoint",
    "turn_after_checkpoint",
    "after_exit",
    "before_end",
    "after_end",
    "after_checkpoint",
    "after_verify",
    "after_candidate",
    "before_move",
    "after_move",
];

/// Passes a point.
#[cfg(debug_assertions)]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    debug_assert!(POINTS.contains(&name), "{name} is no fault point");
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("OUTLAST_FAULT").ok()?;
        let (name, n) = text.split_once(':')?;
        Some((name.to_owned(), n.parse().ok()?))
    });
    if let Some((wanted, n)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *n
    {
        // The call cannot return: if it does, the test would go on as if the point had not been reached.
        nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL).unwrap_or_default();
    }
}

/// Passes a point.
#[cfg(not(debug_assertions))]
pub(crate) const fn point(_: &str) {}
