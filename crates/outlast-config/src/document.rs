//! What TOML and YAML have in common: tables, lists and scalars, each with its place in the file.
//!
//! Both formats are read into this one tree, and everything after it is written once. Nothing here knows a key.

mod quotes;
pub(crate) mod toml;
pub(crate) mod yaml;

/// A value and the byte offset it starts at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: usize,
}

/// A value of either format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// An unquoted YAML scalar: what it is depends on what its key wants, so `1.10` stays an id.
    Plain(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Table),
    /// Something no key wants, by its name.
    Other(&'static str),
}

impl Value {
    /// The type's name with its article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Plain(text) if text.is_empty() => "nothing",
            Self::Plain(_) => "a scalar",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

/// Entries in the order they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: usize,
    pub(crate) node: Node,
}

impl Table {
    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}

/// A place where the text is not of its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) message: String,
}
