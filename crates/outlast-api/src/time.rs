//! Times as scripts and people read them.

use outlast_core::Timestamp;

/// RFC 3339 in UTC, to the second; the far end of time where the instant cannot be named.
pub fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_or_else(
        |_| jiff::Timestamp::MAX.to_string(),
        |at| jiff::Timestamp::from_second(at.as_second()).map_or_else(|_| at.to_string(), |at| at.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_utc_to_the_second() {
        assert_eq!(rfc3339(Timestamp::from_millis(1_796_000_000_123)), "2026-11-30T00:53:20Z");
        assert!(!rfc3339(Timestamp::from_millis(i64::MAX)).is_empty());
    }
}
