//! Whether a text says that a conversation cannot be gone on with: a provider that takes its history no more, or a CLI that
//! finds no session of that name.
//!
//! Every wire format has sentences of its own for it, and most gateways and CLIs repeat them with other quotes, escapes and
//! line breaks. So a text is compared without any of those.

use crate::report::plain;

/// Sentences of providers, as they are without quotes: parts that follow each other closely.
const HISTORY: &[&[&str]] = &[
    // Anthropic Messages, and Bedrock's names for the same.
    &["without tool_result"],
    &["unexpected tool_use_id"],
    &["must have a corresponding tool_"],
    &["tool_use ids must be unique"],
    &["tool_use must have a single result"],
    &["in thinking block"],
    &["thinking.signature"],
    &["expected thinking or redacted_thinking"],
    &["redacted_thinking blocks in the latest"],
    &["block in an assistant message cannot be thinking"],
    &["in the final position cannot contain thinking"],
    &["each thinking block must contain"],
    &["text content blocks must"],
    &["messages must have non-empty content"],
    &["cache_control cannot be set for empty text"],
    &["roles must alternate"],
    &["expected toolresult blocks"],
    &["number of toolresult blocks"],
    // Chat completions: OpenAI, Moonshot, DeepSeek, DashScope, Mistral.
    &["tool_calls must be followed by tool messages"],
    &["tool_call_ids did not have response"],
    &["role tool must be a response to a prece"],
    &["tool_call_id", "is not found"],
    &["with role", "must not be empty"],
    &["thinking mode must be passed back"],
    &["reasoning_content is missing"],
    &["same number of function calls and responses"],
    &["unexpected role", "after role"],
    // Responses.
    &["no tool output found for"],
    &["no tool call found for"],
    &["was provided without its required"],
    &["invalid_encrypted_content"],
    &["encrypted content", "could not be"],
    &["previous_response_not_found"],
    &["previous response with id", "not found"],
    &["item with id", "not found"],
    &["duplicate item found with id"],
    // Gemini.
    &["of the function call turn"],
    &["function call turn comes immediately after"],
    &["function response turn comes immediately after"],
    &["number of function response parts"],
    &["missing a thought_signature"],
    &["thought signature is not valid"],
    &["corrupted thought signature"],
    &["invalid thought signature"],
    // What clients check before they ask.
    &["tool result is missing for tool call"],
    &["tool results are missing for tool calls"],
];

/// How far a part of a sentence may stand behind the one before it: there is room for an id.
const GAP_MAX: usize = 120;

/// Whether a text says that a conversation cannot be gone on with.
pub(crate) fn says_so(text: &str) -> bool {
    let text = bare(text);
    HISTORY.iter().any(|parts| follow(&text, parts)) || names_a_lost_session(&text)
}

/// Whether a line begins as such a report does, where it is a sentence of a provider's or a CLI's own.
pub(crate) fn begins_as_one(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "messages.",
        "messages:",
        "an assistant message with tool_calls",
        "messages with role",
        "invalid parameter: messages with role",
        "no tool ",
        "item ",
        "the encrypted content",
        "please ensure that",
        "function call is missing",
        "corrupted thought",
        "invalid thought",
        "the reasoning_content",
        "the content[].thinking",
        "not the same number",
        "invalid request:",
        "tool result",
    ];
    let line = bare(line);
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) || lost_session_at(&line) == Some(0)
}

/// How programs say that what they read is no JSON: Node, Python, Rust, Go.
const NO_JSON: &[&str] = &[
    "end of json input",
    "is not valid json",
    "in json at position",
    "unterminated string in json",
    "after json at position",
    "control character in string literal in json",
    "jsondecodeerror",
    "expecting value: line",
    "expecting property name enclosed in double quotes: line",
    "eof while parsing a",
    "expected value at line",
    "trailing characters at line",
    "invalid json",
    "malformed json",
    "corrupt json",
    "failed to parse json",
    "error parsing json",
    "could not parse json",
];

