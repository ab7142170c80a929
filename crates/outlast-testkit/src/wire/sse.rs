//! Framing of server-sent events, both directions. It knows no dialect.

use bytes::Bytes;
use serde_json::Value;

use super::{Frame, Usage};

/// How many characters of text one event carries.
const PIECE: usize = 40;

/// An event with a name.
pub(crate) fn named(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// An event without a name.
pub(crate) fn unnamed(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}

/// A frame that says nothing of usage.
pub(crate) fn plain(bytes: Bytes) -> Frame {
    Frame { bytes, declares: None }
}

/// A frame after which the reader knows this usage.
pub(crate) fn declaring(bytes: Bytes, usage: Usage) -> Frame {
    Frame { bytes, declares: Some(usage) }
}

/// Cuts a text into the pieces that single events carry; never inside a character.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
