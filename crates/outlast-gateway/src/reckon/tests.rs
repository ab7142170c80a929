//! An exchange whose process ended is billed by what its answer had said, and unknown where it had said nothing.

use outlast_core::Timestamp;
use outlast_journal::Opening;

use super::*;
use crate::credential::{Credentials, Shape, Source};
use crate::upstream::Provider;

const START: &str = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1000,\"output_tokens\":1}}}\n\n";
const END: &str =
    "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":42}}\n\ndata: {\"type\":\"message_stop\"}\n\n";

fn reckoned(account: &str, status: u16, headers: &str, answer: &str) -> Reckoning {
    let credentials = Credentials::new(Shape::Key, Source::Env("NONE".to_owned()));
    let upstream = Upstream::new("max".into(), Provider::Anthropic, "https://api.anthropic.com", credentials).unwrap();
    let opening = Opening {
        exchange: "x".to_owned(),
        attempt: None,
        turn: 1,
        dialect: "anthropic".to_owned(),
        model: Some("claude-opus-4-8".to_owned()),
        account: account.into(),
        started_at: Timestamp::from_millis(1_795_000_000_000),
    };
    let head = (status > 0).then(|| AnswerHead {
        status,
        first_byte_at: Timestamp::from_millis(1_795_000_000_100),
        headers: headers.to_owned(),
    });
    reckon([&upstream], &Unfinished { opening: &opening, head: head.as_ref(), answer: answer.as_bytes() })
}

const STREAM: &str = "{\"content-type\":\"text/event-stream\"}";

fn tokens(reckoning: &Reckoning) -> (Option<u64>, Option<u64>) {
    (reckoning.usage.input, reckoning.usage.output)
}

#[test]
fn an_answer_that_had_said_its_end_is_billed_as_it_said() {
    let whole = reckoned("max", 200, STREAM, &format!("{START}{END}"));
    assert_eq!((whole.outcome, tokens(&whole), whole.estimated), (Outcome::Cut, (Some(1000), Some(42)), false));
    // 5 in and 25 out, USD per million tokens.
    assert_eq!(whole.usd_nanos, Some(1000 * 5_000 + 42 * 25_000));
    let document = "{\"type\":\"message\",\"usage\":{\"input_tokens\":7,\"output_tokens\":2}}";
    let whole = reckoned("max", 200, "{\"content-type\":[\"application/json\",\"x\"]}", document);
    assert_eq!((tokens(&whole), whole.estimated), ((Some(7), Some(2)), false));
}

#[test]
fn an_answer_that_broke_off_is_an_estimate_and_one_that_never_began_is_unknown() {
    let broken = reckoned("max", 200, STREAM, START);
    assert_eq!((broken.outcome, tokens(&broken), broken.estimated), (Outcome::Cut, (Some(1000), Some(1)), true));
    assert_eq!(reckoned("max", 200, STREAM, "data: {\"type\":\"ping\"}\n\n"), Reckoning::CUT);
    assert_eq!(reckoned("max", 200, "no json", "{\"type\":\"mess"), Reckoning::CUT);
    assert_eq!(reckoned("max", 0, "", ""), Reckoning::CUT);
}

#[test]
fn an_account_that_is_gone_has_no_price_and_a_refusal_is_one() {
    let whole = reckoned("gone", 200, STREAM, &format!("{START}{END}"));
    assert_eq!((tokens(&whole), whole.usd_nanos), ((Some(1000), Some(42)), None));
    assert_eq!(reckoned("max", 429, "{}", "{}"), Reckoning { outcome: Outcome::Refused, ..Reckoning::CUT });
}
