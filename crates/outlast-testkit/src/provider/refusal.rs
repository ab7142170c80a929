//! Refusals in each dialect's own shape. The texts and codes are the ones that real providers send (the project's list
//! of provider messages); they are what a classifier must recognise, so they are never paraphrased.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::Dialect;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// Too many requests or tokens in this minute.
    MinuteLimit,
    /// A quota window (five hours, a week) is used up.
    WindowQuota,
    /// The provider has no capacity.
    Overload,
    /// Something broke at the provider.
    ServerError,
    /// 403: the quota of this billing cycle is used up; looks like a wrong key to naive readers.
    BillingCycle,
    /// There is no money left.
    InsufficientFunds,
    /// The key is not accepted.
    Auth,
    /// The conversation does not fit the model.
    TooLong,
    /// The conversation's structure is broken.
    CorruptSession,
}

/// A refusal, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// Headers beside `content-type`.
    pub headers: Vec<(String, String)>,
    /// The JSON body.
    pub body: Value,
}

impl Refusal {
    fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    fn header(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    fn retry_after(self, seconds: Option<u64>) -> Self {
        match seconds {
            Some(seconds) => self.header("retry-after", seconds),
            None => self,
        }
    }

    /// Builds the refusal that `dialect`'s provider would send; `seconds` is the stated wait, `now` Unix seconds.
    pub fn of(kind: RefusalKind, dialect: Dialect, seconds: Option<u64>, now: u64) -> Self {
        match dialect {
            Dialect::Anthropic => anthropic(kind, seconds, now),
            Dialect::Responses | Dialect::Chat => openai(kind, dialect, seconds, now),
            Dialect::Gemini => gemini(kind, seconds),
        }
    }
}

const BILLING_CYCLE: &str =
    "You've reached your usage limit for this billing cycle. Your quota will be refreshed in the next cycle.";

fn anthropic(kind: RefusalKind, seconds: Option<u64>, now: u64) -> Refusal {
    let refusal =
        |status, word, message: &str| Refusal::new(status, Dialect::Anthropic.error_body(status, word, message));
    match kind {
        RefusalKind::MinuteLimit => refusal(
            429,
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.",
        )
        .retry_after(seconds),
        RefusalKind::WindowQuota => {
            let refusal = refusal(
                429,
                "rate_limit_error",
                "This request would exceed your account's rate limit. Please try again later.",
            )
            .retry_after(seconds)
            .header("anthropic-ratelimit-unified-status", "rejected");
            match seconds {
                Some(seconds) => refusal.header("anthropic-ratelimit-unified-reset", now + seconds),
                None => refusal,
            }
        }
        RefusalKind::Overload => refusal(529, "overloaded_error", "Overloaded").retry_after(seconds),
        RefusalKind::ServerError => refusal(500, "api_error", "Internal server error"),
        RefusalKind::BillingCycle => refusal(403, "permission_error", BILLING_CYCLE),
        RefusalKind::InsufficientFunds => refusal(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        RefusalKind::Auth => refusal(401, "authentication_error", "invalid x-api-key"),
        RefusalKind::TooLong => {
            refusal(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        RefusalKind::CorruptSession => refusal(
            400,
            "invalid_request_error",
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_scripted.",
        ),
    }
}

fn openai(kind: RefusalKind, dialect: Dialect, seconds: Option<u64>, now: u64) -> Refusal {
    let refusal = |status, word, message: &str| Refusal::new(status, dialect.error_body(status, word, message));
    match kind {
        RefusalKind::MinuteLimit => {
            let refusal = refusal(429, "rate_limit_exceeded", "Rate limit reached for requests per min (RPM).")
                .retry_after(seconds);
            match seconds {
                Some(seconds) => refusal.header("x-ratelimit-reset-requests", format!("{seconds}s")),
                None => refusal,
            }
        }
        RefusalKind::WindowQuota if dialect == Dialect::Responses => usage_limit_reached(seconds, now),
        RefusalKind::WindowQuota => {
            refusal(429, "insufficient_quota", "Allocated quota exceeded, please increase your quota limit.")
                .retry_after(seconds)
        }
        RefusalKind::Overload => {
            refusal(503, "server_is_overloaded", "Our servers are currently overloaded. Please try again later.")
                .retry_after(seconds)
        }
        RefusalKind::ServerError => {
            refusal(500, "server_error", "The server had an error while processing your request.")
        }
        RefusalKind::BillingCycle => refusal(403, "access_terminated_error", BILLING_CYCLE),
        RefusalKind::InsufficientFunds => refusal(
            429,
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        RefusalKind::Auth => refusal(401, "invalid_api_key", "Incorrect API key provided."),
        RefusalKind::TooLong => refusal(
            400,
            "context_length_exceeded",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        RefusalKind::CorruptSession => {
            refusal(400, "invalid_request_error", "No tool output found for function call call_scripted.")
        }
    }
}

/// What a subscription login gets; API keys get another text.
fn usage_limit_reached(seconds: Option<u64>, now: u64) -> Refusal {
    let mut error =
        json!({"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus"});
    if let Some(seconds) = seconds {
        error["resets_at"] = json!(now + seconds);
        error["resets_in_seconds"] = json!(seconds);
    }
    let refusal = Refusal::new(429, json!({"error": error}))
        .header("x-codex-primary-used-percent", 100)
        .header("x-codex-primary-window-minutes", 300);
    match seconds {
        Some(seconds) => refusal.header("x-codex-primary-reset-after-seconds", seconds),
        None => refusal,
    }
}

fn gemini(kind: RefusalKind, seconds: Option<u64>) -> Refusal {
    let refusal = |status, word, message: &str| Refusal::new(status, Dialect::Gemini.error_body(status, word, message));
    match kind {
        RefusalKind::MinuteLimit => {
            let mut refusal = refusal(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.");
            if let Some(seconds) = seconds {
                refusal.body["error"]["details"] = json!([
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")},
                ]);
            }
            refusal
        }
        RefusalKind::WindowQuota => {
            let wait = seconds.map(|seconds| format!(" Your quota will reset after {seconds}s.")).unwrap_or_default();
            let message = format!("You have exhausted your capacity on this model.{wait}");
            let mut refusal = refusal(429, "RESOURCE_EXHAUSTED", &message);
            let metadata =
                seconds.map_or_else(|| json!({}), |seconds| json!({"quotaResetDelay": format!("{seconds}s")}));
            refusal.body["error"]["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "QUOTA_EXHAUSTED",
                "domain": "cloudcode-pa.googleapis.com", "metadata": metadata,
            }]);
            refusal
        }
        RefusalKind::Overload => refusal(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        RefusalKind::ServerError => refusal(500, "INTERNAL", "An internal error has occurred."),
        RefusalKind::BillingCycle => refusal(403, "PERMISSION_DENIED", BILLING_CYCLE),
        RefusalKind::InsufficientFunds => refusal(
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded for metric: generate_content_free_tier_requests, limit: 0",
        ),
        RefusalKind::Auth => refusal(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
        RefusalKind::TooLong => refusal(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        RefusalKind::CorruptSession => refusal(
            400,
            "INVALID_ARGUMENT",
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        ),
    }
}
