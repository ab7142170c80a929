//! What an exchange cost, in whole billionths of a US dollar.
//!
//! A model or a count that is not known has no price: `None`, never zero.

mod table;

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use genai_prices::{PriceRequest, UsageKey};
use outlast_core::Timestamp;
use outlast_journal::Usage;

use crate::clock::now;
use crate::meter::Reading;
use crate::upstream::Provider;
use table::Part;

/// As [`usd_nanos`], now, and without blocking: what it needs of the table and is not decoded yet is decoded on a thread of
/// its own.
pub(crate) async fn of(provider: Provider, base_url: &str, asked: Option<&str>, reading: &Reading) -> Option<i64> {
    let usage = billable(&reading.usage, reading.web_searches)?;
    let priced = Priced { provider, base_url, usage: &usage, reading, at: now() };
    decode(Part::of(provider)).await;
    if let Some(price) = priced.by_name(asked) {
        return Some(price);
    }
    decode(Part::Whole).await;
    priced.by_address(asked)
}

/// Decodes whatever accounts of these providers may need.
pub(crate) async fn warm(providers: Vec<Provider>) {
    for provider in providers {
        decode(Part::of(provider)).await;
    }
    // A model that its provider's part does not know is looked for here.
    decode(Part::Whole).await;
}

async fn decode(part: Part) {
    if part.is_decoded() {
        return;
    }
    // One decodes and the others wait for it: a thread for each of a crowd of answers would cost more than the table does.
    let _turn = part.turn().lock().await;
    if !part.is_decoded() {
        let decoded = tokio::task::spawn_blocking(move || {
            part.decoded();
        });
        // Cancelled only when the runtime ends; then it is decoded where it is used, if at all.
        drop(decoded.await);
    }
}

/// How many tokens the provider's model whose name `is_meant` holds in a conversation; `None` where the table does not say
/// or is not decoded yet.
pub(crate) fn context_window(provider: Provider, is_meant: impl Fn(&str) -> bool) -> Option<u64> {
    let own = Part::of(provider);
    let decoded = [own, Part::Whole].into_iter().find(|part| part.is_decoded())?.decoded()?;
    decoded.find_provider(own.id(), None).ok()??.models().find(|model| is_meant(model.id()))?.context_window()
}

/// Prices what `reading` says was used at `at`, for the model asked for or, failing that, the one that answered.
pub(crate) fn usd_nanos(
    provider: Provider,
    base_url: &str,
    asked: Option<&str>,
    reading: &Reading,
    at: Timestamp,
) -> Option<i64> {
    let usage = billable(&reading.usage, reading.web_searches)?;
    let priced = Priced { provider, base_url, usage: &usage, reading, at };
    priced.by_name(asked).or_else(|| priced.by_address(asked))
}

/// Something to be priced.
struct Priced<'a> {
    provider: Provider,
    base_url: &'a str,
    usage: &'a genai_prices::Usage,
    reading: &'a Reading,
    at: Timestamp,
}

impl<'a> Priced<'a> {
    /// As a model of a provider that is known by name.
    fn by_name(&self, asked: Option<&'a str>) -> Option<i64> {
        let part = Part::of(self.provider);
        let id = part.id()?;
        let request = |model| PriceRequest::new(model, self.usage).with_provider_id(id);
        self.models(asked).find_map(|model| self.nanos(part, request(model)))
    }

    /// As a model of whoever answers at the account's address: a provider that speaks another's dialect is known by that
    /// alone.
    fn by_address(&self, asked: Option<&'a str>) -> Option<i64> {
        let request = |model| PriceRequest::new(model, self.usage).with_provider_api_url(self.base_url);
        self.models(asked).find_map(|model| self.nanos(Part::Whole, request(model)))
    }

    /// The model asked for, and the one that answered.
    fn models(&self, asked: Option<&'a str>) -> impl Iterator<Item = &'a str> + use<'a> {
        [asked, self.reading.model.as_deref()].into_iter().flatten()
    }

    fn nanos(&self, part: Part, request: PriceRequest<'a>) -> Option<i64> {
        let when = UNIX_EPOCH + Duration::from_millis(u64::try_from(self.at.as_millis()).ok()?);
        let mut request = request.with_timestamp(when);
        if let Some(tier) = self.reading.service_tier.as_deref() {
            request = request.with_price_context("service_tier", tier);
        }
        let usd = part.decoded()?.calculate(&request).ok()?.total_price;
        (usd.is_finite() && usd >= 0.0).then(|| (usd * 1e9).round() as i64)
    }
}

/// What an account charges, as far as the price table knows.
#[derive(Debug, Clone)]
pub struct Tariff {
    pub(crate) provider: Provider,
    pub(crate) base_url: String,
    pub(crate) models: BTreeMap<String, String>,
}

