//! How many tokens a conversation with a model may hold, as far as that is known.

use http::HeaderMap;

use crate::dialect::Dialect;
use crate::price;
use crate::upstream::Provider;

/// What Anthropic's header for the long window asks for, in tokens.
const LONG: u64 = 1_000_000;

/// The window that a request is sent for: what its headers ask for, else what the table of models says. `None` where the
/// model is not known, or the table is not decoded yet: no request waits for that.
pub(crate) fn tokens(dialect: Dialect, model: Option<&str>, headers: &HeaderMap) -> Option<u64> {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let is_long = dialect == Dialect::Anthropic && betas.into_iter().any(|betas| betas.contains("context-1m"));
    let known = of_model(dialect, model?);
    if is_long { known.max(Some(LONG)) } else { known }
}

/// What the table says of the model whose name this is.
fn of_model(dialect: Dialect, model: &str) -> Option<u64> {
    let provider = match dialect {
        Dialect::Anthropic => Provider::Anthropic,
        Dialect::Responses | Dialect::Chat => Provider::OpenAi,
        Dialect::Gemini => Provider::Gemini,
    };
    price::context_window(provider, |known| model.strip_prefix(known).is_some_and(is_version))
}

/// Whether this is what stands behind a model's name to say which make of it: nothing, a date, or "latest".
fn is_version(rest: &str) -> bool {
    let date =
        rest.strip_prefix('-').is_some_and(|rest| rest.len() >= 4 && rest.bytes().take(4).all(|b| b.is_ascii_digit()));
    rest.is_empty() || rest == "-latest" || date
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(dialect: Dialect, model: &str, beta: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-beta", beta.parse().unwrap());
        tokens(dialect, Some(model), &headers)
    }

    #[tokio::test]
    async fn the_window_is_that_of_the_model_or_what_the_request_asks_for() {
        price::warm(vec![Provider::Anthropic, Provider::OpenAi]).await;
        let sonnet = window(Dialect::Anthropic, "claude-sonnet-4-5", "");
        assert!(sonnet.is_some_and(|tokens| (100_000..=LONG).contains(&tokens)), "{sonnet:?}");
        assert_eq!(window(Dialect::Anthropic, "claude-sonnet-4-5-20250929", ""), sonnet);
        assert_eq!(window(Dialect::Anthropic, "claude-sonnet-4-5", "a,context-1m-2025-08-07"), Some(LONG));
        assert_eq!(window(Dialect::Anthropic, "unheard-of", "context-1m-2025-08-07"), Some(LONG));
        assert_eq!(window(Dialect::Anthropic, "unheard-of", ""), None);
        assert_eq!(window(Dialect::Chat, "unheard-of", "context-1m-2025-08-07"), None);
        assert!(window(Dialect::Responses, "gpt-5", "").is_some());
        assert_eq!(window(Dialect::Responses, "gpt-5-unheard-of", ""), None, "another model");
        assert_eq!(tokens(Dialect::Chat, None, &HeaderMap::new()), None);
    }
}
