//! Words of connections that broke or were never made, as the libraries say them that agents are written with.
//!
//! A tool of the agent's loses connections as well, to a database or a server of its tests. One that was cut off is taken for
//! the model's where no address says otherwise; one that was not made, where a provider of models is named.

/// How a connection ends in the middle of an answer: Node and its fetch, Go, Rust, Python, and servers in between.
const CUT: &[&str] = &[
    "socket hang up",
    "econnreset",
    "connection reset",
    "premature close",
    "premature_close",
    "peer closed connection",
    "incomplete chunked read",
    "incompleteread",
    "other side closed",
    "error decoding response body",
    "typeerror: terminated",
    "typeerror: fetch failed",
    "socket disconnected before secure tls connection",
    "und_err_socket",
    "body timeout error",
    "headers timeout error",
    "operation was aborted due to timeout",
    "goaway",
    "internal_error; received from peer",
    "stalled mid-stream",
    "stream stalled",
    "response stalled",
    "stream ended unexpectedly",
    "stream closed unexpectedly",
    "stream was reset",
    "tls handshake",
    "tls: handshake",
    "ssl handshake",
    "eof occurred in violation of protocol",
    "unexpected_eof_while_reading",
    "remote end closed connection",
    "server disconnected without sending",
    "server closed the connection unexpectedly",
    "connection closed before message completed",
    "connection closed unexpectedly",
    "connection aborted",
    "upstream connect error",
];

/// How a server is not reached at all: of a model's provider where its name is said, and of any other where not.
const UNREACHED: &[&str] = &[
    "enotfound",
    "eai_again",
    "econnrefused",
    "etimedout",
    "ehostunreach",
    "enetunreach",
    "timed out",
    "client.timeout",
];

/// Where the providers of models are.
const HOSTS: &[&str] = &[
    "api.anthropic.com",
    "api.openai.com",
    "chatgpt.com",
    "googleapis.com",
    "openrouter.ai",
    "aliyuncs.com",
    "api.kimi.com",
    "api.moonshot.",
    "api.deepseek.com",
    "api.z.ai",
    "bedrock-runtime.",
];

/// What a report of it begins with, where nothing but the report follows.
const SENTENCES: &[&str] = &[
    "connection closed mid-response",
    "response stalled",
    "stream stalled",
    "premature close",
    "goaway",
    "received goaway",
    "server sent goaway",
    "unexpected eof",
    "tls handshake",
    "the operation was aborted due to timeout",
    "operation was aborted due to timeout",
    "remote end closed connection",
    "server disconnected without",
    "upstream connect error",
];

/// What a library begins its errors with: anything may follow.
const SOURCES: &[&str] =
    &["http2: ", "http/2: ", "net/http: ", "read tcp ", "write tcp ", "post \"https://", "get \"https://"];

/// Words with which a sentence of theirs goes on. What anybody writes about one goes on with others.
const GOES_ON: &[&str] = &[
    "after",
    "while",
    "before",
    "by",
    "from",
    "during",
    "at",
    "on",
    "for",
    "mid-stream",
    "received",
    "error",
    "timeout",
    "eof",
    "reading",
    "response",
    "without",
    "or",
    "read",
    "sending",
    "server",
    "client",
    "and",
];

/// Whether a text says that a connection of the model's broke; in lower case.
pub(crate) fn broke(text: &str) -> bool {
    let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    (says(UNREACHED) || says(CUT) || ended_early(text)) && says(HOSTS)
        || (says(CUT) || ended_early(text)) && !names_another_server(text)
}

/// Whether a text says in words that no status and no other word of a network gives away that a connection broke.
pub(crate) fn is_cut(text: &str) -> bool {
    CUT.iter().any(|needle| text.contains(needle)) || ended_early(text)
}

/// Whether a line begins as the report of a broken connection, and goes on as one; in lower case.
pub(crate) fn begins_as_one(line: &str) -> bool {
    let goes_on = |rest: &str| {
        let rest = rest.trim_start();
        // What is quoted is spoken of.
        let is_quoted = rest.starts_with(['`', '\'', '"', '’', '”']);
        let word = rest.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
        !is_quoted && (word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) || GOES_ON.contains(&word))
    };
    SENTENCES.iter().any(|beginning| line.strip_prefix(beginning).is_some_and(goes_on))
        || SOURCES.iter().any(|source| line.starts_with(source))
}