/// Whether a line says that a file cannot be read since it is no JSON: of a CLI that was to go on with a session and has asked
/// nothing yet, that is the session's.
pub(crate) fn is_unreadable(line: &str) -> bool {
    let line = bare(line);
    line.len() <= UNREADABLE_MAX && NO_JSON.iter().any(|words| line.contains(words))
}

/// Longest line that says so.
const UNREADABLE_MAX: usize = 600;

/// A text in lower case without colours, quotes, escapes and line breaks, words one space apart.
fn bare(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let lower = plain(text).to_lowercase().replace("\\n", " ");
    for c in lower.chars() {
        match c {
            '`' | '\'' | '"' | '’' | '‘' | '“' | '”' | '\\' => {}
            c if c.is_whitespace() => {
                if !bare.ends_with(' ') {
                    bare.push(' ');
                }
            }
            c => bare.push(c),
        }
    }
    bare
}

/// Whether the parts stand in a text in their order, each close behind the one before.
fn follow(text: &str, parts: &[&str]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return false };
    text.match_indices(first).any(|(at, _)| {
        let mut from = at + first.len();
        rest.iter().all(|part| {
            let window = &text[from..text.floor_char_boundary(from + GAP_MAX + part.len())];
            let found = window.find(part);
            from += found.map_or(0, |at| at + part.len());
            found.is_some()
        })
    })
}

fn names_a_lost_session(text: &str) -> bool {
    lost_session_at(text).is_some()
}

/// What CLIs call a session.
const NOUNS: &[&str] = &["session", "conversation", "thread", "rollout"];
/// What says of one that is named that it is not there.
const GONE: &[&str] = &[
    "does not exist",
    "doesnt exist",
    "do not exist",
    "not found",
    "was not found",
    "is not found",
    "cannot be found",
    "could not be found",
    "no longer exists",
    "is gone",
    "has expired",
    "cannot be resumed",
    "could not be resumed",
    "could not be loaded",
    "was created under a different directory",
    "is corrupt",
    "is damaged",
    "could not be parsed",
    "cannot be parsed",
];
/// What stands before the noun where its file cannot be read, and what follows it then: an application's sessions have no
/// such files.
const UNREAD: &[&str] = &[
    "failed to parse",
    "failed to read",
    "could not parse",
    "could not read",
    "cannot parse",
    "cannot read",
    "error parsing",
    "error reading",
    "unable to parse",
    "unable to read",
    "corrupt",
    "corrupted",
    "damaged",
];
const FILES: &[&str] = &["file", "history", "log", "transcript", "record", "jsonl", "journal", "/"];
/// What stands before the noun where it is said the other way round; one more word may be between them.
const NONE: &[&str] = &[
    "no",
    "no such",
    "no saved",
    "no previous",
    "unknown",
    "could not find",
    "couldnt find",
    "cannot find",
    "failed to resume",
    "failed to load",
    "failed to restore",
    "error resuming",
    "error loading",
    "unable to resume",
    "unable to find",
];

/// Where a text says that a CLI's session is not there: `Session s-1 does not exist`, `No saved session found with ID s-1`.
fn lost_session_at(text: &str) -> Option<usize> {
    NOUNS.iter().filter_map(|noun| text.match_indices(noun).find_map(|(at, _)| lost(text, at, noun))).min()
}

