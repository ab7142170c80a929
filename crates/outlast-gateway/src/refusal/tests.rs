//! Stated reset times, case by case.

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(k, v)| (http::HeaderName::from_static(k), v.parse().unwrap())).collect()
}

fn wait(pairs: &[(&'static str, &str)], body: &str) -> Option<f64> {
    retry_at(&headers(pairs), body.as_bytes(), Said { at: NOW, zone: &jiff::tz::TimeZone::UTC })
        .map(|t| t.since(NOW).as_secs_f64())
}

#[test]
fn b08_header_units_are_kept_apart() {
    assert_eq!(wait(&[("retry-after-ms", "1500")], ""), Some(1.5));
    assert_eq!(wait(&[("retry-after", "12")], ""), Some(12.0));
    assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "12")], ""), Some(1.5));
}

#[test]
fn b09_a_bad_date_counts_as_missing() {
    for bad in ["Thu, 32 Foo 2026", "NaN", "-5", "inf", "", "1e99"] {
        assert_eq!(wait(&[("retry-after", bad)], ""), None, "{bad}");
    }
}

#[test]
fn b11_a_date_is_measured_against_the_answers_own_clock() {
    let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
    assert_eq!(wait(&[date, ("retry-after", "Wed, 21 Oct 2026 07:29:30 GMT")], ""), Some(90.0));
    assert_eq!(
        wait(&[date, ("retry-after", "Wed, 21 Oct 2026 07:00:00 GMT")], ""),
        Some(0.0),
        "past is now, not negative"
    );
}

#[test]
fn b12_codex_states_its_reset_in_the_body() {
    let body = r#"{"error":{"type":"usage_limit_reached","resets_at":1790000999,"resets_in_seconds":529498}}"#;
    assert_eq!(wait(&[], body), Some(529_498.0));
    assert_eq!(wait(&[], r#"{"error":{"resets_at":1790000060}}"#), Some(60.0));
}

#[test]
fn other_structured_resets_are_read() {
    assert_eq!(wait(&[("anthropic-ratelimit-unified-reset", "1790000300")], ""), Some(300.0));
    let gemini = r#"[{"error":{"code":429,"details":[{"@type":"x"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38.86s"}]}}]"#;
    assert_eq!(wait(&[], gemini), Some(38.86));
}

#[test]
fn what_a_sentence_says_is_read_as_a_clis_report_is() {
    assert_eq!(wait(&[], "try again in 17 seconds"), Some(17.0));
    assert_eq!(wait(&[("retry-after", "12")], "try again in 17 seconds"), Some(12.0));
    let glm =
        r#"{"error":{"code":"1308","message":"已达到 5小时的使用上限。您的限额将在 2026-09-21 22:13:21 重置。"}}"#;
    // 14:13:20 in UTC is 22:13:20 there.
    assert_eq!(wait(&[], glm), Some(1.0));
    assert_eq!(wait(&[], "Your quota will be refreshed in the next cycle."), None);
    let openai = |remaining| {
        [
            ("x-ratelimit-remaining-requests", remaining),
            ("x-ratelimit-reset-requests", "1m30.5s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "500ms"),
        ]
    };
    assert_eq!(wait(&openai("5"), ""), Some(0.5));
    assert_eq!(wait(&openai("0"), ""), Some(90.5));
}

#[test]
fn kinds_come_from_status_and_code() {
    let of = |status, body: &str| kind(StatusCode::from_u16(status).unwrap(), body.as_bytes());
    assert_eq!(of(429, ""), RefusalKind::Limit);
    assert_eq!(of(429, r#"{"error":{"code":"insufficient_quota"}}"#), RefusalKind::Billing);
    assert_eq!(of(403, "You've reached your usage limit for this billing cycle."), RefusalKind::Limit);
    assert_eq!(of(403, "forbidden"), RefusalKind::Auth);
    assert_eq!(of(529, ""), RefusalKind::Overload);
    assert_eq!(of(500, ""), RefusalKind::Server);
    assert!(!is_refusal(StatusCode::BAD_REQUEST) && !is_refusal(StatusCode::NOT_FOUND) && !is_refusal(StatusCode::OK));
}
