//! Each dialect as real clients send it and providers answer in it, and anything at all.

use nix::time::ClockId;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const DIALECTS: [Dialect; 4] = [Dialect::Anthropic, Dialect::Responses, Dialect::Chat, Dialect::Gemini];

fn says(role: Role, text: &str) -> Item {
    Item::Said { role, text: text.to_owned() }
}

fn call(id: &str, name: &str, arguments: &str) -> Item {
    Item::Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn result(id: &str, text: &str, is_error: bool) -> Item {
    Item::Result { id: id.to_owned(), text: text.to_owned(), is_error }
}

/// A request of the dialect with a text of everyone, a call and its result.
fn request(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Anthropic => json!({
            "model": "m", "stream": true, "tools": [{"name": "Read", "input_schema": {}}],
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Do it."}, {"type": "image", "source": {}}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "text", "text": "I read."},
                    {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a \"b\""}},
                    {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "false"}}]},
                {"role": "user", "content": [
                    {"tool_use_id": "c1", "type": "tool_result", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                    {"type": "tool_result", "content": "Exit code 1", "is_error": true, "tool_use_id": "c2"}]},
                {"role": "assistant", "content": "Done."},
            ],
        }),
        Dialect::Responses => json!({
            "model": "m", "instructions": "Be brief.", "prompt_cache_key": "k",
            "input": [
                {"type": "additional_tools", "tools": []},
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandbox: none."}]},
                {"role": "user", "content": "Do it."},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I read."}]},
                {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": "{\"cmd\":\"cat a\"}", "id": "fc_1"},
                {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin\n\"x\""},
                {"type": "function_call_output", "call_id": "c1", "output": "one\ntwo"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": {"content": "no", "success": false}},
                {"type": "local_shell_call", "call_id": "c3", "action": {"command": ["ls"], "type": "exec"}},
            ],
        }),
        Dialect::Chat => json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Do it."}]},
                {"role": "assistant", "content": "I read.", "reasoning_content": "hm", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"filePath\":\"a\"}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "one\ntwo"},
                {"role": "assistant", "content": null, "function_call": {"name": "old", "arguments": "{}"}},
                {"role": "function", "name": "old", "content": "k"},
            ],
        }),
        Dialect::Gemini => json!({
            "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Do it."}]},
                {"role": "model", "parts": [
                    {"thought": true, "text": "hm"}, {"text": "I read."},
                    {"functionCall": {"id": "c1", "name": "read_file", "args": {"file_path": "a"}}, "thoughtSignature": "x"},
                    {"functionCall": {"name": "glob", "args": {}}}, {"functionCall": {"name": "glob", "args": {"x": 1}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "one\ntwo"}}},
                    {"functionResponse": {"name": "glob", "response": {"error": "no"}}},
                    {"functionResponse": {"name": "glob", "response": {"found": 2}}}]},
            ],
        }),
    }
}

fn read(dialect: Dialect, body: &Value) -> Option<Vec<Item>> {
    conversation(dialect, body.to_string().as_bytes()).map(|conversation| conversation.items)
}

