//! Refusals that no waiting mends, and that were therefore handed on to the agent: a key that is not taken, an account
//! that is not paid for.
//!
//! An agent dies of one in its own way, and what it prints need not say why. What the provider said does.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use outlast_core::{AttemptId, Class};

/// The last refusal that was handed to each attempt.
#[derive(Debug, Default)]
pub(crate) struct PassedRefusals(Mutex<BTreeMap<AttemptId, (Class, String)>>);

impl PassedRefusals {
    /// Takes note of a refusal that an attempt is handed.
    pub(crate) fn note(&self, attempt: AttemptId, class: Class, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt, (class, why));
    }

    /// What the attempt was handed, once its end is judged.
    pub(crate) fn take(&self, attempt: &AttemptId) -> Option<(Class, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(attempt)
    }
}
