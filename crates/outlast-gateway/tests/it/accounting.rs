//! What an exchange used, by dialect, from the wire to the ledger.

use outlast_gateway::Provider as Kind;
use outlast_journal::Usage;

use crate::support::{AGENT_KEY, Reply, World, sse};

async fn metered(kind: Kind, target: &str, body: &str, reply: Reply) -> (Usage, Option<i64>, bool) {
    let mut world = World::new(kind, vec![reply]).await;
    let answer = world.send(&format!("POST {target}\r\nauthorization: Bearer {AGENT_KEY}"), body.as_bytes()).await;
    assert!(answer.whole);
    let settled = world.settled().await;
    let row = world.rows().await.pop().unwrap();
    assert_eq!((row.usage, row.usd_nanos), (settled.usage, settled.usd_nanos), "ledger and report agree");
    (row.usage, row.usd_nanos, row.estimated)
}

#[tokio::test]
async fn i07_anthropic_usage_is_cumulative_and_its_cache_split_is_priced() {
    let events = [
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-opus-4-8\",\"usage\":{\"input_tokens\":50,\"cache_creation_input_tokens\":1000,\"cache_read_input_tokens\":100000,\"cache_creation\":{\"ephemeral_5m_input_tokens\":400,\"ephemeral_1h_input_tokens\":600},\"output_tokens\":1}}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":60,\"cache_read_input_tokens\":100000,\"output_tokens\":10}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":500}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ];
    let (usage, usd_nanos, estimated) =
        metered(Kind::Anthropic, "/v1/messages", "{\"model\":\"claude-opus-4-8\"}", sse(&events)).await;
    let expected = Usage {
        input: Some(60),
        cache_write_5m: Some(400),
        cache_write_1h: Some(600),
        cache_read: Some(100_000),
        output: Some(500),
        reasoning: None,
    };
    assert_eq!(usage, expected);
    // 60 x 5 + 400 x 6.25 + 600 x 10 + 100,000 x 0.5 + 500 x 25, in millionths of a dollar.
    assert_eq!(usd_nanos, Some((300 + 2_500 + 6_000 + 50_000 + 12_500) * 1_000));
    assert!(!estimated);
}

#[tokio::test]
async fn a_cache_write_without_a_split_is_an_estimate() {
    let body = r#"{"model":"claude-opus-4-8","usage":{"input_tokens":3,"cache_creation_input_tokens":12304,"output_tokens":550}}"#;
    let (usage, usd_nanos, estimated) =
        metered(Kind::Anthropic, "/v1/messages", "{\"model\":\"claude-opus-4-8\"}", Reply::json(body)).await;
    assert_eq!((usage.cache_write_5m, usage.cache_write_1h, usage.cache_read), (Some(12_304), None, None));
    assert_eq!((usd_nanos, estimated), (Some(15_000 + 76_900_000 + 13_750_000), true));
}

#[tokio::test]
async fn openai_input_includes_what_the_cache_served() {
    let responses = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-5\",\"service_tier\":\"default\",\"output\":[{\"text\":\"\\\"usage\\\"\"}],\"usage\":{\"input_tokens\":100050,\"input_tokens_details\":{\"cached_tokens\":100000},\"output_tokens\":80,\"output_tokens_details\":{\"reasoning_tokens\":64}}}}\n\n";
    let expected =
        Usage { input: Some(50), cache_read: Some(100_000), output: Some(80), reasoning: Some(64), ..Usage::default() };
    let (usage, usd_nanos, _) =
        metered(Kind::OpenAi, "/v1/responses", "{\"model\":\"gpt-5\"}", sse(&[responses])).await;
    assert_eq!(usage, expected);
    // gpt-5: 1.25 in, 0.125 cached, 10 out, USD per million tokens.
    assert_eq!(usd_nanos, Some(62_500 + 12_500_000 + 800_000));

    let chat = [
        "data: {\"model\":\"gpt-5\",\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100050,\"prompt_tokens_details\":{\"cached_tokens\":100000},\"completion_tokens\":80,\"completion_tokens_details\":{\"reasoning_tokens\":64}}}\n\ndata: [DONE]\n\n",
    ];
    let (usage, again, _) = metered(Kind::OpenAi, "/v1/chat/completions", "{\"model\":\"gpt-5\"}", sse(&chat)).await;
    assert_eq!((usage, again), (expected, usd_nanos));
}

#[tokio::test]
async fn gemini_thoughts_are_output_and_every_part_replaces_the_one_before() {
    let part = |n: u32, more: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{}}{more}}}],\"usageMetadata\":{{\"promptTokenCount\":1000,\"cachedContentTokenCount\":600,\"candidatesTokenCount\":{n},\"thoughtsTokenCount\":40}},\"modelVersion\":\"gemini-2.5-pro\"}}\r\n\r\n"
        )
    };
    let (first, last) = (part(1, ""), part(20, ",\"finishReason\":\"STOP\""));
    let target = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    let (usage, usd_nanos, _) = metered(Kind::Gemini, target, "{}", sse(&[&first, &last])).await;
    let expected =
        Usage { input: Some(400), cache_read: Some(600), output: Some(60), reasoning: Some(40), ..Usage::default() };
    assert_eq!(usage, expected);
    assert!(usd_nanos.is_some());
    // Without `alt=sse` the stream is one array.
    let strip = |s: &str| s.trim_start_matches("data: ").trim_end().to_owned();
    let array = format!("[{},\n{}]", strip(&first), strip(&last));
    let target = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
    assert_eq!(metered(Kind::Gemini, target, "{}", Reply::json(&array)).await.0, expected);
}

#[tokio::test]
async fn what_is_not_said_stays_unknown() {
    for (kind, target, reply) in [
        (
            Kind::OpenAiCompatible,
            "/v1/chat/completions",
            sse(&["data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"]),
        ),
        (Kind::Anthropic, "/v1/messages", Reply::json("not json")),
        (
            Kind::Anthropic,
            "/v1/messages",
            Reply::whole("200 OK\r\ncontent-encoding: gzip\r\ncontent-type: application/json", "\u{1f}..."),
        ),
        (
            Kind::Gemini,
            "/v1beta/models/m:generateContent",
            Reply::json("{\"usageMetadata\":{\"promptTokenCount\":\"many\"}}"),
        ),
    ] {
        assert_eq!(
            metered(kind, target, "{\"model\":\"local-model\"}", reply).await,
            (Usage::default(), None, false),
            "{target}"
        );
    }
}

#[tokio::test]
async fn i10_a_local_models_tokens_are_counted_and_its_price_is_unknown() {
    let body = "{\"model\":\"gpt-5\",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":0}}";
    let (usage, usd_nanos, _) =
        metered(Kind::OpenAiCompatible, "/v1/chat/completions", "{\"model\":\"gpt-5\"}", Reply::json(body)).await;
    assert_eq!((usage.input, usage.cache_read, usage.output, usd_nanos), (Some(7), None, Some(0), None));
}
