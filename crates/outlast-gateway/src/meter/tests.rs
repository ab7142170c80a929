//! The meter must read the same however a stream is cut into pieces, and must never fail on anything.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn metered(dialect: Dialect, content_type: &'static str, chunks: &[&[u8]]) -> Reading {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let mut meter = Meter::new(dialect, &headers);
    for chunk in chunks {
        meter.feed(chunk);
    }
    meter.finish()
}

const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

const STREAMS: [(Dialect, &str, Option<u64>); 4] = [
    (
        Dialect::Anthropic,
        "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"é\",\"usage\":{\"input_tokens\":5}}}\r\n\r\n: c\n\nevent: x\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"\\\"usage\\\":{\\\"output_tokens\\\":999}\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\ndata: \"usage\":{\"output_tokens\":42}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        Some(42),
    ),
    (
        Dialect::Responses,
        "data: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"\\\"usage\\\"\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":42}}}\n\n",
        Some(42),
    ),
    (
        Dialect::Chat,
        "data: {\"choices\":[{\"finish_reason\":null,\"delta\":{\"content\":\"é\"}}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\",\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":42}}]}\n\ndata: [DONE]",
        Some(42),
    ),
    (
        Dialect::Gemini,
        "data: {\"usageMetadata\":{\"promptTokenCount\":5}}\n\ndata: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":40,\"thoughtsTokenCount\":2}}\n\n",
        Some(42),
    ),
];

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for (dialect, text, output) in STREAMS {
        let whole = metered(dialect, EVENT_STREAM, &[text.as_bytes()]);
        assert_eq!((whole.usage.input, whole.usage.output, whole.ended), (Some(5), output, true), "{dialect}");
        for at in 0..=text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            let cut = metered(dialect, EVENT_STREAM, &[a, b]);
            assert_eq!((cut.usage, cut.ended), (whole.usage, whole.ended), "{dialect} cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(metered(dialect, EVENT_STREAM, &bytes).usage, whole.usage, "{dialect} byte by byte");
    }
}

#[test]
fn a_count_beyond_all_reason_is_none() {
    for absurd in ["18446744073709551615", "9223372036854775808", "9e15", "1e300", "1099511627777"] {
        for (dialect, text, _) in STREAMS {
            let text = text.replace("42", absurd).replace(":40,", &format!(":{absurd},"));
            let reading = metered(dialect, EVENT_STREAM, &[text.as_bytes()]);
            assert_eq!(reading.usage.input, Some(5), "{dialect} {absurd}");
            assert!(reading.usage.output.is_none_or(|count| count < 1_000), "{dialect} {absurd}: {reading:?}");
        }
    }
}

#[test]
fn a_mislabelled_stream_is_still_read() {
    for label in ["application/json", "text/plain", ""] {
        let (dialect, text, output) = STREAMS[2];
        assert_eq!(metered(dialect, label, &[text.as_bytes()]).usage.output, output, "{label}");
    }
}

#[test]
fn the_last_split_counts_and_the_rest_is_priced_as_five_minutes() {
    let delta = |usage: &str| format!("data: {{\"type\":\"message_delta\",\"usage\":{usage}}}\n\n");
    let text = [
        delta(r#"{"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":0}}"#),
        delta(r#"{"cache_creation_input_tokens":500,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":300}}"#),
        delta(r#"{"cache_creation_input_tokens":600,"output_tokens":1}"#),
    ]
    .concat();
    let reading = metered(Dialect::Anthropic, EVENT_STREAM, &[text.as_bytes()]);
    assert_eq!((reading.usage.cache_write_1h, reading.usage.cache_write_5m), (Some(300), Some(300)));
    assert!(!reading.split_unknown);
}

#[test]
fn errors_inside_a_stream_are_named() {
    for (dialect, text, name) in [
        (
            Dialect::Anthropic,
            "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
            "overloaded_error",
        ),
        (
            Dialect::Responses,
            "data: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"error\":null}\n\n",
            "server_is_overloaded",
        ),
        (
            Dialect::Responses,
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"},\"usage\":null}}\n\n",
            "rate_limit_exceeded",
        ),
        (Dialect::Chat, "data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}\n\n", "server_error"),
        (Dialect::Gemini, "data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}\n\n", "UNAVAILABLE"),
    ] {
        assert_eq!(metered(dialect, EVENT_STREAM, &[text.as_bytes()]).error.as_deref(), Some(name), "{text}");
    }
}

proptest! {
    #[test]
    fn any_pieces_of_any_stream_read_the_same(stream in 0usize..4, cuts in proptest::collection::vec(0usize..500, 0..12)) {
        let (dialect, text, _) = STREAMS[stream];
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        let (pieces, whole) = (metered(dialect, EVENT_STREAM, &chunks), metered(dialect, EVENT_STREAM, &[text.as_bytes()]));
        prop_assert_eq!((pieces.usage, pieces.ended, pieces.model), (whole.usage, whole.ended, whole.model));
    }

    #[test]
    fn garbage_is_unknown_and_never_a_panic(dialect in 0usize..4, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let reading = metered(STREAMS[dialect].0, EVENT_STREAM, &[&bytes]);
        prop_assert_eq!(reading.usage, Usage::default());
    }
}