fn lost(text: &str, at: usize, noun: &str) -> Option<usize> {
    let (before, after) = (&text[..at], &text[at + noun.len()..]);
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-' || c == '.');
    if is_word(before.chars().next_back()) {
        return None;
    }
    let before = before.trim_end();
    // `no rollout found for thread id …`, `No previous sessions found for this project`.
    let plural = after.strip_prefix('s').unwrap_or(after);
    let said_before = NONE.iter().any(|none| {
        let rest = before.strip_suffix(none);
        rest.is_some_and(|rest| !is_word(rest.chars().next_back()))
    });
    let names = |rest: &str| {
        let rest = rest.trim_start();
        ["found", "with id", "with session id", "id ", "identifier", "to resume", "for "]
            .iter()
            .any(|w| rest.starts_with(w))
    };
    if said_before && !is_word(plural.chars().next()) && (names(plural) || !is_plain_no(before)) {
        return Some(before.rfind(['.', ':', '\n']).map_or(0, |stop| stop + 1)).map(|from| skip_space(text, from));
    }
    let is_unread =
        UNREAD.iter().any(|words| before.strip_suffix(words).is_some_and(|rest| !is_word(rest.chars().next_back())));
    if is_unread && FILES.iter().any(|file| after.trim_start().starts_with(file)) {
        return Some(before.rfind(['.', ':', '\n']).map_or(0, |stop| stop + 1)).map(|from| skip_space(text, from));
    }
    if text[at..].starts_with("session") && before.ends_with("invalid") && after.trim_start().starts_with("identifier")
    {
        return Some(skip_space(text, at - "invalid ".len().min(at)));
    }
    // A table, a server's cookie or a terminal has sessions as well.
    const OTHERS: &[&str] = &["relation", "table", "column", "type", "tmux", "screen", "browser", "user", "worker"];
    if is_word(after.chars().next()) || OTHERS.iter().any(|other| before.ends_with(other)) {
        return None;
    }
    let end = after.find(['\n', ';']).unwrap_or(after.len()).min(after.floor_char_boundary(GAP_MAX));
    let rest = &after[..end];
    let gone = GONE.iter().filter_map(|gone| rest.find(gone)).min()?;
    let between: Vec<&str> =
        rest[..gone].split([' ', ':', '=', '(', ')', ',']).filter(|word| !word.is_empty()).collect();
    // Between the noun and that it is gone stands its name at most.
    let is_name = |word: &&str| word.contains(|c: char| c.is_ascii_digit()) || word.contains('-') || word.contains('_');
    let is_filler =
        |word: &&str| ["with", "id", "uuid", "identifier", "named", "the", "was", "is", "requested"].contains(word);
    between.iter().all(|word| is_filler(word) || is_name(word)).then_some(at)
}

/// Whether all that is said before is `no`: what there is none of must then be named closer.
fn is_plain_no(before: &str) -> bool {
    before == "no" || before.ends_with(" no") || before.ends_with(":no")
}