/// `Post "https://api.example.com/v1/messages": …`, as Go says it.
fn is_a_request(line: &str) -> bool {
    ["post \"https://", "get \"https://"].iter().any(|verb| line.starts_with(verb))
}

/// An end of file is one of a connection's where something of a connection is named: parsers meet others.
fn ended_early(text: &str) -> bool {
    const OF: &[&str] = &["tls", "ssl", "handshake", "https://", "read tcp", "response", "http", "stream", "body"];
    let names_it = || OF.iter().any(|word| text.contains(word));
    text.contains("unexpected eof") && names_it() || is_a_request(text) && text.ends_with("\": eof")
}

/// Whether the address of a server is named that no provider of models has: on this host, in a private network, or at another
/// port than theirs.
fn names_another_server(text: &str) -> bool {
    // `read tcp 10.0.0.3:51234->160.79.104.10:443: …`: the first one is our own.
    let text = match text.split_once("->") {
        Some((before, after)) if before.ends_with(|c: char| c.is_ascii_digit()) => after,
        _ => text,
    };
    if text.contains("localhost") || text.contains("::1") {
        return true;
    }
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
    text.split(|c: char| !is_part(c)).any(|word| {
        let (address, port) =
            word.trim_matches([':', '.']).split_once(':').unwrap_or((word.trim_matches([':', '.']), ""));
        let Ok(address) = address.parse::<std::net::Ipv4Addr>() else { return false };
        let port = port.split(':').next().unwrap_or_default();
        address.is_loopback() || address.is_private() || address.is_link_local() || !matches!(port, "" | "443")
    })
}

#[cfg(test)]
mod tests {
    use outlast_core::Class;

    use super::*;
    use crate::report::reported;

    #[test]
    fn a09_a_connection_that_broke_is_one_in_the_words_of_every_library_and_cli() {
        for line in [
            "Response stalled mid-stream",
            "API Error: Response stalled mid-stream",
            "Agent error: stream stalled (no data within idle timeout)",
            "Premature close",
            "Error: Premature close",
            "[agent] Premature close",
            "2026-12-01T08:00:00.123Z ERROR agent: Premature close",
            "claude: Premature close",
            "Error [ERR_STREAM_PREMATURE_CLOSE]: Premature close",
            "FetchError: Invalid response body while trying to fetch https://api.example/v1/messages: Premature close",
            "Agent error: infer: http2: server sent GOAWAY and closed the connection; LastStreamID=3, ErrCode=NO_ERROR",
            "Error [ERR_HTTP2_GOAWAY_SESSION]: New streams cannot be created after receiving a GOAWAY",
            "stream error: stream ID 1007; INTERNAL_ERROR; received from peer",
            "The operation was aborted due to timeout",
            "DOMException [TimeoutError]: The operation was aborted due to timeout",
            "TimeoutError: The operation was aborted due to timeout",
            "TLS handshake: unexpected EOF",
            "error: tls handshake eof",
            "unexpected EOF during TLS handshake",
            "net/http: TLS handshake timeout",
            "Post \"https://api.anthropic.com/v1/messages\": EOF",
            "Post \"https://api.example.com/v1/messages\": unexpected EOF",
            "read tcp 1.2.3.4:5->6.7.8.9:443: read: connection reset by peer",
            "Error: read tcp 10.0.0.3:51234->6.7.8.9:443: read: connection reset by peer",
            "httpx.RemoteProtocolError: Server disconnected without sending a response.",
            "ssl.SSLEOFError: EOF occurred in violation of protocol (_ssl.c:1007)",
        ] {
            assert_eq!(reported(line), Some(Class::Network), "{line}");
        }
    }

    #[test]
    fn whose_connection_it_was() {
        for text in [
            "read tcp 10.0.0.3:51234->160.79.104.10:443: read: connection reset by peer",
            "premature close",
            "post \"https://api.anthropic.com/v1/messages\": eof",
            "connect econnrefused api.openai.com",
        ] {
            assert!(broke(text), "{text}");
        }
        for text in [
            "read tcp 10.0.0.3:51234->10.0.0.7:5432: read: connection reset by peer",
            "read tcp 1.2.3.4:51234->6.7.8.9:5432: read: connection reset by peer",
            "read econnreset 127.0.0.1:6379",
            "connection reset by localhost",
            "connection reset by [::1]:80",
            "read econnreset 192.168.0.7",
            "unexpected eof while looking for matching `\"'",
            "connect econnrefused db.example",
        ] {
            assert!(!broke(text), "{text}");
        }
    }
}
