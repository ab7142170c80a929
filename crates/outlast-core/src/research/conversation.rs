//! A conversation between an agent and its model, in no dialect in particular.

/// Who said a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions that stand above the conversation.
    System,
    /// A person, or the CLI in a person's name.
    User,
    /// The model.
    Assistant,
}

/// One thing in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A text.
    Said {
        /// Who said it.
        role: Role,
        /// The text.
        text: String,
    },
    /// A call of one of the agent's tools.
    Call {
        /// Ties the call to its result; made up where the dialect has none.
        id: String,
        /// The tool's name in the CLI.
        name: String,
        /// The arguments as JSON text; a JSON string for a tool that takes free text.
        arguments: String,
    },
    /// What a tool call brought back.
    Result {
        /// The call's id.
        id: String,
        /// The result as text; what is no text in it is left out.
        text: String,
        /// Whether the dialect marks it as an error. Some dialects mark none.
        is_error: bool,
    },
}

/// What was said, called and brought back so far, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The items.
    pub items: Vec<Item>,
}
