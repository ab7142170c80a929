//! The four wire formats. A match over them belongs here; what each looks like is in its own file.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Conversation, Frame, anthropic, chat, gemini, responses};
use crate::Result;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Gemini generateContent.
    Gemini,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "Anthropic Messages",
            Self::Responses => "OpenAI Responses",
            Self::Chat => "Chat Completions",
            Self::Gemini => "Gemini",
        })
    }
}

impl Dialect {
    /// Reads a request body.
    ///
    /// # Errors
    /// [`crate::Error::Wire`] when the body is not a request of this dialect.
    pub fn read_request(self, body: &Value) -> Result<Conversation> {
        match self {
            Self::Anthropic => anthropic::read_request(body),
            Self::Responses => responses::read_request(body),
            Self::Chat => chat::read_request(body),
            Self::Gemini => gemini::read_request(body),
        }
    }

    /// Writes an answer as one JSON body.
    pub fn whole(self, answer: &Answer) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(answer),
            Self::Responses => responses::whole(answer),
            Self::Chat => chat::whole(answer),
            Self::Gemini => gemini::whole(answer),
        }
    }

    /// Writes an answer as server-sent events.
    pub fn frames(self, answer: &Answer) -> Vec<Frame> {
        match self {
            Self::Anthropic => anthropic::frames(answer),
            Self::Responses => responses::frames(answer),
            Self::Chat => chat::frames(answer),
            Self::Gemini => gemini::frames(answer),
        }
    }

    /// The body of a refusal in this dialect's own shape. `kind` is the machine-readable word (`rate_limit_error`).
    pub fn error_body(self, status: u16, kind: &str, message: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::error_body(kind, message),
            Self::Responses | Self::Chat => chat::error_body(kind, message),
            Self::Gemini => gemini::error_body(status, kind, message),
        }
    }

    /// An error that arrives inside a stream that began well.
    pub fn error_frame(self, message: &str) -> Bytes {
        match self {
            Self::Anthropic => anthropic::error_frame(message),
            Self::Responses => responses::error_frame(message),
            Self::Chat => chat::error_frame(message),
            Self::Gemini => gemini::error_frame(message),
        }
    }
}
