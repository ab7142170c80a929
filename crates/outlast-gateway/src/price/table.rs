//! The table of prices, decoded as far as it is asked for.

use std::sync::OnceLock;

use genai_prices::Calculator;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::memory;
use crate::upstream::Provider;

/// See `data/README.md`.
const TABLE: &str = include_str!("../../data/prices.json");

/// What a provider's models cost, and those of the providers that it stands in for.
#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(default)]
    fallback_model_providers: Vec<String>,
}

/// A part of the table: that of one of the providers known by name, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Anthropic,
    OpenAi,
    Google,
    Whole,
}

impl Part {
    /// The part that has a provider's models; where it is not known by name, that is the whole.
    pub(super) const fn of(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Self::Anthropic,
            Provider::OpenAi => Self::OpenAi,
            Provider::Gemini => Self::Google,
            Provider::OpenAiCompatible => Self::Whole,
        }
    }

    /// The provider's name in the table; none for the whole.
    pub(super) const fn id(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("anthropic"),
            Self::OpenAi => Some("openai"),
            Self::Google => Some("google"),
            Self::Whole => None,
        }
    }

    fn cell(self) -> &'static OnceLock<Option<Calculator>> {
        static PARTS: [OnceLock<Option<Calculator>>; 4] = [const { OnceLock::new() }; 4];
        &PARTS[self as usize]
    }

    /// Held by whoever has it decoded.
    pub(super) fn turn(self) -> &'static Mutex<()> {
        static TURNS: [Mutex<()>; 4] = [const { Mutex::const_new(()) }; 4];
        &TURNS[self as usize]
    }

    /// Whether it has been decoded.
    pub(super) fn is_decoded(self) -> bool {
        self.cell().get().is_some()
    }

    /// The part; the first time it is decoded, which takes milliseconds, and a tenth of a second for the whole. `None` where
    /// the table is damaged: nothing has a price then.
    pub(super) fn decoded(self) -> Option<&'static Calculator> {
        let decode = || {
            let calculator = match self.id() {
                Some(id) => only(id).map(Calculator::from_json),
                None => Ok(Calculator::from_json(TABLE)),
            };
            memory::give_back();
            let why = match calculator {
                Ok(Ok(calculator)) => return Some(calculator),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            tracing::error!(part = ?self, why, "the table of prices cannot be read");
            None
        };
        self.cell().get_or_init(decode).as_ref()
    }
}

/// The table with one provider and those it stands in for.
fn only(id: &str) -> Result<String, serde_json::Error> {
    let all: Vec<&RawValue> = serde_json::from_str(TABLE)?;
    let entry = |raw: &'static RawValue| Ok((serde_json::from_str::<Entry>(raw.get())?, raw));
    let entries = all.into_iter().map(entry).collect::<Result<Vec<_>, serde_json::Error>>()?;
    let own = entries.iter().find(|(entry, _)| entry.id == id);
    let stands_in = own.map(|(entry, _)| entry.fallback_model_providers.as_slice()).unwrap_or_default();
    let kept = entries.iter().filter(|(entry, _)| entry.id == id || stands_in.contains(&entry.id));
    Ok(format!("[{}]", kept.map(|(_, raw)| raw.get()).collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use genai_prices::{PriceRequest, Usage, UsageKey};

    use super::*;

    /// Everything that each model costs, of a kind of usage at a time.
    fn prices(calculator: &Calculator, only: Option<&str>) -> Vec<(String, String, String, Option<u64>)> {
        let mut prices = Vec::new();
        let kinds = [UsageKey::INPUT_TOKENS, UsageKey::OUTPUT_TOKENS, UsageKey::CACHE_READ_TOKENS];
        for provider in Calculator::bundled().providers().filter(|provider| only.is_none_or(|id| provider.id() == id)) {
            for model in provider.models() {
                for kind in &kinds {
                    let usage = Usage::from([(UsageKey::INPUT_TOKENS, 250_000.0), (kind.clone(), 250_000.0)]);
                    let request = PriceRequest::new(model.id(), &usage).with_provider_id(provider.id());
                    let price = calculator.calculate(&request).ok().map(|price| price.total_price.to_bits());
                    prices.push((provider.id().to_owned(), model.id().to_owned(), kind.as_str().to_owned(), price));
                }
            }
        }
        prices
    }

    #[test]
    fn the_table_says_what_the_one_in_the_crate_says_and_a_part_what_the_whole_does() {
        let bundled = prices(Calculator::bundled(), None);
        assert!(bundled.iter().filter(|(.., price)| price.is_some()).count() > 4_000);
        assert_eq!(prices(Part::Whole.decoded().unwrap(), None), bundled);
        for part in [Part::Anthropic, Part::OpenAi, Part::Google] {
            let own = prices(Calculator::bundled(), part.id());
            assert!(own.iter().any(|(.., price)| price.is_some()));
            assert_eq!(prices(part.decoded().unwrap(), part.id()), own);
        }
    }
}
