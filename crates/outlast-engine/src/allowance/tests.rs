//! Hours by the clock of a place, and what a request is taken to cost.

use outlast_core::Oid;
use outlast_core::budget::Allowed;
use outlast_core::record::{Fact, Record, RunSpec, Stream};
use outlast_gateway::{Credentials, Dialect, Provider, Shape, Source, TurnKind, Upstream};

use super::*;

/// Central European time, without a database of zones.
fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

const fn hours(from: u16, to: u16) -> Hours {
    Hours { from_minute: from * 60, to_minute: to * 60 }
}

#[track_caller]
fn opens(hours: Hours, now: &str, expected: Option<&str>) {
    let at = |text: &str| Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    assert_eq!(closed_until(hours, at(now), &berlin()), expected.map(at), "{now}");
}

#[test]
fn hours_begin_by_the_clock_of_the_place() {
    let night = hours(22, 8);
    opens(night, "2026-11-29T21:00:00Z", None);
    opens(night, "2026-11-29T20:59:59.999Z", Some("2026-11-29T21:00:00Z"));
    opens(night, "2026-11-29T06:59:59.999Z", None);
    opens(night, "2026-11-29T07:00:00Z", Some("2026-11-29T21:00:00Z"));
    let day = hours(9, 17);
    opens(day, "2026-11-29T16:00:00Z", Some("2026-11-30T08:00:00Z"));
    opens(day, "2026-12-31T20:00:00Z", Some("2027-01-01T08:00:00Z"));
    // An hour earlier by the world's clock on the day on which summer begins.
    opens(day, "2026-03-28T17:00:00Z", Some("2026-03-29T07:00:00Z"));
    // 02:00 is no time on that day.
    opens(hours(2, 3), "2026-03-28T22:00:00Z", Some("2026-03-29T01:00:00Z"));
}

fn allowance(limits: Limits, hours: Option<Hours>) -> Allowance {
    let key = Credentials::new(Shape::Key, Source::Text(outlast_gateway::Secret::new("k")));
    let upstream = Upstream::new("a".into(), Provider::Anthropic, "http://127.0.0.1:1", key).unwrap();
    let terms = BTreeMap::from([("a".into(), Terms { tariff: upstream.tariff(), limits, hours })]);
    Allowance::new(terms, TimeZone::UTC, &Core::default())
}

fn ask(model: &str, request_bytes: u64) -> Ask {
    Ask {
        path_attempt: None,
        key: String::new(),
        dialect: Dialect::Anthropic,
        model: Some(model.to_owned()),
        context_tokens: None,
        request_bytes,
        request: String::new(),
        turn_kind: TurnKind::Main,
        sub_agent: None,
        received_at: Timestamp::EPOCH,
        again_after: None,
    }
}

fn core(budget: Allowed) -> Core {
    let spec = RunSpec {
        plan: String::new(),
        base: Oid::new("b"),
        target: "t".into(),
        concurrency: 1,
        auto_land: true,
        seed: 1,
        hold_max_ms: None,
        budget,
    };
    let mut core = Core::default();
    core.apply(&Record { at: Timestamp::EPOCH, stream: Stream::Run("r".into()), fact: Fact::RunStarted(spec) });
    core
}

#[test]
fn a_first_request_is_estimated_by_its_size_and_the_models_price() {
    let allowance = allowance(Limits::default(), None);
    let core = core(Allowed { usd_nanos: Some(1_000_000_000), tokens: None });
    let estimate =
        |model: &str, bytes| allowance.estimate(core.run(&"r".into()), &ask(model, bytes), &AccountId::from("a"));
    // 5 USD a million in, 25 out.
    let expected = Estimate { usd_nanos: Some(10_000 * 5_000 + 2_000 * 25_000), tokens: 12_000 };
    assert_eq!(estimate("claude-opus-4-8", 30_000), expected);
    assert_eq!(estimate("claude-opus-4-8", 50_000_000).tokens, 202_000, "a body of pictures");
    assert_eq!(estimate("no-such-model", 30_000), Estimate { usd_nanos: None, tokens: 12_000 });
}

#[test]
fn hours_close_an_account_and_open_it_only_where_they_closed_it() {
    let night = allowance(Limits::default(), Some(hours(22, 8)));
    let noon = Timestamp::from_millis(12 * 3_600_000);
    let evening = Timestamp::from_millis(22 * 3_600_000);
    let mut core = Core::default();
    let news = night.hours_news(&core, noon);
    let close = Command::CloseAccount { account: "a".into(), class: Class::Hours, until: Some(evening) };
    assert_eq!(news, std::slice::from_ref(&close));
    for record in core.admit(noon, close).unwrap() {
        core.apply(&record);
    }
    assert_eq!(night.hours_news(&core, noon), []);
    let always = allowance(Limits::default(), None);
    assert_eq!(always.hours_news(&core, noon), [Command::OpenAccount("a".into())]);
    let refused = Command::CloseAccount {
        account: "a".into(),
        class: Class::WindowQuota,
        until: Some(evening.plus(outlast_core::pace::MINUTE)),
    };
    for record in core.admit(noon, refused).unwrap() {
        core.apply(&record);
    }
    assert_eq!(always.hours_news(&core, noon), [], "the provider closed it");
}