#[test]
fn anthropic_messages() {
    let items = read(Dialect::Anthropic, &request(Dialect::Anthropic)).unwrap();
    let expected = [
        says(Role::System, "Be brief."),
        says(Role::User, "Do it."),
        says(Role::Assistant, "I read."),
        call("c1", "Read", r#"{"path":"a \"b\""}"#),
        call("c2", "Bash", r#"{"command":"false"}"#),
        result("c1", "one\ntwo", false),
        result("c2", "Exit code 1", true),
        says(Role::Assistant, "Done."),
    ];
    assert_eq!(items, expected);
}

#[test]
fn openai_responses() {
    let items = read(Dialect::Responses, &request(Dialect::Responses)).unwrap();
    let expected = [
        says(Role::System, "Be brief."),
        says(Role::System, "Sandbox: none."),
        says(Role::User, "Do it."),
        says(Role::Assistant, "I read."),
        call("c1", "exec_command", r#"{"cmd":"cat a"}"#),
        call("c2", "apply_patch", r#""*** Begin\n\"x\"""#),
        result("c1", "one\ntwo", false),
        result("c2", "no", true),
        call("c3", "local_shell", r#"{"command":["ls"],"type":"exec"}"#),
    ];
    assert_eq!(items, expected);
    assert_eq!(read(Dialect::Responses, &json!({"input": "Hi"})).unwrap(), [says(Role::User, "Hi")]);
}

#[test]
fn openai_chat() {
    let items = read(Dialect::Chat, &request(Dialect::Chat)).unwrap();
    let expected = [
        says(Role::System, "Be brief."),
        says(Role::User, "Do it."),
        says(Role::Assistant, "I read."),
        call("c1", "read", r#"{"filePath":"a"}"#),
        result("c1", "one\ntwo", false),
        call("old#1", "old", "{}"),
        result("old#1", "k", false),
    ];
    assert_eq!(items, expected);
}

#[test]
fn gemini_contents() {
    let items = read(Dialect::Gemini, &request(Dialect::Gemini)).unwrap();
    let expected = [
        says(Role::System, "Be brief."),
        says(Role::User, "Do it."),
        says(Role::Assistant, "I read."),
        call("c1", "read_file", r#"{"file_path":"a"}"#),
        call("glob#1", "glob", "{}"),
        call("glob#2", "glob", r#"{"x":1}"#),
        result("c1", "one\ntwo", false),
        result("glob#1", "no", true),
        result("glob#2", r#"{"found":2}"#, false),
    ];
    assert_eq!(items, expected);
}

#[test]
fn what_is_no_request_gives_nothing() {
    for dialect in DIALECTS {
        for body in
            ["", "[]", "null", "{}", "{\"messages\":{}}", "{\"input\":7}", "{\"contents\":\"x\"}", "\u{1f}\u{8b}"]
        {
            assert_eq!(conversation(dialect, body.as_bytes()), None, "{dialect} {body}");
        }
        let whole = request(dialect).to_string();
        let half = &whole[..whole.find("I read.").unwrap()];
        assert_eq!(conversation(dialect, half.as_bytes()), None, "{dialect}: a body that was cut off");
    }
}

#[test]
fn what_is_not_known_is_passed_over() {
    let body = json!({"messages": [
        7, {"role": "oracle", "content": "x"}, {"role": "user"}, {"role": "user", "content": [null, {"type": "later"}, {}]},
        {"content": "no role"}, {"role": "assistant", "content": [{"type": "tool_use"}]}, {"role": "user", "content": "ok"},
    ]});
    assert_eq!(read(Dialect::Anthropic, &body).unwrap(), [call("", "", ""), says(Role::User, "ok")]);
}

#[test]
fn half_a_surrogate_pair_loses_itself_alone() {
    let body = br#"{"messages":[{"role":"user","content":"cut \ud83d here"}]}"#;
    let items = conversation(Dialect::Chat, body).unwrap().items;
    assert!(matches!(&items[..], [Item::Said { text, .. }] if text.starts_with("cut ") && text.ends_with(" here")));
}

fn stream(events: &[Value]) -> Vec<u8> {
    events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect::<String>().into_bytes()
}

#[test]
fn an_answer_in_a_stream_and_in_one_document_says_the_same() {
    let anthropic = [
        json!({"type": "message_start", "message": {"content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I "}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "run."}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c1", "name": "run", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"a\""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ":1}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_stop"}),
    ];
    let expected = [says(Role::Assistant, "I run."), call("c1", "run", r#"{"a":1}"#)];
    assert_eq!(answer_items(Dialect::Anthropic, &stream(&anthropic)), expected);
    let cut = answer_items(Dialect::Anthropic, &stream(&anthropic[..10]));
    assert_eq!(cut, expected[..1], "a call that is not whole is not run");
    let document = json!({"content": [{"type": "text", "text": "I run."}, {"type": "tool_use", "id": "c1", "name": "run", "input": {"a": 1}}]});
    assert_eq!(answer_items(Dialect::Anthropic, document.to_string().as_bytes()), expected);

    let message =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I run."}]});
    let function = json!({"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{\"a\":1}"});
    let responses = [
        json!({"type": "response.output_item.added", "item": {"type": "function_call", "name": "run", "arguments": ""}}),
        json!({"type": "response.output_item.done", "item": message}),
        json!({"type": "response.output_item.done", "item": function}),
        json!({"type": "response.completed", "response": {"output": [message, function]}}),
    ];
    assert_eq!(answer_items(Dialect::Responses, &stream(&responses)), expected);
    let document = json!({"output": [message, function]});
    assert_eq!(answer_items(Dialect::Responses, document.to_string().as_bytes()), expected);

    let delta =
        |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let chat = [
        delta(json!({"role": "assistant", "content": "I "}), Value::Null),
        delta(json!({"content": "run."}), Value::Null),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "run", "arguments": ""}}]}),
            Value::Null,
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":1}"}}]}), Value::Null),
        delta(json!({}), json!("tool_calls")),
    ];
    assert_eq!(answer_items(Dialect::Chat, &stream(&chat)), expected);
    assert_eq!(answer_items(Dialect::Chat, &stream(&chat[..4])), expected[..1]);
    let document = json!({"choices": [{"message": {"role": "assistant", "content": "I run.", "tool_calls": [
        {"id": "c1", "function": {"name": "run", "arguments": "{\"a\":1}"}}]}}]});
    assert_eq!(answer_items(Dialect::Chat, document.to_string().as_bytes()), expected);

    let chunk = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}]});
    let gemini = [
        chunk(json!([{"text": "I "}])),
        chunk(json!([{"text": "run."}, {"functionCall": {"id": "c1", "name": "run", "args": {"a": 1}}}])),
        json!({"candidates": [], "usageMetadata": {}}),
    ];
    assert_eq!(answer_items(Dialect::Gemini, &stream(&gemini)), expected);
    assert_eq!(answer_items(Dialect::Gemini, json!(gemini).to_string().as_bytes()), expected);
}

