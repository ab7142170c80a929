//! The neutral shape of requests and answers. No wire format, no I/O.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Ties the call to its result.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The tool's arguments: a JSON object, or a string for a tool that takes free text.
    pub arguments: Value,
}

impl Call {
    /// All texts among the arguments, a line each at least.
    pub fn argument_texts(&self) -> String {
        fn texts(value: &Value) -> String {
            match value {
                Value::String(text) => format!("{text}\n"),
                Value::Array(values) => values.iter().map(texts).collect(),
                Value::Object(values) => values.values().map(texts).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
            }
        }
        texts(&self.arguments)
    }
}

/// One thing said in a conversation, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "kebab-case")]
pub enum Item {
    /// Text from the user (or the CLI in the user's name).
    User {
        /// The text.
        text: String,
    },
    /// Text from the model.
    Assistant {
        /// The text.
        text: String,
    },
    /// A tool call of the model.
    Call(Call),
    /// What a tool call brought back.
    Result {
        /// The call's id.
        id: String,
        /// The tool's name, where the dialect repeats it.
        name: String,
        /// The result as text.
        text: String,
    },
}

/// A tool that the agent offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// JSON schema of its arguments; null for a tool that takes free text.
    pub parameters: Value,
}

impl Tool {
    /// Whether the schema has an argument of this name.
    pub fn takes(&self, argument: &str) -> bool {
        self.parameters.pointer("/properties").and_then(|properties| properties.get(argument)).is_some()
    }
}

/// What a request says.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The model's name; empty where the dialect says it in the URL.
    pub model: String,
    /// Whether the answer must be a stream.
    pub stream: bool,
    /// System and developer texts, joined.
    pub system: String,
    /// The offered tools.
    pub tools: Vec<Tool>,
    /// What was said so far.
    pub items: Vec<Item>,
    /// The JSON schema that the answer's text must follow, if any.
    pub schema: Option<Value>,
}

/// Tokens of one exchange. `input` never includes the cached ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens outside the cache.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Output tokens spent on reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// All input tokens, cached or not.
    pub fn all_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.all_input() + self.output
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}

/// What the model answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// A word unique to the exchange; ids are made of it.
    pub seed: String,
    /// The model's name.
    pub model: String,
    /// Thinking, shown before the text.
    pub thinking: Option<String>,
    /// The text; may be empty beside a call.
    pub text: String,
    /// The tool call; without one the agent's turn ends.
    pub call: Option<Call>,
    /// What the exchange costs.
    pub usage: Usage,
    /// Unix time of the answer, in seconds.
    pub created_at: u64,
}

/// One event of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The event's bytes, with its blank line.
    pub bytes: Bytes,
    /// The usage that a reader knows of once this event has arrived; replaces what earlier events said.
    pub declares: Option<Usage>,
}
