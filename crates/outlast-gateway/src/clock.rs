//! The wall clock, read in one place.

use std::time::{SystemTime, UNIX_EPOCH};

use outlast_core::Timestamp;

/// Now.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH.plus(since)
}