/// A request with this many reads of a file of 20 kB.
fn long(reads: usize) -> Vec<u8> {
    let output = "fn main() { println!(\"hello\"); }\n".repeat(600);
    let mut messages = Vec::new();
    for n in 0..reads {
        let id = format!("c{n}");
        let input = json!({"file_path": "/a"});
        messages.push(
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": input}]}),
        );
        messages
            .push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output}]}));
    }
    json!({"model": "m", "messages": messages}).to_string().into_bytes()
}

/// A megabyte takes 4 to 6 ms in an optimised build; what can be told of any build is that it grows no faster than the body.
#[test]
fn the_time_to_read_a_request_grows_with_its_length_alone() {
    let best = |reads: usize| {
        let body = long(reads);
        let times = (0..5).map(|_| {
            // What this thread has computed: on a busy machine the clock on the wall tells of everybody else.
            let spent = || std::time::Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap());
            let before = spent();
            assert_eq!(conversation(Dialect::Anthropic, &body).unwrap().items.len(), 2 * reads);
            spent() - before
        });
        times.min().unwrap()
    };
    let (short, long) = (best(10), best(40));
    assert!(long < short * 12, "4 times the length: {short:?}, then {long:?}");
}

proptest! {
    #[test]
    fn mutated_bodies_never_panic(
        which in 0usize..4,
        edits in proptest::collection::vec((0usize..2000, any::<u8>(), 0u8..4), 0..12),
    ) {
        let dialect = DIALECTS[which];
        let mut body = request(dialect).to_string().into_bytes();
        let interesting = b"\"{}[]:,\\ nut0-e\x00\xff";
        for (at, byte, how) in edits {
            let at = at % (body.len() + 1);
            let byte = interesting[usize::from(byte) % interesting.len()];
            match how {
                0 => body.insert(at, byte),
                1 if at < body.len() => body[at] = byte,
                2 if at < body.len() => { body.remove(at); }
                _ => body.truncate(at.max(10)),
            }
        }
        for dialect in DIALECTS {
            let _read = conversation(dialect, &body);
            let _answered = answer_items(dialect, &body);
            let _streamed = answer_items(dialect, &[b"data: ", &body[..]].concat());
        }
    }

    #[test]
    fn any_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        for dialect in DIALECTS {
            let _read = conversation(dialect, &body);
            let _answered = answer_items(dialect, &body);
        }
    }
}
