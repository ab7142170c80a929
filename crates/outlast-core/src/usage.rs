//! What was consumed: tokens by kind and money, where unknown stays unknown.

use serde::{Deserialize, Serialize};

/// Tokens and price of one exchange, or of many.
///
/// `input` excludes cached tokens, whatever the provider's own convention is (facts: Anthropic excludes them, OpenAI
/// includes them).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read by the model and not from a cache.
    pub input: u64,
    /// Tokens written into the provider's prompt cache.
    pub cache_write: u64,
    /// Tokens read from the provider's prompt cache.
    pub cache_read: u64,
    /// Tokens produced by the model, reasoning included.
    pub output: u64,
    /// Price in billionths of a US dollar of the exchanges whose price is known.
    pub usd_nanos: i64,
    /// How many exchanges have no known price.
    pub unpriced: u32,
    /// How many exchanges have no known token count.
    pub unmetered: u32,
    /// How many exchanges are summed up here.
    pub exchanges: u32,
    /// How many of them broke before their end: whoever asked has to ask again.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cut: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Usage {
    /// Adds another sum to this one.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.output = self.output.saturating_add(other.output);
        self.usd_nanos = self.usd_nanos.saturating_add(other.usd_nanos);
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
        self.unmetered = self.unmetered.saturating_add(other.unmetered);
        self.exchanges = self.exchanges.saturating_add(other.exchanges);
        self.cut = self.cut.saturating_add(other.cut);
    }

    /// All tokens, however they are billed.
    pub const fn total_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_write).saturating_add(self.cache_read).saturating_add(self.output)
    }

    /// The price in billionths of a US dollar, or nothing where a part of it is unknown.
    pub const fn price(&self) -> Option<i64> {
        if self.unpriced == 0 { Some(self.usd_nanos) } else { None }
    }
}