/// The price of a token, in billionths of a US dollar, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Of one that is read, and not from a cache.
    pub input_nanos: u64,
    /// Of one that is produced.
    pub output_nanos: u64,
}

/// A request of this many tokens stands for all: prices of some models rise beyond 200,000.
const RATE_TOKENS: u64 = 100_000;

impl Tariff {
    /// The price of a model's tokens now; `None` where it is not known. The first call may take as long as decoding the
    /// table does.
    pub fn rate(&self, model: Option<&str>) -> Option<Rate> {
        let asked = model.map(|model| self.models.get(model).map_or(model, String::as_str));
        let price = |input, output| {
            let usage = Usage { input: Some(input), output: Some(output), ..Usage::default() };
            let reading = Reading { usage, ..Reading::default() };
            let nanos = usd_nanos(self.provider, &self.base_url, asked, &reading, now())?;
            Some(u64::try_from(nanos).ok()?.div_ceil(RATE_TOKENS))
        };
        Some(Rate { input_nanos: price(RATE_TOKENS, 0)?, output_nanos: price(0, RATE_TOKENS)? })
    }
}

/// Usage in the table's terms, where input includes everything the cache served or took; `None` without both counts.
fn billable(usage: &Usage, web_searches: Option<u64>) -> Option<genai_prices::Usage> {
    let write = usage.cache_write_5m.unwrap_or(0) + usage.cache_write_1h.unwrap_or(0);
    let read = usage.cache_read.unwrap_or(0);
    let input = usage.input? + write + read;
    let number = |n: u64| n as f64;
    let mut billable = genai_prices::Usage::from([
        (UsageKey::INPUT_TOKENS, number(input)),
        (UsageKey::OUTPUT_TOKENS, number(usage.output?)),
    ]);
    for (key, count) in [
        (UsageKey::CACHE_WRITE_TOKENS, write),
        (UsageKey::CACHE_WRITE_5M_TOKENS, usage.cache_write_5m.unwrap_or(0)),
        (UsageKey::CACHE_WRITE_1H_TOKENS, usage.cache_write_1h.unwrap_or(0)),
        (UsageKey::CACHE_READ_TOKENS, read),
        (UsageKey::WEB_SEARCHES, web_searches.unwrap_or(0)),
    ] {
        if count > 0 {
            billable.insert(key, number(count));
        }
    }
    Some(billable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_795_000_000_000);

    fn price(provider: Provider, model: &str, usage: Usage) -> Option<i64> {
        let reading = Reading { usage, ..Reading::default() };
        usd_nanos(provider, "http://127.0.0.1:1", Some(model), &reading, AT)
    }

    #[test]
    fn i06_cache_is_additive_and_priced_apart() {
        // claude-opus-4-8: 5 in, 6.25 five-minute write, 10 one-hour write, 0.5 read, 25 out, USD per million tokens.
        let usage = Usage {
            input: Some(1_000),
            cache_write_5m: Some(400_000),
            cache_write_1h: Some(600_000),
            cache_read: Some(100_000),
            output: Some(2_000),
            ..Usage::default()
        };
        let expected = 5_000_000 + 2_500_000_000 + 6_000_000_000 + 50_000_000 + 50_000_000;
        assert_eq!(price(Provider::Anthropic, "claude-opus-4-8", usage), Some(expected));
    }

    #[test]
    fn i10_unknown_models_and_counts_have_no_price() {
        let known = Usage { input: Some(10), output: Some(10), ..Usage::default() };
        assert_eq!(price(Provider::Anthropic, "no-such-model", known), None);
        assert_eq!(price(Provider::OpenAiCompatible, "gpt-5", known), None, "a local model is not OpenAI's");
        assert_eq!(price(Provider::Anthropic, "claude-opus-4-8", Usage { output: None, ..known }), None);
        assert!(price(Provider::OpenAi, "gpt-5", known).is_some());
    }

    #[test]
    fn i10_a_rate_is_known_for_models_that_have_a_price_alone() {
        let models = BTreeMap::from([("best".to_owned(), "claude-opus-4-8".to_owned())]);
        let tariff = Tariff { provider: Provider::Anthropic, base_url: "http://127.0.0.1:1".into(), models };
        let rate = Rate { input_nanos: 5_000, output_nanos: 25_000 };
        assert_eq!(tariff.rate(Some("claude-opus-4-8")), Some(rate));
        assert_eq!(tariff.rate(Some("best")), Some(rate));
        assert_eq!((tariff.rate(Some("no-such-model")), tariff.rate(None)), (None, None));
    }

    #[test]
    fn the_answering_model_prices_an_alias() {
        let usage = Usage { input: Some(1_000_000), output: Some(0), ..Usage::default() };
        let reading = Reading { usage, model: Some("claude-opus-4-8".into()), ..Reading::default() };
        assert_eq!(usd_nanos(Provider::Anthropic, "http://h", Some("best"), &reading, AT), Some(5_000_000_000));
    }
}
