//! How full an agent's conversation is: near the model's window, between two turns, its work goes on in a fresh session.
//!
//! The request that would be sent then is not: it waits until its attempt has ended, or until that has come to nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use outlast_core::AttemptId;
use outlast_gateway::{Ask, TurnKind};
use tokio_util::sync::CancellationToken;

/// From which share of the window on, in hundredths: a CLI that condenses its conversation by itself does so later.
const NEAR_PERCENT: u64 = 75;
/// How many turns an attempt must have had: what is full from the beginning would be full again.
const TURNS_MIN: u32 = 5;

/// Every living attempt that has been answered, by the name in its requests' paths.
#[derive(Debug, Default)]
pub(crate) struct Fill(Mutex<BTreeMap<String, Conversed>>);

#[derive(Debug, Default)]
struct Conversed {
    turns: u32,
    /// Of the last main turn: what it read and what it wrote.
    tokens: u64,
    /// Cancelled when its request is to wait no longer.
    holds: Option<CancellationToken>,
}

/// An attempt that is near its model's window. Its request waits for as long as this lives, and once it is said to end,
/// until the attempt is forgotten.
#[derive(Debug)]
pub(crate) struct Near {
    why: String,
    held: CancellationToken,
    ends: bool,
}

impl Near {
    /// The attempt ends; why.
    pub(crate) fn ends(mut self) -> String {
        self.ends = true;
        std::mem::take(&mut self.why)
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        if !self.ends {
            self.held.cancel();
        }
    }
}

impl Fill {
    /// Takes note of a main turn that was answered, with all its tokens.
    pub(crate) fn answered(&self, id: &AttemptId, tokens: u64) {
        self.with(|all| {
            let conversed = all.entry(name(id)).or_default();
            conversed.turns += 1;
            conversed.tokens = tokens;
        });
    }

    /// Whether whoever asks is near the window of its model; its request waits from here on.
    pub(crate) fn near(&self, ask: &Ask) -> Option<Near> {
        let (window, path) = (ask.context_tokens?, ask.path_attempt.as_ref()?);
        self.with(|all| {
            let conversed = all.get_mut(path).filter(|_| ask.turn_kind == TurnKind::Main)?;
            let tokens = conversed.tokens;
            if conversed.turns < TURNS_MIN || tokens.saturating_mul(100) < window.saturating_mul(NEAR_PERCENT) {
                return None;
            }
            let held = CancellationToken::new();
            conversed.holds = Some(held.clone());
            let why = format!("its conversation holds {tokens} of the {window} tokens that its model takes");
            Some(Near { why, held, ends: false })
        })
    }

    /// What a request has to wait for.
    pub(crate) fn holds(&self, ask: &Ask) -> Option<CancellationToken> {
        let path = ask.path_attempt.as_ref().filter(|_| ask.turn_kind == TurnKind::Main)?;
        self.with(|all| all.get(path)?.holds.clone())
    }

    /// Forgets an attempt that is over, and lets its request go.
    pub(crate) fn forget(&self, id: &AttemptId) {
        if let Some(held) = self.with(|all| all.remove(&name(id))).and_then(|conversed| conversed.holds) {
            held.cancel();
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Conversed>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How an attempt is named in the paths of its requests.
fn name(id: &AttemptId) -> String {
    format!("{}/{}", id.run, id.slug())
}

#[cfg(test)]
mod tests {
    use outlast_core::{RunId, TaskId, Timestamp};
    use outlast_gateway::Dialect;

    use super::*;

    fn id() -> AttemptId {
        AttemptId { run: RunId::new("r"), task: TaskId::new("t"), number: 2 }
    }

    fn ask(kind: TurnKind, window: Option<u64>) -> Ask {
        Ask {
            path_attempt: Some(name(&id())),
            key: String::new(),
            dialect: Dialect::Anthropic,
            model: None,
            context_tokens: window,
            request_bytes: 0,
            request: String::new(),
            turn_kind: kind,
            sub_agent: None,
            received_at: Timestamp::EPOCH,
            again_after: None,
        }
    }

    #[test]
    fn near_is_three_quarters_of_a_known_window_after_a_few_turns() {
        let fill = Fill::default();
        let main = |window| fill.near(&ask(TurnKind::Main, window)).is_some();
        for _ in 0..TURNS_MIN {
            assert!(!main(Some(1000)), "full from the beginning");
            fill.answered(&id(), 750);
        }
        assert!(main(Some(1000)) && !main(Some(1001)) && !main(None));
        assert!(fill.near(&ask(TurnKind::Background, Some(1000))).is_none());
        fill.answered(&id(), 100);
        assert!(!main(Some(1000)), "it has condensed its conversation");
        fill.forget(&id());
        assert!(!main(Some(1)));
    }

    #[test]
    fn the_request_waits_until_its_attempt_is_over_or_that_has_come_to_nothing() {
        let fill = Fill::default();
        let main = ask(TurnKind::Main, Some(1000));
        assert!(fill.holds(&main).is_none());
        (0..TURNS_MIN).for_each(|_| fill.answered(&id(), 900));
        let near = fill.near(&main).unwrap();
        let held = fill.holds(&main).unwrap();
        assert!(!held.is_cancelled());
        drop(near);
        assert!(held.is_cancelled(), "it came to nothing");
        let why = fill.near(&main).unwrap().ends();
        assert!(why.contains("900 of the 1000 tokens"), "{why}");
        let held = fill.holds(&main).unwrap();
        assert!(!held.is_cancelled());
        fill.forget(&id());
        assert!(held.is_cancelled() && fill.holds(&main).is_none());
    }
}
