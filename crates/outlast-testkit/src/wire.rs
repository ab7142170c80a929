//! What a conversation with a model is, whatever the wire format, and the wire formats that carry it.
//!
//! The provider reads requests into these types and writes answers out of them. They hold what the script needs and
//! drop the rest: this is never a lossless translation.

pub mod anthropic;
pub mod chat;
mod dialect;
pub mod gemini;
mod model;
pub mod responses;
pub(crate) mod sse;

pub use dialect::Dialect;
pub use model::{Answer, Call, Conversation, Frame, Item, Tool, Usage};
