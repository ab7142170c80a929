//! A run's budget as people read it: what is used, what is left, what is not known, and what to do once it is reached.

use outlast_api::{BudgetView, Status};

/// What is used and left, in one line.
pub(crate) fn in_words(budget: &BudgetView) -> String {
    let tokens = budget.tokens_used;
    let mut parts = vec![match (tokens, budget.usd_used) {
        (0, _) => "no tokens yet".to_owned(),
        (_, Some(usd)) => format!("{tokens} tokens, {usd:.4} USD"),
        (_, None) if budget.unpriced > 0 => format!("{tokens} tokens, price unknown ({} answers)", budget.unpriced),
        (_, None) => format!("{tokens} tokens, price unknown"),
    }];
    match (budget.usd_limit, budget.usd_left) {
        (Some(limit), Some(left)) => parts.push(format!("{left:.4} of {limit:.2} USD left")),
        (Some(limit), None) => parts.push(format!("how much is left of {limit:.2} USD is unknown")),
        (None, _) => {}
    }
    if let (Some(limit), Some(left)) = (budget.tokens_limit, budget.tokens_left) {
        parts.push(format!("{left} of {limit} tokens left (cached ones count a tenth)"));
    }
    parts.join(" · ")
}

/// What happened, why, and what to do, where the budget is reached.
pub(crate) fn reached(status: &Status) -> Option<String> {
    let (run, budget) = (&status.run, &status.budget);
    let reached = budget.reached.as_ref()?;
    let (what, allow) = match reached.lack.as_str() {
        "price" => {
            let twice = reached.next_tokens.saturating_mul(100);
            let what = "the price of the model is not known, so that a budget in USD alone cannot be kept".to_owned();
            (what, format!("--tokens {twice}"))
        }
        "tokens" => {
            let limit = budget.tokens_limit.unwrap_or_default();
            let next = reached.next_tokens;
            let what =
                format!("{} of {limit} tokens are used, the next request may take {next}", budget.tokens_counted);
            (what, format!("--tokens {}", limit.saturating_mul(2).max(limit.saturating_add(next))))
        }
        _ => {
            let (limit, next) = (budget.usd_limit.unwrap_or_default(), reached.next_usd.unwrap_or_default());
            let left = budget.usd_left.map_or_else(|| "an unknown part".to_owned(), |left| format!("{left:.4}"));
            let what = format!("{left} of {limit:.2} USD is left, the next request may cost {next:.4}");
            (what, format!("--usd {:.2}", (limit * 2.0).max(limit + 2.0 * next)))
        }
    };
    let raise = format!("outlast budget {run} {allow}");
    Some(format!("the budget is reached: {what}.\nThe work is kept. Go on with: {raise} && outlast resume {run}"))
}

/// Millionths of a dollar as dollars.
pub(crate) fn usd_text(micros: u64) -> String {
    format!("{}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000)
}
