//! Every form of a reset that was seen, what is no form of one, and what holds for any text.

use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

fn at(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

/// What is read of a text that was said at a moment in a zone, as an instant in UTC.
fn read(text: &str, said_at: &str, host: &str) -> Option<String> {
    let found = stated(text, Said { at: at(said_at), zone: &zone(host) })?;
    Some(jiff::Timestamp::from_millisecond(found.as_millis()).unwrap().to_string())
}

#[test]
fn every_form_that_providers_and_clis_use() {
    // Said on Wednesday, 2026-07-08, at noon in UTC, on a host in Berlin (UTC+2).
    let table = [
        ("Claude AI usage limit reached|1783555200", "2026-07-09T00:00:00Z"),
        ("Claude AI usage limit reached|1783555200000", "2026-07-09T00:00:00Z"),
        ("Claude usage limit reached. Your limit will reset at 3pm (America/Santiago).", "2026-07-08T19:00:00Z"),
        ("5-hour limit reached ∙ resets 2am", "2026-07-09T00:00:00Z"),
        ("Session limit reached ∙ resets 8pm", "2026-07-08T18:00:00Z"),
        ("You've hit your limit · resets 1:30am (Asia/Dhaka)", "2026-07-08T19:30:00Z"),
        ("You've hit your session limit · resets 12:50am (Asia/Dhaka)", "2026-07-08T18:50:00Z"),
        ("You've hit your weekly limit · resets Jul 15 at 12am (Australia/Melbourne)", "2026-07-14T14:00:00Z"),
        ("You've hit your weekly limit · resets Monday 9am", "2026-07-13T07:00:00Z"),
        ("Limits will reset at 9:30 AM", "2026-07-09T07:30:00Z"),
        ("usage limit reached, resets 5pm (UTC)", "2026-07-08T17:00:00Z"),
        (r#"{"error":{"type":"usage_limit_reached","resets_at":1783555200}}"#, "2026-07-09T00:00:00Z"),
        (
            r#"{"error":{"type":"usage_limit_reached","resets_at":1783555200,"resets_in_seconds":90000}}"#,
            "2026-07-09T13:00:00Z",
        ),
        ("You've hit your usage limit. Try again in 2 days 17 hours 14 minutes.", "2026-07-11T05:14:00Z"),
        ("You've hit your usage limit… try again in 5 days", "2026-07-13T12:00:00Z"),
        ("ERROR: You've hit your usage limit or try again at Jul 23rd, 2026 4:15 AM.", "2026-07-23T02:15:00Z"),
        ("Alcanzaste tu límite de uso… inténtalo el 10 de jul. de 2026, 11:52", "2026-07-10T09:52:00Z"),
        (
            "stream disconnected before completion: Rate limit is exceeded. Try again in 17 seconds.",
            "2026-07-08T12:00:17Z",
        ),
        ("max RPM: 3, please try again after 1 seconds", "2026-07-08T12:00:01Z"),
        ("Usage limit reached for 5 hour. Your limit will reset at 2026-09-04 19:01:25", "2026-09-04T11:01:25Z"),
        ("已达到 5小时的使用上限。您的限额将在 2026-08-25 07:41:44 重置。", "2026-08-24T23:41:44Z"),
        ("Usage limit reached for 5 hour. Your limit will reset at 2026-09-04T19:01:25Z", "2026-09-04T19:01:25Z"),
        (r#"{"@type":"…RetryInfo","retryDelay":"38.86s"}"#, "2026-07-08T12:00:38.86Z"),
        (r#""quotaResetDelay":"4h28m20s","retryDelay":"1s""#, "2026-07-08T16:28:20Z"),
        (r#""quotaResetTimeStamp": "2026-07-09T01:02:03Z""#, "2026-07-09T01:02:03Z"),
        (
            "You have exhausted your capacity on this model. Your quota will reset after 4h28m20s.",
            "2026-07-08T16:28:20Z",
        ),
        ("Access resets at 10:57 PM GMT-3", "2026-07-09T01:57:00Z"),
        ("exceeded token rate limit. Please retry after 86400 seconds.", "2026-07-09T12:00:00Z"),
        ("retry-after: 90", "2026-07-08T12:01:30Z"),
        ("retry-after-ms: 1500", "2026-07-08T12:00:01.5Z"),
        ("resets Wed, 21 Oct 2026 07:28:00 GMT", "2026-10-21T07:28:00Z"),
        ("resets tomorrow at 7:05 a.m.", "2026-07-09T05:05:00Z"),
        ("resets 16 August (Asia/Tokyo)", "2026-08-15T15:00:00Z"),
        // Of two, the later; a date of a log's line says nothing.
        ("2026-07-08 11:59:58 limit: resets 3pm, or try again in 5 hours", "2026-07-08T17:00:00Z"),
    ];
    for (text, expected) in table {
        assert_eq!(read(text, "2026-07-08T12:00:00Z", "Europe/Berlin").as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn what_is_not_known_whole_is_unknown() {
    for text in [
        "",
        "usage limit is set to $0",
        "Your quota will be refreshed in the next cycle.",
        "Your quota will reset after 0s.",
        "try again later",
        "try again in a few minutes",
        "resets 07/15 at 3am",
        "resets 3pm (XYZ)",
        "resets 3pm IST",
        "resets 3pm (Moon/Base)",
        "resets Feb 30 at 1am",
        "resets 25:00",
        "resets 13pm",
        "resets 7",
        "retry-after: Thu, 32 Foo 2026",
        "retry-after: -5",
        "retry-after: NaN",
        "retry-after: inf",
        "resets_at: 0",
        "resets_at: 5",
        "resets in 9999999999999999999999 days",
        "Claude AI usage limit reached|17835552",
        "reached|1683555200",
        // It has just passed: that is no year from now.
        "resets Jul 8 at 11am (UTC)",
        "resets at 2026-07-08 11:00:00Z",
        "429 Too Many Requests",
    ] {
        assert_eq!(read(text, "2026-07-08T12:00:00Z", "UTC"), None, "{text}");
    }
}

#[test]
fn b06_what_an_agent_reports_ends_with_the_window_that_it_names() {
    let zone = TimeZone::UTC;
    let said = Said { at: at("2026-07-08T12:00:00Z"), zone: &zone };
    let end = |text: &str| match reported(text, said) {
        Some(End::Stated(at)) => (Some(at), "stated"),
        Some(End::Cut(at)) => (Some(at), "cut"),
        None => (None, "unknown"),
    };
    let (week, month) = ("2026-07-15T12:00:00Z", "2026-08-08T12:00:00Z");
    for (text, expected, how) in [
        ("5-hour limit reached, try again in 5 hours", "2026-07-08T17:00:00Z", "stated"),
        ("5-hour limit reached, try again in 7 hours", "2026-07-08T17:00:00Z", "cut"),
        ("You've hit your session limit · resets 7pm (UTC)", "2026-07-08T17:00:00Z", "cut"),
        ("You've hit your session limit · resets Jul 9 at 9am (UTC)", "2026-07-08T17:00:00Z", "cut"),
        ("You've hit your weekly limit · resets Jul 15 at 12pm (UTC)", week, "stated"),
        // An hour is the clocks'.
        ("You've hit your weekly limit · resets Jul 15 at 1pm (UTC)", "2026-07-15T13:00:00Z", "stated"),
        ("You've hit your weekly limit · resets Jul 16 (UTC)", week, "cut"),
        ("You've hit your weekly limit · resets Jul 17 at 12pm (UTC)", week, "cut"),
        ("You've hit your usage limit, try again in 31 days", month, "stated"),
        ("You've hit your usage limit, try again in 33 days", month, "cut"),
        ("You've hit your usage limit. Try again at Aug 23rd, 2026", month, "cut"),
        ("You've reached your usage limit for this billing cycle. Try again in 40 days.", month, "cut"),
        ("You've hit your usage limit, try again in 365 days", month, "cut"),
        ("You've hit your weekly limit, not the 5-hour limit · try again in 6 days", "2026-07-14T12:00:00Z", "stated"),
    ] {
        assert_eq!(end(text), (Some(at(expected)), how), "{text}");
        assert!(stated(text, said).is_some(), "{text}");
    }
}

#[test]
fn b01_b21_the_next_time_after_it_was_said() {
    let new_york = "resets 2:30am (America/New_York)";
    assert_eq!(read(new_york, "2026-07-09T03:00:00Z", "UTC").as_deref(), Some("2026-07-09T06:30:00Z"));
    let sydney = "Resets 2pm (Australia/Sydney)";
    assert_eq!(read(sydney, "2026-07-08T03:00:00Z", "UTC").as_deref(), Some("2026-07-08T04:00:00Z"));
    assert_eq!(read(sydney, "2026-07-08T05:00:00Z", "UTC").as_deref(), Some("2026-07-09T04:00:00Z"));
    let weekday = "resets Wednesday 9am (UTC)";
    assert_eq!(read(weekday, "2026-07-08T08:00:00Z", "UTC").as_deref(), Some("2026-07-08T09:00:00Z"));
    assert_eq!(read(weekday, "2026-07-08T10:00:00Z", "UTC").as_deref(), Some("2026-07-15T09:00:00Z"));
}

#[test]
fn the_turn_of_the_year_and_clocks_that_are_changed() {
    let text = "resets Jan 2 at 3am (UTC)";
    assert_eq!(read(text, "2026-12-30T12:00:00Z", "UTC").as_deref(), Some("2027-01-02T03:00:00Z"));
    // This year has no such day, and the next has: as property testing found it.
    let leap = "resets February 29 at 12:00AM";
    assert_eq!(read(leap, "2023-12-20T00:00:00Z", "UTC").as_deref(), Some("2024-02-29T00:00:00Z"));
    assert_eq!(read(leap, "2024-02-28T23:59:00Z", "UTC").as_deref(), Some("2024-02-29T00:00:00Z"));
    // The next is far away: it has just passed, or is no date of these years.
    for said_at in ["2024-02-29T00:00:00Z", "2024-12-20T00:00:00Z", "2023-02-20T00:00:00Z", "2023-03-05T00:00:00Z"] {
        assert_eq!(read(leap, said_at, "UTC"), None, "{said_at}");
    }
    // What has just passed is no year away, on either side of the turn of the year.
    let last_day = "resets Dec 31 at 11:30pm (UTC)";
    assert_eq!(read(last_day, "2026-12-31T23:29:00Z", "UTC").as_deref(), Some("2026-12-31T23:30:00Z"));
    assert_eq!(read(last_day, "2026-12-31T23:40:00Z", "UTC"), None);
    assert_eq!(read(last_day, "2027-01-01T00:10:00Z", "UTC"), None);
    // 2:30 does not exist on that day, and 3:30 is not earlier.
    let gap = "resets 2:30am (Europe/Berlin)";
    assert_eq!(read(gap, "2026-03-28T23:00:00Z", "UTC").as_deref(), Some("2026-03-29T01:30:00Z"));
    // It comes twice: the second is not earlier than either.
    assert_eq!(read(gap, "2026-10-24T23:00:00Z", "UTC").as_deref(), Some("2026-10-25T01:30:00Z"));
}

#[test]
fn b08_lengths_of_time() {
    let millis = |text| span(text).map(|span| span.as_millis());
    for (text, expected) in [
        ("500ms", Some(500)),
        ("1m30.5s", Some(90_500)),
        ("6m0s", Some(360_000)),
        ("12", Some(12_000)),
        ("38.86s", Some(38_860)),
        ("2 days, 3 hours and 4 min", Some(183_840_000)),
        ("12 apples", None),
        ("-3", None),
        ("400d", None),
        ("", None),
    ] {
        assert_eq!(millis(text), expected, "{text}");
    }
}

/// A few zones with odd offsets, odd changes of the clock, and none.
const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Chatham"];

fn moment() -> impl Strategy<Value = i64> {
    1_700_000_000_000..1_900_000_000_000_i64
}

proptest! {
    #[test]
    fn no_text_is_a_panic_or_a_time_that_has_passed(text in any::<String>(), now in moment()) {
        let said = Said { at: Timestamp::from_millis(now), zone: &TimeZone::UTC };
        for text in [&text, &format!("resets {text}"), &format!("resets_at\":{text}"), &format!("try again in {text}")] {
            if let Some(found) = stated(text, said) {
                prop_assert!(found > said.at && found.since(said.at) <= FAR, "{text:?} {found:?}");
            }
        }
    }

    #[test]
    fn nor_is_one_made_of_its_own_words(words in prop::collection::vec(prop::sample::select(vec![
        "resets", "try again", "at", "in", "3pm", "12:50am", "Jul", "15", "2026", "2026-07-15", "T", "19:01:25", "Z", "(", ")",
        "Europe/Berlin", "GMT", "-3", "+", "99", "9999999999999", "days", "h", "m", "Monday", "tomorrow", "|", "年", "月", ",", ".",
        "retry-after:", "\"resets_at\":", "-", ":", "/", "\n", "Etc/GMT", "feb", "29", "00:00", "24:60",
    ]), 0..12), now in moment()) {
        let text = words.join(" ");
        let zone = TimeZone::UTC;
        let said = Said { at: Timestamp::from_millis(now), zone: &zone };
        for text in [&text, &text.replace(' ', "")] {
            if let Some(found) = stated(text, said) {
                prop_assert!(found > said.at && found.since(said.at) <= FAR, "{text:?} {found:?}");
            }
        }
    }

    #[test]
    fn a_time_of_day_is_the_next_one_and_reads_the_same_there(
        now in moment(), name in prop::sample::select(ZONES.to_vec()), hour in 0..24_i8, minute in 0..60_i8,
    ) {
        let (shown, half) = (if hour % 12 == 0 { 12 } else { hour % 12 }, if hour < 12 { "am" } else { "pm" });
        let text = format!("You've hit your limit · resets {shown}:{minute:02}{half} ({name})");
        let said = Said { at: Timestamp::from_millis(now), zone: &TimeZone::UTC };
        let found = stated(&text, said).unwrap();
        let there = jiff::Timestamp::from_millisecond(found.as_millis()).unwrap().to_zoned_datetime(zone(name));
        // An hour that a changed clock leaves out is a later one.
        let wanted = jiff::civil::Time::constant(hour, minute, 0, 0);
        prop_assert!(there.time() >= wanted, "{text} {there}");
        prop_assert!((there.time() - wanted).total(jiff::Unit::Hour).unwrap() <= 1.0);
        prop_assert!(found > said.at && found.since(said.at) <= Duration::from_secs(50 * 3600), "{text} {there}");
    }

    #[test]
    fn no_part_of_a_date_is_dropped(
        now in moment(), ahead in 1..360_i64, name in prop::sample::select(ZONES.to_vec()), form in 0..5_usize,
    ) {
        let here = zone(name);
        let then = jiff::Timestamp::from_millisecond(now + ahead * 86_400_000).unwrap().to_zoned_datetime(here.clone());
        let form = [
            "try again at %b %d, %Y %I:%M %p", "resets %B %d at %I:%M%p", "reset at %Y-%m-%d %H:%M", "%d de %b de %Y, %H:%M",
            "将在 %Y年%m月%d日 %H:%M 重置",
        ][form];
        let text = then.strftime(form).to_string();
        let said = Said { at: Timestamp::from_millis(now), zone: &here };
        let found = stated(&text, said);
        if form.contains("%B") && ahead > 180 {
            // Without a year it could be that of one that has just passed.
            prop_assert!(found.is_none_or(|found| found > said.at), "{text}");
        } else if !form.contains("重置") {
            let found = found.unwrap_or_else(|| panic!("{text} said at {now} in {name}"));
            let there = jiff::Timestamp::from_millisecond(found.as_millis()).unwrap().to_zoned_datetime(here);
            prop_assert_eq!(there.date(), then.date(), "{}", text);
            prop_assert!(found.as_millis() / 60_000 >= then.timestamp().as_millisecond() / 60_000, "{text}");
        } else {
            prop_assert!(found.is_some() || ahead == 1, "{text}");
        }
    }
}