fn skip_space(text: &str, from: usize) -> usize {
    from + text[from..].len() - text[from..].trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few words of each sentence that real providers send, with the quotes and breaks that came with them.
    const BROKEN: &[&str] = &[
        // Anthropic.
        "messages.37: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
        "messages.4: `tool_use` ids must be unique",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.0: Invalid signature in thinking block",
        "messages.3.content.0.thinking.signature: Field required",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        "API Error: 400 messages: text content blocks must be non-empty",
        r#"{"error":{"message":"messages.0: all messages must have non-empty content except for the optional final one"}}"#,
        "ValidationException: Expected toolResult blocks at messages.4.content for the following Ids: tooluse_1",
        // Chat completions.
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        r#"{"message":"an assistant message with \"tool_calls\" must be followed by tool\nmessages responding to each id"}"#,
        "The following tool_call_ids did not have response messages: call_1",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "Messages with role \"tool\" must be a response to a preceding message with \"tool_calls\"",
        "Invalid request: tool_call_id  is not found",
        "Invalid request: tool_call_id call_17 is not found",
        "400 Invalid request: the message at position 4 with role 'assistant' must not be empty",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 3",
        "Not the same number of function calls and responses",
        "Unexpected role 'user' after role 'tool'",
        // Responses.
        "No tool output found for function call call_k20F.",
        "No tool output found for custom tool call call_k20F.",
        "No tool call found for function call output with call_id call_x0jS.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item",
        "The encrypted content gAAA...Rg== could not be verified.",
        "Previous response with id 'resp_1' not found.",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        // Gemini.
        "Please ensure that the number of function response parts is equal to the number of\n  function call parts of the \
         function call\n  turn.",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        "Function call is missing a thought_signature in functionCall parts.",
        "Unable to submit request because Thought signature is not valid..",
        "Corrupted thought signature.",
        "Invalid thought signature.",
        // Clients.
        "AI_MissingToolResultsError: Tool results are missing for tool calls call_1",
    ];

    const LOST: &[&str] = &[
        "No conversation found with session ID: x",
        "Error: thread/resume: thread/resume failed: no rollout found for thread id 01a22ab2 (code -32600)",
        "ERROR: No saved session found with ID 0f. Run `codex resume` without an ID to choose one.",
        "No previous sessions found for this project.",
        "Session not found",
        "Session s-1 does not exist",
        "session 's-1' doesn't exist",
        "Error: Session \"0b1e-77\" was not found",
        "session with id 0b1e77 could not be found",
        "Session id 0b1e77 no longer exists",
        "Conversation 7 does not exist",
        "Could not find session s-1",
        "Unknown session: s-1",
        "No such session: s-1",
        "Failed to resume session s-1",
        "Error resuming session: Invalid session identifier \"s-1\".",
        "Session \"session_bb-1\" was created under a different directory.",
        "Failed to parse session file: Unexpected end of JSON input",
        "Error reading session history",
        "Failed to load session s-1: Unexpected token } in JSON at position 12",
        "Session s-1 is corrupted",
        "Corrupted session file",
        "session s-1 could not be parsed",
    ];

    #[test]
    fn h01_h04_h07_what_says_that_a_conversation_is_over() {
        for text in BROKEN.iter().chain(LOST) {
            assert!(says_so(text), "{text}");
        }
    }

    #[test]
    fn what_says_something_else_does_not() {
        for text in [
            "",
            "relation \"session\" does not exist",
            "relation \"sessions\" does not exist",
            "pq: table session not found",
            "tmux session not found",
            "The module session.py does not exist",
            "src/session.rs: file not found",
            "in session: the file a.py does not exist",
            "no session is needed for that",
            "no thread panicked",
            "the chat works, and the page was not found",
            "invalid session id",
            "failed to parse session cookie",
            "Error reading session token from the header",
            "Unexpected end of JSON input",
            "thread 'main' panicked: called `Option::unwrap()` on a `None` value, file not found",
            "the tool result was not found in the cache",
            "a thinking user",
            "prompt is too long: 3 tokens > 2 maximum",
        ] {
            assert!(!says_so(text), "{text}");
        }
    }

    #[test]
    fn h01_a_file_that_is_no_json_is_told_in_the_words_of_every_language() {
        for line in [
            "SyntaxError: Unexpected end of JSON input",
            "SyntaxError: Unexpected token '}', \"{\"a\":}\" is not valid JSON",
            "SyntaxError: Unexpected token } in JSON at position 12",
            "SyntaxError: Unterminated string in JSON at position 12 (line 1 column 13)",
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            "Error: EOF while parsing a string at line 3 column 17",
            "Error: expected value at line 1 column 1",
            "unexpected end of JSON input",
        ] {
            assert!(is_unreadable(line), "{line}");
        }
        for line in ["", "SyntaxError: Unexpected token '}'", "unexpected EOF, expected }", "the answer is JSON"] {
            assert!(!is_unreadable(line), "{line}");
        }
    }

    #[test]
    fn a_report_begins_with_the_sentence_itself() {
        for text in LOST.iter().filter(|text| !text.to_lowercase().starts_with("error")) {
            assert!(begins_as_one(text), "{text}");
        }
        for text in ["messages.37: `tool_use` ids were found", "No tool output found for function call call_k20F."] {
            assert!(begins_as_one(text), "{text}");
        }
        assert!(!begins_as_one("I have told the user that session s-1 does not exist"));
    }
}
