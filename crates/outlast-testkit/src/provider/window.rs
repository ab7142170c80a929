//! Quota windows that fill up and reset, per key. Pure counting over a clock that is handed in.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, RefusalKind};
use crate::wire::Dialect;

#[cfg(test)]
mod tests;

/// What a window counts, and how it speaks of being full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowKind {
    /// A subscription's quota window.
    Quota,
    /// A limit per minute (or another short time).
    Minute,
}

/// How much of the reset a refusal states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// When it resets, the way the dialect says it.
    #[default]
    Reset,
    /// Nothing: the client must find out.
    Nothing,
}

/// A quota window. It opens with its first request and resets `per_seconds` later; each key has its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// A name for the log.
    pub name: String,
    /// Which kind of refusal it gives.
    #[serde(default = "quota")]
    pub kind: WindowKind,
    /// At most this many requests.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Closed once this many tokens are billed.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// At most this many requests at once.
    #[serde(default)]
    pub concurrent: Option<u64>,
    /// Its length.
    pub per_seconds: f64,
    /// What its refusals state.
    #[serde(default)]
    pub says: Says,
}

fn quota() -> WindowKind {
    WindowKind::Quota
}

/// One key's use of one window.
#[derive(Debug, Default, Clone)]
struct Use {
    opened_at: Option<Duration>,
    requests: u64,
    tokens: u64,
    in_flight: u64,
    first_refusal_at: Option<Duration>,
}

/// A refusal by a window.
#[derive(Debug)]
pub(super) struct Closed {
    pub window: String,
    /// A refusal had already told this key that the window is closed.
    pub known: bool,
    pub refusal: Refusal,
}

/// A window and its use by every key.
#[derive(Debug)]
pub(super) struct WindowState {
    window: Window,
    uses: BTreeMap<String, Use>,
}

impl WindowState {
    pub(super) fn new(window: Window) -> Self {
        Self { window, uses: BTreeMap::new() }
    }

    /// Refuses when the window is full for this key. `now` is the time since the provider's start, `unix` Unix seconds.
    pub(super) fn check(&mut self, key: &str, dialect: Dialect, now: Duration, unix: u64) -> Option<Closed> {
        let length = Duration::from_secs_f64(self.window.per_seconds);
        let used = self.uses.entry(key.to_owned()).or_default();
        if used.opened_at.is_some_and(|opened| opened + length <= now) {
            *used = Use { in_flight: used.in_flight, ..Use::default() };
        }
        let crowded = self.window.concurrent.is_some_and(|limit| used.in_flight >= limit);
        let full = self.window.requests.is_some_and(|limit| used.requests >= limit)
            || self.window.tokens.is_some_and(|limit| used.tokens >= limit);
        if !crowded && !full {
            return None;
        }
        let known = full && used.first_refusal_at.is_some();
        if full {
            used.first_refusal_at.get_or_insert(now);
        }
        let used = used.clone();
        let seconds = (full && self.window.says == Says::Reset).then(|| self.seconds_left(&used, now));
        let kind = match self.window.kind {
            WindowKind::Quota if full => RefusalKind::WindowQuota,
            WindowKind::Quota | WindowKind::Minute => RefusalKind::MinuteLimit,
        };
        Some(Closed { window: self.window.name.clone(), known, refusal: Refusal::of(kind, dialect, seconds, unix) })
    }

    /// The headers by which an answer tells how full the window is. None where the dialect or the window says nothing.
    pub(super) fn headroom(&self, key: &str, dialect: Dialect, now: Duration, unix: u64) -> Vec<(String, String)> {
        let (Some(used), Says::Reset) = (self.uses.get(key), self.window.says) else { return Vec::new() };
        let share = |used: u64, limit: Option<u64>| limit.map_or(0.0, |limit| used as f64 / limit.max(1) as f64);
        let share = share(used.requests, self.window.requests).max(share(used.tokens, self.window.tokens));
        let seconds = self.seconds_left(used, now);
        let name = &self.window.name;
        match (dialect, self.window.kind) {
            (Dialect::Anthropic, WindowKind::Quota) => vec![
                ("anthropic-ratelimit-unified-status".to_owned(), "allowed".to_owned()),
                (format!("anthropic-ratelimit-unified-{name}-utilization"), format!("{share:.2}")),
                (format!("anthropic-ratelimit-unified-{name}-reset"), (unix + seconds).to_string()),
            ],
            (Dialect::Responses, WindowKind::Quota) => vec![
                ("x-codex-primary-used-percent".to_owned(), format!("{:.0}", share * 100.0)),
                ("x-codex-primary-window-minutes".to_owned(), "300".to_owned()),
                ("x-codex-primary-reset-after-seconds".to_owned(), seconds.to_string()),
            ],
            (Dialect::Responses | Dialect::Chat, WindowKind::Minute) => {
                let Some(limit) = self.window.requests else { return Vec::new() };
                vec![
                    ("x-ratelimit-limit-requests".to_owned(), limit.to_string()),
                    ("x-ratelimit-remaining-requests".to_owned(), limit.saturating_sub(used.requests).to_string()),
                    ("x-ratelimit-reset-requests".to_owned(), format!("{seconds}s")),
                ]
            }
            _ => Vec::new(),
        }
    }

    /// Seconds until the reset, rounded up.
    fn seconds_left(&self, used: &Use, now: Duration) -> u64 {
        let length = Duration::from_secs_f64(self.window.per_seconds);
        let left = used.opened_at.map_or(length, |opened| (opened + length).saturating_sub(now));
        (left.as_secs_f64().ceil() as u64).max(1)
    }

    /// Counts an admitted request.
    pub(super) fn admit(&mut self, key: &str, now: Duration) {
        let used = self.uses.entry(key.to_owned()).or_default();
        used.opened_at.get_or_insert(now);
        used.requests += 1;
        used.in_flight += 1;
    }

    /// Counts the end of an admitted request and what it cost.
    pub(super) fn settle(&mut self, key: &str, tokens: u64) {
        if let Some(used) = self.uses.get_mut(key) {
            used.tokens += tokens;
            used.in_flight = used.in_flight.saturating_sub(1);
        }
    }
}
