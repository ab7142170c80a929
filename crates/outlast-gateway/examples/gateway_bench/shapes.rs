//! The requests that are measured, and the answers to them.

use std::fmt::Write as _;

/// Events in a streamed answer.
const EVENTS: usize = 69;

/// The key that clients show.
pub(crate) const KEY: &str = "bench-key";

/// A request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// 1 KB each way, one JSON document.
    Small,
    /// A small request, an answer of 100 KB in events.
    LongAnswer,
    /// A request of 100 KB, as an agent's turn has, and a short answer in events.
    LongRequest,
}

pub(crate) const ALL: [Shape; 3] = [Shape::Small, Shape::LongAnswer, Shape::LongRequest];

impl Shape {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Small => "1 KB request, 1 KB answer in one piece",
            Self::LongAnswer => "1 KB request, 100 KB answer in 69 events",
            Self::LongRequest => "100 KB request, 10 KB answer in 69 events",
        }
    }

    /// Stands in the query, so that the upstream need not read the body.
    const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::LongAnswer => "long-answer",
            Self::LongRequest => "long-request",
        }
    }

    pub(crate) fn of_request(head: &str) -> Option<Self> {
        let line = head.lines().next()?;
        ALL.into_iter().find(|shape| line.contains(&format!("bench={} ", shape.name())))
    }

    /// The request, byte for byte.
    pub(crate) fn request(self) -> Vec<u8> {
        let text_len = if self == Self::LongRequest { 99_800 } else { 850 };
        let body = format!(
            r#"{{"model":"claude-opus-4-8","max_tokens":1024,"stream":{},"tools":[{{"name":"Bash"}}],"messages":[{{"role":"user","content":"{}"}}]}}"#,
            self != Self::Small,
            "lorem ipsum ".repeat(text_len / 12),
        );
        let head = format!(
            "POST /v1/messages?bench={} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\nx-api-key: {KEY}\r\n\
             anthropic-version: 2023-06-01\r\nanthropic-beta: a-2026-01-01,b-2026-02-02\r\nuser-agent: bench\r\n\
             x-claude-code-session-id: 6f1c\r\ncontent-length: {}\r\n\r\n",
            self.name(),
            body.len(),
        );
        (head + &body).into_bytes()
    }

    /// The answer, each part to be written apart.
    pub(crate) fn answer(self) -> Vec<Vec<u8>> {
        if self == Self::Small {
            let body = format!(
                r#"{{"id":"msg_1","type":"message","model":"claude-opus-4-8","content":[{{"type":"text","text":"{}"}}],"usage":{{"input_tokens":250,"output_tokens":200}}}}"#,
                "lorem ipsum ".repeat(70),
            );
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nrequest-id: req_1\r\n";
            return vec![format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()];
        }
        let text = "lorem ipsum ".repeat(if self == Self::LongAnswer { 113 } else { 2 });
        let mut parts = Vec::with_capacity(EVENTS + 1);
        let mut first = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
        push_chunk(
            &mut first,
            "message_start",
            r#""message":{"model":"claude-opus-4-8","usage":{"input_tokens":25000,"cache_read_input_tokens":20000,"output_tokens":1}}"#,
        );
        parts.push(first.into_bytes());
        for _ in 0..EVENTS - 3 {
            let mut part = String::new();
            push_chunk(
                &mut part,
                "content_block_delta",
                &format!(r#""index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#),
            );
            parts.push(part.into_bytes());
        }
        let mut part = String::new();
        push_chunk(&mut part, "message_delta", r#""delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":700}"#);
        parts.push(part.into_bytes());
        let mut part = String::new();
        push_chunk(&mut part, "message_stop", r#""done":true"#);
        part.push_str("0\r\n\r\n");
        parts.push(part.into_bytes());
        parts
    }
}

fn push_chunk(into: &mut String, event: &str, members: &str) {
    let data = format!("event: {event}\ndata: {{\"type\":\"{event}\",{members}}}\n\n");
    // Writing to a string cannot fail.
    let _ = write!(into, "{:x}\r\n{data}\r\n", data.len());
}
